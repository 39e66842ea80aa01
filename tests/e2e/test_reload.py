"""SIGHUP: a running process reads certificates, keys and tokens again."""
import fcntl
import os
import pty
import signal
import subprocess
import termios
import urllib.error
import urllib.request

from harness import (BATON, DEADLINE_S, LONGER, ProgramTest, clean_environment, free_ports, main,
                     slow_disk, until)
from pools import PoolTest

RELOADED, REFUSED = " notice  reloaded ", " error   reload-refused "


class Reload(ProgramTest):
    def path(self, name):
        return os.path.join(self.three.dir, name)

    def write(self, name, text):
        with open(self.path(name) + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name) + ".new", 0o600)
        os.rename(self.path(name) + ".new", self.path(name))

    def reload(self, name, outcome=RELOADED):
        before = self.three.log(name).count(outcome)
        until(lambda: self.three.status(name), "%s has begun" % name)
        self.three.signal(name, signal.SIGHUP)
        until(lambda: self.three.log(name).count(outcome) > before,
              lambda: "%s; the log: %s" % (outcome, self.three.log(name)))

    def openssl(self, *words):
        done = subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def certify(self, *names, authority="ca", subject=None):
        """NAME.key and NAME.pem of a fresh authority's, as docs/operations.md makes them."""
        make = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        ca = self.path(authority)
        self.openssl(*make, "-days", "10", "-subj", "/CN=baton-ca", "-keyout", ca + ".key",
                     "-out", ca + ".pem")
        for name in names:
            one = self.path(name)
            self.openssl(*make, "-days", "5", "-subj", "/CN=" + (subject or name), "-CA",
                         ca + ".pem", "-CAkey", ca + ".key", "-keyout", one + ".key",
                         "-out", one + ".pem")

    def certified(self):
        """Three nodes with certificates; the leader's name and epoch."""
        self.three = self.cluster(3, *LONGER)
        self.certify(*self.three.names)
        for name in self.three.names:
            self.start_one(name)
        leader = self.three.wait_leader()
        return leader, self.three.status(leader)["epoch"]

    def start_one(self, name):
        self.three.start(name, "--tls-cert", self.path(name + ".pem"), "--tls-key",
                         self.path(name + ".key"), "--tls-ca", self.path("ca.pem"))

    def follows(self, name, leader, epoch):
        status = self.three.status(name)
        return status and (status["leader"]["id"], status["epoch"]) == (leader, epoch)

    def assert_still_leads(self, leader, epoch):
        status = self.three.status(leader)
        self.assertEqual((status["is_leader"], status["epoch"]), (True, epoch))
        self.assertNotIn("leadership-lost", self.three.log(leader))

    # -- certificates

    def test_certificates_of_a_new_authority_count_for_the_next_connection(self):
        leader, epoch = self.certified()
        self.certify(*self.three.names)
        for name in self.three.names:
            self.reload(name)
        self.assert_still_leads(leader, epoch)
        other = next(name for name in self.three.names if name != leader)
        self.three.kill(other)
        self.start_one(other)  # and has nothing but the new ones
        until(lambda: self.follows(other, leader, epoch),
              lambda: "it follows; the leader's log: " + self.three.log(leader))
        self.assert_still_leads(leader, epoch)

    def test_a_wrong_certificate_is_refused_and_the_old_one_remains(self):
        leader, epoch = self.certified()
        other = next(name for name in self.three.names if name != leader)
        old = {}
        for end in (".pem", ".key"):
            with open(self.path(leader + end), encoding="utf-8") as file:
                old[leader + end] = file.read()
        self.certify("wrong", authority="stranger", subject="somebody-else")
        for end in (".pem", ".key"):
            with open(self.path("wrong" + end), encoding="utf-8") as file:
                self.write(leader + end, file.read())
        self.reload(leader, REFUSED)
        self.assertIn("%s: it is not for \\\"%s\\\"" % (self.path(leader + ".pem"), leader),
                      self.three.log(leader))
        self.write(leader + ".key", "no key")
        self.reload(leader, REFUSED)
        self.assertIn(self.path(leader + ".key"), self.three.log(leader))
        self.three.kill(other)
        self.start_one(other)
        until(lambda: self.follows(other, leader, epoch), "it accepts the old one")
        self.assert_still_leads(leader, epoch)

    # -- the cluster key

    def test_a_cluster_key_is_changed_without_a_moment_without_a_leader(self):
        self.three = self.cluster(3, *LONGER)
        self.write("key", "the first key of this cluster")
        for name in self.three.names:
            self.three.start(name, "--key-file", self.path("key"))
        leader = self.three.wait_leader()
        epoch = self.three.status(leader)["epoch"]
        self.write("key", "too short")
        self.reload(leader, REFUSED)
        self.assertIn("cluster key %s: 9 bytes" % self.path("key"), self.three.log(leader))
        self.write("key", "the second key of this cluster")
        for name in self.three.names:
            self.reload(name)
        other = next(name for name in self.three.names if name != leader)
        self.three.kill(other)
        self.three.start(other, "--key-file", self.path("key"))
        until(lambda: self.follows(other, leader, epoch),
              lambda: "it follows; the leader's log: " + self.three.log(leader))
        self.assert_still_leads(leader, epoch)

    # -- the token

    def asked(self, token):
        url = "http://127.0.0.1:%d/status" % self.three.status("a")["http_port"]
        request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token})
        try:
            return urllib.request.urlopen(request, timeout=DEADLINE_S).status
        except urllib.error.HTTPError as error:
            return error.code

    def test_requests_show_the_new_token(self):
        self.three = self.cluster(1)
        self.write("token", "0123456789abcdef-first")
        self.three.start("a", "--http", "127.0.0.1:0", "--http-token-file", self.path("token"))
        self.three.wait_leader()
        self.write("token", "short")
        self.reload("a", REFUSED)
        self.assertIn(self.path("token"), self.three.log("a"))
        self.assertEqual(self.asked("0123456789abcdef-first"), 200)
        self.write("token", "0123456789abcdef-second")
        self.reload("a")
        self.assertEqual(self.asked("0123456789abcdef-first"), 401)
        self.assertEqual(self.asked("0123456789abcdef-second"), 200)

    # -- the file, and the program

    def test_settings_that_need_a_restart_are_named(self):
        self.three = self.cluster(1)
        self.write("baton.yaml", "election: race\nlog-level: info\n")
        self.three.start("a", "--config", self.path("baton.yaml"))
        self.three.wait_leader()
        self.write("baton.yaml", "election: race\nlog-level: debug\nstop-timeout: 3s\n")
        self.reload("a")
        self.assertIn("restart-needed options=--log-level ", self.three.log("a"))
        self.write("baton.yaml", "election: race\nno-such-option: x\n")
        self.reload("a", REFUSED)
        self.assertIn("no-such-option", self.three.log("a"))

    def test_a_hangup_signal_while_a_node_starts_is_a_reload(self):
        under = slow_disk(300)
        if not under:
            self.skipTest("strace cannot slow a disk here")
        for command in ("node", "run", "agent", "worker"):
            one = self.cluster(1, command=command)
            more = {"run": ("--", "sleep", "1000"), "agent": ("--socket", one.dir + "/agent.sock")}
            if command == "worker":
                one.arguments = lambda name, one=one: ["--worker", name, "--provider",
                                                       "raft://%s?group=g&data=%s" % (
                                                           one.address(name), one.data(name))]
            one.start("a", *more.get(command, ()), under=under)
            database = os.path.join(one.data("a"), "raft.db")
            until(lambda database=database: os.path.exists(database), "it starts")
            one.signal("a", signal.SIGHUP)
            until(lambda one=one: RELOADED in one.log("a"),
                  lambda one=one: "it reads its files again: " + one.log("a"))

    def test_a_hangup_signal_of_no_terminal_leaves_the_program_alone(self):
        self.three = self.cluster(1)
        process = self.start(self.three, "a", [], "sh", "-c", self.script(
            self.three, "while :; do sleep 0.05; done",
            first="trap 'exit 5' HUP; trap 'exit 7' TERM"))
        until(lambda: self.pids(self.three), "the program runs")
        self.reload("a")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 7)

    def test_the_end_of_the_terminal_ends_the_program(self):
        self.three = self.cluster(1)
        ours, theirs = pty.openpty()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        process = subprocess.Popen(
            [BATON, "run", *self.three.arguments("a"), "--", "sh", "-c", self.script(
                self.three, "while :; do sleep 0.05; done",
                first="trap 'exit 5' TERM; trap : HUP")],
            stdin=theirs, stdout=theirs, stderr=theirs, env=clean_environment(),
            preexec_fn=take_terminal)
        self.three.processes["a"] = process
        os.close(theirs)
        until(lambda: self.pids(self.three), "the program runs")
        os.close(ours)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 5)


