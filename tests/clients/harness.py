"""An agent for the tests of the clients, in a process of its own."""
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE / ".." / "e2e"))
import leash  # noqa: E402,F401

DEADLINE_S = 240
LONG_MS = 30000  # of a lease that no pause of a busy machine outlasts
SHORT_MS = 1000  # of one whose end a test waits for
KEPT = []


def until(condition, what):
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"not in {DEADLINE_S} s: {what() if callable(what) else what}")


def free_port():
    """Of no other test, nor of whoever connects: as the end-to-end tests find one."""
    spec = importlib.util.spec_from_file_location("e2e", HERE / ".." / "e2e" / "harness.py")
    e2e = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(e2e)
    KEPT.append(e2e)  # its ports are reserved for as long
    return e2e.free_ports(1)[0]


class Agent:
    """The stand-in of the tests: it has the protocol, and nothing behind it."""

    def __init__(self, lifetime_ms=LONG_MS):
        self.lifetime_ms = lifetime_ms
        self.folder = tempfile.mkdtemp(prefix="baton-clients-", dir="/tmp")
        self.path = os.path.join(self.folder, "agent.sock")
        self.start()

    def start(self):
        self.process = subprocess.Popen([sys.executable, HERE / "agent.py", self.path,
                                         os.path.join(self.folder, "state"), str(self.lifetime_ms)])
        until(self.answers, "the agent listens")

    def answers(self):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.kill()
        shutil.rmtree(self.folder)


class RealAgent(Agent):
    """`baton agent`, a group by itself."""

    def start(self):
        if not hasattr(self, "port"):
            self.port = free_port()
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [os.environ["BATON_PROGRAM"], "agent", "--node", "host", "--socket", self.path,
                 "--data", os.path.join(self.folder, "data"), "--listen",
                 f"127.0.0.1:{self.port}", "--client-lease", f"{self.lifetime_ms}ms"],
                stdin=subprocess.DEVNULL, stderr=log)
        until(self.answers, "the agent listens")

    def waiting(self, election):
        """How many wait for it."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.path)
            client.sendall(json.dumps({"id": 1, "do": "elections"}).encode() + b"\n")
            with client.makefile() as replies:
                reply = json.loads(replies.readline())
        return sum(one["waiting"] for one in reply["elections"] if one["election"] == election)


class Pool(RealAgent):
    """A real agent, and a leader of the pool beside it."""

    def __init__(self, pool="pool", **options):
        self.pool = pool
        super().__init__(**options)

    def start(self):
        super().start()
        self.begin_leader()

    def begin_leader(self):
        self.leader = subprocess.Popen(
            [os.environ["BATON_LEADER"], "agent:" + self.path, self.pool],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.leader.stdout.readline() == b"ready\n"

    def kill_leader(self):
        self.leader.kill()
        self.leader.wait()
        self.leader.stdin.close()
        self.leader.stdout.close()

    def close(self):
        self.kill_leader()
        super().close()


def main():
    """harness.py COMMAND...: runs it beside a pool."""
    pool = Pool()
    try:
        sys.exit(subprocess.call(sys.argv[1:], env={**os.environ, "BATON_AGENT": pool.path}))
    finally:
        pool.close()


if __name__ == "__main__":
    main()
