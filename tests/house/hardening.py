"""What the programs and the library are built with, read from their ELF files: hardening=+all.

usage: hardening.py ROOT BINARY...    BATON_FORTIFIED=0: built without an optimizer.
"""
import os
import re
import subprocess
import sys


ENDBR64 = bytes([0xf3, 0x0f, 0x1e, 0xfa])
ENDBR64_LEAST = 20


def read(path, *what):
    return subprocess.run(["readelf", "-W", *what, path], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def faults(code, symbols, headers, dynamic):
    names = set(re.findall(r"(\w+)@", symbols))
    if not any(name.startswith("__stack_chk_fail") for name in names):
        yield "no stack protector"
    if os.environ.get("BATON_FORTIFIED") != "0" and not any(
            re.fullmatch(r"__\w+_chk", name) for name in names):
        yield "no fortified call"
    if "GNU_RELRO" not in headers:
        yield "no relro"
    if not re.search(r"\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)|\(FLAGS\).*BIND_NOW", dynamic):
        yield "symbols are bound late"
    if re.search(r"Type:\s+EXEC", headers):
        yield "not position independent"
    if re.search(r"GNU_STACK.*RWE", headers):
        yield "an executable stack"
    # Debian 12's start files have none, so the linker marks no program as protected.
    if os.uname().machine == "x86_64" and code.count(ENDBR64) < ENDBR64_LEAST:
        yield "no landing pads for indirect jumps"


def check(path):
    with open(path, "rb") as file:
        code = file.read()
    return list(faults(code, read(path, "--dyn-syms"), read(path, "-h", "-l"), read(path, "-d")))


def can_fail():
    found = list(faults(b"", "1: foo@GLIBC", "Type: EXEC", "(FLAGS_1) Flags: PIE"))
    assert len(found) >= 5, found
    good = ("__stack_chk_fail@G __read_chk@G", "Type: DYN GNU_RELRO GNU_STACK RW ",
            "(FLAGS_1) Flags: NOW PIE")
    assert list(faults(ENDBR64 * ENDBR64_LEAST, *good)) == []


def main():
    can_fail()
    found = ["%s: %s" % (path, one) for path in sys.argv[2:] for one in check(path)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
