"""No dead file: each .c is built by a CMakeLists.txt at or above it, each .h is included."""
import re

from house import files, run, text_of

FOLDERS = ("src", "sim", "tests", "fuzz", "bench", "examples", "include")


def is_built(root, path):
    folder = path.parent
    while True:
        lists = folder / "CMakeLists.txt"
        name = path.relative_to(folder).as_posix()
        if lists.is_file() and names(text_of(lists), name):
            return True
        if folder == root:
            return False
        folder = folder.parent


def names(text, name):
    text = re.sub(r"#[^\n]*", "", text)
    if re.search(r"(?<![\w./-])" + re.escape(name) + r"(?![\w.-])", text):
        return True
    # In a loop or a function: test_${module}.c with the module named on its own.
    for pattern in re.findall(r"[\w./${}-]*\$\{\w+\}[\w./-]*\.c\b", text):
        literal = [re.escape(part) for part in re.split(r"\$\{\w+\}", pattern)]
        found = re.fullmatch(r"([\w-]+)".join(literal), name)
        if found and re.search(r"(?<![\w-])" + re.escape(found.group(1)) + r"(?![\w-])", text):
            return True
    return False


def check(root):
    sources = [path for folder in FOLDERS for path in files(root / folder, ".c", ".h")]
    included = set()
    for path in sources:
        for name in re.findall(r'#\s*include\s+["<]([^">]+)[">]', text_of(path)):
            included.add(name.split("/")[-1])
    for path in sources:
        here = path.relative_to(root)
        if path.suffix == ".c" and not is_built(root, path):
            yield f"{here}: no CMakeLists.txt builds it"
        if path.suffix == ".h" and here.parts[0] != "include" and path.name not in included:
            yield f"{here}: nobody includes it"


def can_fail(plant):
    lists = "foreach(m one)\n baton_test(unit_${m} SOURCES test_${m}.c)\nendforeach() # dead.c"
    alive = {"src/CMakeLists.txt": lists, "src/test_one.c": '#include "one.h"', "src/one.h": ""}
    assert plant(alive) == []
    assert plant(alive | {"src/dead.c": ""}) == ["src/dead.c: no CMakeLists.txt builds it"]
    assert plant(alive | {"src/test_two.c": ""}) != []
    assert plant(alive | {"src/dead.h": ""}) == ["src/dead.h: nobody includes it"]


run(check, can_fail)
