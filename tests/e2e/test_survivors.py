"""What is left of CMD when `baton run` and its helpers are killed or stand still.

Judged by what the CMDs did: each writes (node, epoch, CLOCK_BOOTTIME) again and again, and no two
epochs may overlap. The CMDs here take care to escape: they undo what binds their life to their
parent's, leave session, group and cgroup, and hide.
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import harness
from harness import DEADLINE_S, ProgramTest, guardian_of, is_alive, main, until
from strangers import PYTHON, start_stranger, unprivileged

# Long enough that a test sees whether somebody waited for its end.
LEASE = ("--heartbeat-interval", "100ms", "--heartbeat-timeout", "4s", "--lease", "4s")

# argv: the file of records, the word that says how to escape, a cgroup to escape to.
ACTOR = r"""
import ctypes, os, sys, time
path, escape = sys.argv[1:3]
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE = 1, 4
def pid_file(text):
    name = path + "." + os.environ["BATON_NODE"]
    with open(name + ".new", "w") as file:
        file.write(text)
    os.rename(name + ".new", name)
if escape in ("daemon", "cgroup"):
    if os.fork():
        while True:
            time.sleep(1000)
    os.setsid()
    if os.fork():
        os._exit(0)
if escape == "cgroup":
    with open(sys.argv[3] + "/cgroup.procs", "w") as file:
        file.write("0")
libc.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
if escape == "daemon":
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
records = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
pid_file("%d %d" % (os.getpid(), os.getppid()))
while True:
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    os.write(records, ("%s %s %d\n" % (os.environ["BATON_NODE"], os.environ["BATON_EPOCH"],
                                       now)).encode())
    time.sleep(0.002)
"""

def cgroup2():
    """A folder of the second hierarchy in which this process may make others."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split()[4] for line in file if " - cgroup2 " in line]
    folder = tempfile.mkdtemp(prefix="baton-test-", dir=mounts[0]) if mounts and \
        os.access(mounts[0], os.W_OK) else None
    if folder and not os.path.exists(folder + "/cgroup.kill"):
        os.rmdir(folder)
        folder = None
    return folder


