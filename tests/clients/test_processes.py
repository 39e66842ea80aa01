"""Processes in Python and Node, as examples/clients has them, beside a real agent: who worked when.

What they print is their work, and one pipe puts it in order. A line of a higher epoch ends all
lower ones: none may come after it.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest

from harness import DEADLINE_S, SHORT_MS, RealAgent, until

SOURCE = pathlib.Path(__file__).parents[2]
EXAMPLES = SOURCE / "examples/clients"
COMMANDS = {"python": [sys.executable, "-B", EXAMPLES / "report.py"],
            "node": [shutil.which("node"), "report.mjs"]}

# With it Python writes a line in parts, and those of another process come between them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


class Worker:
    """One of the examples; `lines` are those of all workers, split."""

    def __init__(self, language, agent, output, lines):
        # Node looks for a package beside the program.
        modules = pathlib.Path(agent.folder, "node_modules")
        if not modules.exists():
            modules.mkdir()
            (modules / "baton-client").symlink_to(SOURCE / "clients/node")
            shutil.copy(EXAMPLES / "report.mjs", agent.folder)
        self.process = subprocess.Popen(
            [*COMMANDS[language], "report"], stdout=output, cwd=agent.folder,
            env={**ENVIRONMENT, "BATON_AGENT": agent.path})
        self.all = lines

    def lines(self):
        return [line[1:] for line in list(self.all) if line[0] == str(self.process.pid)]

    def works(self):
        """The epoch in which it works now, by its own account; 0: it does not."""
        what, epoch = (self.lines() or [["ends", 0]])[-1][:2]
        return int(epoch) if what == "works" else 0

    def close(self):
        self.process.kill()
        self.process.wait()


class Processes(unittest.TestCase):
    def setUp(self):
        self.agent = self.start_agent()
        self.lines = []
        source, self.output = os.pipe()
        reader = threading.Thread(target=self.read, args=(source,))
        reader.start()
        self.addCleanup(reader.join)
        self.addCleanup(os.close, self.output)

    def start_agent(self, **options):
        agent = RealAgent(**options)
        self.addCleanup(agent.close)
        return agent

    def read(self, source):
        with open(source, encoding="utf-8") as file:
            for line in file:
                self.lines.append(line.split())

    def start(self, language):
        worker = Worker(language, self.agent, self.output, self.lines)
        self.addCleanup(worker.close)
        return worker

    def until_works(self, worker, after=0):
        until(lambda: worker.works() > after,
              lambda: f"works in an epoch after {after}: {worker.lines()[-5:]}")
        return worker.works()

    def two(self, language):
        """A leader that works, and one that waits; the other of the other language."""
        leader = self.start(language)
        epoch = self.until_works(leader)
        before = self.agent.waiting("report")  # of an earlier one that has just been killed
        other = self.start("node" if language == "python" else "python")
        until(lambda: self.agent.waiting("report") > before, "the other one waits")
        return leader, other, epoch

    def judge(self, late_max=0):
        highest, late = 0, []
        for _, what, epoch, *_ in list(self.lines):
            if what == "works":
                late += [epoch] if int(epoch) < highest else []
                highest = max(highest, int(epoch))
        self.assertLessEqual(len(late), late_max, "worked after a later epoch had begun")

    def test_a_leader_that_is_killed_is_followed(self):
        for language in COMMANDS:
            leader, other, epoch = self.two(language)
            leader.process.send_signal(signal.SIGKILL)
            self.until_works(other, epoch)
            self.judge()
            other.close()

    def test_a_leader_that_ends_hands_on(self):
        for language in COMMANDS:
            leader, other, epoch = self.two(language)
            leader.process.send_signal(signal.SIGTERM)
            self.assertEqual(leader.process.wait(DEADLINE_S), 0)
            self.until_works(other, epoch)
            self.judge()
            other.close()

    def test_a_leader_that_was_stopped_works_no_more_when_it_goes_on(self):
        self.agent = self.start_agent(lifetime_ms=SHORT_MS)
        for language in COMMANDS:
            leader, other, epoch = self.two(language)
            leader.process.send_signal(signal.SIGSTOP)
            self.until_works(other, epoch)
            leader.process.send_signal(signal.SIGCONT)
            until(lambda: leader.works() == 0, "the stopped one says that it is over")
            self.assertEqual(leader.lines()[-1][0], "ends")
            self.judge(late_max=1)  # it may have been stopped between check() and print()
            leader.close()
            other.close()

    def test_a_leader_works_on_while_its_agent_is_replaced(self):
        for language in COMMANDS:
            leader, other, epoch = self.two(language)
            for _ in range(3):
                self.agent.kill()
                self.agent.start()
                seen = len(leader.lines())
                until(lambda: len(leader.lines()) > seen + 5, "it works on")
            self.assertEqual(leader.works(), epoch)
            self.judge()
            leader.close()
            self.until_works(other, epoch)
            other.close()


if __name__ == "__main__":
    unittest.main()
