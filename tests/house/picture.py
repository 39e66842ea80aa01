"""The picture in docs/architecture.md shows the layers of src/ and the wings, and no others."""
import re

from house import run, text_of

WINGS = ("detector",)


def layers(root):
    wings = {name for name in WINGS if (root / name).is_dir()}
    return {p.name for p in (root / "src").iterdir() if p.is_dir()} | wings


def drawn(text):
    """Names with a slash in the first fenced block, as `raft/`."""
    block = re.search(r"```[a-z]*\n(.*?)```", text, re.S)
    return set(re.findall(r"(?<![\w/])([a-z]+)/(?![\w*])", block.group(1))) if block else set()


def check(root):
    page = root / "docs/architecture.md"
    if not page.is_file():
        yield "docs/architecture.md does not exist"
        return
    there, shown = layers(root), drawn(text_of(page))
    for name in sorted(there - shown):
        yield f"docs/architecture.md: the picture lacks {name}/"
    for name in sorted(shown - there):
        yield f"docs/architecture.md: the picture shows {name}/, which is not there"


def can_fail(plant):
    def tree(picture):
        return {"src/raft/a.c": "", "src/base/a.c": "", "docs/architecture.md": picture}
    assert plant(tree("```\nraft/\n  base/\n```\n")) == []
    assert len(plant(tree("```\nraft/\n```\n base/"))) == 1
    assert len(plant(tree("```\nraft/ base/ lease/\n```\n"))) == 1


run(check, can_fail)
