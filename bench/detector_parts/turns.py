"""Programs that take turns on one core.

A machine that others use as well is faster in one second than in the next. Of programs that run one
after another, that is in the difference; here all of them run at once and one at a time, a tenth of
a second each in turn, so that what comes and goes is everybody's.
"""
import os
import signal
import subprocess
import sys
import time

from detector_parts.stand import start

SLICE_S = 0.1
ONE_CORE = ["taskset", "-c", "1"]
ENDS = {signal.SIGINT, signal.SIGTERM}


class Runner:
    """A program with all of its processes, which stand still but in its turn."""

    def __init__(self, command):
        self.command = command
        self.cpu_s = None  # of the program and of what it waited for, once it has ended
        self.child = start(ONE_CORE + command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, start_new_session=True)
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        if self.cpu_s is None:
            os.killpg(self.child.pid, number)

    def take_turn(self):
        """True: it has ended, and `output` is what it said."""
        self.signal(signal.SIGCONT)
        time.sleep(SLICE_S)
        pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
        if pid == 0:
            self.signal(signal.SIGSTOP)
            return False
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.child.returncode != 0:
            sys.exit(f"bench/detector: {' '.join(self.command)}: ended with "
                     f"{self.child.returncode}")
        self.output = self.child.stdout.read()
        self.child.stdout.close()
        return True


def run_in_turns(commands):
    """{name: (standard output, seconds of CPU)} of {name: command}. What they say must be little:
    it is read when they have ended."""
    runners = {}
    try:
        for name, command in commands.items():
            before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # a start is whole, or was not
            runners[name] = Runner(command)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        left = list(runners.values())
        while left:
            left = [runner for runner in left if not runner.take_turn()]
    finally:
        for runner in runners.values():
            runner.signal(signal.SIGKILL)
    return {name: (runner.output, runner.cpu_s) for name, runner in runners.items()}
