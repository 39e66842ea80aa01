"""Shared by the tests of `baton agent`: an agent, and clients that speak its protocol."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import BATON, DEADLINE_S, clean_environment, free_ports, until
from strangers import PYTHON

LONG = "10m"  # nobody waits for that
MIB = 1 << 20
NODE = ("--node", "host")

# Leads the election, and does nothing more: how it ends is the test's business.
LEADER = r"""
import json, os, socket, subprocess, sys, time
path, election, marker = sys.argv[1:4]
agent = socket.socket(socket.AF_UNIX)
agent.connect(path)
lines = agent.makefile("rw")
def say(number, **message):
    print(json.dumps({"id": number, **message}), file=lines, flush=True)
say(1, do="hello", version=1, name="leader")
if marker:
    say(2, do="acting", marker=marker)
say(3, do="campaign", election=election)
for line in lines:
    if json.loads(line).get("event") == "leadership-acquired":
        name, _, value = marker.partition("=")
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"],
                                 env={**os.environ, **({name: value} if marker else {})},
                                 start_new_session=True)
        print(child.pid, flush=True)
        while True:
            time.sleep(1000)
"""


class Client:
    """A connection to an agent, line by line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.events = []
        self.last_id = 0

    def send(self, data):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)  # if the agent has ended it, read() tells

    def read(self):
        """The next message; None: the agent has closed the connection."""
        try:
            line = self.lines.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def ask(self, do, **message):
        """The reply; events that come before it are kept."""
        self.last_id += 1
        self.send(json.dumps({"id": self.last_id, "do": do, **message}).encode() + b"\n")
        while True:
            reply = self.read()
            if reply is None or reply.get("id") == self.last_id or "event" not in reply:
                return reply
            self.events.append(reply)

    def event(self, name):
        """The next event of this name, past or to come; those before it are forgotten."""
        while True:
            event = self.events.pop(0) if self.events else self.read()
            if event is None or event.get("event") == name:
                return event

    def hello(self, **more):
        return self.ask("hello", version=1, **more)

    def lead(self, election="e"):
        assert self.ask("campaign", election=election)["ok"]
        return self.event("leadership-acquired")["epoch"]

    def is_closed(self):
        while (message := self.read()) is not None:
            self.events.append(message)
        return True

    def close(self):
        self.lines.close()
        self.socket.close()


class Agent:
    def __init__(self, *flags, folder=None, under=()):
        self.folder = folder or tempfile.mkdtemp(prefix="baton-agent-", dir="/tmp")
        self.path = os.path.join(self.folder, "agent.sock")
        self.flags = flags
        self.under = under
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [*self.under, BATON, "agent", *(() if "--node" in self.flags else NODE), "--socket",
                 self.path, *self.flags],
                stdin=subprocess.DEVNULL, stderr=log, env=clean_environment())
        until(lambda: self.listens() or self.process.poll() is not None, self.log)

    def listens(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class AgentTest(unittest.TestCase):
    def agent(self, *flags, provider=("--provider", "memory:agent")):
        agent = Agent(*provider, "--client-lease", LONG, *flags)
        self.addCleanup(agent.close)
        return agent

    def member(self, port, *flags):
        folder = tempfile.mkdtemp(prefix="baton-agent-", dir="/tmp")
        agent = Agent("--data", os.path.join(folder, "data"), "--client-lease", LONG, "--listen",
                      "127.0.0.1:%d" % port, *flags, folder=folder)
        agent.port = port
        self.addCleanup(agent.close)
        return agent

    def group(self, count, *flags):
        """A group of so many agents."""
        ports = free_ports(count)
        agents = []
        for i, port in enumerate(ports):
            peers = [("--peer", "m%d=127.0.0.1:%d" % (j, other))
                     for j, other in enumerate(ports) if j != i]
            agents.append(self.member(port, "--node", "m%d" % i, *flags,
                                      *(word for peer in peers for word in peer)))
        return agents

    def client(self, agent, **hello):
        client = Client(agent.path)
        self.addCleanup(client.close)
        reply = client.hello(**hello)
        self.assertTrue(reply["ok"], reply)
        return client

    def await_leadership(self, agent, heir, since=None):
        """Renews until it leads; whom a slow machine lets fall silent, another one follows."""
        self.renewed_s, self.longest_s = since or time.monotonic(), 0  # the longest pause so far
        while not any(event["event"] == "leadership-acquired" for event in heir.events):
            before, self.renewed_s = self.renewed_s, time.monotonic()
            self.longest_s = max(self.longest_s, self.renewed_s - before)
            if not (heir.ask("renew") or {}).get("ok"):
                heir = self.client(agent)
                heir.ask("campaign", election="e")
            time.sleep(0.02)  # the pace of renewals
        return heir.event("leadership-acquired")

    def leader(self, agent, election="e", marker="", under=()):
        """A process that leads; and the child that acts for it."""
        leader = subprocess.Popen([*under, PYTHON, "-c", LEADER, agent.path, election, marker],
                                  stdout=subprocess.PIPE)
        self.addCleanup(leader.stdout.close)
        self.addCleanup(leader.wait)
        self.addCleanup(leader.kill)
        child = int(leader.stdout.readline())
        self.addCleanup(self.kill_child, child)
        return leader, child

    def kill_child(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
