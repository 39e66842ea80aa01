"""A real Redis server that a test may kill and start anew, and watched nodes of ours on it."""
import os
import shutil
import subprocess
import tempfile

from faults import DEADLINE_S, WatchedCluster, skip
from harness import free_ports, until


class RedisServer:
    """On a free port of loopback; what it keeps lies in a directory of its own."""

    def __init__(self, *flags):
        if not shutil.which("redis-server"):
            skip("redis-server is not installed")
        self.dir = tempfile.mkdtemp(prefix="baton-redis-", dir="/tmp")
        self.port = free_ports(1)[0]
        self.flags = flags
        self.process = None
        self.start()

    def start(self):
        log = open(os.path.join(self.dir, "log"), "ab")
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.dir, *self.flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        until(lambda: self.ask("PING") == "PONG", "an answer of redis-server")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kept(self):
        return os.path.join(self.dir, "appendonlydir")

    def keep_copy(self):
        """What a restart with "older data" finds; a crash may have torn its end."""
        shutil.rmtree(self.kept() + ".old", ignore_errors=True)
        shutil.copytree(self.kept(), self.kept() + ".old")

    def restart(self, data="its data"):
        """With "its data", "no data" or "older data". kill -9 loses none of an append-only file."""
        self.kill()
        if data != "its data":
            shutil.rmtree(self.kept(), ignore_errors=True)
        if data == "older data" and os.path.exists(self.kept() + ".old"):
            shutil.copytree(self.kept() + ".old", self.kept())
        self.start()

    def close(self):
        self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=DEADLINE_S,
                              check=False)
        return done.stdout.strip()


class WatchedRedis(WatchedCluster):
    """Nodes of one election on Redis. `reached` maps a name to the port at which it finds it."""

    def __init__(self, count, port, options):
        super().__init__(count)
        self.options = options
        self.reached = dict.fromkeys(self.names, port)

    def arguments(self, name):
        url = "redis://127.0.0.1:%d?%s" % (self.reached[name], self.options)
        return ["--node", name, "--data", self.data(name), "--provider", url]
