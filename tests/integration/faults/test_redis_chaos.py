"""Everything at once: contenders killed, stopped and cut off, and Redis stopped and restarted.

For BATON_CHAOS_SECONDS (`make chaos`: two minutes) faults begin and end at random instants and
overlap. At no instant may two have led, by the eyewitnesses' records; epochs only grow; and when
all is healed somebody leads. What is planned depends on BATON_SEED alone; what comes of it, on the
machine too.
"""
import collections
import heapq
import os
import random
import signal
import time
import unittest

from cuttable import Link
from faults import RECORD, FaultTest, WatchedCluster, main, until
from redis_ground import RedisServer, WatchedRedis

SECONDS = float(os.environ.get("BATON_CHAOS_SECONDS", "20"))
SEED = int(os.environ.get("BATON_SEED", random.randrange(1 << 32)))
NODES = 5
SERVER = "Redis"
OPTIONS = "lease=1s&heartbeat-interval=300ms&check-interval=300ms&answer-timeout=500ms&layout="
FRESH_NS = 50000000
LONGEST_S = 2.5  # of a fault: longer than a lease and what comes after it


class Plan:
    """One fault. Drawn whole, so that the plans of a seed are the same whatever they meet."""

    KINDS = {"kill": 6, "stop": 5, "stall": 4, "cut": 4, "stop_server": 2, "restart_server": 2}

    def __init__(self, dice):
        self.kind = dice.choices(list(self.KINDS), list(self.KINDS.values()))[0]
        self.aims_at_leader = dice.random() < 0.7  # nobody else's troubles move much
        self.at = dice.random()
        self.with_guardian = dice.random() < 0.4
        self.ways = dice.choice([("there", "back"), ("there", "back"), ("there",), ("back",)])
        self.data = dice.choice(["its data", "no data", "older data"])
        self.lasts_s = dice.choice([0.3, LONGEST_S]) * dice.random()
        self.pause_s = dice.uniform(0, 0.5)
        self.copies = dice.random() < 0.1


class Chaos:
    """The faults. Each returns what ends it, or None if it ends by itself."""

    def __init__(self, server, cluster, links):
        self.server, self.cluster, self.links = server, cluster, links
        self.happened = collections.Counter()
        self.busy = set()  # nodes, and the server, to which something is happening now
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
        if plan.kind.endswith("server"):
            return None if SERVER in self.busy else SERVER
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

    def stall(self, name, plan):
        self.links[name].stall(*plan.ways)
        self.happened["stalled links"] += 1
        return self.links[name].heal

    def cut(self, name, _):
        self.links[name].cut()
        self.happened["cut links"] += 1
        return self.links[name].heal

    def stop_server(self, *_):
        self.server.process.send_signal(signal.SIGSTOP)
        self.happened["stops of Redis"] += 1
        return lambda: self.server.process.send_signal(signal.SIGCONT)

    def restart_server(self, _, plan):
        self.server.restart(plan.data)
        self.happened["restarts of Redis with " + plan.data] += 1

    def assert_alive(self):
        """Whoever is dead was killed here: nobody dies of anything else."""
        for name, process in self.cluster.processes.items():
            if name not in self.busy and process.poll() is not None:
                raise AssertionError("%s died, %d\n%s" % (
                    name, process.returncode, self.cluster.log(name)))

    def begin(self, plan):
        self.assert_alive()
        who = self.victim(plan)
        if plan.copies and SERVER not in self.busy:
            self.server.keep_copy()
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
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            plan = Plan(dice)
            self.begin(plan)
            next_one = time.monotonic() + plan.pause_s
            while time.monotonic() < next_one:
                self.end_due(time.monotonic())
                time.sleep(0.005)
        self.end_due(float("inf"))


class Storm(FaultTest):
    def storm(self, layout, seconds):
        print("\nBATON_SEED=%d" % SEED, flush=True)
        server = RedisServer("--appendonly", "yes")
        self.addCleanup(server.close)
        cluster = WatchedRedis(NODES, server.port, OPTIONS + layout)
        self.addCleanup(cluster.close)
        links = {name: Link(server.port) for name in cluster.names}
        for name, link in links.items():
            self.addCleanup(link.close)
            cluster.reached[name] = link.port
        cluster.start_all()
        cluster.wait_leader()
        chaos = Chaos(server, cluster, links)
        chaos.play(seconds, random.Random("%s %d" % (layout, SEED)))
        before = len(cluster.leaderships())
        cluster.wait_leader()
        chaos.assert_alive()
        seen = self.assert_one_at_a_time(cluster)
        print("%s, %g s: %d leaderships of %d processes, %s" % (
            layout, seconds, len(seen), len({one.who for one in seen}), ", ".join(
                "%d %s" % (number, what) for what, number in sorted(chaos.happened.items()))),
              flush=True)
        self.assertGreater(before, 1)
        return seen

    def test_zero_instants_of_two_leaders(self):
        for layout in ("master-election", "sovereign"):
            self.storm(layout, SECONDS / 2)


class TheCheck(FaultTest):
    """The check is no comfort unless it can fail."""

    def test_records_that_overlap_are_found(self):
        cluster = WatchedCluster(2)
        self.addCleanup(cluster.close)
        for number, (name, records) in enumerate([("a", [(5, 100, 200), (7, 400, 500)]),
                                                  ("b", [(6, 200, 300)])]):
            path = os.path.join(cluster.dir, "%s.%d.seen" % (name, number))
            cluster.lives.append((name, path))
            with open(path, "wb") as file:
                file.write(b"".join(RECORD.pack(*one) for one in records) + bytes(RECORD.size))
        with self.assertRaisesRegex(AssertionError, "two leaders"):
            self.assert_one_at_a_time(cluster)

    def test_eyewitnesses_see_two_leaders_where_there_are_two(self):
        """The same nodes, each with a server of its own: nothing keeps them apart."""
        first, second = RedisServer(), RedisServer()
        for server in (first, second):
            self.addCleanup(server.close)
        cluster = WatchedRedis(2, first.port, OPTIONS + "master-election")
        self.addCleanup(cluster.close)
        cluster.reached["b"] = second.port
        cluster.start_all()
        until(lambda: len({one.who for one in cluster.leaderships()}) == 2, "both lead")
        shared = max(one.first_ns for one in cluster.leaderships())
        until(lambda: all(one.last_ns > shared for one in cluster.leaderships()), "and go on")
        with self.assertRaisesRegex(AssertionError, "two leaders"):
            self.assert_one_at_a_time(cluster)


if __name__ == "__main__":
    main()
