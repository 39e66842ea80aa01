"""Includes point down only: to the own folder, or to a layer that DEPENDS leads to."""
import re
from pathlib import Path

from house import files, run, text_of, without_comments

LAYER = re.compile(r"baton_layer\(\s*(\w+)(.*?)\)", re.S)
WINGS = ("detector",)  # beside src/, each a folder whose name its includes begin with
CODE = ("src",) + WINGS
WORDS = ("DEPENDS", "LIBRARIES", "SOURCES")


class Layers:
    def __init__(self, root):
        self.depends, self.of_file, self.of_folder = {}, {}, {}
        for path in files(root, "CMakeLists.txt"):
            for name, body in LAYER.findall(re.sub(r"#[^\n]*", "", text_of(path))):
                self.add(path.parent.relative_to(root), name, body.split())

    def add(self, folder, name, words):
        part = None
        self.depends[name] = set()
        self.of_folder.setdefault(folder, set()).add(name)
        for word in words:
            if word in WORDS:
                part = word
            elif part == "DEPENDS":
                self.depends[name].add(word)
            elif part == "SOURCES":
                self.of_file[folder / word] = name

    def of(self, path):
        """The layers that a file may speak for: its own, or all of its folder if it is in none."""
        twin = self.of_file.get(path) or self.of_file.get(path.with_suffix(".c"))
        return {twin} if twin else self.of_folder.get(path.parent, set())

    def below(self, name):
        seen, todo = set(), [name]
        while todo:
            layer = todo.pop()
            if layer not in seen:
                seen.add(layer)
                todo += self.depends.get(layer, ())
        return seen


def circles(layers):
    for name in layers.depends:
        for lower in layers.depends[name]:
            if lower not in layers.depends:
                yield f"layer {name} depends on {lower}, which is no layer"
            elif name in layers.below(lower):
                yield f"layers {name} and {lower} depend on each other"


def target_of(root, included):
    """The file that an include means, if it is of a layer."""
    if (root / "src" / included).is_file():
        return Path("src", included)
    return Path(included) if included.split("/")[0] in WINGS and (root / included).is_file() \
        else None


def check(root):
    layers = Layers(root)
    yield from circles(layers)
    for path in (path for folder in CODE for path in files(root / folder, ".c", ".h")):
        here = path.relative_to(root)
        allowed = set().union(*(layers.below(layer) for layer in layers.of(here)), set())
        source = without_comments(text_of(path), keep_strings=True)
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', source, re.M):
            there = target_of(root, included)
            if there is None:
                if not (root / "include" / included).is_file():
                    yield f'{here}: "{included}" is in none of src/, include/, {", ".join(WINGS)}'
                continue
            if there.parent != here.parent and not layers.of(there) & allowed:
                yield f'{here}: "{included}" is not below {"/".join(sorted(layers.of(here)))}'


def can_fail(plant):
    def tree(depends, text):
        return {"src/a/CMakeLists.txt": f"baton_layer(a {depends} SOURCES a.c)",
                "src/b/CMakeLists.txt": "baton_layer(b DEPENDS a SOURCES b.c)",
                "src/a/a.c": text, "src/a/a.h": "", "src/b/b.c": '#include "a/a.h"\n',
                "src/b/b.h": ""}
    assert plant(tree("", '#include "a/a.h"\n/* #include "b/b.h" */')) == []
    assert plant(tree("", '#include "b/b.h"\n')) == ['src/a/a.c: "b/b.h" is not below a']
    assert len(plant(tree("DEPENDS b", ""))) == 2
    assert plant(tree("", '#include "c/c.h"\n')) != []
    wing = {"detector/CMakeLists.txt": "baton_layer(d SOURCES d.c)", "detector/d.h": ""}
    assert plant(wing | {"detector/d.c": '#include "detector/d.h"\n'}) == []
    assert plant(tree("", "") | wing | {"detector/d.c": '#include "a/a.h"\n'}) == \
        ['detector/d.c: "a/a.h" is not below d']


run(check, can_fail)
