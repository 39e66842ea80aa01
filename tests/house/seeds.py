"""A row of docs/seeds.md names a test; a test named in any docs/seeds*.md is in the tree."""
import re

from house import files, run, text_of


def tests(root):
    """Names of cmocka's tests, of ctest's, and of the house rules."""
    names = set()
    for path in files(root / "tests", ".c"):
        names.update(re.findall(r"^(?:static )?void (\w+)\(void \*\*", text_of(path), re.M))
    for path in files(root, "CMakeLists.txt"):
        text = text_of(path)
        names.update(re.findall(r"baton_test\(\s*(\w+)", text))
        names.update(re.findall(r"add_test\(\s*NAME\s+(\w+)", text))
    for path in files(root / "tests", ".py", ".sh"):
        names.update(re.findall(r"^\s*(?:def )?(test_\w+)\s*\(", text_of(path), re.M))
    return names


def rows(text):
    """(line number, cells) of each row of a table with three columns, headings left out."""
    for number, line in enumerate(text.split("\n"), 1):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and not set(cells[0]) <= set("-: ") and cells[0] != "theirs":
            yield number, cells


def check(root):
    known = tests(root)
    if not (root / "docs/seeds.md").is_file():
        yield "docs/seeds.md does not exist"
    for page in sorted((root / "docs").glob("seeds*.md")):
        here = page.relative_to(root)
        for number, cells in rows(text_of(page)):
            named = re.findall(r"`(\w+)`", cells[2])
            if not named and page.name == "seeds.md":
                yield f"{here}:{number}: names no test: {cells[0]}"
            for name in named:
                if name not in known:
                    yield f"{here}:{number}: no test is called {name}"


def can_fail(plant):
    def tree(cell):
        head = "| theirs | ours | test |\n| --- | --- | --- |\n"
        return {"docs/seeds.md": head + f"| a | b | {cell} |",
                "tests/unit/t.c": "static void it_holds(void **state)\n"}
    assert plant(tree("`it_holds`")) == []
    assert plant(tree("`it_falls`")) == ["docs/seeds.md:3: no test is called it_falls"]
    assert len(plant(tree("surely"))) == 1


run(check, can_fail)
