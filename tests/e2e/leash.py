"""A test that is killed leaves no program behind: importing this ties what it starts to its life.

A watcher in a session of its own holds a pipe, which ends with the test, however that ends, and
then kills by pid each process with this test's mark in its environment. A death signal would end a
program with the thread that started it, and not with the test.
"""
import os
import signal
import sys
import uuid

MARK = "TEST_LEASH"
ROUNDS = 3  # what one of them starts while it is killed is found by the next


def _marked(mark):
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/environ", "rb") as environment:
                if entry.isdigit() and mark in environment.read().split(b"\0"):
                    yield int(entry)
        except OSError:
            pass  # no process, or no longer one


def _watch(pipe, mark):
    os.setsid()
    for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, 1024)
    os.read(pipe, 1)
    for _ in range(ROUNDS):
        for pid in _marked(mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def _begin():
    os.environ[MARK] = uuid.uuid4().hex
    mark = f"{MARK}={os.environ[MARK]}".encode()
    sys.stdout.flush()
    ended, _held = os.pipe()  # which no program inherits
    if os.fork() == 0:
        os.close(_held)
        try:
            _watch(ended, mark)
        finally:
            os._exit(0)
    os.close(ended)


if MARK not in os.environ:  # else it is part of another one
    _begin()
