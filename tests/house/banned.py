"""Calls that overrun, hide errors or share state behind one's back are used nowhere."""
import re

from house import files, run, text_of, without_comments

# name: what to use in its place
BANNED = {
    "strcpy": "snprintf", "strcat": "snprintf or base/buffer.h", "sprintf": "snprintf",
    "vsprintf": "vsnprintf", "strncpy": "snprintf", "strncat": "snprintf", "gets": "getline",
    "strtok": "strtok_r", "atoi": "strtol", "atol": "strtol", "atoll": "strtoll",
    "atof": "strtod", "rand": "the seed that is handed in, or getrandom",
    "srand": "the seed that is handed in, or getrandom", "random": "getrandom",
    "tmpnam": "mkstemp", "mktemp": "mkstemp", "tempnam": "mkstemp", "gmtime": "gmtime_r",
    "localtime": "localtime_r", "ctime": "strftime", "asctime": "strftime",
    "alloca": "malloc, with a bound",
    "popen": "uv_spawn",
    "scanf": "strtol", "usleep": "a timer of the loop",
    "json_loads": "base/json_load.h", "json_loadb": "base/json_load.h",
    "json_dumps": "base/json_text.h", "json_dump_callback": "base/json_text.h",
}
APART = ("sim", "fuzz", "bench", "examples")  # they may read what they wrote themselves
FOLDERS = ("src", "detector", "fleet", "include", "sim", "fuzz", "bench", "examples")

CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")


def check(root):
    for path in (path for folder in FOLDERS for path in files(root / folder, ".c", ".h")):
        here = path.relative_to(root).as_posix()
        source = without_comments(text_of(path))
        for number, line in enumerate(source.split("\n"), 1):
            for name in CALL.findall(line):
                if name.startswith("json_") and here.split("/")[0] in APART:
                    continue
                yield f"{here}:{number}: {name}() is banned; use {BANNED[name]}"


def can_fail(plant):
    assert plant({"src/a.c": "strtok_r(a); peer->random(1); /* strcpy(a) */ f(\"gets(a)\");"}) == []
    assert plant({"src/a.c": "\n strcpy (a, b);"}) == \
        ["src/a.c:2: strcpy() is banned; use snprintf"]
    assert len(plant({"sim/a.c": "x = rand() + atoi(y);"})) == 2


run(check, can_fail)
