"""`baton agent`, and processes that take part through it: real ones, and hostile ones."""
import base64
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from agents import LEADER, LONG, MIB, Agent, AgentTest, Client
from harness import (BATON, DEADLINE_S, baton, clean_environment, free_ports, is_alive,
                     main, others_can_run, until)
from strangers import start_crowd, start_stranger, unprivileged

PUT_S = 10  # in which a group answers

# Names a supervisor in its hello, and leads.
GREETER = r"""
import json, socket, sys, time
agent = socket.socket(socket.AF_UNIX)
agent.connect(sys.argv[1])
for number, message in enumerate(({"do": "hello", "version": 1, "name": "greeter",
                                   "token": sys.argv[2]}, {"do": "campaign", "election": "e"})):
    agent.sendall(json.dumps({"id": number + 1, **message}).encode() + b"\n")
time.sleep(1000)
"""


def can_act(pid):
    """Whether it can run an instruction more: its memory is there. A killed process loses that
    before it becomes a zombie."""
    try:
        return pathlib.Path("/proc/%d/environ" % pid).read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


class Deaths(AgentTest):
    def test_an_agent_that_reaches_no_peer_says_whom_it_lacks(self):
        ports = free_ports(3)
        peers = ["--peer=m%d=127.0.0.1:%d" % (i, ports[i]) for i in (1, 2)]
        agent = self.member(ports[0], "--node", "m0", "--client-lease", LONG, *peers)
        until(lambda: "no-quorum" in agent.log(), agent.log)
        client = self.client(agent)  # after that: it is not told a minute later
        self.assertTrue(client.ask("campaign", election="e")["ok"])
        text = client.event("error")["error"]
        for i in (1, 2):
            self.assertRegex(agent.log(), "no-quorum .*m%d at 127.0.0.1:%d" % (i, ports[i]))
            self.assertRegex(text, "no quorum: .*m%d at 127.0.0.1:%d" % (i, ports[i]))

    def test_a_process_that_is_killed_is_followed_without_waiting_for_its_lease(self):
        agent = self.agent("--client-lease", LONG)
        leader, _ = self.leader(agent)
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_what_acts_for_a_process_is_dead_before_another_leads(self):
        agent = self.agent("--client-lease", LONG)
        leader, child = self.leader(agent, marker="BATON_TEST_ACTS=" + secrets.token_hex(8))
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))
        self.assertFalse(can_act(child))

    def test_a_stranger_without_a_readable_environment_does_not_delay_the_next_leader(self):
        start_stranger(self)
        self.test_what_acts_for_a_process_is_dead_before_another_leads()

    def test_nobody_is_killed_for_a_client_whose_user_may_not_do_so(self):
        """Then the lease decides, and does not wait for the end of the search."""
        if os.geteuid() != 0:
            self.skipTest("needs root, for another user")
        agent = self.agent("--client-lease", "3s", "--socket-mode", "0666")
        os.chmod(agent.folder, 0o755)
        name, value = "BATON_TEST_ACTS", secrets.token_hex(8)
        other = subprocess.Popen(["sleep", "1000"], env={**os.environ, name: value})
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        leader, child = self.leader(agent, marker=name + "=" + value, under=unprivileged(self))
        leader.kill()
        begun, heir = time.monotonic(), self.client(agent)
        heir.ask("campaign", election="e")
        self.await_leadership(agent, heir, begun)
        log, now = agent.log(), time.monotonic()
        if max(self.longest_s, now - self.renewed_s) < 0.5:  # else this machine is too slow to tell
            self.assertNotIn("survivors", log)
        until(lambda: "survivors" in agent.log(), agent.log)
        self.assertFalse(can_act(child))
        self.assertIsNone(other.poll())

    def test_a_user_whose_searches_last_does_not_delay_another_users_next_leader(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for another user")
        agent = self.agent("--client-lease", LONG, "--socket-mode", "0666")
        os.chmod(agent.folder, 0o755)
        name, value = "BATON_TEST_ACTS", secrets.token_hex(8)
        other = subprocess.Popen(["sleep", "1000"], env={**os.environ, name: value})
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        crowd = start_crowd(self, agent.path, name + "=" + value, size=40)
        leader, child = self.leader(agent, marker=name + "=" + secrets.token_hex(8))
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        crowd.kill()
        crowd.wait()
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))
        self.assertFalse(can_act(child))
        self.assertLess(agent.log().count("survivors"), 20)

    def test_a_container_whose_process_1_is_killed_is_followed_at_once(self):
        """A PID namespace: the kernel kills all of it, and whatever could have told of that."""
        space = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*space, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        agent = self.agent("--client-lease", LONG)
        outside = subprocess.Popen([*space, "sh", "-c", '"$@" & wait', "sh", sys.executable, "-c",
                                    LEADER, agent.path, "e", ""], stdout=subprocess.PIPE)
        self.addCleanup(outside.stdout.close)
        self.addCleanup(outside.wait)
        self.addCleanup(outside.kill)
        self.assertTrue(outside.stdout.readline())
        with open("/proc/%d/task/%d/children" % (outside.pid, outside.pid),
                  encoding="ascii") as file:
            first = int(file.read().split()[0])
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        os.kill(first, signal.SIGKILL)
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_a_process_that_falls_silent_is_followed_after_its_lease(self):
        agent = self.agent("--client-lease", "5s")
        silent, heir = self.client(agent), self.client(agent)
        epoch = silent.lead()
        heir.ask("campaign", election="e")
        self.assertGreater(self.await_leadership(agent, heir)["epoch"], epoch)
        self.assertTrue(silent.is_closed())

    def test_a_stopped_process_was_promised_no_more_than_its_lease(self):
        agent = self.agent("--client-lease", "30s")
        client = self.client(agent)
        self.assertEqual(client.ask("renew")["left_ms"], 0)
        client.lead()
        left = client.ask("renew")["left_ms"]
        self.assertTrue(0 < left <= 30000, left)

    def test_goodbye_hands_on(self):
        agent = self.agent("--client-lease", LONG)
        first, second = self.client(agent), self.client(agent)
        first.lead()
        self.assertTrue(second.ask("campaign", election="e")["ok"])
        self.assertTrue(first.ask("bye")["ok"])
        self.assertIsNotNone(second.event("leadership-acquired"))


