"""Shared by the fault tests: clusters whose nodes have an observer in them (observer.c).

A watched node writes for each of its leaderships the first and the last instant at which its own
is_leader was true. `assert_one_at_a_time` compares them over all processes that there ever were.
"""
import os
import re
import struct
import sys
import unittest

from harness import DEADLINE_S, LONGER, Cluster, ClusterTest, until  # noqa: F401

SKIPPED = 77  # ctest shows the test as skipped; the reason stands on its output

# For tests that do not mind who leads, and have one leader after another.
QUICK = ("--heartbeat-timeout", "500ms", "--lease", "500ms")  # the last word of a flag counts
RECORD = struct.Struct("<Qqq")


def skip(reason):
    """From within a test. A file of which a part is skipped is shown as skipped, not as green."""
    raise unittest.SkipTest(reason)


def main():
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)


class Leadership:
    def __init__(self, who, epoch, first_ns, last_ns):
        self.who, self.epoch, self.first_ns, self.last_ns = who, epoch, first_ns, last_ns

    def __repr__(self):
        return "%s epoch %d [%.3f, %.3f] ms" % (self.who, self.epoch, self.first_ns / 1e6,
                                                self.last_ns / 1e6)


def first_overlap(seen):
    """The first two that share an instant, of leaderships in any order; None if there are none."""
    in_order = sorted(seen, key=lambda one: one.first_ns)
    for before, after in zip(in_order, in_order[1:]):
        if before.last_ns >= after.first_ns:
            return before, after
    return None


class WatchedCluster(Cluster):
    def __init__(self, count, *flags, **more):
        super().__init__(count, *flags, **more)
        self.lives = []  # (name, file of the eyewitness), one for each start

    def start(self, name, *more, env=None, under=()):
        path = os.path.join(self.dir, "%s.%d.seen" % (name, len(self.lives)))
        self.lives.append((name, path))
        watched = {"FAULTS_OBSERVED": path,
                   "FAULTS_FORKED": os.path.join(self.dir, name + ".forked")}
        super().start(name, *more, env={**watched, **(env or {})}, under=under)

    def kill_all(self):
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)

    def leaderships(self):
        """All that were ever seen, by their beginning."""
        found = []
        for number, (name, path) in enumerate(self.lives):
            try:
                with open(path, "rb") as file:
                    data = file.read()
            except FileNotFoundError:
                continue
            for epoch, first, last in RECORD.iter_unpack(data):
                if epoch:
                    found.append(Leadership("%s.%d" % (name, number), epoch, first, last))
        return sorted(found, key=lambda one: one.first_ns)

    def pid(self, name):
        return self.processes[name].pid

    def guardian(self, name):
        """The pid of a node's guardian: it keeps a descriptor of its parent, and tells whose."""
        for entry in os.listdir("/proc"):
            if entry.isdigit() and guards(int(entry), self.pid(name)):
                return int(entry)
        return None

    def raft(self, name):
        """What `baton status --json` says of the group; {} while the node does not answer."""
        return (self.status(name) or {}).get("raft", {})

    def counters(self, name):
        return self.raft(name).get("counters", {})

    def term(self, name):
        return until(lambda: self.raft(name), name + " answers")["term"]

    def follow(self, leader, among):
        """Waits until all of them know this leader, and are promised to it."""
        for name in among:
            until(lambda one=name: ((self.status(one) or {}).get("leader") or {}).get("id")
                  == leader, "%s follows %s; log:\n%s" % (name, leader, self.log(name)))

    def logs(self):
        return "".join("== %s\n%s" % (name, self.log(name)) for name in self.processes)


def guards(pid, process):
    """A guardian's pidfd names the process that it guards in fdinfo."""
    try:
        if os.path.basename(os.readlink("/proc/%d/exe" % pid)) != "baton-guardian":
            return False
        for number in os.listdir("/proc/%d/fd" % pid):
            with open("/proc/%d/fdinfo/%s" % (pid, number), encoding="ascii") as file:
                if re.search(r"^Pid:\s*%d$" % process, file.read(), re.MULTILINE):
                    return True
    except OSError:
        pass
    return False


class FaultTest(ClusterTest):
    def watched(self, count, *flags, **more):
        cluster = WatchedCluster(count, *flags, **more)
        self.addCleanup(cluster.close)
        return cluster

    def started(self, count, *flags, **more):
        """A cluster that has a leader whom all follow, and the leader's name."""
        cluster = self.watched(count, *flags, **more)
        cluster.start_all()
        leader = cluster.wait_leader()
        cluster.follow(leader, cluster.names)
        return cluster, leader

    def assert_one_at_a_time(self, cluster):
        """Never two whose is_leader was true, and epochs that only grow, each of one process."""
        seen = cluster.leaderships()
        self.assertTrue(seen, "nobody was seen to lead")
        both = first_overlap(seen)
        self.assertIsNone(both, "two leaders: %s\n%s" % (both, cluster.logs()))
        for before, after in zip(seen, seen[1:]):
            self.assertLess(before.epoch, after.epoch, "an epoch that does not grow: "
                            "%s, then %s\n%s" % (before, after, cluster.logs()))
        return seen
