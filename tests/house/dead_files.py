"""No dead file: each .c is built by a CMakeLists.txt at or above it, that one is added by the next
one above, and each .h is included."""
import re

from house import files, run, text_of

FOLDERS = ("src", "detector", "fleet", "sim", "tests", "fuzz", "bench", "examples", "include")


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


def is_added(root, lists):
    """By the nearest list above; in a loop the folder is named on its own."""
    folder = lists.parent.parent
    while folder != root and not (folder / "CMakeLists.txt").is_file():
        folder = folder.parent
    if not (folder / "CMakeLists.txt").is_file():
        return True
    text = re.sub(r"#[^\n]*", "", text_of(folder / "CMakeLists.txt"))
    words = {lists.parent.relative_to(folder).as_posix(), lists.parent.name}
    return not words.isdisjoint(re.findall(r"[\w./-]+", text))


def check(root):
    for folder in FOLDERS:
        for lists in files(root / folder, "CMakeLists.txt"):
            if not is_added(root, lists):
                yield f"{lists.relative_to(root)}: no CMakeLists.txt above adds it"
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
    below = {"src/a/CMakeLists.txt": "", "src/b/CMakeLists.txt": ""}
    some = alive | below | {"src/CMakeLists.txt": lists.replace("# ", "\nadd_subdirectory(a) # b ")}
    assert plant(some) == ["src/b/CMakeLists.txt: no CMakeLists.txt above adds it"]
    assert plant(alive | {"src/dead.c": ""}) == ["src/dead.c: no CMakeLists.txt builds it"]
    assert plant(alive | {"src/test_two.c": ""}) != []
    assert plant(alive | {"src/dead.h": ""}) == ["src/dead.h: nobody includes it"]


run(check, can_fail)
