"""Fences: a silent host is switched off, and the command's exit code 0 ends its leader's promise.

The leases outlast each test, so only a fence can make another leader. The stand-in for a fence
device ends the processes of the host with SIGKILL, or only says so.
"""
import json
import os
import signal
import stat

from faults import FaultTest, main, until
from harness import baton, is_alive
from namespaces import NetworkedCluster

LEASE = ("--heartbeat-interval", "100ms", "--heartbeat-timeout", "10m", "--lease", "10m",
         "--log-level", "info", "--proofs", "guardian")
# Each node is a host: this finds the processes of a host by a file with their group's number.
DEVICE = """#!/usr/bin/env python3
import os, signal, sys, time
here = os.path.dirname(sys.argv[0])
words = dict(line.split("=", 1) for line in sys.stdin.read().split("\\n") if line)
assert words["action"] == "off" and words["plug"] == words["nodename"], words
assert os.environ["BATON_FENCE_HOST"] == words["plug"]
def note(text):
    with open(here + "/device.log", "a") as file:
        file.write("%%s %%s %%d\\n" %% (text, words["plug"], os.getpid()))
note("begins")
%s
note("ends")
"""
SWITCHES_OFF = """
with open(here + "/" + words["plug"] + ".kill") as file:
    os.system(file.read())
"""
FAILS = "note('fails'); sys.exit(1)"
STANDS = "time.sleep(1000)"


