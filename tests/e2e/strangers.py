"""Processes of other users, which have to do with no election, and are in the way of a search."""
import os
import subprocess
import sys

from harness import others_can_run

# That of this test may lie where another user cannot go.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# Its environment cannot be read: it has put a page without rights over it. Lives until its standard
# input ends, as it does when the test ends in whatever way.
HIDES = r"""
import ctypes, sys
with open("/proc/self/stat") as file:
    fields = file.read().rsplit(")", 1)[1].split()
page = int(fields[47]) & ~4095
libc = ctypes.CDLL(None, use_errno=True)
PROT_NONE, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS = 0, 0x02, 0x10, 0x20
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.mmap.restype = ctypes.c_void_p
print(libc.mmap(page, 4096, PROT_NONE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == page,
      flush=True)
sys.stdin.read()
"""

# Clients of an agent that die with the first of them; what acts for them has the marker.
CROWD = r"""
import ctypes, json, os, signal, socket, sys, time
path, marker, size = sys.argv[1:]
there = os.pipe()
for number in range(int(size)):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        agent = socket.socket(socket.AF_UNIX)
        agent.connect(path)
        lines = agent.makefile("rw")
        for message in {"do": "hello", "version": 1}, {"do": "acting", "marker": marker}:
            print(json.dumps({"id": 1, **message}), file=lines, flush=True)
            while "ok" not in json.loads(lines.readline()):
                pass
        os.write(there[1], b".")
        time.sleep(1000)
for number in range(int(size)):
    os.read(there[0], 1)
print("all are there", flush=True)
time.sleep(1000)
"""


def unprivileged(test, program=PYTHON):
    """Words that take root's rights away, and with them the cgroup."""
    if os.geteuid() != 0:
        return []
    if not others_can_run(program):
        test.skipTest("another user cannot run " + program)
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def start_stranger(test):
    # The page where its environment begins holds arguments besides, and none of its stack.
    pad = "x" * 8192
    stranger = subprocess.Popen([*unprivileged(test), PYTHON, "-c", HIDES, pad],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=dict(os.environ, PAD=pad))
    test.addCleanup(stranger.stdout.close)
    test.addCleanup(stranger.stdin.close)
    test.addCleanup(stranger.wait)
    test.addCleanup(stranger.kill)
    test.assertEqual(stranger.stdout.readline(), b"True\n")


def start_crowd(test, path, marker, size):
    crowd = subprocess.Popen([*unprivileged(test), PYTHON, "-c", CROWD, path, marker, str(size)],
                             stdout=subprocess.PIPE)
    test.addCleanup(crowd.stdout.close)
    test.addCleanup(crowd.wait)
    test.addCleanup(crowd.kill)
    test.assertEqual(crowd.stdout.readline(), b"all are there\n")
    return crowd
