"""An agent and its clients that do not see each other: each is in a PID namespace of its own, as in
two containers that share only a folder. The kernel gives the agent pidfds, but no numbers."""
import json
import os
import pathlib
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from agents import LEADER, LONG, Agent, AgentTest
from harness import BATON, DEADLINE_S, clean_environment, main, until

SPACE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
SO_PEERPIDFD = 77


def may_part():
    """Whether there are namespaces, and pidfds of processes that are not seen (Linux 6.5)."""
    one, other = socket.socketpair()
    with one, other:
        try:
            os.close(one.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
        except OSError:
            return False
    return subprocess.run([*SPACE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def children(pid):
    return [int(word) for word in
            pathlib.Path("/proc/%d/task/%d/children" % (pid, pid)).read_text("ascii").split()]


@unittest.skipUnless(may_part(), "PID namespaces need root, and pidfds across them Linux 6.5")
class Apart(AgentTest):
    def agent(self, *flags, provider=("--provider", "memory:agent")):
        agent = Agent(*provider, *flags, under=SPACE)
        self.addCleanup(agent.close)
        return agent

    def heir(self, agent):
        heir = self.client(agent)
        self.assertTrue(heir.ask("campaign", election="e")["ok"])
        return heir

    def run_apart(self, agent, before=()):
        """`baton run` in a third namespace; its process 1, once CMD runs."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="runs-", dir=agent.folder))
        outside = subprocess.Popen(
            [*SPACE, *before, BATON, "run", "--election", "e", "--", "sh", "-c",
             "setsid env -i sleep 1000 & echo x >%s/up; exec sleep 1000" % folder],
            env={**clean_environment(), "BATON_AGENT": agent.path}, stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(outside.wait)
        self.addCleanup(outside.kill)
        until((folder / "up").exists, "CMD runs")
        return children(outside.pid)[0]

    def test_a_killed_process_is_followed_without_waiting_for_its_lease(self):
        agent = self.agent("--client-lease", LONG)
        leader, _ = self.leader(agent)
        heir = self.heir(agent)
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_a_process_of_a_third_namespace_that_is_killed_is_followed_too(self):
        agent = self.agent("--client-lease", LONG)
        leader = subprocess.Popen([*SPACE, sys.executable, "-c", LEADER, agent.path, "e", ""],
                                  stdout=subprocess.PIPE)
        self.addCleanup(leader.wait)
        self.addCleanup(leader.stdout.close)
        self.assertTrue(leader.stdout.readline())
        heir = self.heir(agent)
        leader.kill()
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_run_is_followed_when_its_container_has_ended(self):
        """Its supervisor cannot say anything: process 1 is the proof, of whatever program."""
        for before in ((), ("sh", "-c", '"$@" & wait', "sh")):
            agent = self.agent("--client-lease", LONG)
            first = self.run_apart(agent, before)
            heir = self.heir(agent)
            os.kill(first, signal.SIGKILL)
            self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_run_is_followed_by_its_supervisors_word_if_only_it_was_killed(self):
        agent = self.agent("--client-lease", LONG)
        elector = children(self.run_apart(agent))[0]
        heir = self.heir(agent)
        os.kill(elector, signal.SIGKILL)
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_without_the_supervisors_word_the_lease_decides_while_the_container_lives(self):
        agent = self.agent("--client-lease", LONG)
        first = self.run_apart(agent, ("sh", "-c", '"$@" & while :; do sleep 1; done', "sh"))
        wrapper = until(lambda: [pid for pid in children(first) if pathlib.Path(
            "/proc/%d/comm" % pid).read_text("ascii") == "baton\n"], "baton runs")[0]
        supervisor = next(pid for pid in children(wrapper) if "supervise" in pathlib.Path(
            "/proc/%d/comm" % pid).read_text("ascii"))
        heir = self.heir(agent)
        os.kill(wrapper, signal.SIGSTOP)
        os.kill(supervisor, signal.SIGKILL)
        os.kill(wrapper, signal.SIGKILL)
        for _ in range(20):  # the agent has seen the deaths by then
            self.assertTrue(heir.ask("renew")["ok"])
        self.assertEqual([e for e in heir.events if e["event"] == "leadership-acquired"], [])
        os.kill(first, signal.SIGKILL)
        self.assertIsNotNone(heir.event("leadership-acquired"))

    def test_what_the_agent_cannot_find_does_not_act_for_a_process(self):
        agent = self.agent("--client-lease", LONG)
        refused = self.client(agent).ask("acting", marker="BATON_TEST_ACTS=1")
        self.assertEqual(refused["code"], "EAUTH")
        self.assertIn("another PID namespace", refused["error"])

    def test_a_session_is_that_of_its_process(self):
        agent = self.agent("--client-lease", LONG)
        secret = secrets.token_hex(32)
        first = self.client(agent, secret=secret)
        session = first.event("session")["session"]
        epoch = first.lead()
        hello = {"id": 1, "do": "hello", "version": 1, "secret": secret, "session": session}
        code = ("import json, socket, sys; s = socket.socket(socket.AF_UNIX); "
                "s.connect(sys.argv[1]); f = s.makefile('rw'); "
                "print(sys.argv[2], file=f, flush=True); f.readline(); "
                "print(json.loads(f.readline())['session'])")
        out = subprocess.run([sys.executable, "-c", code, agent.path, json.dumps(hello)],
                             stdout=subprocess.PIPE, timeout=DEADLINE_S, check=True).stdout
        self.assertNotEqual(out.decode().strip(), session)
        first.close()
        again = self.client(agent, secret=secret, session=session)
        self.assertEqual(again.event("session")["session"], session)
        self.assertTrue(again.ask("campaign", election="e", known_epoch=epoch, acts=True)["ok"])
        self.assertEqual(again.event("leadership-acquired")["epoch"], epoch)


class Descriptors(AgentTest):
    """A client may pass any descriptor: only a pidfd is kept, one for each client."""

    def test_others_are_closed_and_nothing_is_left(self):
        agent = self.agent("--client-lease", LONG)
        folder = "/proc/%d/fd" % agent.process.pid
        steady = self.client(agent)
        self.assertTrue(steady.ask("renew")["ok"])
        before = len(os.listdir(folder))
        pipe, watched = os.pipe(), select.epoll()
        self.addCleanup(watched.close)
        own = os.pidfd_open(os.getpid())
        with open("/dev/null", "rb") as null, open(__file__, "rb") as file:
            kinds = [*pipe, watched.fileno(), null.fileno(), file.fileno(), own,
                     steady.socket.fileno()]
            stranger = socket.socket(socket.AF_UNIX)
            stranger.connect(agent.path)
            socket.send_fds(stranger, [b" "], kinds)  # before its hello
            stranger.close()
            client = self.client(agent)
            for _ in range(20):
                socket.send_fds(client.socket, [b" "], kinds * 7)
            self.assertTrue(client.ask("renew")["ok"])
            until(lambda: len(os.listdir(folder)) == before + 3, lambda: "\n".join(
                os.readlink(os.path.join(folder, name)) for name in os.listdir(folder)))
            client.ask("bye")
        for fd in (*pipe, own):
            os.close(fd)
        until(lambda: len(os.listdir(folder)) <= before, "all are closed")
        self.assertTrue(steady.ask("renew")["ok"])


if __name__ == "__main__":
    main()