class Sessions(AgentTest):
    def test_a_lost_connection_is_no_death(self):
        agent = self.agent("--client-lease", LONG)
        secret = secrets.token_hex(32)
        first = self.client(agent, secret=secret)
        session = first.event("session")["session"]
        epoch = first.lead()
        other = self.client(agent)
        self.assertTrue(other.ask("campaign", election="e")["ok"])
        first.close()
        again = self.client(agent, secret=secret, session=session)
        self.assertEqual(again.event("session")["session"], session)
        self.assertTrue(again.ask("campaign", election="e", known_epoch=epoch, acts=True)["ok"])
        self.assertEqual(again.event("leadership-acquired")["epoch"], epoch)
        self.assertGreater(again.ask("renew")["left_ms"], 0)
        self.assertTrue(other.ask("renew")["ok"])
        self.assertEqual([e for e in other.events if e["event"] == "leadership-acquired"], [])

    def test_a_leadership_that_was_given_up_without_a_connection_is_handed_on(self):
        agent = self.agent("--client-lease", LONG)
        secret = secrets.token_hex(32)
        first, other = self.client(agent, secret=secret), self.client(agent)
        session = first.event("session")["session"]
        epoch = first.lead()
        self.assertTrue(other.ask("campaign", election="e")["ok"])
        first.close()
        again = self.client(agent, secret=secret, session=session)
        self.assertTrue(again.ask("campaign", election="e", known_epoch=epoch, acts=False)["ok"])
        self.assertGreater(other.event("leadership-acquired")["epoch"], epoch)

    def test_without_the_secret_a_session_is_not_taken_over(self):
        agent = self.agent("--client-lease", LONG)
        first = self.client(agent, secret=secrets.token_hex(32))
        session = first.event("session")["session"]
        first.lead()
        for hello in ({}, {"secret": secrets.token_hex(32)}, {"secret": "0" * 64}):
            thief = self.client(agent, session=session, **hello)
            self.assertNotEqual(thief.event("session")["session"], session)
        self.assertGreater(first.ask("renew")["left_ms"], 0)

    def test_another_process_with_the_secret_is_another_process(self):
        agent = self.agent("--client-lease", LONG)
        secret = secrets.token_hex(32)
        first = self.client(agent, secret=secret)
        session = first.event("session")["session"]
        hello = {"id": 1, "do": "hello", "version": 1, "secret": secret, "session": session}
        code = ("import json, socket, sys; s = socket.socket(socket.AF_UNIX); "
                "s.connect(sys.argv[1]); f = s.makefile('rw'); "
                "print(sys.argv[2], file=f, flush=True); f.readline(); "
                "print(json.loads(f.readline())['session'])")
        out = subprocess.run([sys.executable, "-c", code, agent.path, json.dumps(hello)],
                             stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True).stdout
        self.assertNotEqual(out.decode().strip(), session)
        self.assertTrue(first.ask("renew")["ok"])

    def test_an_agent_that_ends_says_so_and_waits_until_nobody_can_act(self):
        agent = self.agent("--client-lease", "5s")
        client = self.client(agent)
        epoch = client.lead()
        end_ns = client.ask("renew")["end_ns"]
        agent.process.terminate()
        lost = client.event("leadership-lost")
        self.assertEqual((lost["epoch"], lost["reason"]), (epoch, "shutdown"))
        self.assertEqual(agent.process.wait(DEADLINE_S), 0)
        self.assertGreaterEqual(time.clock_gettime_ns(time.CLOCK_BOOTTIME), end_ns)


