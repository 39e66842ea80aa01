"""A test that is killed leaves nothing behind (leash.py), neither what it has started in another
thread nor in a session of its own."""
import os
import signal
import subprocess
import sys
import unittest

from harness import until

KILLED = """
import subprocess, threading
import leash

def start():
    program = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], start_new_session=True,
                               stdout=subprocess.PIPE, universal_newlines=True)
    print(program.pid, program.stdout.readline(), end="", flush=True)

thread = threading.Thread(target=start)
thread.start()
thread.join()
print("started", flush=True)
threading.Event().wait()
"""


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class LeashTest(unittest.TestCase):
    def test_what_a_killed_test_has_started_ends(self):
        environment = {key: value for key, value in os.environ.items() if key != "TEST_LEASH"}
        with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE,
                              universal_newlines=True, env=environment,
                              cwd=os.path.dirname(os.path.abspath(__file__))) as test:
            started = [int(pid) for pid in test.stdout.readline().split()]
            self.assertEqual(test.stdout.readline(), "started\n")
            self.assertEqual([runs(pid) for pid in started], [True, True])
            os.kill(test.pid, signal.SIGKILL)
            test.wait()
        for pid in started:
            until(lambda pid=pid: not runs(pid), f"process {pid} ends")


if __name__ == "__main__":
    unittest.main()
