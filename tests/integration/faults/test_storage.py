"""Disks that fail, are full, or under which the node dies: term and vote never go back.

What a node tells others it has stored before. So it ends when a write fails, with exit code 74,
and comes back with what the disk really has.
"""
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

from faults import QUICK, FaultTest, main, skip, until
from harness import BATON, DEADLINE_S, baton, end_tracer


def need_strace():
    done = subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False) \
        if shutil.which("strace") else None
    if not done or done.returncode != 0:
        skip("strace cannot inject faults here" if done else "strace is not installed")


class Tracer:
    """strace, attached to all threads of a process that runs; its calls are read from a file."""

    def __init__(self, pid, directory, inject):
        self.path = os.path.join(directory, "trace.%d" % pid)
        self.process = subprocess.Popen(
            ["strace", "-f", "-p", str(pid), "-o", self.path, "-e", "trace=fdatasync,fsync",
             "-e", "inject=" + inject], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        until(lambda: all(is_traced(pid, thread) for thread in os.listdir("/proc/%d/task" % pid)),
              "strace has taken hold")

    def calls(self):
        with open(self.path, encoding="utf-8") as file:
            return [line for line in file if "sync(" in line]

    def close(self):
        end_tracer(self.process)


def is_traced(pid, thread):
    with open("/proc/%d/task/%s/status" % (pid, thread), encoding="ascii") as file:
        return "TracerPid:\t0\n" not in file.read()


NEVER_STORED = (0, 0, 0, 0)


class StorageTest(FaultTest):
    def trace(self, cluster, name, inject):
        tracer = Tracer(cluster.pid(name), cluster.dir, inject)
        self.addCleanup(tracer.close)
        return tracer

    def others(self, cluster, *names):
        return [name for name in cluster.names if name not in names]

    def hard(self, cluster, name):
        """(term, vote, pledged term, pledged to) as the next start will find them. The node is
        down."""
        with tempfile.TemporaryDirectory(dir=cluster.dir) as copy:
            for file in ("raft.db", "raft.db-wal"):
                path = os.path.join(cluster.data(name), file)
                if os.path.exists(path):
                    shutil.copy(path, copy)
            database = sqlite3.connect(os.path.join(copy, "raft.db"))
            try:
                return database.execute("SELECT term, vote, pledged_term, pledged_to"
                                        " FROM hard").fetchone() or NEVER_STORED
            except sqlite3.OperationalError:
                return NEVER_STORED  # it died before there was a table
            finally:
                database.close()

    def assert_not_back(self, before, after):
        self.assertGreaterEqual(after[0], before[0], "the term went back")
        if after[0] == before[0] and before[1] != 0:
            self.assertEqual(after[1], before[1], "a second vote in one term")
        self.assertGreaterEqual(after[2], before[2], "a pledge is forgotten")
        if after[2] == before[2]:
            self.assertEqual(after[3], before[3], "a pledge to another")

    def elect_until(self, cluster, name, condition):
        """One election after another, in each of which the vote of `name` is needed, since of
        three one is down. The last term in which somebody was elected so; 0: none."""
        deadline, term = time.monotonic() + DEADLINE_S, 0
        while not condition():
            self.assertLess(time.monotonic(), deadline, cluster.logs())
            old = cluster.leader()
            if old == name:
                baton("pass", "--data", cluster.data(name), "--timeout", "5s")
            elif old and cluster.raft(name):
                third, = self.others(cluster, name, old)
                cluster.kill(old)
                until(lambda: cluster.leader([name, third]) or condition(),
                      "another leader\n" + cluster.logs())
                elected = cluster.raft(third)  # by the raft's own word, whatever its lease says
                # One that is still starting says nothing, and was not elected.
                term = elected["term"] if elected.get("role") == "leader" else term
                cluster.start(old)
            time.sleep(0.02)
        return term

    def make_it_write(self, cluster, name):
        """A member is to leave: the leader, `name`, has an entry to store."""
        one = self.others(cluster, name)[-1]
        return subprocess.Popen(
            [BATON, "leave", one, "--data", cluster.data(name), "--timeout", "2s"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Tracers(StorageTest):
    def setUp(self):
        need_strace()

    def test_one_that_does_not_let_go_is_killed_and_the_process_lives(self):
        one, name = self.started(1)
        tracer = self.trace(one, name, "fdatasync,fsync:delay_enter=1")
        tracer.process.send_signal(signal.SIGSTOP)
        tracer.close()
        self.assertEqual(tracer.process.returncode, -signal.SIGKILL)
        self.assertFalse(is_traced(one.pid(name), one.pid(name)))
        one.wait_leader()


class DiskFails(StorageTest):
    def setUp(self):
        need_strace()

    def ended(self, cluster, name):
        """With the exit code that a service manager is to know."""
        until(lambda: cluster.processes[name].poll() is not None,
              lambda: "%s ends, since its disk has failed\n%s" % (name, cluster.logs()))
        self.assertEqual(cluster.processes[name].returncode, 74, cluster.logs())
        self.assertIn("storage-failed", cluster.log(name))

    def test_a_leader_steps_down_and_believes_no_second_fsync(self):
        """The first fdatasync says EIO, all later ones would succeed: none is asked for, and the
        node ends."""
        five, leader = self.started(5)  # of whom one may leave, and one fall silent
        tracer = self.trace(five, leader, "fdatasync,fsync:error=EIO:when=1")
        asking = self.make_it_write(five, leader)
        self.addCleanup(asking.wait)
        self.ended(five, leader)
        five.wait_leader(self.others(five, leader))
        asking.wait()
        calls = tracer.calls()
        self.assertEqual(len(calls), 1, calls)
        self.assertIn("EIO", calls[0])
        tracer.close()
        before = self.hard(five, leader)
        five.start(leader)
        five.follow(five.wait_leader(), [leader])
        five.kill(leader)
        self.assert_not_back(before, self.hard(five, leader))
        self.assert_one_at_a_time(five)

    def test_a_follower_votes_no_more(self):
        """Two of three are needed, and one of the two that are left cannot store anything. It may
        have pledged its vote before, but what comes after the vote it cannot."""
        three, leader = self.started(3)
        broken, sound = self.others(three, leader)
        tracer = self.trace(three, broken, "fdatasync,fsync:error=EIO")
        three.kill(leader)
        self.ended(three, broken)
        until(lambda: three.leader([sound]) is None, "a lease without it has ended")
        three.start(leader)
        self.assertIn(three.wait_leader([sound, leader]), (sound, leader))
        self.assertEqual(len(tracer.calls()), 1)
        tracer.close()
        before = self.hard(three, broken)
        three.start(broken)
        three.follow(three.wait_leader(), three.names)
        three.kill(broken)
        self.assert_not_back(before, self.hard(three, broken))
        self.assert_one_at_a_time(three)

    def test_nothing_is_begun_on_a_log_of_which_an_fsync_failed(self):
        """Also where the fsync is only of the room for later writes, and where it is of the first
        entry, before any election of a group takes part."""
        for number, *flags in [(number,) for number in range(1, 5)] + [(5, "--group", "g")]:
            one = self.watched(1, *QUICK, *flags)
            name = one.names[0]
            one.start(name, under=(
                "strace", "-D", "-f", "-o", os.devnull, "-P",
                os.path.join(one.data(name), "raft.db-wal"), "-e", "trace=fdatasync", "-e",
                "inject=fdatasync:error=EIO:when=%d" % number))
            until(lambda one=one, name=name: one.processes[name].poll() is not None, one.logs)
            self.assertEqual(one.processes[name].returncode, 74, one.logs())


class DiskIsFull(StorageTest):
    def mount(self, path, *options):
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "none", path],
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode != 0:
            skip("no file system of its own: " + done.stderr.strip())

    def test_without_room_a_node_ends_with_74_and_with_room_it_is_back(self):
        three = self.watched(3, *QUICK)
        name = three.names[0]
        os.makedirs(three.data(name), mode=0o700)
        self.mount(three.data(name), "size=64k", "mode=700")
        self.addCleanup(subprocess.run, ["umount", "--lazy", three.data(name)], check=False)
        three.start_all()
        self.elect_until(three, name, lambda: three.processes[name].poll() is not None)
        self.assertEqual(three.processes[name].returncode, 74, three.log(name))
        three.wait_leader(self.others(three, name))
        self.assertIn("no space left", three.log(name))
        before = self.hard(three, name)
        self.mount(three.data(name), "remount", "size=4m")
        three.start(name)
        three.follow(three.wait_leader(), three.names)
        three.kill(name)
        self.assert_not_back(before, self.hard(three, name))
        self.assert_one_at_a_time(three)


class Killed(StorageTest):
    def setUp(self):
        need_strace()

    def test_at_any_fsync_term_and_vote_stay(self):
        self.killed_at("fdatasync", range(1, 13))

    def test_at_any_write_term_and_vote_stay(self):
        self.killed_at("pwrite64", range(1, 40, 3))

    def killed_at(self, call, numbers):
        """On the way into the n-th call of a life, for each n: at its start and at its votes."""
        three, _ = self.started(3, *QUICK)
        name, known = three.names[0], NEVER_STORED
        three.kill(name)
        for number in numbers:  # -D: the node is our child, and strace its grandchild
            three.start(name, under=("strace", "-D", "-f", "-o", os.devnull, "-e", "trace=" + call,
                                     "-e", "inject=%s:signal=KILL:when=%d" % (call, number)))
            term = self.elect_until(three, name, lambda: three.processes[name].poll() is not None)
            found = self.hard(three, name)
            self.assertGreaterEqual(max(found[0], found[2]), term,
                                    "neither a vote that was given nor its pledge is known")
            self.assert_not_back(known, found)
            known = found
        self.assertGreater(known[0], 1, "no vote was ever in danger")
        three.start(name)
        three.follow(three.wait_leader(), three.names)
        self.assertGreaterEqual(three.term(name), known[0])
        self.assert_one_at_a_time(three)


if __name__ == "__main__":
    main()
