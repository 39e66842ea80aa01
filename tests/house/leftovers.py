"""Nothing is left for later in the text, and nothing of the machine that it was written on."""
import re

from house import files, run, text_of

SUFFIXES = (".c", ".h", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".yaml", ".yml", ".in",
            ".1", ".3", ".7", ".8", "Makefile", "control", ".service")
# Put together here, so that this file may speak of them.
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
MACHINE = re.compile(r"(?<![\w.$}/])/(wo" + r"rk|ho" + r"me|ro" + r"ot|Us" + r"ers)/\w+")
# Where data of many bytes belongs: what was found by fuzzing, and pictures.
BINARY = ("fuzz/corpus/", "docs/")


def check(root):
    for path in files(root, ""):
        here = str(path.relative_to(root))
        if not here.startswith(BINARY) and b"\0" in path.read_bytes():
            yield f"{here}: is no text: what has left it there?"
    scripts = [path for path in files(root, "") if path.parent == root / "scripts"]
    for path in files(root, *SUFFIXES) + scripts:
        here = path.relative_to(root)
        for number, line in enumerate(text_of(path).split("\n"), 1):
            for found in LATER.findall(line):
                yield f"{here}:{number}: {found}: do it, or leave it"
            for found in MACHINE.finditer(line):
                yield f"{here}:{number}: {found.group(0)}: a path of one machine"


def can_fail(plant):
    assert plant({"src/a.c": "/* hacks */ \"https://example.net/work/x\" \"/var/lib/baton\""}) == []
    assert len(plant({"src/a.c": "/* TO" "DO: it */"})) == 1
    assert len(plant({"dump.rdb": "REDIS\0"})) == 1
    assert plant({"fuzz/corpus/frame/a": "\0"}) == []
    assert len(plant({"scripts/a": "cd /ho" "me/me/baton"})) == 1


run(check, can_fail)
