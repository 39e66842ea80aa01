"""A process of the fleet is told to end, at the worst moment and at any: it ends in order, and
nothing asks for what is gone. Under a sanitizer that says more."""
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from agents import Agent
from fleets import FleetTest, Process, StandIns, declaration
from harness import DEADLINE_S, free_ports, until

LIVES = int(os.environ.get("FLEET_LIVES", "8"))
SEED = int(os.environ.get("FLEET_SEED", random.SystemRandom().randrange(1 << 32)))
EARLY = (0, -signal.SIGTERM, -signal.SIGHUP)  # before it listens to signals
PATHS = ["/status", "/metrics", "/leader", "/api/processes", "/api/processes", "/api/assignments",
         "/api/cameras/display-0%3Bcam-0/image", "/api/subscriptions?live=1", "/api/unplaced"]


class Between:
    """Between a process and its agent: replies to some requests come late."""

    def __init__(self, folder, agent, hold, dice=None):
        self.agent, self.hold, self.dice = agent, hold, dice
        self.path = os.path.join(tempfile.mkdtemp(dir=folder), "agent.sock")
        self.ids, self.held, self.after_bye = set(), [], []
        self.has_bye, self.lock = False, threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                process, _ = self.listener.accept()
            except OSError:
                return
            agent = socket.socket(socket.AF_UNIX)
            agent.connect(self.agent.path)
            for one, other, act in ((process, agent, self.ask), (agent, process, self.reply)):
                threading.Thread(target=self.pump, args=(one, other, act), daemon=True).start()

    @staticmethod
    def raw(message):
        """How many bytes follow the line as they are."""
        return message.get("raw", 0) + sum(one.get("raw", 0) for one in message.get("values", ()))

    def pump(self, one, other, act):
        try:
            lines = one.makefile("rb")
            for line in lines:
                message = json.loads(line)
                act(message, line + lines.read(self.raw(message)), other, one)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # one of the two has gone

    def ask(self, message, line, agent, process):
        with self.lock:
            if self.has_bye:
                self.after_bye.append(message)
            if self.hold(message):
                self.ids.add(message["id"])
            if message.get("do") == "bye":
                self.has_bye = True
                process.sendall(b"".join(self.held))  # at the worst moment
        agent.sendall(line)

    def reply(self, message, line, process, _):
        if self.dice is not None and self.dice.random() < 0.05:
            time.sleep(self.dice.uniform(0, 0.1))
        with self.lock:
            if message.get("id") in self.ids:
                self.held.append(line)
            else:
                process.sendall(line)

    def close(self):
        self.listener.close()


