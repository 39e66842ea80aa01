"""No circle of files: x.c with x.h and x_int.h, its inner header, is one file here, and every file
has a place above those that it includes."""
import re

from house import CODE, files, run, text_of, without_comments

FOLDERS = CODE + ("sim",)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def one_file(name):
    return re.sub(r"(_int)?\.[ch]$", "", name)


def includes(root):
    """For each file of these folders the others that it includes."""
    names = {path.relative_to(root).as_posix()
             for folder in FOLDERS for path in files(root / folder, ".c", ".h")}
    found = {one_file(name): set() for name in names}
    for name in names:
        for included in INCLUDE.findall(without_comments(text_of(root / name), keep_strings=True)):
            for there in names & {included, "src/" + included}:
                found[one_file(name)].add(one_file(there))
    return {name: below - {name} for name, below in found.items()}


def reached(graph, begin):
    """The files that this one includes, and those that they include."""
    seen, left = set(), [begin]
    while left:
        for lower in graph[left.pop()] - seen:
            seen.add(lower)
            left.append(lower)
    return seen


def circles(graph):
    """The sets of files that all include each other, by any number of steps."""
    below = {name: reached(graph, name) for name in graph}
    found = {frozenset(other for other in below[name] if name in below[other]) for name in graph}
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def check(root):
    for circle in circles(includes(root)):
        yield "include each other in a circle: " + ", ".join(circle)


def can_fail(plant):
    down = {"src/raft/a.c": '#include "raft/a.h"\n#include "raft/b.h"\n', "src/raft/a.h": "",
            "src/raft/b.c": '#include "raft/b.h"\n/* #include "raft/a.h" */\n', "src/raft/b.h": ""}
    assert not plant(down)
    assert plant(down | {"src/raft/b.c": '#include "raft/a.h"\n'}) == \
        ["include each other in a circle: src/raft/a, src/raft/b"]
    inner = {"src/raft/a_int.h": '#include "raft/a.h"', "src/raft/a.c": '#include "raft/a_int.h"'}
    assert not plant(down | inner)
    assert plant({"sim/a.h": '#include "sim/b.h"\n', "sim/b.c": '#include "sim/a.h"\n',
                  "sim/b.h": ""})
    assert plant({"detector/a.h": '#include "detector/b.h"\n', "detector/b.h": "",
                  "detector/b.c": '#include "detector/c.h"\n', "detector/c.h": "",
                  "detector/c.c": '#include "detector/a.h"\n'})


run(check, can_fail)
