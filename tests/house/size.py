"""A function fits a screen and a half (70 lines), a file 900 lines, a line 100 columns."""
from house import files, run, text_of

FUNCTION_MAX = 70
FILE_MAX = 900
COLUMNS_MAX = 100


def check(root):
    for path in files(root, ".c", ".h", ".py"):
        here = path.relative_to(root)
        lines = text_of(path).split("\n")
        if len(lines) > FILE_MAX:
            yield f"{here}: {len(lines)} lines; {FILE_MAX} is the most"
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield f"{here}:{number}: {len(line)} columns; {COLUMNS_MAX} is the most"
        if path.suffix == ".c":
            yield from long_functions(here, lines)


def long_functions(here, lines):
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > FUNCTION_MAX:
                yield f"{here}:{start}: a function of {number - start - 1} lines; " \
                      f"{FUNCTION_MAX} is the most"
            start = None


def can_fail(plant):
    body = "    x++;\n"
    assert plant({"src/a.c": "void f(void)\n{\n" + body * FUNCTION_MAX + "}\n"}) == []
    assert len(plant({"src/a.c": "void f(void)\n{\n" + body * (FUNCTION_MAX + 1) + "}\n"})) == 1
    assert len(plant({"src/a.c": body * FILE_MAX})) == 1
    assert len(plant({"src/a.c": "x" * (COLUMNS_MAX + 1)})) == 1


run(check, can_fail)
