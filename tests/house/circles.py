"""No circle of files: x.c with x.h is one file here, and in these folders every one of them has a
place above those that it includes."""
import re

from house import files, run, text_of, without_comments

FOLDERS = ("src/raft", "src/lease", "src/member", "src/api", "src/cli", "sim")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def includes(root):
    """For each file, without its suffix, the files of these folders that it includes."""
    found = {}
    for folder in FOLDERS:
        for path in files(root / folder, ".c", ".h"):
            here = path.relative_to(root).with_suffix("").as_posix()
            below = found.setdefault(here, set())
            for name in INCLUDE.findall(without_comments(text_of(path), keep_strings=True)):
                for there in (name, "src/" + name):
                    if there.startswith(FOLDERS) and there[:-2] != here:
                        below.add(there[:-2])
    return found


def circle(graph):
    """The files of one circle in order, or none."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name):]
        if name in done or name not in graph:
            return []
        path.append(name)
        for lower in sorted(graph[name]):
            found = visit(lower)
            if found:
                return found
        done.add(path.pop())
        return []

    for name in sorted(graph):
        found = visit(name)
        if found:
            return found
    return []


def check(root):
    found = circle(includes(root))
    if found:
        yield "include each other in a circle: " + ", ".join(found)


def can_fail(plant):
    down = {"src/raft/a.c": '#include "raft/a.h"\n#include "raft/b.h"\n', "src/raft/a.h": "",
            "src/raft/b.c": '#include "raft/b.h"\n/* #include "raft/a.h" */\n', "src/raft/b.h": ""}
    assert plant(down) == []
    assert plant(down | {"src/raft/b.c": '#include "raft/a.h"\n'}) != []
    assert plant({"sim/a.h": '#include "sim/b.h"\n', "sim/b.c": '#include "sim/a.h"\n'}) != []
    assert plant({"src/x/a.c": '#include "x/b.h"\n', "src/x/b.c": '#include "x/a.h"\n'}) == []


run(check, can_fail)
