"""Includes point down only: to the own layer, or to one that DEPENDS leads to. A wing beside
src/ may depend on these parts of src/ only; no part of src/ depends on a wing."""
import re
from pathlib import Path

from house import CODE, WINGS, files, run, text_of, without_comments

LAYER = re.compile(r"baton_layer\(\s*(\w+)(.*?)\)", re.S)
# What a wing may use of src/, by layer; and all folders that it may reach, by what it uses.
USES = {"detector": {"base", "json", "options", "protocol", "web"},
        "fleet": {"base", "errand", "json", "member", "net", "net_redis", "options", "protocol",
                  "web", "work"}}
REACHES = {"detector": {"base", "net", "options", "protocol", "web"},
           "fleet": {"agent", "base", "guardian", "lease", "member", "net", "options", "protocol",
                     "provider", "raft", "sessions", "web", "work"}}
WORDS = ("DEPENDS", "LIBRARIES", "SOURCES")


class Layers:
    def __init__(self, root):
        self.depends, self.of_file, self.of_folder, self.folder = {}, {}, {}, {}
        for path in files(root, "CMakeLists.txt"):
            for name, body in LAYER.findall(re.sub(r"#[^\n]*", "", text_of(path))):
                self.add(path.parent.relative_to(root), name, body.split())

    def add(self, folder, name, words):
        part = None
        self.depends[name] = set()
        self.folder[name] = folder.parts
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


def wing_of(folder):
    return folder[0] if folder and folder[0] in WINGS else None


def wings(layers):
    """Dependencies between the wings and src/ that must not be."""
    for name, folder in layers.folder.items():
        wing = wing_of(folder)
        for lower in layers.depends[name]:
            there = wing_of(layers.folder.get(lower, ()))
            if there and there != wing:
                yield f"layer {name} depends on {lower}, which is of the wing {there}"
            elif wing and not there and lower not in USES[wing]:
                yield f"layer {name} depends on {lower}, which is not for {wing}"
        for lower in sorted(layers.below(name)) if wing else ():
            folder = layers.folder.get(lower, ())
            if folder[:1] == ("src",) and folder[1] not in REACHES[wing]:
                yield f"layer {name} reaches {lower}, by what it depends on"


def target_of(root, included):
    """The file that an include means, if it is of a layer."""
    if (root / "src" / included).is_file():
        return Path("src", included)
    return Path(included) if included.split("/")[0] in WINGS and (root / included).is_file() \
        else None


def check(root):
    layers = Layers(root)
    yield from circles(layers)
    yield from wings(layers)
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
            if not layers.of(there) & allowed:
                yield f'{here}: "{included}" is not below {"/".join(sorted(layers.of(here)))}'
            elif wing_of(here.parts) and not wing_of(there.parts) and \
                    not layers.of(there) & USES[here.parts[0]]:
                yield f'{here}: "{included}" is not for {here.parts[0]}'


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
    within = {"src/a/CMakeLists.txt": "baton_layer(a SOURCES a.c)\n"
              "baton_layer(b DEPENDS a SOURCES b.c)", "src/a/a.h": "", "src/a/b.h": ""}
    assert plant(within | {"src/a/b.c": '#include "a/a.h"\n'}) == []
    assert plant(within | {"src/a/a.c": '#include "a/b.h"\n'}) == \
        ['src/a/a.c: "a/b.h" is not below a']
    wing = {"detector/CMakeLists.txt": "baton_layer(d SOURCES d.c)", "detector/d.h": ""}
    assert plant(wing | {"detector/d.c": '#include "detector/d.h"\n'}) == []
    assert plant(tree("", "") | wing | {"detector/d.c": '#include "a/a.h"\n'}) == \
        ['detector/d.c: "a/a.h" is not below d']

    base = {"src/base/CMakeLists.txt": "baton_layer(base SOURCES b.c)", "src/base/b.h": "",
            "src/member/CMakeLists.txt": "baton_layer(member DEPENDS base SOURCES m.c)",
            "src/net/CMakeLists.txt": "baton_layer(net DEPENDS base SOURCES n.c)",
            "src/net/n.h": ""}
    use = {"detector/CMakeLists.txt": "baton_layer(d DEPENDS base SOURCES d.c)"}
    assert plant(base | use | {"detector/d.c": '#include "base/b.h"\n'}) == []
    for lower, faults in ("net", 1), ("member", 2):
        lists = f"baton_layer(d DEPENDS {lower} SOURCES d.c)"
        assert len(plant(base | {"detector/CMakeLists.txt": lists})) == faults
    web = {"src/web/CMakeLists.txt": "baton_layer(web DEPENDS net SOURCES w.c)",
           "detector/CMakeLists.txt": "baton_layer(d DEPENDS web SOURCES d.c)"}
    assert plant(base | web | {"detector/d.c": '#include "net/n.h"\n'}) == \
        ['detector/d.c: "net/n.h" is not for detector']
    through = {"src/sessions/CMakeLists.txt": "baton_layer(sessions SOURCES s.c)",
               "src/web/CMakeLists.txt": "baton_layer(web DEPENDS sessions SOURCES w.c)",
               "detector/CMakeLists.txt": "baton_layer(d DEPENDS web SOURCES d.c)"}
    assert plant(through) == ["layer d reaches sessions, by what it depends on"]
    up = {"src/cli/CMakeLists.txt": "baton_layer(cli DEPENDS d SOURCES c.c)"}
    assert len(plant(base | use | up)) == 1


run(check, can_fail)
