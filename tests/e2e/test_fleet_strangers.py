"""Requests that a generator makes of the API's own description: right, wrong, cut off and damaged,
some of them behind one another on one connection.
The process goes on, and ends in order; under a sanitizer that says more."""
import json
import os
import random
import socket
import unittest

from fleet_api import Fleet, Worker
from harness import DEADLINE_S

REQUESTS = 390  # what an address may send at once
SEED = int(os.environ.get("FLEET_SEED", random.SystemRandom().randrange(1 << 32)))

IDS = ["d1;c1", "d1", "c1", "101", "w1", "a%2Fb", "%00", "x" * 300, "..", "%", "d;c;e", "\xe9",
       "none"]
KEYS = ["id", "name", "url", "rtspUrl", "snapshotUrl", "snapshotInterval", "display", "camera",
        "model", "cropX1", "priority", "needs", "paused", "labels", "maxSubscriptions", "cordoned",
        "draining", "sessionId", "progressionStage", "to", "subscription", "currentCar", "x"]
VALUES = [None, True, 0, -1, 2 ** 53, 2 ** 70, 1.5, "", "x", "rtsp://u:p@h/1", "http://h/m",
          "ws://h:1", "a" * 600, [], {}, [{}], {"a": {"b": {}}}, "welcome", "gpu zone=a", "\0",
          "d1", "c1", 101]
WELL = [{"name": "m", "url": "http://h/m"}, {"rtspUrl": "rtsp://h/1"}, {}, {"model": 101},
        {"url": "ws://127.0.0.1:1"}, {"sessionId": 1}, {"subscription": "d1;c1"}]
HEADERS = {"Content-Type": ["application/json"] * 4 + ["application/yaml", "text/plain"],
           "If-Match": ['"1"', "*", "x", '"99999999999999999999"'], "If-None-Match": ["*", '"1"'],
           "Accept": ["application/x-ndjson"], "Origin": ["http://127.0.0.1", "null"]}
QUERIES = ["limit=1", "limit=0", "after=c", "live=1", "prune=1", "dry-run=1", "camera=%3B", "x=%00"]


class Generator:
    def __init__(self, description):
        self.random = random.Random(SEED)
        self.operations = [(path, method.upper())
                           for path, methods in description.document["paths"].items()
                           for method in methods if path != "/events"]  # which has no end

    def body(self):
        kind = self.random.random()
        if kind < 0.1:
            return bytes(self.random.randrange(256) for _ in range(self.random.randrange(200)))
        if kind < 0.2:
            return b"displays:\n- {id: y%d}\n" % self.random.randrange(9)
        body = dict(self.random.choice(WELL))
        for _ in range(self.random.randrange(3)):
            body[self.random.choice(KEYS)] = self.random.choice(VALUES)
        return json.dumps(body).encode()

    def requests(self):
        """What one connection sends: mostly one request, at times several that are alike or not."""
        kind = self.random.random()
        if kind < 0.8:
            return self.damage(self.request("close"))
        others = [self.request("keep-alive") for _ in range(self.random.randrange(1, 4))]
        if kind < 0.9:
            others = others[:1] * len(others)
        return self.damage(b"".join(others) + self.request("close"))

    def request(self, connection):
        path, method = self.random.choice(self.operations)
        path = path.replace("{id}", self.random.choice(IDS))
        if self.random.random() < 0.3:
            path += "?" + "&".join(self.random.sample(QUERIES, 2))
        if self.random.random() < 0.05:
            method = self.random.choice(["HEAD", "OPTIONS", "TRACE", "DELETE", "POST"])
        body = self.body() if method in ("PUT", "PATCH", "POST") else b""
        lines = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1",
                 "Connection: " + connection,
                 "Content-Length: %d" % len(body)]
        for name, values in HEADERS.items():
            if self.random.random() < (0.9 if name == "Content-Type" else 0.1):
                lines.append("%s: %s" % (name, self.random.choice(values)))
        return "\r\n".join(lines + ["", ""]).encode("latin1") + body

    def damage(self, request):
        kind, at = self.random.random(), self.random.randrange(len(request))
        if kind < 0.03:
            return request[:at]
        if kind < 0.06:
            return request[:at] + bytes([self.random.randrange(256)]) + request[at + 1:]
        return request


class Strangers(unittest.TestCase):
    def test_random_requests_harm_nobody(self):
        worker = Worker()
        fleet = Fleet("--worker", "ws://127.0.0.1:%d" % worker.port)
        generator = Generator(fleet.description)
        for number in range(REQUESTS):
            request = generator.requests()
            with socket.create_connection(("127.0.0.1", fleet.port), DEADLINE_S) as client:
                try:
                    client.sendall(request)
                    client.shutdown(socket.SHUT_WR)
                    while client.recv(65536):
                        pass
                except ConnectionError:
                    pass  # refused before it was all sent
            self.assertIsNone(fleet.process.poll(),
                              "FLEET_SEED=%d, request %d: %r" % (SEED, number, request[:500]))
        fleet.close()
        worker.close()


if __name__ == "__main__":
    unittest.main()
