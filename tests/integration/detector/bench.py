"""A benchmark of the detector that is interrupted leaves no program behind.   bench.py BENCH"""
import os
import select
import signal
import subprocess
import sys
import tempfile

# The benchmark itself, of which one part lets two programs take turns that have a child each.
CODE = """
import runpy, sys
sys.dont_write_bytecode = True
bench, ids = sys.argv[1:]
sys.path.insert(0, bench)
sys.argv = ["detector", "--only", "decode"]
from detector_parts import decode, turns
command = ["sh", "-c", f"sleep 600 & echo $$ $! >{ids}; wait"]
turns.ONE_CORE = []
decode.measure = lambda _: turns.run_in_turns({"one": command, "other": command})
runpy.run_path(bench + "/detector", run_name="__main__")
"""
PATIENCE_MS = 60000


def has_ended(process):
    ended = select.poll()
    ended.register(process, select.POLLIN)
    return bool(ended.poll(PATIENCE_MS))


def check(bench, number, folder):
    ids = os.path.join(folder, "ids")
    os.mkfifo(ids)
    with open(os.open(ids, os.O_RDWR), encoding="ascii") as file:
        child = subprocess.Popen([sys.executable, "-c", CODE, bench, ids],
                                 stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
        left = [os.pidfd_open(int(one)) for _ in range(2) for one in file.readline().split()]
    child.send_signal(number)
    child.wait()
    # A benchmark that is killed ends the programs alone; the real ones' children end with them.
    asked = left[::2] if number == signal.SIGKILL else left
    survivors = [process for process in asked if not has_ended(process)]
    for process in left:
        if not select.select([process], [], [], 0)[0]:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        os.close(process)
    assert not survivors, f"{number.name}: {len(survivors)} of {len(asked)} outlive the benchmark"


for one in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    with tempfile.TemporaryDirectory() as place:
        check(sys.argv[1], one, place)
print("ok")
