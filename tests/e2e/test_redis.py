"""Nodes on a real Redis server: a crash costs no lease, since a guardian gives it back."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading

from agents import LONG as AGENT_LONG, Agent, Client
from harness import (BATON, DEADLINE_S, Cluster, ProgramTest, baton, clean_environment, free_ports,
                     is_alive, main, until)

LEASE = "600s"  # nobody waits for that: a lease that moves was given back
BEAT = "5s"


class RedisCluster(Cluster):
    """Nodes of one election on one server."""

    def __init__(self, count, port, options=""):
        super().__init__(count)
        self.url = ("redis://:pa%%20ss@127.0.0.1:%d/3?lease=%s&max-lease=%s"
                    "&heartbeat-interval=%s&%s" % (port, LEASE, LEASE, BEAT, options))

    def arguments(self, name):
        return ["--node", name, "--data", self.data(name), "--provider", self.url]


class CutOnce(threading.Thread):
    """Forwards connections to a server, and ends the first one that says `word`."""

    def __init__(self, target, word):
        super().__init__(daemon=True)
        self.target, self.word = target, word
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.is_cut = False
        self.start()

    def run(self):
        while True:
            client, server = self.listener.accept()[0], socket.create_connection(self.target)
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.forward, args=pair, daemon=True).start()

    def forward(self, source, sink):
        try:
            while data := source.recv(65536):
                if self.word in data and not self.is_cut:
                    self.is_cut = True
                    break
                sink.sendall(data)
            source.shutdown(socket.SHUT_RDWR)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other way has ended it
        source.close()


class OnRedis(ProgramTest):
    password = "pa ss"

    def setUp(self):
        self.port = free_ports(1)[0]
        self.server = self.start_server(self.port)
        until(lambda: self.ask("PING") == "PONG", "an answer of redis-server")
        self.trust()

    def start_server(self, port, *options):
        folder = tempfile.TemporaryDirectory(prefix="baton-redis-")
        self.addCleanup(folder.cleanup)
        server = subprocess.Popen(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "",
             "--dir", folder.name, "--appendonly", "no", "--requirepass", "pa ss", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), "-n", "3", "-a",
                               self.password, "--no-auth-warning", *words], stdout=subprocess.PIPE,
                              universal_newlines=True, timeout=DEADLINE_S, check=False)
        return done.stdout.strip()

    def history(self):
        lines = self.ask("INFO", "replication").splitlines()
        return next(line[14:] for line in lines if line.startswith("master_replid:"))

    def trust(self):
        """A server that has just begun could have forgotten a lease: it is older than any here."""
        self.ask("HSET", "default:epoch", "server", self.history(), "since", "0")

    def cluster(self, count, options=""):
        cluster = RedisCluster(count, self.port, options)
        self.addCleanup(cluster.close)
        return cluster

    def test_status_tells_the_server_and_the_rules(self):
        one = self.cluster(1, "layout=sovereign")
        one.start_all()
        leader = one.wait_leader()
        status = one.status(leader)["redis"]
        self.assertEqual(status["server"], "127.0.0.1:%d" % self.port)
        self.assertEqual((status["connected"], status["layout"], status["lease_ms"],
                          status["elections"]), (True, "sovereign", 600e3, 1))
        self.assertIn(status["entries_end_by"], ("sorted-set", "hpexpire", "hsetex"))
        until(lambda: is_alive(one.status(leader)["redis"]["guardian_pid"]),
              "the guardian has come")
        self.assertNotIn("pa ss", json.dumps(one.status(leader)))
        self.assertEqual(self.ask("EXISTS", "default:leader"), "1")
        shown = baton("status", "--data", one.data(leader)).stdout
        self.assertIn("redis at 127.0.0.1:%d" % self.port, shown)

    def test_flags_reach_the_provider(self):
        one = self.cluster(1)
        one.start("a", "--lease", "77s", "--guardian", "off")
        status = one.status(one.wait_leader())["redis"]
        self.assertEqual(status["lease_ms"], 77e3)
        self.assertEqual(status["guardian_pid"], 0)

    def test_status_tells_how_many_replicas_are_waited_for(self):
        self.start_server(free_ports(1)[0], "--replicaof", "127.0.0.1", str(self.port),
                          "--masterauth", "pa ss", "--repl-diskless-sync-delay", "0")
        until(lambda: "state=online" in self.ask("INFO", "replication"), "the replica follows")
        self.trust()  # with its first replica a server begins a new history
        for query, told in (("wait-replicas=1", 1), ("wait-replicas=0", None)):
            one = self.cluster(1, query)
            one.start_all()
            leader = one.wait_leader()
            self.assertEqual(one.status(leader)["redis"].get("wait_replicas"), told)
            one.close()

    def test_a_killed_leader_is_followed_at_once_and_leaves_the_registry(self):
        three = self.cluster(3)
        three.start_all()
        first = three.wait_leader()
        epoch = three.status(first)["epoch"]
        until(lambda: self.ask("HLEN", "default:processes") == "3", "three in the registry")
        three.kill(first)
        second = three.wait_leader([name for name in three.names if name != first])
        self.assertGreater(three.status(second)["epoch"], epoch)
        until(lambda: self.ask("HLEN", "default:processes") == "2", "the dead one's entry gone")
        self.assertNotIn("pa ss", three.log(first) + three.log(second))

    def test_without_a_guardian_the_lease_is_waited_for(self):
        two = self.cluster(2, "guardian=off")
        two.start_all()
        first = two.wait_leader()
        holder = self.ask("GET", "default:master")
        two.kill(first)
        until(lambda: "leader" in two.log(first), "its log")
        self.assertEqual(self.ask("GET", "default:master"), holder)

    def test_whoever_acts_for_the_dead_is_dead_before_another_acts(self):
        two = self.cluster(2)
        for name in two.names:
            self.start(two, name, [], "sh", "-c", self.script(two))
        (first, pid), = until(lambda: self.pids(two), "one program runs").items()
        two.kill(first)
        until(lambda: [name for name in self.pids(two) if name != first], "it runs elsewhere")
        self.assertFalse(is_alive(pid))

    def test_whose_lock_was_deleted_hears_of_the_next_leader_before_it_renews(self):
        two = self.cluster(2)
        two.url = two.url.replace(BEAT, "250s") + "check-interval=100ms&process-lifetime=900s"
        two.start_all()
        first = two.wait_leader()
        second = next(name for name in two.names if name != first)
        until(lambda: (two.status(second) or {"leader": {"id": ""}})["leader"]["id"],
              "the other one follows")
        self.ask("DEL", "default:master")
        two.wait_leader([second])
        until(lambda: "superseded" in two.log(first), "the first one knows")
        self.assertFalse(two.status(first)["is_leader"])

    def test_what_is_refused_all_the_time_is_told_once_by_election_and_part(self):
        self.ask("SET", "spoilt:epoch", "x")
        done = baton("run", "--node", "a", "--election", "spoilt", "--wait-timeout", "3s",
                     "--provider", self.cluster(1).url, "--", "true")
        self.assertEqual(done.returncode, 124, done.stderr)
        *told, last = done.stderr.splitlines()
        wrong = 'election "spoilt", lock: Redis: .*WRONGTYPE'
        self.assertRegex(last, wrong)
        self.assertEqual(len(re.findall("WRONGTYPE", "".join(told))), 1, done.stderr)
        self.assertRegex("".join(told).replace('\\"', '"'), wrong)

    def test_a_replica_in_place_of_its_master_is_told_once_by_each_who_notices(self):
        port = free_ports(1)[0]
        self.start_server(port, "--replicaof", "127.0.0.1", str(self.port), "--masterauth", "pa ss")
        until(lambda: "master_link_status:up" in self.ask("-p", str(port), "INFO", "replication"),
              "the replica follows")
        url = self.cluster(1).url.replace(":%d/" % self.port, ":%d/" % port)
        done = baton("run", "--node", "a", "--provider", url, "--wait-timeout", "3s", "--", "true")
        self.assertEqual(done.returncode, 124, done.stderr)
        *told, last = done.stderr.splitlines()
        self.assertIn("READONLY", last)
        self.assertEqual(len([line for line in told if "READONLY" in line]), 2, done.stderr)

    def test_people_are_told_names(self):
        two = self.cluster(2)
        two.start_all()
        old = two.wait_leader()
        other = next(name for name in two.names if name != old)
        def tells(command, name, words):
            return re.search(words, baton(command, "--data", two.data(name)).stdout)
        until(lambda: tells("status", other, r"\nleader +%s\n" % old), "the name of who leads")
        until(lambda: tells("members", old, r"\n%s " % other), "both know one another")
        self.assertTrue(tells("pass", old, "^%s leads in epoch" % other))

    def test_who_waits_in_vain_is_told_the_name_of_who_leads(self):
        one = self.cluster(1)
        one.start_all()
        one.wait_leader()
        done = baton("run", "--node", "b", "--provider", one.url, "--wait-timeout", "3s", "--",
                     "true")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn("last reason: a leads", done.stderr)

    def test_the_list_of_processes_shows_no_password(self):
        one = self.cluster(1, "sentinel-password=canary")
        one.start_all()
        one.wait_leader()
        with open("/proc/%d/cmdline" % one.processes["a"].pid, encoding="utf-8") as file:
            words = file.read().split("\0")
        provider = words[words.index("--provider") + 1]
        self.assertNotIn("pa%20ss", " ".join(words))
        self.assertNotIn("canary", " ".join(words))
        self.assertTrue(provider.startswith("redis://***"), provider)
        self.assertIn("lease=" + LEASE, provider)

    def test_the_program_is_not_given_the_password(self):
        """Nor is a `baton` within it, which says so."""
        one = self.cluster(1, "sentinel-password=canary")
        script = "tr '\\0' '\\n' </proc/$PPID/environ; env; %s once inner -- true" % BATON
        done = baton("run", "--node", "a", "--", "sh", "-c", script,
                     env={"BATON_PROVIDER": one.url})
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("BATON_PROVIDER: 'redis://***", done.stderr)
        self.assertEqual(done.stdout.count("BATON_PROVIDER=redis://***"), 2, done.stdout)
        self.assertNotIn("pa%20ss", done.stdout + done.stderr)
        self.assertNotIn("canary", done.stdout + done.stderr)

    def test_every_node_tells_who_is_cordoned(self):
        two = self.cluster(2)
        two.start_all()
        leader = two.wait_leader()
        other = next(name for name in two.names if name != leader)
        def cordoned():
            members = json.loads(baton("members", "--data", two.data(leader), "--json").stdout)
            return {member["name"]: member["cordoned"] for member in members}
        until(lambda: cordoned() == {leader: False, other: False}, "both are there")
        self.assertEqual(baton("cordon", "--data", two.data(other)).returncode, 0)
        until(lambda: cordoned() == {leader: False, other: True}, "the leader knows")
        self.assertEqual(baton("uncordon", "--data", two.data(other)).returncode, 0)
        until(lambda: cordoned() == {leader: False, other: False}, "it may lead again")

    def test_a_password_in_a_file_that_all_may_read_is_refused(self):
        one = self.cluster(1)
        path = os.path.join(one.dir, "baton.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("provider: '%s'\n" % one.url)
        for mode, code in ((0o644, 64), (0o640, 0)):
            os.chmod(path, mode)
            done = baton("run", "--node", "a", "--config", path, "--", "true")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertNotIn("pa%20ss", done.stderr)
            self.assertEqual("everybody may read the file (mode 0644)" in done.stderr, code != 0)

    def test_a_wrong_password_ends_every_program_with_77_at_its_start(self):
        one = self.cluster(1)
        wrong = one.url.replace("pa%20ss", "wrong")
        self.assertNotEqual(wrong, one.url)
        crontab = os.path.join(one.dir, "crontab")
        with open(crontab, "w", encoding="ascii") as file:
            file.write("* * * * * true\n")
        programs = {"node": (), "run": ("--", "true"), "once x": ("--", "true"),
                    "cron run": ("--file", crontab), "worker": (), "work ls": (), "cron ls": (),
                    "agent": ("--socket", os.path.join(one.dir, "agent.sock"))}
        for words, more in programs.items():
            with self.subTest(words):
                name = [] if "ls" in words else \
                    ["--worker" if words == "worker" else "--node", "a"]
                done = baton(*words.split(), *name, "--provider", wrong, *more)
                self.assertEqual(done.returncode, 77, done.stderr)
                self.assertIn("user or password is wrong", done.stderr)

    # -- a password that is changed while nodes run

    def cluster_by_file(self, count, lease=LEASE, beat=BEAT):
        """Nodes that have the server's URL from a file of their own."""
        cluster = self.cluster(count)
        cluster.url = cluster.url.replace(LEASE, lease).replace(BEAT, beat)
        cluster.arguments = lambda name: ["--node", name, "--data", cluster.data(name),
                                          "--config", os.path.join(cluster.dir, name + ".yaml")]
        for name in cluster.names:
            self.write_password(cluster, name, "pa%20ss")
            cluster.start(name)
        return cluster

    def write_password(self, cluster, name, password):
        path = os.path.join(cluster.dir, name + ".yaml")
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("provider: '%s'\n" % cluster.url.replace("pa%20ss", password))
        os.chmod(path + ".new", 0o600)
        os.rename(path + ".new", path)

    def change_password(self, password):
        self.assertEqual(self.ask("CONFIG", "SET", "requirepass", password), "OK")
        self.password = password

    def break_connections(self):
        for kind in ("normal", "pubsub"):
            self.ask("CLIENT", "KILL", "TYPE", kind)

    def reload(self, cluster, name, outcome=" notice  reloaded "):
        before = cluster.log(name).count(outcome)
        until(lambda: cluster.status(name), "%s has begun" % name)
        cluster.signal(name, signal.SIGHUP)
        until(lambda: cluster.log(name).count(outcome) > before,
              lambda: "%s; the log: %s" % (outcome, cluster.log(name)))

    def assert_leads_on(self, cluster, name, epoch):
        """It is connected anew, and renews its lease there."""
        until(lambda: ((cluster.status(name) or {}).get("redis") or {}).get("connected"),
              lambda: "a connection; the log: " + cluster.log(name))
        left = int(self.ask("PTTL", "default:master")) // 2
        self.ask("PEXPIRE", "default:master", str(left))
        until(lambda: int(self.ask("PTTL", "default:master")) > left, "a renewal")
        status = cluster.status(name)
        self.assertEqual((status["is_leader"], status["epoch"]), (True, epoch))
        self.assertNotIn("leadership-lost", cluster.log(name))

    def test_a_leader_whose_password_changed_leads_on_after_a_hangup_signal(self):
        one = self.cluster_by_file(1, "9s", "300ms")
        epoch = one.status(one.wait_leader())["epoch"]
        self.change_password("another")
        self.write_password(one, "a", "another")
        self.reload(one, "a")
        self.break_connections()
        self.assert_leads_on(one, "a", epoch)
        self.assertNotIn("user or password is wrong", one.log("a"))

    def test_a_file_that_changes_once_more_during_a_reload_is_read_again(self):
        one = self.cluster_by_file(1, "9s", "300ms")
        one.wait_leader()
        for password in ("one", "two"):
            self.assertEqual(self.ask("ACL", "SETUSER", "default", ">" + password), "OK")
        self.server.send_signal(signal.SIGSTOP)  # it does not answer AUTH
        self.addCleanup(self.server.send_signal, signal.SIGCONT)
        self.write_password(one, "a", "one")
        with open(os.path.join(one.dir, "a.yaml"), "a", encoding="ascii") as file:
            file.write("log-level: debug\n")
        one.signal("a", signal.SIGHUP)
        until(lambda: "restart-needed" in one.log("a"), lambda: one.log("a"))
        self.write_password(one, "a", "two")
        one.signal("a", signal.SIGHUP)
        with socket.socket(socket.AF_UNIX) as control:  # it answers after it has got the signal
            control.connect(os.path.join(one.data("a"), "control.sock"))
            control.sendall(b"no request\n")
            self.assertIn(b"not a JSON object", control.recv(1000))
        self.server.send_signal(signal.SIGCONT)
        until(lambda: one.log("a").count(" notice  redis-password ") == 2, lambda: one.log("a"))
        self.assertNotIn("reload-refused", one.log("a"))

    def test_a_leader_that_is_refused_reads_the_password_again_by_itself(self):
        one = self.cluster_by_file(1, "9s", "300ms")
        epoch = one.status(one.wait_leader())["epoch"]
        self.change_password("another")
        self.write_password(one, "a", "another")
        self.break_connections()
        self.assert_leads_on(one, "a", epoch)
        self.assertIn("redis-password", one.log("a"))

    def test_a_new_password_that_the_server_refuses_is_not_taken(self):
        one = self.cluster_by_file(1, "9s", "300ms")
        epoch = one.status(one.wait_leader())["epoch"]
        self.write_password(one, "a", "wrong")
        self.reload(one, "a", " error   reload-refused ")
        self.assertIn("the new password at Redis 127.0.0.1:%d" % self.port, one.log("a"))
        self.assertIn("user or password is wrong", one.log("a"))
        self.break_connections()
        self.assert_leads_on(one, "a", epoch)

    def test_the_guardian_has_a_new_password_too(self):
        two = self.cluster_by_file(2)
        first = two.wait_leader()
        for name in two.names:
            until(lambda name=name: two.status(name), "%s has begun" % name)
        self.change_password("another")
        for name in two.names:
            self.write_password(two, name, "another")
            self.reload(two, name)
        two.kill(first)
        two.wait_leader([name for name in two.names if name != first])

    def test_what_an_agent_serves_goes_on_after_it_has_read_a_new_password(self):
        one = self.cluster(1)
        one.url = one.url.replace(LEASE, "9s", 1).replace(BEAT, "300ms")
        self.write_password(one, "a", "pa%20ss")
        for election in ("old", "new"):
            self.ask("HSET", election + ":epoch", "server", self.history(), "since", "0")
        agent = Agent("--config", os.path.join(one.dir, "a.yaml"), "--client-lease", AGENT_LONG)
        self.addCleanup(agent.close)
        clients = [Client(agent.path) for _ in range(2)]
        for client in clients:
            self.addCleanup(client.close)
        clients[0].hello(name="first")
        clients[0].lead("old")
        holder = self.ask("GET", "old:master")
        self.change_password("another")
        self.write_password(one, "a", "another")
        agent.process.send_signal(signal.SIGHUP)
        until(lambda: "reloaded" in agent.log(), agent.log)
        self.break_connections()
        clients[1].hello(name="second")
        clients[1].ask("campaign", election="new")
        until(lambda: self.ask("GET", "new:master"), agent.log)
        self.ask("PEXPIRE", "old:master", "5000")
        until(lambda: int(self.ask("PTTL", "old:master")) > 5000, "a renewal")
        self.assertEqual(self.ask("GET", "old:master"), holder)
        self.assertNotIn("reload-refused", agent.log())

    def test_what_a_hangup_signal_cannot_change_is_named(self):
        one = self.cluster_by_file(1)
        one.wait_leader()
        one.url = one.url.replace("/3?", "/4?")
        self.write_password(one, "a", "pa%20ss")
        self.reload(one, "a", " error   reload-refused ")
        self.assertIn("names another server, database or user", one.log("a"))

    def run_until_in_jeopardy(self):
        """A node alone, on a server that has stopped; its program counts how often it begins."""
        one = self.cluster(1)
        one.url = one.url.replace(LEASE, "9s").replace(BEAT, "1s")
        self.start(one, "a", [], "sh", "-c", self.script(
            one, "while :; do sleep 0.02; done", first="trap 'exit 0' TERM"))
        until(lambda: self.pids(one), "the program runs")
        self.server.send_signal(signal.SIGSTOP)
        self.addCleanup(self.server.send_signal, signal.SIGCONT)
        until(lambda: "command-ended" in one.log("a"), "the program has stopped in jeopardy")
        return one

    def told(self, cluster, *words):
        told = [line.split()[2] for line in cluster.log("a").splitlines() if len(line.split()) > 2]
        return [word for word in told if word in words]

    def test_a_program_that_stopped_in_jeopardy_does_not_begin_again_within_it(self):
        one = self.run_until_in_jeopardy()
        words = ("command-started", "jeopardy", "command-ended", "leadership-lost")
        until(lambda: "leadership-lost" in one.log("a"), "the lease ends")
        self.assertEqual(self.told(one, *words), list(words), one.log("a"))

    def test_a_program_that_stopped_in_jeopardy_begins_again_when_that_is_over(self):
        one = self.run_until_in_jeopardy()
        self.server.send_signal(signal.SIGCONT)
        until(lambda: self.told(one, "command-started")[1:], "the program runs again")
        if not self.told(one, "leadership-lost"):
            self.assertEqual(len(set(re.findall("epoch=([1-9][0-9]*)", one.log("a")))), 1)

    def test_a_server_that_may_have_forgotten_is_waited_for_aloud(self):
        url = ("redis://:pa%%20ss@127.0.0.1:%d/3?lease=600s&max-lease=600s&heartbeat-interval=5s"
               % self.port)
        fresh = ["--node", "a", "--provider", url, "--election", "fresh", "--wait-timeout", "3s"]
        for words in (["run", *fresh], ["once", "schema", *fresh]):
            done = baton(*words, "--", "true")
            self.assertEqual(done.returncode, 124, done.stderr)
            waits = "the server may have forgotten a lease; it grants none for another (600|59.) s"
            self.assertRegex(done.stderr, "election-failed .*" + waits)
            self.assertRegex(done.stderr.splitlines()[-1], "--wait-timeout 3s.*" + waits)

    def test_a_worker_and_a_client_of_an_agent_wait_for_it_aloud_too(self):
        url = "redis://:pa%%20ss@127.0.0.1:%d/3?lease=30s&max-lease=600s" % self.port
        agent = Agent("--provider", url, "--node", "host")
        self.addCleanup(agent.close)
        through = "agent:" + agent.path
        worker = ["worker", "--pool", "fresh", "--worker", "w", "--provider"]
        for words in ([*worker, url], [*worker, through],
                      ["run", "--election", "fresh", "--provider", through, "--", "true"]):
            with self.subTest(words), tempfile.NamedTemporaryFile("ab") as log:
                one = subprocess.Popen([BATON, *words], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=clean_environment())
                text = pathlib.Path(log.name).read_text
                try:
                    until(lambda: "the server may have forgotten a lease; it grants none for "
                          "another" in text("utf-8"), text)
                finally:
                    one.kill()
                    one.wait()

    def test_an_agent_without_clients_logs_that_its_server_is_away_and_back(self):
        port = free_ports(1)[0]
        agent = Agent("--provider", "redis://:pa%%20ss@127.0.0.1:%d" % port)
        self.addCleanup(agent.close)
        until(lambda: "redis-away" in agent.log(), agent.log)
        self.assertRegex(agent.log(), "redis-away .*:%d: connection refused" % port)
        server = self.start_server(port)
        until(lambda: "redis-back" in agent.log(), agent.log)
        server.kill()
        until(lambda: agent.log().count("redis-away") > 1, agent.log)

    def test_once_on_a_fresh_server_waits_for_as_long_as_the_server_does(self):
        url = "redis://:pa%%20ss@127.0.0.1:%d/3?lease=4s&max-lease=4s" % self.port
        done = baton("once", "schema", "--node", "a", "--provider", url, "--election", "fresh",
                     "--", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        waits = re.search(r"--wait-timeout TIME [^(]*\(default: (\d+)m\)",
                          baton("once", "--help").stdout)
        self.assertGreaterEqual(int(waits.group(1)), 1)  # the default lease is half of that

    def test_once_reads_again_if_the_server_hung_up(self):
        link = CutOnce(("127.0.0.1", self.port), b"key:once/schema")
        self.addCleanup(link.listener.close)
        url = "redis://:pa%%20ss@127.0.0.1:%d/3?lease=9s&max-lease=600s" % link.port
        done = baton("once", "schema", "--node", "a", "--provider", url, "--", "sh", "-c", "exit 3")
        self.assertTrue(link.is_cut)
        self.assertIn("result-not-read", done.stderr)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_hung_leader_is_killed_where_asked(self):
        short = self.cluster(2, "kill-outliving=on")
        short.url = short.url.replace(LEASE, "1s").replace(BEAT, "300ms")
        short.start_all()
        first = short.wait_leader()
        short.signal(first, signal.SIGSTOP)
        self.assertEqual(short.processes[first].wait(DEADLINE_S), -signal.SIGKILL)
        short.wait_leader([name for name in short.names if name != first])

    def test_a_hang_costs_its_bound_and_not_the_lease(self):
        two = self.cluster(2, "hang=300ms")
        two.start_all()
        first = two.wait_leader()
        until(lambda: is_alive(two.status(first)["redis"]["guardian_pid"]), "it has a guardian")
        two.signal(first, signal.SIGSTOP)
        self.assertEqual(two.processes[first].wait(DEADLINE_S), -signal.SIGKILL)
        two.wait_leader([name for name in two.names if name != first])


main()