class Ends(FleetTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "fleet.yaml")

    def declare(self, config):
        with open(self.path, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(config, file)

    def begin(self, url, *flags):
        """Its log is that of this life alone."""
        with open(os.path.join(self.folder, "a.log"), "w", encoding="utf-8"):
            pass
        process = Process(self.folder, "a", url, "--config", self.path, *flags)
        self.addCleanup(process.end)
        return process

    def assert_ends(self, process, how, codes=(0,)):
        process.run.send_signal(signal.SIGTERM)
        try:
            code = process.run.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            code = "not at all"
        self.assertIn(code, codes, "%s: %s" % (how, process.log()[-6000:]))
        for word in "Sanitizer", "runtime error", "invariant":
            self.assertNotIn(word, process.log(), how)


class AtTheWorstMoment(Ends):
    def setUp(self):
        super().setUp()
        self.agent = Agent("--provider", "memory:ends")
        self.addCleanup(self.agent.close)
        self.declare(declaration(2))

    def between(self, hold):
        between = Between(self.folder, self.agent, hold)
        self.addCleanup(between.close)
        return between

    def test_a_file_is_not_noted_by_a_process_that_has_left(self):
        between = self.between(lambda message: message.get("do") == "put" and
                               message.get("key") == "declared:fleet/001")
        process = self.begin("agent:" + between.path)
        until(lambda: between.held, "the file's note is under way")
        self.assert_ends(process, "while the file is noted")
        self.assertEqual(between.after_bye, [])

    def test_who_asked_for_the_processes_is_refused_by_one_that_has_left(self):
        wanted = threading.Event()
        between = self.between(lambda message: wanted.is_set() and
                               message.get("do") == "members")
        process = self.begin("agent:" + between.path)
        until(lambda: process.ask("GET", "/readyz")[0] == 200, process.log)
        wanted.set()
        client = threading.Thread(target=process.ask, args=("GET", "/api/processes"))
        client.start()
        until(lambda: between.held, "the list of processes is asked for")
        self.assert_ends(process, "while the processes are asked for")
        client.join()


    def test_what_waits_for_an_agent_that_is_away_ends_too(self):
        workers = StandIns(1, "--reports-every", "0.1", "--detections-per-second", "100")
        self.addCleanup(workers.close)
        self.declare(declaration(2, workers.urls()))
        process = self.begin("agent:" + self.agent.path)

        def accepted():
            with urllib.request.urlopen(process.url("/metrics"), timeout=DEADLINE_S) as answer:
                text = answer.read().decode()
            return int(re.search(r"\nbaton_fleet_detections_accepted_total (\d+)", text).group(1))
        until(lambda: process.ask("GET", "/readyz")[0] == 200 and accepted() > 0, process.log)
        self.agent.process.kill()
        until(lambda: "agent-away" in process.log(), process.log)
        before = accepted()
        until(lambda: accepted() > before, "a detection waits for the agent")
        self.assert_ends(process, "while its agent is away")


class AtAnyMoment(Ends):
    """Lives under load, each of which ends after a random time."""

    @staticmethod
    def stress(port, dice, is_over):
        while not is_over.is_set():
            head = "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            change = "PATCH /api/displays/display-0/data HTTP/1.1\r\nHost: 127.0.0.1\r\n" \
                     "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            body = '{"weatherData":{"a":%d}}' % dice.randrange(99)
            text = "".join(change % (len(body), body) if dice.random() < 0.3
                           else head % dice.choice(PATHS) for _ in range(dice.randrange(1, 9)))
            try:
                with socket.create_connection(("127.0.0.1", port), 1) as client:
                    client.sendall(text.encode())
                    client.settimeout(dice.uniform(0.01, 0.2))
                    while client.recv(65536):
                        pass
            except OSError:
                is_over.wait(0.01)  # it begins, or has ended, or that was all

    @staticmethod
    def follow(port, is_over):
        while not is_over.is_set():
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            try:
                client.request("GET", "/events")
                response = client.getresponse()
                while response.read(64):
                    pass
            except (OSError, http.client.HTTPException):
                is_over.wait(0.01)
            finally:
                client.close()

    def url(self, provider, agent, dice):
        if provider == "agent":
            between = Between(self.folder, agent, lambda _: dice.random() < 0.02, dice)
            self.addCleanup(between.close)
            return "agent:" + between.path
        if provider == "raft":
            return "raft://127.0.0.1:%d?group=fleet&data=%s" % (
                free_ports(1)[0], tempfile.mkdtemp(dir=self.folder))
        return self.redis if provider == "redis" else "memory:"

    def live(self, number, url, workers, dice):
        nobody, after_s = free_ports(1)[0], dice.choice((0.02, 0.1, 0.3, 1)) * dice.random()
        config = declaration(dice.choice((1, 40)), workers.urls())
        self.declare(config)
        process = self.begin(url, "--webhook", "http://127.0.0.1:%d/x" % nobody, "--webhook-events",
                             "detection,worker-online,worker-offline,leader-changed", "--mqtt",
                             "mqtt://127.0.0.1:%d" % nobody, "--mqtt-events", "detection")
        is_over = threading.Event()
        clients = [threading.Thread(target=self.stress,
                                    args=(process.port, random.Random(dice.random()), is_over))
                   for _ in range(2)]
        clients.append(threading.Thread(target=self.follow, args=(process.port, is_over)))
        for client in clients:
            client.start()
        try:
            begins = dice.random() < 0.2
            if not begins:
                until(lambda: process.ask("GET", "/healthz")[0] or not process.is_running(), "it")
            time.sleep(after_s)  # any moment is what is wanted
            if dice.random() < 0.3:
                config["cameras"].append({"id": "new", "rtspUrl": "rtsp://127.0.0.1:9/new"})
                self.declare(config)
                process.run.send_signal(signal.SIGHUP)
                time.sleep(dice.uniform(0, 0.02))
            how = "FLEET_SEED=%d, life %d, %s, %.3f s" % (SEED, number, url, after_s)
            self.assert_ends(process, how, EARLY if begins else (0,))
        finally:
            is_over.set()
            for client in clients:
                client.join()

    @staticmethod
    def disturb(server, dice):
        """Stops the server for a while, at any moment."""
        time.sleep(dice.uniform(0, 0.3))
        server.send_signal(signal.SIGSTOP)
        time.sleep(dice.uniform(0, 0.5))
        server.send_signal(signal.SIGCONT)

    def test_a_process_under_load_ends_in_order_at_any_moment(self):
        dice = random.Random(SEED)
        agent = Agent("--provider", "memory:ends")
        self.addCleanup(agent.close)
        self.redis = self.start_redis()
        workers = StandIns(3, "--reports-every", "0.05", "--detections-per-second", "100")
        self.addCleanup(workers.close)
        for number in range(LIVES):
            url = self.url(dice.choice(("agent", "agent", "memory", "raft", "redis")), agent, dice)
            server = agent.process if url.startswith("agent:") else self.server
            disturbed = threading.Thread(target=self.disturb,
                                         args=(server, random.Random(dice.random())))
            if dice.random() < 0.3:
                disturbed.start()
            self.live(number, url, workers, dice)
            if disturbed.ident:
                disturbed.join()


if __name__ == "__main__":
    unittest.main()
