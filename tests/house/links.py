"""Every link between the documents leads somewhere, and the index leads to every document."""
import re

from house import files, run, text_of

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def anchors(text):
    for heading in re.findall(r"^#+\s+(.*)$", text, re.M):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        yield plain.strip().replace(" ", "-")


def links(path):
    text = re.sub(r"```.*?```", "", text_of(path), flags=re.S)
    for link in LINK.finditer(text):
        target = link.group(1) or link.group(2)
        if not re.match(r"[a-z]+:", target):
            yield target.partition("#")[0], target.partition("#")[2]


def check(root):
    reached = set()
    documents = [p for p in files(root, ".md") if "seeds" not in p.relative_to(root).parts[:-1]]
    for path in documents:
        for name, anchor in links(path):
            target = (path.parent / name).resolve() if name else path
            if path in (root / "docs/README.md", root / "docs/decisions/README.md"):
                reached.add(target)
            if not target.exists():
                yield f"{path.relative_to(root)}: {name} does not exist"
            elif anchor and anchor not in anchors(text_of(target)):
                yield f"{path.relative_to(root)}: {name}#{anchor}: no such heading"
    for path in documents:
        if root / "docs" in path.parents and path.name != "README.md" and path not in reached:
            yield f"{path.relative_to(root)}: not in the index of its folder or of docs/"


def can_fail(plant):
    good = {"docs/README.md": "[a](a.md#one-thing) [out](https://x)", "docs/a.md": "## One thing\n"}
    assert plant(good) == []
    assert len(plant({"README.md": "[a](gone.md)"})) == 1
    assert len(plant(good | {"README.md": "[a](docs/a.md#two)"})) == 1
    assert len(plant(good | {"docs/b.md": ""})) == 1


run(check, can_fail)
