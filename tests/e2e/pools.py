"""Shared by the tests of `baton worker` and `baton work`: pools on an agent, and records of what
ran when, which the commands write themselves."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from agents import LONG, AgentTest
from harness import BATON, baton, clean_environment, until

# Writes when it acts (CLOCK_BOOTTIME, ns) into a file of its own, until it is to end.
ACTOR = r"""
import os, sys, time
folder, lasts_s, code = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
name = "%s %s %s %d" % (os.environ["BATON_ITEM"], os.environ["BATON_EPOCH"],
                        os.environ["BATON_ATTEMPT"], os.getpid())
end = time.monotonic() + lasts_s
with open(os.path.join(folder, name), "wb", buffering=0) as record:
    while True:
        record.write(b"%d\n" % time.clock_gettime_ns(time.CLOCK_BOOTTIME))
        if time.monotonic() > end or os.path.exists(os.path.join(folder, "..", "end")):
            break
        time.sleep(0.003)
    record.write(b"end\n")
sys.exit(code)
"""


class Attempt:
    """What an actor wrote: it acted at least from `first` to `last`."""

    def __init__(self, folder, name):
        words = name.split(" ")
        self.item, self.epoch, self.number, self.pid = words[0], *map(int, words[1:])
        with open(os.path.join(folder, name), encoding="ascii") as file:
            lines = re.findall(r"(\w+)\n", file.read())
        self.is_whole = lines[-1:] == ["end"]
        stamps = [int(line) for line in lines if line != "end"]
        self.first, self.last = (stamps[0], stamps[-1]) if stamps else (None, None)


class Worker:
    """A process `baton worker`."""

    def __init__(self, provider, name, folder, *flags, under=(), first=None):
        self.name = name
        self.path = os.path.join(folder, name + ".log")
        with open(self.path, "ab") as log:
            self.process = subprocess.Popen(
                [*under, BATON, "worker", "--provider", provider, "--worker", name, "--slots", "2",
                 "--report-interval", "100ms", *flags], stdin=subprocess.DEVNULL, stderr=log,
                env=clean_environment(), start_new_session=True, preexec_fn=first)

    def log(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def supervisor(self):
        return int(until(lambda: re.findall(r" supervisor=(\d+)", self.log()), self.log)[-1])

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


class PoolTest(AgentTest):
    """A test with a pool; `self.provider` names what holds it."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="baton-pool-", dir="/tmp")
        self.addCleanup(self.folder.cleanup)
        self.records = os.path.join(self.folder.name, "records")
        os.mkdir(self.records)
        self.provider = None

    def on_agent(self, *flags, lease=LONG):
        """The pool is held by an agent, whose clients have this lease."""
        agent = self.agent("--client-lease", lease, *flags, provider=("--provider", "memory:"))
        self.provider = "agent:" + agent.path
        return agent

    def worker(self, name, *flags, provider=None, **more):
        worker = Worker(provider or self.provider, name, self.folder.name, *flags, **more)
        self.addCleanup(worker.close)
        return worker

    def workers(self, *names):
        """They are known to the leader, which is the first one."""
        started = [self.worker(names[0])]
        until(lambda: "pool-ready" in started[0].log(), started[0].log)
        started += [self.worker(name, "--never-lead") for name in names[1:]]
        self.await_online(*names)
        return started

    def await_online(self, *names):
        until(lambda: set(names) <= set(self.online()), lambda: self.online())

    def online(self):
        done = self.run_work("stats", "--json")
        return [worker["worker"] for worker in json.loads(done.stdout)["workers"]
                if worker["online"]] if done.returncode == 0 else []

    def run_work(self, *words, **more):
        return baton("work", "--provider", self.provider, *words, **more)

    def work(self, *words, **more):
        done = self.run_work(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def actor(self, lasts_s, code=0):
        """A command that records when it acts."""
        return [sys.executable, "-c", ACTOR, self.records, str(lasts_s), str(code)]

    def submit_actors(self, name, count, lasts_s, *flags):
        script = os.path.join(self.folder.name, "actor.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(ACTOR)
        line = "exec %s %s %s %s 0\n" % (sys.executable, script, self.records, lasts_s)
        return self.work("submit", "--name", name, *flags, "--file", "-",
                         text=line * count).split()

    def end_actors(self):
        with open(os.path.join(self.folder.name, "end"), "w", encoding="ascii"):
            pass

    def attempts(self, item=None):
        """Of one item, in the order of their beginnings."""
        found = [Attempt(self.records, name) for name in os.listdir(self.records)]
        return sorted((one for one in found if one.first and item in (None, one.item)),
                      key=lambda one: one.first)

    def await_attempts(self, more, bag):
        """Or the end of the bag, which may be quick beside what else the test does."""
        wanted = min(len(self.attempts()) + more, len(bag))
        until(lambda: len(self.attempts()) >= wanted, lambda: self.items())

    def items(self):
        return {entry["id"]: entry for entry in json.loads(self.work("ls", "--json"))}

    def state(self, item):
        return self.items().get(item, {}).get("state")

    def await_state(self, item, state):
        return until(lambda: (entry := self.items().get(item)) and entry["state"] == state and
                     entry, lambda: "%s is %s: %s" % (item, state, self.items()))

    def await_acting(self, item, since=0):
        """Its attempt that acts later than `since`."""
        return until(lambda: next((one for one in self.attempts(item) if one.first > since), None),
                     lambda: self.items())

    def await_all(self, ids):
        until(lambda: all(self.items()[one]["state"] == "completed" for one in ids),
              lambda: self.items())

    def assert_never_twice_at_once(self, item=None):
        by_item = {}
        for one in self.attempts(item):
            before = by_item.get(one.item)
            if before:
                self.assertGreater(one.first, before.last, one.item)
                self.assertGreater(one.epoch, before.epoch, one.item)
            by_item[one.item] = one
