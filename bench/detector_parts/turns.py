"""Programs that take turns on one core.

A machine that others use as well is faster in one second than in the next. Of programs that run one
after another, that is in the difference; here all of them run at once and one at a time, half a
second each in turn, so that what comes and goes is everybody's. A turn begins with caches that
another program has filled, which is no part of the work: with turns of a tenth of a second the
pipeline's overhead came out at 7.5 % where it was 5.9 % with these, and 5.6 % with a whole second.
"""
import os
import select
import signal
import subprocess
import sys

from detector_parts.stand import start

TURN_S = 0.5
ONE_CORE = ["taskset", "-c", "1"]
ENDS = {signal.SIGINT, signal.SIGTERM}


class Runner:
    """A program with all of its processes, which stand still but in its turn."""

    def __init__(self, command):
        self.cpu_s = None  # of the program and of what it waited for, once it has ended
        self.child = start(ONE_CORE + command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, start_new_session=True)
        self.end = os.pidfd_open(self.child.pid)
        self.signal(signal.SIGSTOP)

    def signal(self, number):
        if self.cpu_s is None:
            os.killpg(self.child.pid, number)

    def take_turn(self):
        """True: it has ended, and `output` is what it said."""
        self.signal(signal.SIGCONT)
        select.select([self.end], [], [], TURN_S)
        pid, status, usage = os.wait4(self.child.pid, os.WNOHANG)
        if pid == 0:
            self.signal(signal.SIGSTOP)
            return False
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.child.returncode != 0:
            sys.exit(f"bench/detector: {' '.join(self.child.args)}: ended with "
                     f"{self.child.returncode}")
        self.output = self.child.stdout.read()
        self.child.stdout.close()
        os.close(self.end)
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
