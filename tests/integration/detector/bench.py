"""However a benchmark of the detector ends, no program that it started is left.   bench.py BENCH"""

import os
import re
import select
import signal
import subprocess
import sys
import tempfile

# The benchmark itself, whose parts are replaced by one that starts sleeping programs in each of the
# ways in which the parts start theirs. It prints the id of each.
CODE = """
import os, runpy, sys
sys.dont_write_bytecode = True
bench, way, folder = sys.argv[1:]
sys.path.insert(0, bench)
sys.argv = ["detector", "--only", "decode"]
from detector_parts import decode, fleet, stand, turns

begin = stand.start
def start(command, **options):
    child = begin(["sh", "-c", "echo ready 1; exec sleep 600"], **options)
    os.write(2, f"{child.pid}\\n".encode())
    return child

class Camera:
    folder = folder

ways = {
    "turns": lambda _: turns.run_in_turns({"one": [], "other": []}),
    "measured": lambda _: stand.run_measured([]),
    "fleet": lambda _: (fleet.Cameras(Camera, 1), fleet.Worker([], r"ready (.)"),
                        stand.run_measured([])),
    "run": lambda _: stand.run(["sh", "-c", "echo $$ >&2; exec sleep 600"]),
}
open(folder + "/camera.h264", "w").close()
stand.start = fleet.start = turns.start = start
turns.ONE_CORE = []
decode.measure = ways[way]
runpy.run_path(bench + "/detector", run_name="__main__")
"""
PROGRAMS = {"turns": 2, "measured": 1, "fleet": 3, "run": 1}
PATIENCE_MS = 240000
AGAIN_S = 20
SIGNALS_MAX = 4


def has_ended(program):
    ended = select.poll()
    ended.register(program, select.POLLIN)
    return bool(ended.poll(PATIENCE_MS))


def end(child, number):
    """Python sees a signal that comes just before it waits for a program only after the program's
    end: then it gets another one."""
    for _ in range(SIGNALS_MAX):
        child.send_signal(number)
        try:
            return child.wait(AGAIN_S)
        except subprocess.TimeoutExpired:
            pass
    child.kill()
    return child.wait()


def check(bench, way, number, folder):
    child = subprocess.Popen([sys.executable, "-c", CODE, bench, way, folder],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "TMPDIR": folder})
    programs = [os.pidfd_open(int(child.stderr.readline())) for _ in range(PROGRAMS[way])]
    try:
        name = f"{way}, {signal.Signals(number).name}"
        code = end(child, number)
        assert number == signal.SIGKILL or code != -signal.SIGKILL, f"{name}: it does not end"
        assert all(map(has_ended, programs)), f"{name}: a program has outlived its benchmark"
        left = [one for one in os.listdir(folder) if one.startswith("baton-bench-")]
        assert number == signal.SIGKILL or not left, f"{name}: {left}"
    finally:
        for program in programs:
            try:
                signal.pidfd_send_signal(program, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.close(program)


def starters(bench):
    """Files of the benchmark that start a program by themselves."""
    folder = os.path.join(bench, "detector_parts")
    paths = [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py")]
    return {os.path.basename(path) for path in paths
            if re.search(r"subprocess\.(Popen|run|call|check_\w+)\(|os\.(system|popen|spawn)",
                         open(path, encoding="utf-8").read())}


def main(bench):
    assert starters(bench) == {"stand.py"}, starters(bench)
    for way in PROGRAMS:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with tempfile.TemporaryDirectory(prefix="bench-test-") as folder:
                check(bench, way, number, folder)


main(sys.argv[1])
print("ok")
