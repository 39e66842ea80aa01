"""What the house rules share: the files of the tree, C without its comments, and one way to run.

A rule is a script with a function check(root) that yields what is wrong, a line each, and a
function can_fail(plant) that plants a fault and expects it to be found. run() does the second
first: a rule that cannot fail shows nothing.
"""
import pathlib
import re
import sys
import tempfile

WINGS = ("detector", "fleet")  # beside src/; the includes of a wing begin with its name
CODE = ("src",) + WINGS

SKIPPED = re.compile(r"(^|/)(build(-[a-z]+)?|node_modules|__pycache__|\.git)(/|$)")


def files(root, *suffixes):
    """The paths below root that end so, sorted; nothing that was built."""
    found = []
    for path in sorted(pathlib.Path(root).rglob("*")):
        name = path.relative_to(root).as_posix()
        if not SKIPPED.search(name) and path.is_file() and name.endswith(suffixes):
            found.append(path)
    return found


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def without_comments(source, keep_strings=False):
    """C with comments, and the insides of literals, made blank; lines stay where they are."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token if keep_strings else token[0] + " " * (len(token) - 2) + token[-1]
        return re.sub(r"[^\n]", " ", token)
    token = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(token, blank, source, flags=re.S)


def comments(path):
    """(line number, text) of each line of comment in a C file."""
    source = text_of(path)
    bare = without_comments(source)
    for number, (whole, rest) in enumerate(zip(source.split("\n"), bare.split("\n")), 1):
        said = "".join(a for a, b in zip(whole, rest) if a != b)
        if said:
            yield number, said


def run(check, can_fail):
    def plant(tree):
        """The faults that check finds in a small tree of {name: text}."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in tree.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return list(check(pathlib.Path(root)))

    can_fail(plant)
    faults = list(check(pathlib.Path(sys.argv[1]).resolve()))
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)
