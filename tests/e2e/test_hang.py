"""The setting hang: a leader that stands still is killed by its guardian, and nobody else is.

The leases outlast each test, so only a proof ends one: what the others were shown is the judge.
"""
import os
import random
import signal
import sys
import time

from harness import DEADLINE_S, ClusterTest, baton, guardian_of, main, until

LEASE = ("--heartbeat-interval", "100ms", "--heartbeat-timeout", "10m", "--lease", "10m",
         "--proofs", "guardian", "--log-level", "info")
# A leader that a busy machine made stand still for so long would be killed, too.
BOUND = "3s"
SEED = int(os.environ.get("HANG_SEED", "0")) or random.SystemRandom().randrange(1, 10 ** 6)


# argv: a file, until which it says that it is alive; then it stands still.
ALIVE = r"""
import os, socket, sys, time
address = os.environ["NOTIFY_SOCKET"]
notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notices.connect("\0" + address[1:] if address[0] == "@" else address)
interval = int(os.environ["WATCHDOG_USEC"]) / 4e6
while not os.path.exists(sys.argv[1]):
    notices.send(b"STATUS=well\nWATCHDOG=1")
    print("is alive", flush=True)
    time.sleep(interval)
print("stands still", flush=True)
time.sleep(1000)
"""


class Hang(ClusterTest):
    def begin(self, count=3):
        cluster = self.cluster(count, *LEASE, "--hang", BOUND)
        cluster.start_all()
        leader = cluster.wait_leader()
        for name in cluster.names:
            until(lambda name=name: (cluster.status(name) or {"leader": {"id": ""}})["leader"]["id"]
                  == leader, "%s follows" % name)
        return cluster, leader

    def guardian(self, cluster, name):
        guardian = guardian_of(cluster.processes[name].pid)
        if not guardian:
            self.skipTest("a guardian shows itself to root alone")
        return guardian

    def continue_later(self, pid):
        def go_on():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.addCleanup(go_on)

    def check_leads_on(self, cluster, leader, epoch):
        self.assertIsNone(cluster.processes[leader].poll(), cluster.log(leader))
        status = cluster.status(leader)
        self.assertTrue(status["is_leader"])
        self.assertEqual(status["epoch"], epoch)

    def test_a_stopped_leader_is_killed_and_followed_under_any_lease(self):
        cluster, old = self.begin()
        cluster.signal(old, signal.SIGSTOP)
        new = cluster.wait_leader([name for name in cluster.names if name != old])
        self.assertRegex(cluster.log(new), "leader-proved-gone .*guardian")
        self.assertEqual(cluster.processes[old].wait(timeout=DEADLINE_S), -signal.SIGKILL)

    def test_a_killed_leader_says_so_at_its_next_start_and_may_hang_longer(self):
        cluster, old = self.begin()
        cluster.signal(old, signal.SIGSTOP)
        cluster.processes[old].wait()
        until(lambda: os.path.exists(cluster.data(old) + "/hang-kills"), "the guardian counts")
        cluster.start(old)
        status = until(lambda: cluster.status(old), "it is back")
        self.assertEqual((status["raft"]["hang_kills"], status["raft"]["hang_ms"]), (1, 6000))
        self.assertRegex(cluster.log(old), "hang-kills count=1 bound_ms=6000")

    def test_kills_of_another_hour_do_not_count_wherever_the_clock_was(self):
        for seconds in -4000, 4000:
            one = self.cluster(1, "--hang", "1s")
            path = os.path.join(one.data("a"), "hang-kills")
            os.mkdir(one.data("a"), 0o700)
            with open(path, "w", encoding="ascii") as file:
                file.write("3\n")
            os.utime(path, (time.time() + seconds,) * 2)
            one.start("a")
            one.wait_leader()
            self.assertEqual(one.status("a")["raft"]["hang_kills"], 0, seconds)

    def test_a_follower_that_stands_still_is_left_alone(self):
        """By the time the leader was killed for its own hang, the follower's was longer."""
        cluster, old = self.begin(5)
        other = next(name for name in cluster.names if name != old)
        cluster.signal(other, signal.SIGSTOP)
        cluster.signal(old, signal.SIGSTOP)
        cluster.wait_leader([name for name in cluster.names if name not in (old, other)])
        self.assertIsNone(cluster.processes[other].poll())
        cluster.signal(other, signal.SIGCONT)
        until(lambda: cluster.status(other), "it answers again")

    def test_a_guardian_that_was_stopped_kills_nobody(self):
        cluster, leader = self.begin(1)
        epoch, guardian = cluster.status(leader)["epoch"], self.guardian(cluster, leader)
        self.continue_later(guardian)
        for _ in range(3):
            os.kill(guardian, signal.SIGSTOP)
            time.sleep(4)  # longer than the bound: that is what is tested
            os.kill(guardian, signal.SIGCONT)
            self.check_leads_on(cluster, leader, epoch)

    def test_a_leader_that_was_stopped_together_with_its_guardian_is_not_killed(self):
        """As by the suspension of a machine, or one that is too busy for both."""
        cluster, leader = self.begin(1)
        epoch, guardian = cluster.status(leader)["epoch"], self.guardian(cluster, leader)
        process, chance = cluster.processes[leader].pid, random.Random(SEED)
        self.continue_later(guardian)
        for _ in range(4):
            os.kill(guardian, signal.SIGSTOP)
            os.kill(process, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 6))
            for pid in chance.sample((guardian, process), 2):
                os.kill(pid, signal.SIGCONT)
            time.sleep(chance.uniform(0, 2))
            self.check_leads_on(cluster, leader, epoch)

    def begin_watched(self, end):
        cluster = self.cluster(3, *LEASE, "--hang", BOUND, "--watchdog", command="run")
        cluster.start_all("--", sys.executable, "-c", ALIVE, os.path.join(cluster.dir, end))
        leader = cluster.wait_leader()
        for name in cluster.names:
            until(lambda name=name: (cluster.status(name) or {"leader": {"id": ""}})["leader"]["id"]
                  == leader, "%s follows" % name)
        return cluster, leader

    def test_a_program_that_no_longer_says_that_it_is_alive_is_killed_and_followed(self):
        cluster, old = self.begin_watched("end")
        until(lambda: "is alive" in cluster.log(old), "its program runs")
        with open(os.path.join(cluster.dir, "end"), "w", encoding="utf-8"):
            pass
        new = cluster.wait_leader([name for name in cluster.names if name != old])
        self.assertRegex(cluster.log(new), "leader-proved-gone .*guardian")
        self.assertIn("stands still", cluster.log(old))
        self.assertEqual(cluster.processes[old].wait(timeout=DEADLINE_S), -signal.SIGKILL)

    def test_a_program_that_never_said_that_it_is_alive_is_not_watched(self):
        cluster, leader = self.begin_watched(".")  # it is there
        epoch = cluster.status(leader)["epoch"]
        until(lambda: "stands still" in cluster.log(leader), "it runs")
        time.sleep(6)  # twice the bound: that is what is tested
        self.check_leads_on(cluster, leader, epoch)

    def test_a_watchdog_needs_a_bound(self):
        done = baton("run", *self.cluster(1, *LEASE).arguments("a"), "--watchdog", "--", "true")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("--watchdog: give --hang, too", done.stderr)

    def test_it_says_which_deaths_are_proved_at_once(self):
        cluster, leader = self.begin(1)
        deaths = cluster.status(leader)["deaths"]
        self.assertIn("a hang, after 3000 ms", deaths["at_once"])
        self.assertNotIn("a hang", deaths["by_lease"])

    def test_a_bound_that_cannot_be_kept_is_refused(self):
        for words, reason in ((("--hang", "5ms"), "less than 10 ms"),
                              (("--hang", "20m"), "hang <= lease fails"),
                              (("--hang", "1s", "--guardian", "off"), "only a guardian")):
            cluster = self.cluster(1, *LEASE)
            done = baton("node", *cluster.arguments("a"), *words)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(reason, done.stderr)


if __name__ == "__main__":
    main()
