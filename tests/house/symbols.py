"""No symbol of a library is defined by us: the global symbols of our objects against the exports of
the libraries that our programs are linked with. Defined in our place, one would be called by the
libraries themselves. Nor is one defined by two archives that a program is linked with: the linker
takes the first that it finds, and says nothing.

usage: symbols.py ROOT FOLDER-OF-ARCHIVES PROGRAM...
"""
import re
import subprocess
import sys
from pathlib import Path

# Of the compiler and the linker, in every program.
EVERYWHERE = {"main", "_start", "_init", "_fini", "_edata", "_end", "__bss_start", "data_start"}


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True).stdout


def symbols(text):
    """Names that `nm` lists as defined and global. In a program, a name with a version is a copy
    that the linker made of a library's variable; in a library, it is an export."""
    return {name for kind, name in re.findall(r"^[0-9a-f]+ ([A-Z]) (\S+)$", text, re.M)
            if kind not in "UA"}


def exports(library):
    return {name.split("@")[0] for name in symbols(run("nm", "-D", "--defined-only", library))}


def libraries(program):
    return set(re.findall(r"=> (/\S+)", run("ldd", program)))


def faults(ours, theirs):
    """Both as {path: names}."""
    for archive in sorted(ours):
        for library in sorted(theirs):
            for name in sorted(ours[archive] & theirs[library] - EVERYWHERE):
                yield f"{archive} defines {name}, which is {library}'s"


def linked(folder):
    """The archives of each program, by Ninja's file; another generator has none."""
    rules = folder.parent / "build.ninja"
    text = rules.read_text(encoding="utf-8") if rules.is_file() else ""
    rule = r"^build (bin/\S+): C\S*_EXECUTABLE_LINKER.*\n(?:  .*\n)*?  LINK_LIBRARIES = (.*)$"
    for program, line in re.findall(rule, text, re.M):
        yield program, sorted({str(folder.parent / name)
                               for name in re.findall(r"lib/\S+\.a", line)})


def twins(program, archives, ours):
    """Symbols that two archives of a program define."""
    definer = {}
    for archive in archives:
        for name in sorted(ours.get(archive, set()) - EVERYWHERE):
            if definer.setdefault(name, archive) != archive:
                yield f"{program}: {archive} defines {name}, and so does {definer[name]}"


def main():
    archives, programs = sorted(Path(sys.argv[2]).glob("*.a")), sys.argv[3:]
    planted = {"a": symbols("0000 T recv\n0001 t send\n0002 T main\n         U read\n")}
    found = list(faults(planted, {"libc": {"recv", "send", "main", "read"}}))
    assert found == ["a defines recv, which is libc's"], found
    found = list(twins("p", ["a", "b"], {"a": {"x", "y"}, "b": {"y"}, "c": {"x"}}))
    assert found == ["p: b defines y, and so does a"], found
    theirs = {path: exports(path)
              for path in set().union(*map(libraries, programs)) if "libbaton" not in path}
    assert any("recv" in names for names in theirs.values()), "the C library was not looked at"
    ours = {str(path): symbols(run("nm", "-g", "--defined-only", str(path))) for path in archives}
    bad = [fault for program, used in linked(Path(sys.argv[2]))
           for fault in twins(program, used, ours)]
    ours.update((path, symbols(run("nm", "-D", "--defined-only", path))) for path in programs)
    bad += faults(ours, theirs)
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
