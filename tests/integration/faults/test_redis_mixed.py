"""Ours and plain processes, written from the seeds' text with a stock client, in one election.

Leaders are killed at random, alone or with all of their kind. Nobody's word is taken: every process
leaves a record of when it led, by one clock, and no two of these may share an instant.
"""
import os
import random
import signal
import subprocess
import time
import unittest

from chaos import SECONDS, SEED
from faults import DEADLINE_S, FaultTest, Leadership, first_overlap, main, skip, until
from redis_ground import RedisServer, WatchedRedis

PYTHON = "/usr/bin/python3"  # of the packages: it has the stock client
SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", "e2e", "plain_master.py")
TTL_MS = 2000
FRESH_NS = 100000000  # an eyewitness looks ten times in a millisecond, if it gets to run


class Plain:
    """Processes of the seed's text. One for each life, as with the watched ones of ours."""

    def __init__(self, ours, layout, port, names):
        self.dir, self.layout, self.port, self.names = ours.dir, layout, port, names
        self.processes = {}
        self.lives = []

    def start(self, name):
        record = os.path.join(self.dir, "%s.%d.led" % (name, len(self.lives)))
        self.lives.append((name, record))
        with open(os.path.join(self.dir, name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [PYTHON, SCRIPT, self.layout, str(self.port), "default", str(TTL_MS), record],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def end(self, name):
        record = [path for known, path in self.lives if known == name][-1]
        until(lambda: os.path.exists(record), "it has begun")
        self.processes[name].send_signal(signal.SIGTERM)
        return self.processes[name].wait(DEADLINE_S)

    def close(self):
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)

    def leaderships(self):
        found = []
        for number, (name, path) in enumerate(self.lives):
            if os.path.exists(path):
                with open(path, encoding="ascii") as file:
                    found += led("%s.%d" % (name, number), file)
        return found


def lives(kind, who):
    """Whether that life of a process has not ended."""
    name, number = who.split(".")
    latest = max(at for at, (known, _) in enumerate(kind.lives) if known == name)
    return latest == int(number) and kind.processes[name].poll() is None


def led(who, lines):
    found = []
    for line in lines:
        word, *numbers = line.split()
        if word == "led":
            found.append(Leadership(who, 0, int(numbers[0]), int(numbers[1])))
        else:
            found[-1].last_ns = int(numbers[0])
    return found


class Mixed(FaultTest):
    def setUp(self):
        if subprocess.run([PYTHON, "-c", "import redis"], stderr=subprocess.DEVNULL,
                          check=False).returncode != 0:
            skip("python3-redis is not installed")
        print("\nBATON_SEED=%d" % SEED, flush=True)
        self.dice = random.Random(SEED)
        self.server = RedisServer()
        self.addCleanup(self.server.close)

    def kinds(self, layout):
        ours = WatchedRedis(5, self.server.port, "layout=%s&lease=%dms&max-lease=%dms"
                            "&check-interval=300ms" % (layout, TTL_MS, TTL_MS))
        self.addCleanup(ours.close)
        plain = Plain(ours, layout, self.server.port, ["v", "w", "x", "y", "z"])
        self.addCleanup(plain.close)
        return ours, plain

    def leader(self, *kinds):
        """(kind, name) of who led in this moment, as far as the records tell."""
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for kind in kinds:
            for one in kind.leaderships():
                if one.last_ns > now - FRESH_NS and lives(kind, one.who):
                    return kind, one.who.split(".")[0]
        return None

    def fell_the_leader(self, kinds):
        """It, and at times all of its kind, so that the other kind has its turn."""
        kind, leader = until(lambda: self.leader(*kinds), "a leader; logs:\n" + kinds[0].logs())
        others = [name for name in kind.names if name != leader]
        felled = [leader] + (others if self.dice.random() < 0.5 else [])
        for name in felled:
            kind.kill(name)
        until(lambda: self.leader(*kinds), "another leader; logs:\n" + kinds[0].logs())
        for name in felled:
            kind.start(name)
        return len(felled)

    def play(self, layout):
        ours, plain = self.kinds(layout)
        for kind in (plain, ours):
            for name in kind.names:
                kind.start(name)
        deadline, kills = time.monotonic() + SECONDS / 2, 0
        while time.monotonic() < deadline or min(len(ours.leaderships()),
                                                 len(plain.leaderships())) < 2:
            kills += self.fell_the_leader((ours, plain))
            time.sleep(self.dice.uniform(0, 0.8))
        for name in plain.names:
            self.assertEqual(plain.end(name), 0, ours_and_theirs(ours, plain))
        ours.kill_all()
        self.judge(layout, ours, plain, kills)

    def judge(self, layout, ours, plain, kills):
        own, theirs = ours.leaderships(), plain.leaderships()
        seen = sorted(own + theirs, key=lambda one: one.first_ns)
        print("%s: %d kills, %d leaderships, %d of ours by %d processes, %d plain by %d" % (
            layout, kills, len(seen), len(own), len({one.who for one in own}), len(theirs),
            len({one.who for one in theirs})), flush=True)
        self.assertIsNone(first_overlap(seen), ours_and_theirs(ours, plain))
        self.assertEqual([one.epoch for one in own], sorted({one.epoch for one in own}))

    def test_seed_000_in_one_election_with_ours(self):
        self.play("master-election")

    def test_seed_001_in_one_election_with_ours(self):
        self.play("sovereign")


def ours_and_theirs(ours, plain):
    text = ours.logs()
    for name in plain.names:
        text += "== %s\n%s" % (name, ours.log(name))
    return text


class Records(unittest.TestCase):
    """The check of the records can fail."""

    def test_an_overlap_is_found(self):
        apart = led("v.0", ["led 10 20", "more 30"]) + [Leadership("a.1", 1, 31, 40)]
        self.assertIsNone(first_overlap(apart))
        self.assertIsNotNone(first_overlap(led("v.0", ["led 10 20", "more 31"]) + apart[1:]))
        self.assertIsNotNone(first_overlap([Leadership("a.1", 1, 10, 90), *apart]))


if __name__ == "__main__":
    main()
