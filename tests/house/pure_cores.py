"""What claims to be pure does no I/O: the folders of FOLDERS, and every file whose header says
"pure" in its opening comment, with its parts: x.c, x_part.c, x_int.h. Such a file includes no
header of the system that could, no file of ours that is not pure itself, and calls nothing that
reads a clock, a file or a random source."""
import re

from house import CODE, files, run, text_of, without_comments

CORES = ("src/raft/", "src/lease/", "src/sessions/", "src/work/placement")
FOLDERS = CORES + ("src/protocol/", "src/work/")
CLAIM = re.compile(r"\A\s*/\*(?:(?!\*/).)*\b[Pp]ure\b", re.S)
SYSTEM = {"assert.h", "errno.h", "inttypes.h", "limits.h", "math.h", "stdalign.h", "stdarg.h",
          "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "utarray.h", "uthash.h",
          "utlist.h", "utstring.h"}
# For formats: text into a buffer, a broken-down time, JSON, HTTP. The cores need none of them.
FORMATS = {"base/json_load.h", "base/json_text.h", "ctype.h", "http_parser.h", "jansson.h",
           "stdio.h", "strings.h", "time.h"}
OURS = {"base/clock.h", "base/error.h", "base/buffer.h", "base/crc32c.h", "base/deadlines.h",
        "base/invariant.h", "base/names.h", "base/text.h", "baton/error.h", "baton/types.h"}
# Of these a pure file uses types and constants.
TYPES = {"detector/image.h", "hiredis/hiredis.h", "net/redis/redis.h", "provider/provider.h",
         "provider/redis/scripts.h"}
CALLS = re.compile(r"(?<![\w.>])(clock_\w+|time|localtime\w*|getenv|setenv|exit|abort|rand\w*|"
                   r"srand\w*|random|arc4random\w*|getrandom|qsort_r|"
                   r"log_(?:debug|info|notice|warning|error)|open|read|write|close|f[a-z]*open|"
                   r"fread|fwrite|printf|fprintf|vprintf|puts|fputs|putchar|system|"
                   r"json_load(?:_file|f|fd)|json_dump(?:_file|f|fd))\s*\(")


def claims(root):
    """The files that must be pure."""
    names = [path.relative_to(root).as_posix() for folder in CODE
             for path in files(root / folder, ".c", ".h")]
    stems = [name[:-2] for name in names
             if name.endswith(".h") and CLAIM.match(text_of(root / name))]
    parts = re.compile("(?:%s)(?:_[a-z]+)?\\.[ch]" % "|".join(map(re.escape, stems)))
    return {name for name in names if name.startswith(FOLDERS) or parts.fullmatch(name)}


def check(root):
    pure = claims(root)
    for here in sorted(pure):
        more = set() if here.startswith(CORES) else FORMATS | TYPES
        source = without_comments(text_of(root / here), keep_strings=True)
        for name in re.findall(r'#\s*include\s+[<"]([^">]+)', source):
            own = name in pure or "src/" + name in pure
            if not (own or name in SYSTEM | OURS | more):
                yield f"{here}: includes {name}, which is not pure"
        for number, line in enumerate(without_comments(source).split("\n"), 1):
            for call in CALLS.findall(line):
                yield f"{here}:{number}: calls {call}(): time, chance and bytes are handed in"


def can_fail(plant):
    core = {"src/raft/a.c": '#include <string.h>\n#include "raft/raft.h"\n//exit()',
            "src/raft/raft.h": ""}
    assert plant(core) == []
    assert len(plant({"src/raft/a.c": "#include <unistd.h>\n"})) == 1
    assert len(plant({"src/raft/a.c": "#include <stdio.h>\n"})) == 1
    assert plant({"src/protocol/a.c": "#include <stdio.h>\n"}) == []
    assert len(plant({"src/lease/a.c": '#include "net/stream.h"\n', "src/net/stream.h": ""})) == 1
    claim = {"detector/a.h": "/* A thing.\n * Pure: no I/O. */\n", "detector/b.h": "/* I/O. */"}
    assert plant(claim | {"detector/a.c": '#include "detector/a.h"\n'}) == []
    assert len(plant(claim | {"detector/a.c": "now = clock_now();"})) == 1
    assert len(plant(claim | {"detector/a.c": '#include "detector/b.h"\n'})) == 1
    assert len(plant(claim | {"detector/a_part.c": "now = clock_now();"})) == 1
    assert plant(claim | {"detector/b.c": "now = clock_now();"}) == []


run(check, can_fail)