class Fence(FaultTest):
    def device(self, cluster, act):
        path = os.path.join(cluster.dir, "device")
        with open(path, "w", encoding="utf-8") as file:
            file.write(DEVICE % act)
        os.chmod(path, stat.S_IRWXU)
        return path

    def begin(self, cluster, act, *flags):
        self.addCleanup(cluster.close)
        cluster.flags += [*LEASE, "--guardian", "off", "--fence-after", "1s", "--fence",
                          self.device(cluster, act), *flags]
        cluster.start_all()
        leader = cluster.wait_leader()
        cluster.follow(leader, cluster.names)
        return leader

    def on_loopback(self, act, *flags):
        """Each node counts as a host of its own, whose name is h-NAME."""
        cluster = self.watched(3)
        cluster.flags += ["--fence-hosts", ",".join("%s=h-%s" % (n, n) for n in cluster.names)]
        leader = self.begin(cluster, act, *flags)
        for name, process in cluster.processes.items():
            self.off_by(cluster, "h-" + name, "kill -9 %d" % process.pid)
        return cluster, leader

    def off_by(self, cluster, host, command):
        with open(os.path.join(cluster.dir, host + ".kill"), "w", encoding="utf-8") as file:
            file.write(command)

    def rest(self, cluster, *names):
        return [name for name in cluster.names if name not in names]

    def device_log(self, cluster):
        try:
            with open(os.path.join(cluster.dir, "device.log"), encoding="utf-8") as file:
                return [line.split()[:2] for line in file]
        except FileNotFoundError:
            return []

    def logs_of(self, cluster, names):
        return "".join(cluster.log(name) for name in names)

    def test_a_stopped_leader_is_switched_off_and_followed(self):
        cluster, old = self.on_loopback(SWITCHES_OFF)
        cluster.signal(old, signal.SIGSTOP)
        new = cluster.wait_leader(self.rest(cluster, old))
        cluster.processes[old].wait()
        self.assertEqual(self.device_log(cluster), [["begins", "h-" + old], ["ends", "h-" + old]])
        self.assertRegex(cluster.log(new), "fence-begins .*host=h-" + old)
        self.assertRegex(cluster.log(new), "fence-ended .*host=h-%s.*exit=0" % old)
        self.assertEqual(cluster.counters(new)["fences"], 1)
        cluster.start(old)  # in a new incarnation: a newcomer as ever
        cluster.follow(new, cluster.names)
        self.assert_one_at_a_time(cluster)

    def test_a_command_that_fails_makes_no_leader_and_is_tried_again(self):
        cluster, old = self.on_loopback(FAILS)
        cluster.signal(old, signal.SIGSTOP)
        others = self.rest(cluster, old)
        until(lambda: self.device_log(cluster).count(["fails", "h-" + old]) >= 3,
              lambda: "three tries\n" + cluster.logs())
        self.assertIsNone(cluster.leader(others), cluster.logs())
        self.assertRegex(self.logs_of(cluster, others), "fence-ended .*exit=1.*proves nothing")
        cluster.signal(old, signal.SIGCONT)
        cluster.follow(old, cluster.names)
        self.assertEqual(cluster.leader(), old)
        self.assert_one_at_a_time(cluster)

    def test_a_command_that_hangs_is_killed_with_its_group(self):
        cluster, old = self.on_loopback("os.system('sleep 1000 & echo $! >%s/child' % here); "
                                        + STANDS, "--fence-timeout", "1s")
        cluster.signal(old, signal.SIGSTOP)
        others = self.rest(cluster, old)
        until(lambda: "killed at its time limit" in self.logs_of(cluster, others),
              lambda: "the limit\n" + cluster.logs())
        with open(os.path.join(cluster.dir, "child"), encoding="ascii") as file:
            child = int(file.read())
        until(lambda: not is_alive(child), "its child ends")
        self.assertIsNone(cluster.leader(others), cluster.logs())
        cluster.signal(old, signal.SIGCONT)
        cluster.follow(old, cluster.names)

    def test_a_command_ends_with_its_asker(self):
        """Its time limit is longer than this test."""
        cluster, old = self.on_loopback(STANDS, "--fence-timeout", "10m")
        cluster.signal(old, signal.SIGSTOP)
        others = self.rest(cluster, old)
        asker = until(lambda: [n for n in others if "fence-begins" in cluster.log(n)],
                      lambda: "an asker\n" + cluster.logs())[0]
        until(lambda: self.device_log(cluster), "the command runs")
        with open(os.path.join(cluster.dir, "device.log"), encoding="utf-8") as file:
            command = int(file.read().split()[2])
        cluster.kill(asker)
        until(lambda: not is_alive(command), "the command has ended")
        cluster.signal(old, signal.SIGCONT)
        cluster.start(asker)
        cluster.follow(old, cluster.names)
        self.assert_one_at_a_time(cluster)

    def test_without_a_quorum_no_command_is_run(self):
        """Of three, one is left: it finds the others silent, and may switch neither off."""
        cluster, old = self.on_loopback(SWITCHES_OFF)
        heir = until(lambda: cluster.raft(old)["heir"], "an heir")
        third = self.rest(cluster, old, heir)[0]
        cluster.signal(third, signal.SIGSTOP)
        cluster.signal(old, signal.SIGSTOP)
        until(lambda: "fence-not-run" in cluster.log(heir), lambda: "it asks\n" + cluster.logs())
        self.assertEqual(self.device_log(cluster), [])
        self.assertEqual(cluster.counters(heir)["fences"], 0)
        cluster.signal(third, signal.SIGCONT)
        cluster.wait_leader([heir, third])
        self.assertEqual(self.device_log(cluster), [["begins", "h-" + old], ["ends", "h-" + old]])
        self.assert_one_at_a_time(cluster)

    def test_a_host_that_is_shut_down_in_order_is_left_alone(self):
        cluster, old = self.on_loopback(SWITCHES_OFF)
        cluster.signal(old, signal.SIGTERM)
        cluster.processes[old].wait()
        new = cluster.wait_leader(self.rest(cluster, old))
        frames = cluster.counters(new)["frames_received"]
        until(lambda: cluster.counters(new)["frames_received"] > frames + 60, "time passes")
        self.assertEqual(self.device_log(cluster), [])

    def test_with_a_group_the_leader_of_the_log_switches_a_holder_off(self):
        """The holder of an election, which does not lead the log: its session would stand."""
        cluster, holder = self.on_loopback(SWITCHES_OFF, "--group", "g")
        log = until(lambda: [n for n in cluster.names if cluster.raft(n).get("role") == "leader"],
                    "the log has a leader")[0]
        if holder == log:
            heir = self.rest(cluster, log)[0]
            done = baton("pass", "--data", cluster.data(log), "--to", heir)
            self.assertEqual(done.returncode, 0, done.stderr)
            holder = cluster.wait_leader([heir])
        cluster.signal(holder, signal.SIGSTOP)
        new = cluster.wait_leader(self.rest(cluster, holder))
        self.assertEqual(self.device_log(cluster)[0], ["begins", "h-" + holder])
        self.assertRegex(cluster.log(log), "fence-ended .*host=h-%s.*exit=0" % holder)
        cluster.follow(new, self.rest(cluster, holder))
        self.assert_one_at_a_time(cluster)

    def test_a_host_whose_line_is_cut_is_switched_off_and_followed(self):
        """In network namespaces: the host lives on behind the cut until the device ends all that
        runs in its namespace, the guardian as well."""
        cluster = NetworkedCluster(3)
        leader = self.begin(cluster, SWITCHES_OFF)
        for name, address in cluster.hosts.items():
            self.off_by(cluster, address, "kill -9 $(ip netns pids %s)"
                        % cluster.network.space(name))
        cluster.network.part([leader], self.rest(cluster, leader))
        new = cluster.wait_leader(self.rest(cluster, leader))
        cluster.processes[leader].wait()
        self.assertEqual(self.device_log(cluster)[0], ["begins", cluster.hosts[leader]])
        self.assertIn("fence", json.dumps(cluster.raft(new)))
        cluster.network.heal()
        cluster.start(leader)
        cluster.follow(new, cluster.names)
        self.assert_one_at_a_time(cluster)


if __name__ == "__main__":
    main()
