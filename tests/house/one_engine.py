"""One engine of a member: a provider's functions are called by src/member alone, so there is one
way to join an election, to drain and to hand over. An agent calls them for other processes, which
drain by themselves."""
import re

from house import files, run, text_of, without_comments

ALLOWED = ("src/provider/", "src/member/", "src/agent/")
CALL = re.compile(r"\bops\s*(?:->|\.)\s*\w+\s*\(|->\s*ops\b")


def check(root):
    for path in files(root / "src", ".c", ".h"):
        here = path.relative_to(root).as_posix()
        if here.startswith(ALLOWED):
            continue
        for number, line in enumerate(without_comments(text_of(path)).split("\n"), 1):
            if CALL.search(line):
                yield f"{here}:{number}: a provider's function; src/member offers what this needs"


def can_fail(plant):
    call = "r = provider->ops->get(provider, key);\n"
    assert plant({"src/member/a.c": call, "src/provider/b.c": call, "src/cli/c.c": "f();"}) == []
    assert plant({"src/cli/a.c": call}) != []
    assert plant({"src/api/a.c": "r = ops->get(provider, key);\n"}) != []
    assert plant({"src/cli/a.c": "/* provider->ops->get() */\n"}) == []


run(check, can_fail)
