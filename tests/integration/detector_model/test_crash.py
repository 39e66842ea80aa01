#!/usr/bin/python3
"""The cache of models is whole whatever call it is killed at, whatever call fails, and whoever is
killed beside it.

usage: test_crash.py STORE_TOOL; skipped (77) but for the race where strace may not be used.
"""
import collections
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import archives  # noqa: E402

TOOL = sys.argv[1]
MODEL_BYTES = 100_000
ROOM = MODEL_BYTES + 50_000  # for one archive, so that the second drives out the first
KINDS, WRITERS, KILLS = 12, 4, 20
ROOM_OF_ALL = (WRITERS + 4) * MODEL_BYTES  # for what they hold, and some more
KILLED = ("mkdir", "write", "sendfile", "fsync", "renameat", "unlinkat", "flock", "utimensat",
          "fcntl", "getdents64")
FAILED = (("write", "ENOSPC"), ("sendfile", "ENOSPC"), ("fsync", "EIO"), ("mkdir", "ENOSPC"),
          ("renameat", "EIO"), ("flock", "ENOLCK"), ("utimensat", "EROFS"), ("unlinkat", "EIO"),
          ("openat", "EMFILE"), ("pread64", "EIO"), ("read", "EIO"))
TRIES_MAX = 400


def archive(folder, seed):
    path, made = f"{folder}/{seed}.mpta", archives.archive(seed, MODEL_BYTES)
    with open(path, "wb") as file:
        file.write(made)
    return path, hashlib.sha256(made).hexdigest()


def traced(inject, log, arguments):
    return subprocess.run(["strace", "-f", "--seccomp-bpf", "-o", log,
                           "-e", f"trace={inject.split(':')[0]}", "-e", f"inject={inject}",
                           TOOL, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as opened:
        return opened.read()


def check(cache, archives, what, said):
    """Each archive that is there is whole; nothing else is; and it goes on."""
    found = subprocess.run([TOOL, "check", cache, *(digest for _, digest in archives.values())],
                           capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"{what}: {found.stderr}"
    there = found.stdout.split()
    left = sorted(os.listdir(cache + "/archives"))
    assert left == sorted(there), f"{what}: {left} is left, {there} is whole"
    if said:  # what it said last was on the disk before, and nothing drove it out since
        assert said[-1] in there, f"{what}: {said[-1]} is gone"
    again = subprocess.run([TOOL, "add", cache, str(ROOM), archives[1][0]], capture_output=True,
                           text=True, check=False)
    assert again.returncode == 0, f"{what}: {again.stderr}"


def run_all(place, archives, call, action):
    """At the first such call, the second, … until there is none any more."""
    hits = 0
    for number in range(1, TRIES_MAX):
        cache, log = f"{place}/cache", f"{place}/log"
        shutil.rmtree(cache, ignore_errors=True)
        inject = f"{call}:{action}:when={number}"
        done = traced(inject, log, ["add", cache, str(ROOM),
                                    *(path for path, _ in archives.values())])
        # strace counts the calls of each process by itself.
        calls = collections.Counter(re.findall(rf"^(\d+) +{call}\(", text_of(log), re.MULTILINE))
        if max(calls.values(), default=0) < number:
            assert done.returncode == 0, done.stderr
            assert hits > 0, f"{call}: there is no such call"
            return hits
        hits += 1
        if os.path.isdir(cache + "/archives"):
            said = done.stdout.split() if action.startswith("signal") else []
            check(cache, archives, inject, said[-1:] if len(said) == len(archives) else [])
    raise AssertionError(f"{call}: more than {TRIES_MAX} calls")


def race(place):
    """Several processes on one folder, killed one after another whatever they do."""
    cache = f"{place}/race"
    archives = {seed: archive(place, seed) for seed in range(1, KINDS + 1)}
    paths = [path for path, _ in archives.values()]

    def adding(count):
        some = random.choices(paths, k=count)
        return subprocess.Popen([TOOL, "add", cache, str(ROOM_OF_ALL), *some],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    writers = [adding(10_000) for _ in range(WRITERS)]
    for i in range(KILLS):
        own = adding(4)  # time passes by doing the same as they
        assert own.wait() == 0, own.stderr.read()
        writer = writers[i % WRITERS]
        assert writer.poll() is None, writer.stderr.read()
        writer.kill()
        writer.wait()
        writers[i % WRITERS] = adding(10_000)
    for writer in writers:
        writer.kill()
        writer.wait()
    assert adding(1).wait() == 0
    size = sum(entry.stat().st_size for entry in os.scandir(cache + "/archives"))
    assert size <= ROOM_OF_ALL, f"{size} bytes"
    check(cache, archives, "race", [])


def main():
    with tempfile.TemporaryDirectory(prefix="baton-crash-") as place:
        race(place)
        if shutil.which("strace") is None or \
                subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode != 0:
            print("skipped but for the race: strace cannot be used here")
            sys.exit(77)
        archives = {seed: archive(place, seed) for seed in (1, 2)}
        for call in KILLED:
            print("killed at", call, run_all(place, archives, call, "signal=KILL"))
        for call, error in FAILED:
            print("failed by", call, error, run_all(place, archives, call, f"error={error}"))


main()
