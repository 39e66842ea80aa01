"""The cores do no I/O: no header of the system that could, and no call of ours that would."""
import re

from house import files, run, text_of, without_comments

CORES = re.compile(r"^src/(raft|lease)/[^/]+$|^src/work/placement[^/]*$")
SYSTEM = {"assert.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h", "stdarg.h",
          "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "utarray.h", "uthash.h",
          "utlist.h", "utstring.h"}
OURS = {"base/clock.h", "base/error.h", "base/buffer.h", "base/crc32c.h", "base/invariant.h",
        "baton/error.h", "baton/types.h"}
CALLS = re.compile(r"\b(clock_\w+|getenv|setenv|exit|abort|rand\w*|srand\w*|random|arc4random\w*|"
                   r"getrandom|qsort_r|log_(?:debug|info|notice|warning|error))\s*\(")


def check(root):
    for path in files(root / "src", ".c", ".h"):
        here = path.relative_to(root).as_posix()
        if not CORES.match(here):
            continue
        source = without_comments(text_of(path), keep_strings=True)
        for kind, name in re.findall(r'#\s*include\s+([<"])([^">]+)', source):
            own = name.startswith(here.split("/")[1] + "/")
            if not (name in SYSTEM if kind == "<" else own or name in OURS):
                yield f"{here}: includes {name}, which a core has no use for"
        for number, line in enumerate(without_comments(source).split("\n"), 1):
            for call in CALLS.findall(line):
                yield f"{here}:{number}: calls {call}(): time and chance are handed in"


def can_fail(plant):
    assert plant({"src/raft/a.c": '#include <string.h>\n#include "raft/raft.h"\n//exit()'}) == []
    assert len(plant({"src/raft/a.c": "#include <unistd.h>\n"})) == 1
    assert len(plant({"src/lease/a.c": '#include "net/stream.h"\n'})) == 1
    assert len(plant({"src/work/placement.c": "now = clock_now();"})) == 1
    assert plant({"src/work/ledger.c": "now = clock_now();"}) == []


run(check, can_fail)
