"""Each wing is configured alone where the libraries of the other one are not installed, and has its
own programs only.

usage: wings.py ROOT CMAKE WING...
"""
import os
import subprocess
import sys
import tempfile

# The libraries that only this wing needs, and the programs that only it has. Those of baton are not
# found by pkg-config: that they are looked for is in CMake's cache.
SOUGHT = {"baton": {"SQLITE_HEADERS", "HIREDIS_HEADERS"}, "detector": set(),
          "fleet": {"MOSQUITTO_HEADERS"}}
LIBRARIES = {"baton": set(),
             "detector": {"libturbojpeg", "libswscale", "libavformat", "libavcodec",
                          "libavutil", "libcurl", "libseccomp", "libzip"},
             "fleet": set()}
PROGRAMS = {"baton": {"baton", "baton-guardian", "libbaton"},
            "detector": {"baton-detector", "baton-camera"},
            "fleet": {"baton-fleet"}}
STANDS_ON = {"fleet": {"baton"}}  # it has their programs, too
# Stands before pkg-config and has never heard of these libraries.
HIDES = """#!/bin/sh
for word; do
    case " %s " in *" ${word%%%% *} "*) exit 1 ;; esac
done
exec pkg-config "$@"
"""


def configure(root, cmake, folder, wing, hidden):
    """The targets of the wing's build, CMake's output, and its cache; no targets: it cannot be
    configured."""
    pkg_config = os.path.join(folder, "pkg-config")
    with open(pkg_config, "w", encoding="utf-8") as file:
        file.write(HIDES % " ".join(sorted(hidden)))
    os.chmod(pkg_config, 0o755)
    build = os.path.join(folder, "build")
    done = subprocess.run([cmake, "-S", root, "-B", build, "-G", "Ninja", "-DBATON_TESTS=OFF",
                           "-DBATON_WINGS=" + wing, "-DPKG_CONFIG_EXECUTABLE=" + pkg_config],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          universal_newlines=True)
    if done.returncode != 0:
        return set(), done.stdout, ""
    listed = subprocess.run([cmake, "--build", build, "--target", "help"], check=True,
                            stdout=subprocess.PIPE, universal_newlines=True).stdout
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        return {line.split(":")[0] for line in listed.splitlines()}, done.stdout, file.read()


def check(root, cmake, wing):
    others = {other for other in LIBRARIES if other != wing} - STANDS_ON.get(wing, set())
    hidden = set().union(*(LIBRARIES[other] for other in others)) - LIBRARIES[wing]
    with tempfile.TemporaryDirectory() as folder:
        targets, said, cache = configure(root, cmake, folder, wing, hidden)
    if not targets:
        yield "%s cannot be configured without %s: %s" % (wing, ", ".join(sorted(hidden)), said)
    for name in sorted(set().union(*(SOUGHT[other] for other in others))):
        if name in cache:
            yield "%s alone looks for %s" % (wing, name)
    for name in sorted(PROGRAMS[wing] - targets):
        yield "%s alone has no %s" % (wing, name)
    for name in sorted(set().union(*(PROGRAMS[other] for other in others)) & targets):
        yield "%s alone has %s" % (wing, name)


def main():
    root, cmake, *wings = sys.argv[1:]
    for wing in wings:  # without its own libraries a wing lacks something
        if wing in STANDS_ON:
            continue
        with tempfile.TemporaryDirectory() as folder:
            targets, _, cache = configure(root, cmake, folder, wing, LIBRARIES[wing])
            assert PROGRAMS[wing] - targets or (
                SOUGHT[wing] and all(name in cache for name in SOUGHT[wing]))
    bad = [fault for wing in wings for fault in check(root, cmake, wing)]
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
