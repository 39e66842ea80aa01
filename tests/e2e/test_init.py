"""`baton` as process 1 of a PID namespace, as the first program of a container is.

Process 1 splits itself: the elector is its child. What proves a death is judged by what the other
nodes were shown, with a lease that outlasts the test: only a proof ends it.
"""
import os
import pty
import shutil
import signal
import subprocess
import sys
import unittest

import harness
from harness import ClusterTest, clean_environment, is_alive, main, until

NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
LEASE = ("--heartbeat-interval", "100ms", "--heartbeat-timeout", "90s", "--lease", "90s",
         "--log-level", "info")
FOREVER = ("--", "sh", "-c", "sleep 100000 & wait")

# argv: a file that gets a byte for each SIGINT.
COUNTER = """
import os, signal, sys, time
unready = sys.argv[1] + ".unready"
record = os.open(unready, os.O_WRONLY | os.O_CREAT | os.O_APPEND |
                 os.O_NONBLOCK)
signal.signal(signal.SIGINT, lambda number, frame: None)
signal.set_wakeup_fd(record, warn_on_full_buffer=False)
os.rename(unready, sys.argv[1]) # whoever sees it may interrupt
while True:
    time.sleep(1000)
"""


def may_unshare():
    return shutil.which("unshare") is not None and subprocess.run(
        [*NAMESPACE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def field(pid, name):
    with open("/proc/%d/status" % pid, encoding="utf-8") as file:
        return next(line.split()[1] for line in file if line.startswith(name + ":"))


@unittest.skipUnless(may_unshare(), "a PID namespace needs root and unshare(1)")
class Namespaces(ClusterTest):
    def begin(self, count, *flags, command="run", more=FOREVER):
        cluster = self.cluster(count, *flags, command=command)
        for name in cluster.names:
            cluster.start(name, *(more if command == "run" else ()), under=NAMESPACE)
        return cluster

    def first(self, cluster, name):
        """Process 1 of the node's namespace."""
        return until(lambda: children(cluster.processes[name].pid), "the namespace has begun")[0]

    def elector(self, cluster, name):
        first = self.first(cluster, name)
        return until(lambda: [pid for pid in children(first) if field(pid, "Name") == "baton"],
                     "process 1 has a child")[0]

    def alone(self, *command, flags=()):
        cluster = self.begin(1, *flags, more=("--", *command))
        return cluster, cluster.processes["a"]

    def wait_for_followers(self, cluster, leader):
        for name in cluster.names:
            until(lambda name=name: (cluster.status(name) or {"leader": {"id": ""}})["leader"]["id"]
                  == leader, "%s follows" % name)

    def test_a_killed_elector_is_followed_by_a_certificate(self):
        cluster = self.begin(3, *LEASE)
        old = cluster.wait_leader()
        self.wait_for_followers(cluster, old)
        os.kill(self.elector(cluster, old), signal.SIGKILL)
        others = [name for name in cluster.names if name != old]
        new = cluster.wait_leader(others)
        self.assertRegex(cluster.log(new), "leader-proved-gone .*guardian")
        self.assertEqual(cluster.processes[old].wait(harness.DEADLINE_S), 137)

    def test_undivided_its_death_costs_the_lease_and_it_says_so(self):
        cluster = self.begin(1, "--init", "off")
        cluster.wait_leader()
        deaths = cluster.status("a")["deaths"]
        self.assertEqual(deaths["at_once"], "none")
        self.assertIn("process 1 of a PID namespace", deaths["by_lease"])

    def test_it_says_at_the_start_which_deaths_cost_the_lease(self):
        cluster = self.begin(1)
        cluster.wait_leader()
        deaths = cluster.status("a")["deaths"]
        self.assertEqual(deaths["at_once"], "the end of this process")
        self.assertIn("the end of the PID namespace", deaths["by_lease"])
        self.assertIn(deaths["by_lease"], cluster.log("a"))
        shown = harness.baton("status", "--data", cluster.data("a")).stdout
        self.assertIn(deaths["by_lease"], shown)

    def test_no_zombie_is_left_of_a_hundred_orphans(self):
        cluster = self.begin(1, command="node")
        first, elector = self.first(cluster, "a"), self.elector(cluster, "a")
        cluster.wait_leader()
        done = subprocess.run(
            ["nsenter", "-p", "-t", str(first), "sh", "-c",
             "for i in $(seq 100); do (sh -c 'echo $$; sleep 0.1' & ); done"],
            stdout=subprocess.PIPE, check=True, timeout=harness.DEADLINE_S)
        self.assertEqual(len(set(done.stdout.split())), 100)
        ours = {"baton", "baton-guardian"}
        until(lambda: {field(pid, "Name") for pid in children(first)} == ours,
              "the orphans are gone, the elector and its guardian stay")
        self.assertTrue(is_alive(elector))

    def test_the_exit_code_is_that_of_the_program(self):
        self.assertEqual(self.alone("sh", "-c", "exit 42")[1].wait(harness.DEADLINE_S), 42)
        self.assertEqual(self.alone("sh", "-c", "kill -9 $$")[1].wait(harness.DEADLINE_S), 137)

    def test_beside_the_proc_of_another_namespace_the_program_ends_too(self):
        cluster = self.cluster(1, command="run")
        cluster.start("a", "--", "sh", "-c", "sleep 100000 & exit 42",
                      under=[word for word in NAMESPACE if word != "--mount-proc"])
        self.assertEqual(cluster.processes["a"].wait(timeout=60), 42)
        self.assertRegex(cluster.log("a"), 'supervised .* by=(cgroup|"process group") ')

    def test_signals_reach_the_program(self):
        numbers = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM)
        script = "".join("trap 'echo %s >>$0' %s; " % ((number.name[3:],) * 2)
                         for number in numbers)
        record = os.path.join(self.cluster(1).dir, "record")
        cluster, process = self.alone(
            "sh", "-c", script + "trap 'echo TERM >>$0; exit 7' TERM; echo up >>$0; "
            "while :; do sleep 0.05; done", record)
        first = self.first(cluster, "a")

        def got():
            if not os.path.exists(record):
                return []
            with open(record, encoding="ascii") as file:
                return file.read().split()
        until(got, "the program runs")
        for number in numbers:
            os.kill(first, number)
            until(lambda number=number: number.name[3:] in got(), "%s arrives" % number.name)
        self.assertEqual(process.wait(harness.DEADLINE_S), 7)

    def test_a_stopped_container_hands_over(self):
        cluster = self.begin(3, *LEASE, command="node")
        old = cluster.wait_leader()
        self.wait_for_followers(cluster, old)
        os.kill(self.first(cluster, old), signal.SIGTERM)
        self.assertEqual(cluster.processes[old].wait(harness.DEADLINE_S), 0)
        cluster.wait_leader([name for name in cluster.names if name != old])
        self.assertIn("loss=shutdown", cluster.log(old))

    def test_what_the_program_left_behind_ends_with_the_elector(self):
        record = os.path.join(self.cluster(1).dir, "record")
        cluster, process = self.alone("sh", "-c", "sleep 100000 & echo up >$0; wait", record)
        until(lambda: os.path.exists(record), "the program runs")
        first = self.first(cluster, "a")
        os.kill(self.elector(cluster, "a"), signal.SIGKILL)
        self.assertEqual(process.wait(harness.DEADLINE_S), 137)
        self.assertFalse(is_alive(first))


class Forced(ClusterTest):
    """--init on, where this process is not process 1: needs no privilege."""

    def start_one(self, *command):
        one = self.cluster(1, "--init", "on", command="run")
        one.start("a", "--", *command)
        return one, one.processes["a"]

    def test_the_exit_code_is_that_of_the_program(self):
        self.assertEqual(self.start_one("sh", "-c", "exit 42")[1].wait(harness.DEADLINE_S), 42)

    def test_an_interrupt_of_the_terminal_reaches_the_program_once(self):
        """The terminal sends it to process 1 and to the elector. Two that come together may become
        one, so it is sent often."""
        one = self.cluster(1)
        record = os.path.join(one.dir, "record")
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(harness.BATON, [
                harness.BATON, "run", *one.arguments("a"), "--init", "on", "--stop-timeout", "10m",
                "--", sys.executable, "-c", COUNTER, record], clean_environment())
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.waitpid, pid, 0)
        self.addCleanup(os.kill, pid, signal.SIGKILL)

        def count():
            return os.path.getsize(record) if os.path.exists(record) else -1
        until(lambda: count() == 0, "the program runs")
        for interrupts in range(1, 31):
            os.write(terminal, b"\x03")
            until(lambda at_least=interrupts: count() >= at_least, "it was interrupted")
        self.assertEqual(count(), 30)

    def test_if_it_is_killed_the_elector_ends_too(self):
        one, process = self.start_one("sh", "-c", "sleep 100000")
        one.wait_leader()
        elector = next(pid for pid in children(process.pid) if field(pid, "Name") == "baton")
        process.kill()
        until(lambda: not is_alive(elector), "the elector is dead")


if __name__ == "__main__":
    main()
