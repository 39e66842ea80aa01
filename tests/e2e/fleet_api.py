"""A process of the program baton-fleet and its HTTP API, for the tests of the fleet. Each answer is
compared with the description that the process itself gives."""
import http.client
import json
import os
import queue
import select
import socket
import subprocess
import sys
import tempfile
import threading

from harness import BATON, DEADLINE_S, clean_environment

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fleet"))
from openapi import Description  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ.get("BATON_FLEET_PROGRAM", "build-dev/bin/baton-fleet")
READER, CHANGER = "reader-token-of-this-test", "changer-token-of-this-test"
JSON, YAML = "application/json", "application/yaml"


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()
        self.kind = self.headers.get("content-type", "").split(";")[0]
        self.json = json.loads(self.body) if self.kind == JSON and self.body else None
        self.etag = self.headers.get("etag")


class Fleet:
    """One process, alone, without a provider of its own."""

    def __init__(self, *words, has_tokens=False):
        self.folder = tempfile.TemporaryDirectory()
        self.description = None
        self.connection = None
        for name, token in ("read", READER), ("change", CHANGER):
            path = os.path.join(self.folder.name, name)
            with open(path, "w", encoding="ascii") as file:
                os.fchmod(file.fileno(), 0o600)
                file.write(token + "\n")
            if has_tokens:
                words += ("--%s-token-file" % name, path)
        self.process = subprocess.Popen(
            [PROGRAM, "--provider", "memory:", "--node", "p1", "--http", "127.0.0.1:0",
             "--log-json", *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True,
            env=clean_environment())
        self.log = []
        self.port = self.wait_for_port()
        threading.Thread(target=self.read_log, daemon=True).start()
        self.describe()

    def wait_for_port(self):
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith("{") and json.loads(line).get("event") == "ready":
                return json.loads(line)["http"]
        raise AssertionError("ended before it was ready: " + "".join(self.log))

    def read_log(self):
        self.log.extend(self.process.stderr)

    def describe(self):
        answer = self.ask("GET", "/openapi.json")
        self.description = Description(answer.json)

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.process.terminate()
        code = self.process.wait(DEADLINE_S)
        self.process.stderr.close()
        self.folder.cleanup()
        assert code == 0, (code, self.log[-5:])

    def ask(self, method, path, body=None, kind=JSON, **headers):
        """The answer; headers as keywords: if_match='"3"'."""
        if self.connection is not None and has_ended(self.connection):
            self.connection.close()  # request() connects again
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                         timeout=DEADLINE_S)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.setdefault("content-type", kind)
        try:
            self.connection.request(method, path, body=body, headers=headers)
            answer = Answer(self.connection.getresponse())
        except (http.client.HTTPException, ConnectionError):
            self.connection.close()
            self.connection = None
            raise
        if self.description is not None:
            faults = self.description.check(method, path, answer.status, answer.kind, answer.json)
            assert not faults, "\n".join(faults)
        return answer

    def follow(self, path="/events", **headers):
        return Follower(self.port, path, headers)

    def command(self, *words, text=None):
        """`baton fleet …`, to its end."""
        return subprocess.run(
            [BATON, "fleet", "--fleet", "http://127.0.0.1:%d" % self.port, *words], input=text,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
            env=clean_environment(), timeout=DEADLINE_S, check=False)


def has_ended(connection):
    """The server ends a connection that has asked for nothing for some seconds."""
    return bool(connection.sock and select.select([connection.sock], [], [], 0)[0])


class Worker:
    """A stand-in for a detector worker."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "..", "fleet", "stand_in_worker.py"),
             "--reports-every", "0.2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.obeyed = queue.Queue()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            if json.loads(line)["event"] == "obeyed":
                self.obeyed.put(line)

    def tell(self, command):
        """It has happened then."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self.obeyed.get(timeout=DEADLINE_S)

    def close(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE_S)
        self.thread.join()
        self.process.stdout.close()


class Follower:
    """Server-sent events, as (id, name, data)."""

    def __init__(self, port, path, headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", path, headers=headers)
        self.socket = self.connection.sock
        self.response = self.connection.getresponse()
        self.events = queue.Queue()
        self.first = self.response.readline()  # a comment, or the event "missed": it follows
        self.thread = threading.Thread(target=self.read, args=[self.first], daemon=True)
        self.thread.start()

    def read(self, line):
        event = {}
        try:
            while line:
                key, _, value = line.decode().rstrip("\n").partition(": ")
                if key:
                    event[key] = value
                elif "data" in event:
                    self.events.put((event.get("id"), event["event"], json.loads(event["data"])))
                    event = {}
                line = self.response.readline()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed while it was read
        self.events.put(None)

    def next(self, name=None):
        """The next event, of that name; None: the stream has ended."""
        while True:
            event = self.events.get(timeout=DEADLINE_S)
            if event is None or name is None or event[1] == name:
                return event

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the process has ended it
        self.thread.join()
        self.connection.close()