def bytes_unread(ports):
    """Those that wait in the kernel for the reader of a connection to one of the ports, at most."""
    with open("/proc/net/tcp", encoding="ascii") as file:
        rows = [line.split() for line in file][1:]
    return max((int(row[4].split(":")[1], 16) for row in rows
                if any(int(end.split(":")[1], 16) in ports for end in row[1:3])), default=0)


class Group(AgentTest):
    """Agents that are a group of their own."""

    def setUp(self):
        self.port = free_ports(1)[0]

    def elections(self, agent):
        done = baton("elections", "--json", "--socket", agent.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {one["election"]: one for one in json.loads(done.stdout)}

    def test_agents_without_clients_vote_and_have_state(self):
        first, second, third = self.group(3)
        writer, reader = Client(first.path), Client(third.path)
        self.addCleanup(writer.close)
        self.addCleanup(reader.close)
        until(lambda: writer.ask("put", key="k", text="v", timeout_ms=1000)["ok"], second.log)
        self.assertEqual(reader.ask("get", key="k")["values"][0]["text"], "v")
        each = reader.ask("get", keys=["no", "k", "nor this"])["values"]
        self.assertEqual([(one["key"], one["text"]) for one in each], [("k", "v")])

    def test_what_is_stored_is_moved_out_of_sqlites_log_before_the_log_is_full(self):
        """Long before the checkpoint: else the log grows, and each write costs several."""
        agent = self.member(self.port, "--checkpoint", "1h")
        log = pathlib.Path(agent.folder, "data", "raft.db-wal")
        writer, salt = self.client(agent), log.read_bytes()[16:24]  # new whenever the log begins
        for i in range(130):
            self.assertTrue(writer.ask("put", key="k", text=str(i))["ok"])
        until(lambda: log.read_bytes()[16:24] != salt, agent.log)

    def test_a_write_that_the_logs_leader_took_with_it_is_given_up_when_another_leads(self):
        agents = self.group(3, "--heartbeat-timeout", "10m", "--lease", "10m")
        leader = until(lambda: next((one for one in agents if self.leads_the_log(one)), None),
                       agents[0].log)
        ports = [one.port for one in agents]
        agents.remove(leader)
        writer = self.client(agents[0])
        self.assertTrue(writer.ask("put", key="k", text="v")["ok"])
        leader.process.send_signal(signal.SIGSTOP)
        writer.send(json.dumps({"id": 99, "do": "put", "key": "k", "text": "x" * (MIB // 10)})
                    .encode() + b"\n")
        until(lambda: bytes_unread(ports) > MIB // 20, "the leader would receive it")
        leader.kill()
        reply = writer.read()
        self.assertEqual((reply["id"], reply["code"]), (99, "ETIMEDOUT"))
        self.assertIn("the leader of the log failed; it may still be carried out", reply["error"])
        self.assertTrue(writer.ask("put", key="k", text="w")["ok"])

    def test_more_writes_than_a_connection_queues_wait_at_a_follower(self):
        """The leader stands still meanwhile, for less than its lease."""
        agents = self.group(3, "--heartbeat-timeout", "10m", "--lease", "10m")
        leader = until(lambda: next((one for one in agents if self.leads_the_log(one)), None),
                       agents[0].log)
        agents.remove(leader)
        writer = self.client(agents[0])
        self.assertTrue(writer.ask("put", key="k", text="v")["ok"])
        writes = [json.dumps({"id": 100 + i, "do": "put", "key": "k%d" % (i % 50),
                              "text": "x" * (MIB // 10)}) for i in range(150)]
        begun = time.monotonic()
        leader.process.send_signal(signal.SIGSTOP)
        writer.send("\n".join([*writes, '{"id":99,"do":"status"}\n']).encode())
        replies = [writer.read()]  # the agent has all of them
        leader.process.send_signal(signal.SIGCONT)
        replies += [writer.read() for _ in writes]
        if time.monotonic() < begun + PUT_S:  # else some were given up, as this machine is slow
            self.assertEqual(replies[0]["id"], 99)
            self.assertEqual([one for one in replies if not one["ok"]], [])

    def leads_the_log(self, agent):
        status = json.loads(baton("status", "--json", "--socket", agent.path).stdout)
        return status["raft"]["role"] == "leader"

    def test_a_client_is_told_to_renew_as_often_as_the_groups_lease_needs(self):
        agent = self.member(self.port, "--lease", "4s", "--heartbeat-timeout", "4s")
        client = Client(agent.path)
        self.addCleanup(client.close)
        hello = client.hello()
        client.lead()
        left = client.ask("renew")["left_ms"]
        self.assertTrue(0 < left <= hello["lifetime_ms"] < 10000, (left, hello))
        self.assertAlmostEqual(hello["renew_ms"] * 6, hello["lifetime_ms"])

    def test_an_agent_whose_port_is_taken_says_so_at_its_start(self):
        agent = self.member(self.port)
        other = baton("agent", "--node", "other", "--data", os.path.join(agent.folder, "other"),
                      "--listen", "127.0.0.1:%d" % self.port, "--socket", agent.path + "2")
        self.assertEqual(other.returncode, 74, other.stderr)
        self.assertIn("127.0.0.1:%d" % self.port, other.stderr)

    def test_elections_are_listed(self):
        agent = self.member(self.port, "--client-lease", LONG)
        self.assertEqual(self.elections(agent), {})
        first = self.client(agent, name="one")
        second = self.client(agent, name="two")
        epoch = first.lead("report")
        self.assertTrue(second.ask("campaign", election="report")["ok"])
        report = until(lambda: (found := self.elections(agent)["report"])["waiting"] == 1 and found,
                       "the other one waits")
        self.assertEqual((report["leader"], report["epoch"]), ("one", epoch))
        text = baton("elections", "--socket", agent.path).stdout
        self.assertRegex(text, r"(?m)^report +one +%d " % epoch)

    def test_leadership_outlives_its_agent(self):
        for end in (signal.SIGKILL, signal.SIGTERM):
            agent = self.member(self.port, "--client-lease", LONG, "--lease", "30s",
                                "--heartbeat-timeout", "30s")
            secret = secrets.token_hex(32)
            first, other = self.client(agent, secret=secret), self.client(agent)
            session = first.event("session")["session"]
            epoch = first.lead()
            agent.process.send_signal(end)
            agent.process.wait(DEADLINE_S)
            agent.start()
            again = self.client(agent, secret=secret, session=session)
            self.assertEqual(again.event("session")["session"], session)
            self.assertTrue(again.ask("campaign", election="e", known_epoch=epoch, acts=True)["ok"])
            self.assertEqual(again.event("leadership-acquired")["epoch"], epoch)
            self.assertTrue(other.is_closed())
            agent.kill()

    def test_a_pass_asks_the_leader_to_drain_and_waits_for_it(self):
        agent = self.member(self.port, "--client-lease", LONG)
        first, second = self.client(agent, name="one"), self.client(agent, name="two")
        epoch = first.lead()
        self.assertTrue(second.ask("campaign", election="e")["ok"])
        until(lambda: self.elections(agent)["e"]["waiting"] == 1, "the other one waits")
        operator = Client(agent.path)
        self.addCleanup(operator.close)
        operator.send(b'{"id": 1, "do": "pass", "election": "e", "to": "two"}\n')
        self.assertIsNotNone(first.event("drain"))
        self.assertTrue(second.ask("renew")["ok"])
        self.assertEqual([e for e in second.events if e["event"] == "leadership-acquired"], [])
        self.assertTrue(first.ask("drained", election="e", epoch=epoch)["ok"])
        self.assertGreater(second.event("leadership-acquired")["epoch"], epoch)
        self.assertTrue(operator.read()["ok"])

    def test_a_cordoned_process_does_not_lead(self):
        agent = self.member(self.port, "--client-lease", LONG)
        first, second = self.client(agent, name="one"), self.client(agent, name="two")
        first.lead()
        self.assertTrue(second.ask("campaign", election="e")["ok"])
        until(lambda: self.elections(agent)["e"]["waiting"] == 1, "the other one waits")
        self.assertTrue(first.ask("cordon", election="e", process="two", eligible=False)["ok"])
        until(lambda: self.elections(agent)["e"]["waiting"] == 0, "nobody waits")
        self.assertTrue(first.ask("resign", election="e")["ok"])
        self.assertEqual(first.event("leadership-lost")["reason"], "resigned")
        self.assertIsNotNone(first.event("leadership-acquired"))

    def test_who_is_not_allowed_takes_no_part_and_others_do(self):
        """User 65534 in the groups 65534 and 12345; the rules know one of them."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root, for another user")
        agent = self.member(self.port, "--socket-mode", "0666", "--allow", "own=65534", "--allow",
                            "extra=@12345", "--allow", "*=1", "--client-lease", LONG)
        os.chmod(agent.folder, 0o755)
        code = ("import json, socket, sys\n"
                "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
                "lines = s.makefile('rw')\n"
                "def ask(**message):\n"
                "    print(json.dumps({'id': 7, **message}), file=lines, flush=True)\n"
                "    while (reply := json.loads(lines.readline())).get('id') != 7: pass\n"
                "    return reply.get('code', 'ok')\n"
                "print(ask(do='hello', version=1),\n"
                "      *(ask(do='campaign', election=e) for e in ('own', 'extra', 'other')),\n"
                "      ask(do='pass', election='other'),\n"
                "      ask(do='cordon', election='other', process='p', eligible=False))\n")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--groups",
                               "12345", sys.executable, "-c", code, agent.path],
                              stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True,
                              universal_newlines=True)
        self.assertEqual(done.stdout, "ok ok ok EAUTH EAUTH EAUTH\n")
        self.assertIn("not-allowed", agent.log())
        self.assertGreater(self.client(agent).lead("other"), 0)

    def test_a_group_that_is_one_election_is_refused_with_the_way_out(self):
        agent = baton("agent", "--provider", "raft://127.0.0.1:%d?group=" % self.port, "--data",
                      tempfile.gettempdir() + "/none", "--socket", "/tmp/baton-none.sock")
        self.assertEqual(agent.returncode, 64)


class OverRedis(AgentTest):
    """The agent is a client of a server: each of its clients has a lock of its own there."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-redis-")
        self.addCleanup(folder.cleanup)
        port = free_ports(1)[0]
        self.cli = ["redis-cli", "-p", str(port)]
        server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1",
                                   "--save", "", "--dir", folder.name],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        until(lambda: self.ask("PING") == "PONG", "an answer of redis-server")
        replid = next(line[14:] for line in self.ask("INFO", "replication").splitlines()
                      if line.startswith("master_replid:"))
        # A server that has just begun could have forgotten a lease: it is older than any here.
        self.ask("HSET", "e:epoch", "server", replid, "since", "0")
        self.provider = ("--provider", "redis://127.0.0.1:%d?lease=10s&heartbeat-interval=100ms"
                         % port)

    def ask(self, *words):
        return subprocess.run([*self.cli, *words], stdout=subprocess.PIPE, timeout=DEADLINE_S,
                              universal_newlines=True, check=False).stdout.strip()

    def test_a_killed_agent_hands_nothing_on_before_its_clients_have_stopped(self):
        first_agent = self.agent("--client-lease", "8s", provider=self.provider)
        heir_agent = self.agent("--client-lease", LONG, provider=self.provider)
        first, heir = self.client(first_agent, name="one"), self.client(heir_agent, name="two")
        first.lead()
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        self.assertIsNotNone(heir.event("leader-changed"))
        end_ns = first.ask("renew")["end_ns"]
        first_agent.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))
        self.assertGreaterEqual(time.clock_gettime_ns(time.CLOCK_BOOTTIME), end_ns)

    def test_members_are_told_although_the_connection_for_it_is_made_only_now(self):
        agent = self.agent("--client-lease", LONG, provider=self.provider)
        self.leader(agent)
        self.ask("CLIENT", "PAUSE", "500", "ALL")
        done = baton("members", "--socket", agent.path, "--election", "e", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([one["role"] for one in json.loads(done.stdout)], ["leader"])

    def test_a_watch_begins_with_any_number_of_values(self):
        agent = self.agent("--client-lease", LONG, provider=self.provider)
        writer, reader = self.client(agent), self.client(agent)
        for i in range(12):
            self.assertTrue(writer.ask("put", key=f"k{i:02}", text="x" * (MIB // 2))["ok"])
        self.assertTrue(reader.ask("watch", prefix="k")["ok"])
        # The message of the last write may be on its way still: then it comes first, and again.
        keys = set()
        while len(keys) < 12:
            keys |= {value["key"] for value in reader.event("change")["values"]}
        self.assertEqual(sorted(keys), [f"k{i:02}" for i in range(12)])

    def test_a_killed_process_is_followed_without_waiting_for_its_lease(self):
        agent = self.agent("--client-lease", LONG, provider=(
            "--provider", self.provider[1].replace("lease=10s", "lease=10m&max-lease=10m")))
        leader, _ = self.leader(agent)
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))


class Programs(AgentTest):
    """baton run and once, which find the agent by themselves."""

    def baton(self, agent, *words):
        process = subprocess.Popen([BATON, *words], env={**clean_environment(),
                                                         "BATON_AGENT": agent.path},
                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_hidden(self, agent):
        """baton run, with a program below it that has left its group, session and environment."""
        note = os.path.join(agent.folder, "pids")
        process = self.baton(agent, "run", "--election", "e", "--", "sh", "-c",
                             "setsid env -i sleep 1000 & echo $! >>%s; exec sleep 1000" % note)
        hidden = until(lambda: os.path.exists(note) and
                       pathlib.Path(note).read_text("utf-8").split(), "CMD runs")
        self.addCleanup(self.kill_child, int(hidden[0]))
        return process, int(hidden[0])

    def test_run_is_followed_when_nothing_is_left_of_it(self):
        agent = self.agent("--client-lease", LONG)
        process, hidden = self.run_hidden(agent)
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        process.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))
        self.assertFalse(is_alive(hidden))

    def test_run_says_that_the_agent_proves_its_death(self):
        agent = self.agent()
        done = baton("run", "--election", "e", "--", "true",
                     env={"BATON_AGENT": agent.path})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('deaths at_once="the end of this process, and of its container', done.stderr)

    def test_run_goes_on_while_its_agent_is_replaced(self):
        agent = self.member(free_ports(1)[0], "--client-lease", LONG, "--lease", "30s",
                            "--heartbeat-timeout", "30s")
        process, hidden = self.run_hidden(agent)
        status = json.loads(baton("status", "-e", "e", "--socket", agent.path, "--json").stdout)
        for end in (signal.SIGTERM, signal.SIGKILL):
            agent.process.send_signal(end)
            agent.process.wait(DEADLINE_S)
            agent.start()
            until(lambda: json.loads(baton("status", "--socket", agent.path, "--json").stdout)
                  ["processes"] == 1, agent.log)
            now = until(lambda: json.loads(baton("status", "-e", "e", "--socket", agent.path,
                                                 "--json").stdout or "null"), agent.log)
            self.assertEqual((now["leader"], now["epoch"]), (status["leader"], status["epoch"]))
        self.assertIsNone(process.poll())
        self.assertTrue(is_alive(hidden))
        with open(os.path.join(agent.folder, "pids"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), [str(hidden)])

    def test_without_the_supervisors_word_the_lease_decides(self):
        agent = self.agent("--client-lease", "5s")
        process, _ = self.run_hidden(agent)
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        children = pathlib.Path("/proc/%d/task/%d/children" % (process.pid, process.pid))
        supervisor = next(int(pid) for pid in children.read_text("ascii").split()
                          if "supervise" in pathlib.Path("/proc/%s/comm" % pid).read_text("ascii"))
        end_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 500000000
        process.send_signal(signal.SIGSTOP)
        os.kill(supervisor, signal.SIGKILL)
        process.kill()
        self.await_leadership(agent, heir)
        self.assertGreater(time.clock_gettime_ns(time.CLOCK_BOOTTIME), end_ns)

    def test_run_in_a_container_that_is_killed_is_followed_when_nothing_is_left_of_it(self):
        """As process 1, and as a child of another one: its supervisor cannot say anything."""
        space = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*space, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        for before in ([], ["sh", "-c", '"$@" & wait', "sh"]):
            agent = self.agent("--client-lease", LONG)
            note = pathlib.Path(agent.folder, "runs")
            outside = subprocess.Popen(
                [*space, *before, BATON, "run", "--election", "e", "--", "sh", "-c",
                 "setsid env -i sleep 1000 & echo x >%s; exec sleep 1000" % note],
                env={**clean_environment(), "BATON_AGENT": agent.path},
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(outside.wait)
            self.addCleanup(outside.kill)
            until(note.exists, "CMD runs")
            heir = self.client(agent)
            self.assertTrue(heir.ask("campaign", election="e")["ok"])
            first = pathlib.Path("/proc/%d/task/%d/children" % (outside.pid, outside.pid))
            os.kill(int(first.read_text("ascii").split()[0]), signal.SIGKILL)
            self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_a_session_that_is_continued_has_its_token_from_the_first_moment(self):
        agent = self.agent("--client-lease", LONG)
        token = secrets.token_hex(32)
        process = subprocess.Popen([sys.executable, "-c", GREETER, agent.path, token])
        self.addCleanup(process.kill)
        heir = self.client(agent)
        heir.ask("campaign", election="e", eligible=False)
        until(lambda: heir.ask("leader", election="e")["leader"] == "greeter", "the other leads")
        self.assertTrue(heir.ask("eligible", election="e", eligible=True)["ok"])
        process.kill()
        process.wait()
        self.assertTrue(heir.ask("gone", token=token)["ok"])
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_a_foreign_token_ends_nothing(self):
        agent = self.agent("--client-lease", LONG)
        stranger = self.client(agent)
        for token in ("", "0" * 64, "x", "0" * 65):
            self.assertEqual(stranger.ask("gone", token=token)["code"], "ENOENT")
        self.assertEqual(stranger.ask("acting", marker="", token="0")["code"], "EINVAL")

    def test_two_on_one_host_have_names_of_their_own_and_the_first_resigns_to_the_second(self):
        agent = self.agent()
        first, _ = self.run_hidden(agent)
        other = self.client(agent)
        other.ask("campaign", election="e", eligible=False)
        self.baton(agent, "run", "--election", "e", "--", "sleep", "1000")
        until(lambda: len(other.ask("members", election="e")["members"]) == 3, "both are members")
        first.terminate()
        first.wait()
        until(lambda: other.ask("leader", election="e")["leader"] is not None, "the second leads")

    def test_once_runs_once(self):
        agent = self.agent()
        note = os.path.join(agent.folder, "runs")
        ones = [self.baton(agent, "once", "--election", "job", "--", "migrate", "sh", "-c",
                           "echo x >>%s" % note) for _ in range(3)]
        self.assertEqual([one.wait(DEADLINE_S) for one in ones], [0, 0, 0])
        with open(note, encoding="utf-8") as file:
            self.assertEqual(file.read(), "x\n")

    def test_once_ends_with_a_failure_that_was_stored_before_its_own_result(self):
        agent = self.agent()
        begun, end = (os.path.join(agent.folder, name) for name in ("begun", "end"))
        one = self.baton(agent, "once", "--election", "job", "--wait-timeout", "0s", "--",
                         "migrate", "sh", "-c", "touch %s; until test -e %s; do sleep 0.02; done"
                         % (begun, end))
        until(lambda: os.path.exists(begun), "it runs")
        result = json.dumps({"exit_code": 3, "node": "x", "epoch": 1, "at": int(time.time())})
        done = baton("state", "put", "once/migrate", result, env={"BATON_AGENT": agent.path})
        self.assertEqual(done.returncode, 0, done.stderr)
        pathlib.Path(end).touch()
        self.assertEqual(one.wait(DEADLINE_S), 3)


class Hostile(AgentTest):
    LINES = (b"hello\n", b"[1]\n", b"null\n", b'"text"\n', b"{}\n", b"\n", b"\0\n", b"\xff\xfe\n",
             b'{"id": 0, "do": "hello"}\n', b'{"id": -1, "do": "hello"}\n',
             b'{"id": "1", "do": "hello"}\n', b'{"id": 1}\n', b'{"id": 1, "do": 7}\n',
             b'{"id": 1, "id": 2, "do": "hello"}\n', b'{"id": 1, "do": "renew"}\n',
             b'{"id": 1, "do": "hello"}\n', b'{"id": 1, "do": "hello", "version": 2}\n',
             b'{"id": 1, "do": "hello", "version": 1, "name": ""}\n',
             b'{"id": 1, "do": "hello", "version": 1, "name": 7}\n',
             b'{"id": 1, "do": "hello", "version": 1, "name": "a\\u0000b"}\n',
             b'{"id": 1, "do": "hello", "version": 1, "name": "' + b"n" * 64 + b'"}\n',
             b'{"id": 1, "do": "hello", "version": 1, "secret": "zz"}\n',
             b'{"id": 1, "do": "hello", "version": 1, "secret": "' + b"G" * 64 + b'"}\n',
             b'{"id": 1, "do": "hello", "version": 1, "metadata": 1}\n',
             b"{" * 5000 + b"\n", b"x" * (2 * MIB + 1), b'{"id": 1, "do": "' + b"y" * (3 * MIB))

    def test_what_is_wrong_is_refused_and_the_others_go_on(self):
        agent = self.agent("--client-lease", LONG)
        leader = self.client(agent)
        leader.lead()
        for line in self.LINES:
            stranger = Client(agent.path)
            stranger.send(line)
            reply = stranger.read()
            self.assertFalse(reply["ok"], line[:80])
            self.assertIn(reply["code"], ("EPROTO", "EINVAL", "ETOOBIG"), line[:80])
            self.assertTrue(stranger.is_closed())
            stranger.close()
        self.assertGreater(leader.ask("renew")["left_ms"], 0)

    def test_a_wrong_request_of_a_process_costs_it_nothing_else(self):
        agent = self.agent("--client-lease", LONG)
        client = self.client(agent)
        client.lead()
        for do, message in (("dance", {}), ("hello", {"version": 1}), ("campaign", {}),
                            ("campaign", {"election": ""}), ("campaign", {"election": 5}),
                            ("campaign", {"election": "n" * 64}),
                            ("campaign", {"election": "a\0b"}),
                            ("resign", {"election": "no"}), ("resign", {"election": "e",
                                                                       "epoch": 1 << 60}),
                            ("eligible", {"election": "e", "eligible": "no"}),
                            ("drained", {"election": "no"}), ("leave", {"election": "no"}),
                            ("metadata", {"metadata": [1]}), ("get", {}), ("get", {"key": 1}),
                            ("get", {"keys": []}), ("get", {"keys": "k"}), ("get", {"keys": [1]}),
                            ("get", {"keys": ["a\0b"]}), ("get", {"keys": ["k"] * 65}),
                            ("put", {"key": "k"}), ("put", {"key": "k", "base64": "a"}),
                            ("put", {"key": "k", "base64": "!!!!"}),
                            ("put", {"key": "k", "text": "x" * (MIB + 1)}),
                            ("watch", {}), ("unwatch", {"watch": 99}), ("unwatch", {}),
                            ("subscribe", {"channel": "c" * 600}), ("publish", {"channel": "c"}),
                            ("acting", {"marker": "no"}), ("acting", {"marker": "A=" + "m" * 70}),
                            ("members", {"election": "no"})):
            reply = client.ask(do, **message)
            self.assertFalse(reply["ok"], (do, str(message)[:60]))
            self.assertTrue(reply["error"], do)
        self.assertGreater(client.ask("renew")["left_ms"], 0)

    def test_a_client_has_so_many_watches_and_no_more(self):
        agent = self.agent("--client-lease", LONG)
        client = self.client(agent)
        for i in range(256):
            self.assertTrue(client.ask("watch", prefix="p%d" % i)["ok"])
        self.assertEqual(client.ask("watch", prefix="more")["code"], "ETOOBIG")
        self.assertTrue(client.ask("unwatch", watch=client.last_id - 1)["ok"])
        self.assertTrue(client.ask("subscribe", channel="c")["ok"])

    def test_greetings_without_end_are_refused_and_another_user_goes_on(self):
        """Each greeting makes a process, which lives for its lease when the connection is lost."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("needs root, for another user")
        agent = self.agent("--client-lease", LONG, "--socket-mode", "0666")
        os.chmod(agent.folder, 0o755)
        code = ("import json, socket, sys\n"
                "for i in range(3000):\n"
                "    s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
                "    s.sendall(b'{\"id\": 1, \"do\": \"hello\", \"version\": 1}\\n')\n"
                "    reply = json.loads(s.makefile().readline())\n"
                "    if not reply['ok']:\n"
                "        print(i, reply['code']); break\n")
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                               sys.executable, "-c", code, agent.path], stdout=subprocess.PIPE,
                              timeout=DEADLINE_S, check=True, universal_newlines=True)
        self.assertEqual(done.stdout, "2048 EBUSY\n")
        self.assertGreater(self.client(agent).lead(), 0)

    def test_an_agent_of_another_user_does_not_take_what_it_could_not_kill(self):
        if os.geteuid() != 0 or not others_can_run():
            self.skipTest("needs root, for another user that can run baton")
        folder = tempfile.mkdtemp(prefix="baton-agent-", dir="/tmp")
        os.chmod(folder, 0o777)
        agent = Agent("--provider", "memory:agent", folder=folder,
                      under=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        self.addCleanup(agent.close)
        client = self.client(agent)
        self.assertEqual(client.ask("acting", marker="A=b")["code"], "EAUTH")
        self.assertTrue(client.ask("acting", marker="")["ok"])

    def test_a_group_of_the_socket_that_its_user_is_not_in_is_named(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o777)
            done = subprocess.run([*unprivileged(self, BATON), BATON, "agent", "--provider",
                                   "memory:", "--socket", folder + "/a.sock", "--socket-group",
                                   "root"], stderr=subprocess.PIPE, timeout=DEADLINE_S,
                                  env=clean_environment(), check=False, universal_newlines=True)
            self.assertEqual((done.returncode, os.listdir(folder)), (77, []), done.stderr)
        self.assertRegex(done.stderr, "group 0.*not in it.*SupplementaryGroups=")

    def test_whom_its_socket_keeps_out_hears_who_may_connect(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for another user")
        agent = self.agent()
        os.chmod(agent.folder, 0o755)
        done = subprocess.run([*unprivileged(self, BATON), BATON, "elections", "--socket",
                               agent.path], stderr=subprocess.PIPE, env=clean_environment(),
                              timeout=DEADLINE_S, check=False, universal_newlines=True)
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stderr, "denied; .*its group .*--socket-group")

    def test_a_rule_of_nobody_that_is_known_is_refused(self):
        done = baton("agent", "--provider", "memory:x", "--allow", "e=no-such-user-anywhere")
        self.assertEqual(done.returncode, 64)
        self.assertIn("--allow: 'e=no-such-user-anywhere'", done.stderr)

    def test_a_client_lease_in_which_nobody_can_renew_is_refused(self):
        for lease in ("0", "1ns", "49ms"):
            done = baton("agent", "--provider", "memory:", "--client-lease", lease)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(f"--client-lease: '{lease}': must be at least 50ms", done.stderr)

    def test_the_socket_has_its_mode_and_a_second_agent_is_refused(self):
        agent = self.agent("--socket-mode", "0600")
        self.assertEqual(os.stat(agent.path).st_mode & 0o777, 0o600)
        second = baton("agent", "--provider", "memory:x", "--socket", agent.path)
        self.assertEqual(second.returncode, 74, second.stderr)
        self.assertIn("listens there already", second.stderr)
        self.assertTrue(self.client(agent).ask("renew")["ok"])

    def test_without_an_agent_the_error_says_how_to_start_one(self):
        done = baton("elections", "--socket", "/tmp/baton-no-such-agent.sock")
        self.assertEqual(done.returncode, 69)
        self.assertIn("baton agent", done.stderr)


if __name__ == "__main__":
    main()
