"""Shared by the end-to-end tests of baton-fleet: its processes on a provider, workers that stand in
for detectors, and its API."""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from agents import Agent
from harness import clean_environment, free_ports, until

FLEET = os.environ.get("BATON_FLEET_PROGRAM", "build-dev/bin/baton-fleet")
STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fleet",
                        "stand_in_worker.py")
# A lease that outlasts a hiccup of a busy machine; a death is proved long before it ends.
RAFT = "heartbeat-interval=100ms&heartbeat-timeout=3s&lease=3s&election-timeout=100ms-250ms"
REDIS = "lease=3s&max-lease=3s&heartbeat-interval=500ms"


def certify(folder, name, host):
    """A certificate, its own authority, for "DNS:NAME" or "IP:ADDRESS": its path, and its key's."""
    certificate, key = (os.path.join(folder, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=" + host, "-keyout", key, "-out", certificate],
                   check=True, stderr=subprocess.DEVNULL)
    return certificate, key


class Process:
    """A process of the fleet, which can be killed and started again."""

    def __init__(self, folder, name, url, *flags):
        self.name, self.port = name, free_ports(1)[0]
        self.scheme = "https" if "--tls-cert" in flags else "http"
        self.path = os.path.join(folder, name + ".log")
        self.words = [FLEET, "--provider", url, "--node", name, "--log-level", "info", "--http",
                      "127.0.0.1:%d" % self.port, *flags]
        self.run = None
        self.start()

    def start(self):
        with open(self.path, "ab") as log:
            self.run = subprocess.Popen(self.words, stdin=subprocess.DEVNULL, stdout=log,
                                        stderr=log, env=clean_environment(),
                                        start_new_session=True)

    def log(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def is_running(self):
        return self.run.poll() is None

    def kill(self):
        self.run.kill()
        self.run.wait()

    def end(self):
        if self.is_running():
            self.run.send_signal(signal.SIGCONT)
            self.run.kill()
        self.run.wait()

    def url(self, path):
        return "%s://127.0.0.1:%d%s" % (self.scheme, self.port, path)

    def ask(self, method, path, body=None, etag=None):
        """(status, JSON, ETag); (0, None, None): it does not answer."""
        headers = {"Content-Type": "application/json"}
        if etag:
            headers["If-Match"] = etag
        request = urllib.request.Request(self.url(path), method=method, headers=headers,
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or "null"), answer.headers["ETag"]
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or "null"), None
        except OSError:
            return 0, None, None


class StandIns:
    """Workers that are not ours: one process, and what it says."""

    scheme = "ws"

    def __init__(self, count, *flags):
        self.run = subprocess.Popen([sys.executable, STAND_IN, "--workers", str(count), *flags],
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    universal_newlines=True)
        self.count = count
        self.events = collections.defaultdict(list)  # by worker
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        until(lambda: all(self.of(i, "ready") for i in range(count)), "the workers listen")
        self.ports = [self.of(i, "ready")[0]["port"] for i in range(count)]

    def read(self):
        for line in self.run.stdout:
            event = json.loads(line)
            with self.lock:
                self.events[event["worker"]].append(event)

    def of(self, index, *names):
        with self.lock:
            return [event for event in self.events[index] if event["event"] in names]

    def commands(self, index, kind=None):
        found = [event["message"] for event in self.of(index, "command")]
        return [message for message in found if kind in (None, message["type"])]

    def list_of(self, index):
        """Identifiers of its latest list; None: it has none."""
        lists = self.commands(index, "setSubscriptionList")
        if not lists:
            return None
        return sorted(one["subscriptionIdentifier"] for one in lists[-1]["subscriptions"])

    def urls(self):
        return ["%s://127.0.0.1:%d" % (self.scheme, port) for port in self.ports]

    def id(self, index):
        return "127.0.0.1-%d" % self.ports[index]

    def tell(self, line):
        """To one ("1 drop") or all; it has happened then."""
        words = line.split()
        last = int(words[0]) if words[0].isdigit() else self.count - 1
        before = len(self.of(last, "obeyed"))
        self.run.stdin.write(line + "\n")
        self.run.stdin.flush()
        until(lambda: len(self.of(last, "obeyed")) > before, "the workers obey: " + line)

    def close(self):
        self.run.kill()
        self.run.wait()
        self.reader.join()
        self.run.stdin.close()
        self.run.stdout.close()


def declaration(cameras, workers=(), displays=2, model="http://127.0.0.1:9/cars.mpta"):
    """A file with so many cameras, of which each is at one display."""
    return {"models": [{"id": 101, "name": "Cars", "url": model}],
            "displays": [{"id": "display-%d" % i} for i in range(displays)],
            "cameras": [{"id": "cam-%d" % i, "rtspUrl": "rtsp://user:canary@127.0.0.1:9/%d" % i}
                        for i in range(cameras)],
            "subscriptions": [{"display": "display-%d" % (i % displays), "camera": "cam-%d" % i,
                               "model": 101} for i in range(cameras)],
            "workers": list(workers)}


def identifiers(cameras, displays=2):
    return sorted("display-%d;cam-%d" % (i % displays, i) for i in range(cameras))


class FleetTest(unittest.TestCase):
    """A test with a fleet, which ends with it."""

    provider = "raft"

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-fleet-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.processes = {}
        self.server = None

    def start_redis(self):
        port = free_ports(1)[0]
        self.redis_port = port
        self.redis_words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save",
                            "", "--appendonly", "yes", "--dir", self.folder]
        self.begin_redis()
        self.addCleanup(lambda: (self.server.kill(), self.server.wait()))
        return "redis://127.0.0.1:%d?%s" % (port, REDIS)

    def begin_redis(self):
        self.server = subprocess.Popen(self.redis_words, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL)
        until(lambda: subprocess.run(["redis-cli", "-p", str(self.redis_port), "PING"],
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     check=False).stdout == b"PONG\n", "an answer of redis-server")

    def url(self, name, ports):
        if self.provider == "redis":
            return self.redis_url
        if self.provider == "memory":  # of one process
            return "memory:"
        if self.provider == "agent":
            return "agent:" + self.agent.path
        others = ",".join("%s=127.0.0.1:%d" % (other, port) for other, port in ports.items()
                          if other != name)
        return "raft://127.0.0.1:%d?group=fleet&data=%s/%s&peers=%s&%s" % (
            ports[name], self.folder, name, others, RAFT)

    def start_fleet(self, count=3, *flags, config=None):
        """Processes a, b, c, … with the same declaration."""
        if self.provider == "redis":
            self.redis_url = self.start_redis()
        if self.provider == "agent":
            self.agent = Agent("--provider", "memory:agent")
            self.addCleanup(self.agent.close)
        names = [chr(ord("a") + i) for i in range(count)]
        ports = dict(zip(names, free_ports(count)))
        if config is not None:
            self.declare(config)
            flags += ("--config", os.path.join(self.folder, "fleet.yaml"))
        for name in names:
            process = Process(self.folder, name, self.url(name, ports), *flags)
            self.processes[name] = process
            self.addCleanup(process.end)
        until(lambda: all(self.is_ready(name) for name in names), self.logs)

    def is_ready(self, name):
        return self.processes[name].ask("GET", "/readyz")[0] == 200

    def declare(self, config):
        path = os.path.join(self.folder, "fleet.yaml")
        with open(path + ".new", "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(config, file)  # JSON is YAML
        os.rename(path + ".new", path)

    def logs(self):
        return "\n".join("%s:\n%s" % (process.name, process.log()[-4000:])
                         for process in self.processes.values())

    def stand_ins(self, count, *flags):
        workers = StandIns(count, "--reports-every", "0.5", *flags)
        self.addCleanup(workers.close)
        return workers

    def ask(self, method, path, body=None, etag=None):
        """Of the first process that answers."""
        for process in self.processes.values():
            if process.is_running():
                found = process.ask(method, path, body, etag)
                if found[0]:
                    return found
        self.fail("no process answers: " + self.logs())

    def get(self, path):
        status, answer, _ = self.ask("GET", path)
        self.assertEqual(status, 200, (path, answer))
        return answer

    def master(self):
        for name, process in self.processes.items():
            if process.is_running() and process.ask("GET", "/leader")[0] == 200:
                return name
        return None

    def wait_master(self):
        return until(self.master, self.logs)

    def owners(self):
        """By worker: the process that owns it."""
        return {worker["id"]: worker.get("owner") for worker in self.get("/api/workers")["items"]}

    def placed(self, workers, indexes):
        """All identifiers in the latest lists of these workers."""
        return sorted(one for index in indexes for one in workers.list_of(index) or [])

    def wait_placed(self, workers, indexes, wanted):
        until(lambda: self.placed(workers, indexes) == wanted,
              lambda: "%s are placed; lists: %s\n%s" % (
                  wanted, {i: workers.list_of(i) for i in indexes}, self.logs()))
