"""The Makefile's help lists every target, and every script of scripts/ is used and can be run."""
import os
import re

from house import files, run, text_of


def check(root):
    makefile = text_of(root / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    helped = set(re.findall(r"^([a-z-]+):[^\n]*## \S", makefile, re.M))
    phony = set(" ".join(re.findall(r"^\.PHONY:(.*)$", makefile, re.M)).split())
    for name in sorted(targets - helped):
        yield f"Makefile: {name} has no line of help"
    for name in sorted(targets ^ phony):
        yield f"Makefile: {name} is a target or is in .PHONY, but not both"
    scripts = [path for path in files(root, "") if path.parent == root / "scripts"]
    said = makefile + "".join(text_of(path) for path in scripts + files(root, "CMakeLists.txt"))
    for path in scripts:
        name = path.relative_to(root).as_posix()
        if text_of(path).startswith("#!") and not os.access(path, os.X_OK):
            yield f"{name}: cannot be run"
        if name not in re.findall(r"scripts/[\w.-]*\w", said):
            yield f"{name}: nothing calls it"


def can_fail(plant):
    makefile = ".PHONY: all\nall: ## builds\n\tscripts/b\n"
    assert plant({"Makefile": makefile}) == []
    assert len(plant({"Makefile": makefile + "check:\n"})) == 2
    assert plant({"Makefile": makefile, "scripts/b": "#!/bin/sh\n"}) == ["scripts/b: cannot be run"]
    assert len(plant({"Makefile": makefile, "scripts/c": "echo\n"})) == 1


run(check, can_fail)
