"""Faults that begin and end at random instants and overlap; planned from one number, BATON_SEED.

What is planned depends on that number alone; what comes of it, on the machine too.
"""
import collections
import heapq
import os
import random
import signal
import time

SECONDS = float(os.environ.get("BATON_CHAOS_SECONDS", "10"))
SEED = int(os.environ.get("BATON_SEED", random.randrange(1 << 32)))
FRESH_NS = 50000000
LONGEST_S = 2.5  # of a fault: longer than a lease and what comes after it
PATIENCE_S = 60  # for leadership to move at all, on a machine that stands still at times


class Plan:
    """One fault. Drawn whole, so that the plans of a seed are the same whatever they meet."""

    def __init__(self, dice, kinds):
        self.kind = dice.choices(list(kinds), list(kinds.values()))[0]
        self.aims_at_leader = dice.random() < 0.7  # nobody else's troubles move much
        self.at = dice.random()
        self.with_guardian = dice.random() < 0.4
        self.ways = dice.choice([("there", "back"), ("there", "back"), ("there",), ("back",)])
        self.data = dice.choice(["its data", "no data", "older data"])
        self.lasts_s = dice.choice([0.3, LONGEST_S]) * dice.random()
        self.pause_s = dice.uniform(0, 0.5)
        self.copies = dice.random() < 0.1


class Chaos:
    """A method for each kind of fault, with (victim, plan); it returns what ends the fault, or None
    if that ends by itself. `kinds`: how often each."""

    kinds = {"kill": 6, "stop": 5}

    def __init__(self, cluster):
        self.cluster = cluster
        self.happened = collections.Counter()
        self.busy = set()  # to which something is happening now
        self.pending = []  # (when, number, who, what ends it)
        self.count = 0

    def leader(self):
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        for one in reversed(self.cluster.leaderships()):
            name = one.who.split(".")[0]
            if one.last_ns > now - FRESH_NS and name not in self.busy:
                return name
        return None

    def victim(self, plan):
        free = [name for name in self.cluster.names if name not in self.busy]
        return (plan.aims_at_leader and self.leader()) or \
            (free[int(plan.at * len(free))] if free else None)

    def kill(self, name, plan):
        guardian = self.cluster.guardian(name) if plan.with_guardian else None
        if guardian:
            os.kill(guardian, signal.SIGKILL)
            self.happened["guardians killed"] += 1
        self.cluster.kill(name)
        self.happened["kills"] += 1
        return lambda: self.cluster.start(name)

    def stop(self, name, _):
        self.cluster.signal(name, signal.SIGSTOP)
        self.happened["stops"] += 1
        return lambda: self.cluster.signal(name, signal.SIGCONT)

    def assert_alive(self):
        """Whoever is dead was killed here: nobody dies of anything else."""
        for name, process in self.cluster.processes.items():
            if name not in self.busy and process.poll() is not None:
                raise AssertionError("%s died, %d\n%s" % (
                    name, process.returncode, self.cluster.log(name)))

    def begin(self, plan):
        self.assert_alive()
        who = self.victim(plan)
        if who:
            end = getattr(self, plan.kind)(who, plan)
            self.busy.add(who)
            self.count += 1
            heapq.heappush(self.pending, (time.monotonic() + plan.lasts_s, self.count, who, end))

    def end_due(self, by):
        while self.pending and self.pending[0][0] <= by:
            _, _, who, end = heapq.heappop(self.pending)
            if end:
                end()
            self.busy.discard(who)

    def play(self, seconds, dice):
        begun = time.monotonic()
        while self.lasts(time.monotonic() - begun, seconds):
            plan = Plan(dice, self.kinds)
            self.begin(plan)
            next_one = time.monotonic() + plan.pause_s
            while time.monotonic() < next_one:
                self.end_due(time.monotonic())
                time.sleep(0.005)
        self.end_due(float("inf"))

    def lasts(self, been_s, seconds):
        return been_s < seconds or (been_s < PATIENCE_S and len(self.cluster.leaderships()) < 2)

    def judge(self, test, title, seconds):
        """Once all is healed: somebody leads, nobody died, and never did two lead at once."""
        before = len(self.cluster.leaderships())
        self.cluster.wait_leader()
        self.assert_alive()
        seen = test.assert_one_at_a_time(self.cluster)
        print("%s, %g s: %d leaderships of %d processes, %s" % (
            title, seconds, len(seen), len({one.who for one in seen}), ", ".join(
                "%d %s" % (number, what) for what, number in sorted(self.happened.items()))),
              flush=True)
        test.assertGreater(before, 1)
