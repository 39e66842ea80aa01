"""The picture and the table in docs/architecture.md have the layers of src/ and the wings, all of
them and no others, and the picture shows none above another one that uses it."""
import re

from house import CODE, WINGS, files, run, text_of, without_comments

NAME = re.compile(r"(?<![\w/])([a-z]+)/(?![\w*])")
ROW = re.compile(r"^\| `([a-z]+)` \|", re.M)


def layers(root):
    wings = {name for name in WINGS if (root / name).is_dir()}
    return {p.name for p in (root / "src").iterdir() if p.is_dir()} | wings


def drawn(text):
    """The line of the first fenced block that has each name with a slash, as `raft/`."""
    block = re.search(r"```[a-z]*\n(.*?)```", text, re.S)
    return {name: number for number, line in enumerate(block.group(1).split("\n"))
            for name in NAME.findall(line)} if block else {}


def uses(root):
    """Pairs of layers, the first of which includes a header of the second."""
    found = set()
    for path in (path for folder in CODE for path in files(root / folder, ".c", ".h")):
        parts = path.relative_to(root).parts
        here = parts[1] if parts[0] == "src" else parts[0]
        source = without_comments(text_of(path), keep_strings=True)
        for name in re.findall(r'#\s*include\s+"([a-z]+)/', source):
            found.add((here, name))
    return found


def check(root):
    page = root / "docs/architecture.md"
    if not page.is_file():
        yield "docs/architecture.md does not exist"
        return
    there, shown, rows = layers(root), drawn(text_of(page)), set(ROW.findall(text_of(page)))
    for where, names in (("picture", set(shown)), ("table", rows)):
        for name in sorted(there - names):
            yield f"docs/architecture.md: the {where} lacks {name}"
        for name in sorted(names - there):
            yield f"docs/architecture.md: the {where} shows {name}, which is not there"
    for here, lower in sorted(uses(root)):
        if shown.get(here, 0) > shown.get(lower, len(text_of(page))):
            yield f"docs/architecture.md: the picture shows {here} below {lower}, which it uses"


def can_fail(plant):
    def tree(picture, rows=("raft", "base")):
        table = "".join(f"| `{name}` | offers |\n" for name in rows)
        return {"src/raft/a.c": '#include "base/a.h"', "src/base/a.c": "",
                "docs/architecture.md": f"```\n{picture}```\n{table}"}
    assert plant(tree("raft/\n  base/\n")) == []
    assert len(plant(tree("raft/\n"))) == 1
    assert len(plant(tree("raft/ base/ lease/\n"))) == 1
    assert len(plant(tree("raft/\nbase/\n", ("raft",)))) == 1
    assert len(plant(tree("raft/\nbase/\n", ("raft", "base", "lease")))) == 1
    assert len(plant(tree("base/\nraft/\n"))) == 1


run(check, can_fail)
