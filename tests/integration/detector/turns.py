"""A benchmark that is killed leaves no program behind that stands still.   turns.py BENCH-FOLDER"""

import os
import select
import signal
import subprocess
import sys

CODE = """
import sys
sys.dont_write_bytecode = True
from detector_parts import turns

class Shown(turns.Runner):
    def __init__(self, command):
        super().__init__(command)
        print(self.child.pid, flush=True)

turns.ONE_CORE = []
turns.Runner = Shown
turns.run_in_turns({"one": ["sleep", "600"], "other": ["sleep", "600"]})
"""
PATIENCE_MS = 60000


def main(folder):
    bench = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True,
                             cwd=folder)
    programs = [os.pidfd_open(int(bench.stdout.readline())) for _ in range(2)]
    try:
        bench.kill()
        bench.wait()
        for program in programs:
            ended = select.poll()
            ended.register(program, select.POLLIN)
            assert ended.poll(PATIENCE_MS), "a program has outlived its benchmark"
    finally:
        for program in programs:
            try:
                signal.pidfd_send_signal(program, signal.SIGKILL)
            except ProcessLookupError:
                pass


main(sys.argv[1])
print("ok")