class OtherPrograms(PoolTest):
    """Those that take part in no election by their own name."""

    def setUp(self):
        super().setUp()
        self.key = os.path.join(self.folder.name, "key")
        self.write_key("the first key of this group")
        self.port = free_ports(1)[0]
        self.provider = "raft://127.0.0.1:%d?group=g&key-file=%s&data=%s/data" % (
            self.port, self.key, self.folder.name)

    def write_key(self, text):
        with open(self.key, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)

    def assert_reloads(self, process, log):
        for key, outcome in (("the second key of this group", RELOADED), ("short", REFUSED)):
            self.write_key(key)
            process.send_signal(signal.SIGHUP)
            until(lambda outcome=outcome: outcome in log() or process.poll() is not None, log)
            self.assertIn(outcome, log())
        self.assertIn("cluster key %s: 5 bytes" % self.key, log())

    def test_an_agent_reads_its_key_again(self):
        agent = self.member(self.port, "--node", "a", "--key-file", self.key)
        self.assert_reloads(agent.process, agent.log)

    def test_a_worker_without_a_terminal_reads_its_key_again(self):
        worker = self.worker("a")
        until(lambda: "pool-ready" in worker.log(), worker.log)
        self.assert_reloads(worker.process, worker.log)

    def test_the_end_of_its_terminal_ends_a_worker_in_order(self):
        ours, theirs = pty.openpty()
        worker = self.worker("a", first=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0))
        os.close(theirs)
        until(lambda: "pool-ready" in worker.log(), worker.log)
        os.close(ours)
        self.assertEqual(worker.process.wait(DEADLINE_S), 128 + signal.SIGHUP)
        self.assertIn(" leaving ", worker.log())


if __name__ == "__main__":
    main()