class Survivors(ProgramTest):
    def setUp(self):
        self.baton = harness.BATON
        self.addCleanup(setattr, harness, "BATON", self.baton)

    def begin(self, escape="stay", count=3, flags=(), more=(), under=()):
        cluster = self.cluster(count, *LEASE)
        os.chmod(cluster.dir, 0o777)
        self.records = os.path.join(cluster.dir, "records")
        self.command = [PYTHON, "-c", ACTOR, self.records, escape, *more]
        self.flags, self.under = list(flags), list(under)
        for name in cluster.names:
            self.begin_node(cluster, name)
        old = until(lambda: [n for n in cluster.names if self.actor(n)], "somebody acts")[0]
        others = [name for name in cluster.names if name != old]
        until(lambda: all(self.follows(cluster, name, old) for name in others), "they follow")
        self.addCleanup(self.end_actors, cluster)
        return cluster, old

    def follows(self, cluster, name, leader):
        status = cluster.status(name)
        return status and status["leader"]["id"] == leader

    def begin_node(self, cluster, name):
        harness.BATON = self.under[0] if self.under else self.baton
        words = [*self.under[1:], self.baton] if self.under else []
        log = open(os.path.join(cluster.dir, name + ".log"), "ab")
        cluster.processes[name] = subprocess.Popen(
            [harness.BATON, *words, "run", *cluster.arguments(name), *self.flags, "--",
             *self.command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            env=harness.clean_environment(), start_new_session=True)
        harness.BATON = self.baton
        log.close()

    def actor(self, name):
        """(pid of what acts, of its parent), or None."""
        try:
            with open(self.records + "." + name, encoding="ascii") as file:
                pids = [int(word) for word in file.read().split()]
        except FileNotFoundError:
            return None
        return pids if is_alive(pids[0]) else None

    def end_actors(self, cluster):
        for name in cluster.names:
            pids = self.actor(name)
            if pids:
                os.kill(pids[0], signal.SIGKILL)

    def helpers(self, cluster, name):
        """(guardian, supervisor) of a node."""
        guardian = guardian_of(cluster.processes[name].pid)
        if not guardian:
            self.skipTest("a guardian shows itself to root alone")
        found = [line for line in cluster.log(name).splitlines() if " supervised " in line]
        word = [w for w in found[-1].split() if w.startswith("supervisor=")] if found else []
        return guardian, int(word[0].split("=")[1]) if word else None

    def lives(self):
        """{(node, epoch): (first, last)} of all records."""
        lives = {}
        with open(self.records, encoding="ascii") as file:
            for line in file.read().splitlines():
                node, epoch, now = line.split()
                first = lives.get((node, int(epoch)), (int(now), 0))[0]
                lives[(node, int(epoch))] = (first, int(now))
        return lives

    def wait_for_another(self, cluster, epoch):
        until(lambda: [life for life, (first, last) in self.lives().items()
                       if life[1] > epoch and last - first > 200 * 10 ** 6],
              "another CMD has acted for a while; logs:\n" +
              "".join(cluster.log(name) for name in cluster.names))

    def overlaps(self):
        lives = sorted(self.lives().items(), key=lambda life: life[0][1])
        return [(a, b) for (a, (_, a_last)), (b, (b_first, _)) in zip(lives, lives[1:])
                if b_first <= a_last]

    def epoch(self):
        return max(epoch for _, epoch in until(self.lives, "it acts"))

    def stop_for_good(self, pid):
        os.kill(pid, signal.SIGSTOP)
        def wake():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.addCleanup(wake)

    def check_handed_on(self, cluster, epoch):
        self.wait_for_another(cluster, epoch)
        self.assertEqual(self.overlaps(), [], "two CMDs acted at once")

    def test_what_an_earlier_wrapper_left_behind_is_ended_before_the_next_one_greets(self):
        cluster, old = self.begin()
        epoch, (guardian, supervisor) = self.epoch(), self.helpers(cluster, old)
        self.stop_for_good(guardian)
        if supervisor:
            self.stop_for_good(supervisor)
        cluster.kill(old)
        self.begin_node(cluster, old)
        self.check_handed_on(cluster, epoch)

    def test_wrapper_and_guardian_killed_together_leave_no_program_behind(self):
        cluster, old = self.begin()
        epoch, (guardian, _) = self.epoch(), self.helpers(cluster, old)
        os.kill(guardian, signal.SIGKILL)
        cluster.kill(old)
        self.check_handed_on(cluster, epoch)

    def test_wrapper_and_supervisor_killed_together_are_not_certified(self):
        cluster, old = self.begin("daemon")
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        os.kill(supervisor, signal.SIGKILL)
        cluster.kill(old)
        self.check_handed_on(cluster, epoch)

    def test_a_supervisor_that_is_killed_ends_its_wrapper(self):
        cluster, old = self.begin("daemon")
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        os.kill(supervisor, signal.SIGKILL)
        self.assertEqual(cluster.processes[old].wait(timeout=DEADLINE_S), 1, cluster.log(old))
        self.assertIn("supervisor-is-dead", cluster.log(old))
        self.check_handed_on(cluster, epoch)

    def test_a_follower_whose_supervisor_is_killed_leaves_before_it_can_win(self):
        cluster, old = self.begin()
        other = next(name for name in cluster.names if name != old)
        _, supervisor = self.helpers(cluster, other)
        os.kill(supervisor, signal.SIGKILL)
        self.assertEqual(cluster.processes[other].wait(timeout=DEADLINE_S), 1, cluster.log(other))
        self.assertIn("supervisor-is-dead", cluster.log(other))
        self.assertEqual(cluster.status(old)["leader"]["id"], old)

    def test_the_guardian_removes_the_cgroup_of_a_supervisor_that_was_killed(self):
        cluster, old = self.begin()
        _, supervisor = self.helpers(cluster, old)
        folder = [word[len("cgroup="):] for word in cluster.log(old).split()
                  if word.startswith("cgroup=")][-1]
        if not folder.startswith("/"):
            self.skipTest("no cgroup can be made here")
        wrapper = cluster.processes[old].pid
        os.kill(wrapper, signal.SIGSTOP)  # else it would remove the folder itself
        os.kill(supervisor, signal.SIGKILL)
        cluster.kill(old)
        until(lambda: not os.path.exists(folder), "the folder is gone")

    def test_a_supervisor_that_is_killed_leaves_no_worker_that_hides(self):
        cluster, old = self.begin("daemon", under=unprivileged(self, harness.BATON))
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        worker = self.actor(old)[0]
        os.kill(supervisor, signal.SIGKILL)
        self.assertEqual(cluster.processes[old].wait(timeout=DEADLINE_S), 1, cluster.log(old))
        until(lambda: not is_alive(worker), "the worker has ended")
        self.check_handed_on(cluster, epoch)

    def test_a_supervisor_that_is_killed_while_it_starts_the_program_ends_its_wrapper(self):
        cluster, old = self.begin("daemon")
        new = next(name for name in cluster.names if name != old)
        _, supervisor = self.helpers(cluster, new)
        self.stop_for_good(supervisor)
        harness.baton("pass", "--data", cluster.data(old), "--to", new, "--timeout", "10s")
        os.kill(supervisor, signal.SIGKILL)
        self.assertEqual(cluster.processes[new].wait(timeout=DEADLINE_S), 1, cluster.log(new))
        self.assertIn("supervisor-is-dead", cluster.log(new))
        self.assertNotIn("loss=shutdown", cluster.log(new), "leadership was handed over")

    def test_a_stopped_wrapper_does_not_let_its_program_outlive_the_lease(self):
        cluster, old = self.begin()
        epoch = self.epoch()
        cluster.signal(old, signal.SIGSTOP)
        self.check_handed_on(cluster, epoch)
        cluster.signal(old, signal.SIGCONT)
        until(lambda: "the lease was about to end" in cluster.log(old), "it has heard of it")
        self.assertIsNone(cluster.processes[old].poll(), "it follows, and goes on")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, for a program that nobody can kill")
    def test_a_node_whose_program_cannot_be_killed_does_not_campaign(self):
        """As one that waits for a disk for ever: here it has become root's."""
        cluster = self.cluster(3, *LEASE)
        os.chmod(cluster.dir, 0o777)
        change = shutil.copy(shutil.which("setpriv"), os.path.join(cluster.dir, "change"))
        os.chmod(change, 0o4755)
        self.flags, self.under = [], unprivileged(self, self.baton)
        self.command = [change, "--reuid=0", "--regid=0", "--clear-groups", "sleep", "1000"]

        def program(name):
            found = re.search(r"command-started pid=(\d+)", cluster.log(name))
            return found and int(found.group(1))

        def end_programs():
            for pid in filter(None, map(program, cluster.names)):
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
        for name in cluster.names:
            self.begin_node(cluster, name)
        self.addCleanup(end_programs)
        old = until(lambda: [name for name in cluster.names if program(name)], "a program runs")[0]
        cluster.signal(old, signal.SIGSTOP)
        new = until(lambda: [name for name in cluster.names if name != old and program(name)],
                    "another one runs")[0]
        cluster.signal(old, signal.SIGCONT)
        until(lambda: "command-stays pid=%d" % program(old) in cluster.log(old), "it says so")
        self.assertTrue(cluster.status(old)["cordoned"])
        until(lambda: self.follows(cluster, old, new), "it follows")
        done = harness.baton("pass", "--data", cluster.data(new), "--to", old)
        self.assertIn("is cordoned; this node goes on leading", done.stderr)
        self.assertEqual(done.returncode, 1)
        os.kill(program(old), signal.SIGKILL)
        until(lambda: not cluster.status(old)["cordoned"], "it campaigns again")

    def test_a_wrapper_that_hangs_is_killed_with_its_program_before_another_acts(self):
        """Nobody waits for the lease's end."""
        cluster, old = self.begin(flags=["--lease", "10m", "--heartbeat-timeout", "10m",
                                         "--hang", "2s"])
        epoch = self.epoch()
        cluster.signal(old, signal.SIGSTOP)
        self.check_handed_on(cluster, epoch)
        self.assertEqual(cluster.processes[old].wait(timeout=DEADLINE_S), -signal.SIGKILL)

    def test_a_stopped_wrapper_and_supervisor_do_not_let_it_outlive_the_lease_either(self):
        cluster, old = self.begin()
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        self.stop_for_good(supervisor)
        cluster.signal(old, signal.SIGSTOP)
        self.check_handed_on(cluster, epoch)

    def stop_again_and_again(self, pid):
        """Its wakers cannot know when; it never runs for longer than 20 ms."""
        is_over = threading.Event()
        def stop():
            while not is_over.wait(0.02) and is_alive(pid):
                os.kill(pid, signal.SIGSTOP)
        thread = threading.Thread(target=stop)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(is_over.set)

    def test_a_supervisor_that_is_stopped_while_the_lease_ends_is_woken_again(self):
        cluster, old = self.begin()
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        self.stop_for_good(supervisor)
        cluster.signal(old, signal.SIGSTOP)
        self.stop_again_and_again(supervisor)
        self.check_handed_on(cluster, epoch)

    def test_a_wrapper_wakes_a_supervisor_that_is_to_kill_the_program(self):
        """The guardian cannot: it is stopped, too."""
        cluster, old = self.begin(flags=["--on-loss", "restart"])
        epoch, (guardian, supervisor) = self.epoch(), self.helpers(cluster, old)
        self.stop_for_good(guardian)
        self.stop_for_good(supervisor)
        other = next(name for name in cluster.names if name != old)
        harness.baton("pass", "--data", cluster.data(old), "--to", other, "--timeout", "10s")
        self.check_handed_on(cluster, epoch)

    def test_a_killed_wrapper_whose_supervisor_stands_still_leaves_no_program_behind(self):
        cluster, old = self.begin()
        epoch, (_, supervisor) = self.epoch(), self.helpers(cluster, old)
        self.stop_for_good(supervisor)
        cluster.kill(old)
        self.check_handed_on(cluster, epoch)

    def test_a_disk_that_stalls_does_not_let_the_program_outlive_the_lease(self):
        if not shutil.which("strace") or subprocess.run(
                ["strace", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"],
                stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("strace cannot inject faults here")
        cluster, old = self.begin()
        epoch, wrapper = self.epoch(), cluster.processes[old].pid
        tracer = subprocess.Popen(
            ["strace", "-f", "-p", str(wrapper), "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
             "-e", "inject=fdatasync,fsync:delay_enter=8000000"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(harness.end_tracer, tracer)
        def is_traced():
            with open("/proc/%d/status" % wrapper, encoding="ascii") as file:
                return "TracerPid:\t0\n" not in file.read()
        until(is_traced, "strace has taken hold")
        other = next(name for name in cluster.names if name != old)
        change = subprocess.Popen(  # has to be stored
            [self.baton, "join", "--data", cluster.data(other), "--timeout", "30s",
             "--replace", "%s=%s^1" % (other, cluster.address(other))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=harness.clean_environment())
        self.addCleanup(change.wait)
        self.check_handed_on(cluster, epoch)

    def test_no_program_is_started_once_its_lease_is_over(self):
        """The supervisor of the next leader stands still until that leadership has passed."""
        cluster, old = self.begin()
        heir = next(name for name in cluster.names if name != old)
        epoch, (guardian, supervisor) = self.epoch(), self.helpers(cluster, heir)
        self.stop_for_good(guardian)
        self.stop_for_good(supervisor)
        harness.baton("pass", "--data", cluster.data(old), "--to", heir)
        self.wait_for_another(cluster, epoch)
        os.kill(supervisor, signal.SIGCONT)
        os.kill(guardian, signal.SIGCONT)
        until(lambda: "the lease was about to end" in cluster.log(heir), "it has looked at it")
        self.assertNotIn("command-started", cluster.log(heir))
        self.assertEqual(self.overlaps(), [])

    def test_where_it_is_asked_for_the_program_outlives_the_lease(self):
        """The judge sees what it is there for."""
        cluster, old = self.begin(flags=["--outlive-lease"])
        epoch = self.epoch()
        cluster.signal(old, signal.SIGSTOP)
        self.wait_for_another(cluster, epoch)
        self.assertNotEqual(self.overlaps(), [])

    def test_a_worker_that_nobody_may_look_at_is_dead_before_another_acts(self):
        cluster, old = self.begin("daemon", under=unprivileged(self, harness.BATON))
        epoch = self.epoch()
        cluster.kill(old)
        self.check_handed_on(cluster, epoch)

    def test_a_worker_that_moves_to_another_cgroup_is_dead_before_another_acts(self):
        folder = cgroup2()
        if not folder:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(lambda: until(lambda: self.remove(folder), "the cgroup is empty"))
        cluster, old = self.begin("cgroup", more=[folder])
        epoch = self.epoch()
        cluster.kill(old)
        self.check_handed_on(cluster, epoch)

    def remove(self, folder):
        with open(folder + "/cgroup.kill", "w", encoding="ascii") as file:
            file.write("1")
        try:
            os.rmdir(folder)
        except OSError:
            return False
        return True

    def test_a_stranger_without_a_readable_environment_does_not_delay_the_next_leader(self):
        start_stranger(self)
        endless = ["--lease", "10m", "--heartbeat-timeout", "10m"]  # nobody waits for its end
        for under in (unprivileged(self, harness.BATON), []):
            cluster, old = self.begin(under=under, flags=endless)
            epoch = self.epoch()
            cluster.kill(old)
            self.check_handed_on(cluster, epoch)

    def test_the_log_says_what_holds_the_program(self):
        cluster, old = self.begin(count=1)
        line = [line for line in cluster.log(old).splitlines() if " supervised " in line][0]
        self.assertRegex(line, 'by=("ancestry and cgroup"|ancestry) ')


if __name__ == "__main__":
    main()
