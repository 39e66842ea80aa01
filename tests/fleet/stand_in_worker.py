#!/usr/bin/python3
"""Detector workers that are not ours, for tests: the worker protocol's other half, written to its
specification with nothing but Python, and some that break it.

usage: stand_in_worker.py [--port 0] [--workers 1] [--reports-every 2]
                          [--detections-per-second 0] [--max N] [--token TOKEN]
                          [--certificate FILE --key FILE] [--fault NAME]... [--quiet]

It prints lines of JSON: first {"event":"ready","worker":INDEX,"port":PORT} of each worker, then
with "at" (seconds of CLOCK_BOOTTIME) what happens: connected and disconnected (with "peer", its
port), command (with "message"), has (with "subscriptions", the list from now on), fenced, detected
(with "n"), obeyed. --quiet leaves out all but ready.

It ends with its standard input, and takes commands there, each for all its workers or, with a
number first, for that one ("3 drop"):
  fault NAME   heal            begins that fault, ends all
  drop         reset           closes the connections in order, or resets them
  refuse       accept          takes no connections, takes them again
  detect ID JSON               an imageDetection of that subscription with this detection
  patch SESSION JSON           a patchSession
  send TEXT                    this text, as it is

A detection is kept until the backend has answered a ping behind it, and sent again to the next
backend otherwise. Faults: no-removal keeps subscriptions that a list leaves out; silent sends no
report; slow reads nothing; half-open reads and writes nothing; blind sees no camera; garbage,
wrong-json, not-utf8, binary and giant send such a message with each report; late confirms a list
only after 3 s; picky leaves every second subscription out.
"""
import argparse
import asyncio
import base64
import collections
import hashlib
import json
import ssl
import struct
import sys
import time

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
JPEG = base64.b64decode("/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP" + "/" * 86 +  # one pixel
                        "wAALCAABAAEBAREA/8QAFAAB" + "A" * 21 +
                        "//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z")
WRONG = ['{"type":"stateReport"}', '{"type":"stateReport","cpuUsage":"much"}', '{"type":7}', "[]",
         '{"type":"imageDetection","subscriptionIdentifier":"nowhere"}', '{"type":"whatIsThis"}',
         '{"type":"patchSession","sessionId":"x","data":[]}', '{"a":1,"a":2}']
KEPT_MAX = 10000


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def frame(opcode, payload):
    size = len(payload)
    head = bytes([0x80 | opcode])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 65536:
        return head + b"\x7e" + struct.pack(">H", size) + payload
    return head + b"\x7f" + struct.pack(">Q", size) + payload


class Backend:
    """A connection."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.is_open = reader, writer, True
        self.peer = writer.get_extra_info("peername")[1]
        self.code = None  # with which the backend has closed

    def send(self, opcode, payload):
        if self.is_open and not self.writer.is_closing():
            self.writer.write(frame(opcode, payload))

    def text(self, text):
        self.send(1, text.encode())

    def close(self, code, reason=""):
        self.send(8, struct.pack(">H", code) + reason.encode())
        self.is_open = False
        self.writer.close()

    async def frame(self):
        first, second = await self.reader.readexactly(2)
        size = second & 0x7f
        if size >= 126:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
        mask = await self.reader.readexactly(4)
        payload = await self.reader.readexactly(size)
        key = (mask * (size // 4 + 1))[:size]
        clear = int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")
        return first & 15, clear.to_bytes(size, "big")


class Worker:
    def __init__(self, index, options):
        self.index, self.options = index, options
        self.faults = set(options.fault)
        self.backends, self.owner = [], None
        self.subscriptions, self.sessions, self.stages = [], {}, {}
        self.epoch = self.number = 0
        self.kept = collections.deque(maxlen=KEPT_MAX)  # (number, message), not answered for
        self.server = self.port = None

    def log(self, event, **fields):
        if event == "ready" or not self.options.quiet:
            print(json.dumps({"at": round(now(), 6), "worker": self.index, "event": event,
                              **fields}), flush=True)

    # ---- What it says -----------------------------------------------------------------------

    def report(self):
        cameras = []
        for one in self.subscriptions:
            camera = {"subscriptionIdentifier": one["subscriptionIdentifier"],
                      "modelId": one["modelId"], "modelName": one["modelName"],
                      "online": "blind" not in self.faults}
            camera.update({key: one[key] for key in one if key.startswith("crop")})
            cameras.append(camera)
        return json.dumps({"type": "stateReport", "cpuUsage": 10.5, "memoryUsage": 20.25,
                           "gpuUsage": 0, "gpuMemoryUsage": 0, "cameraConnections": cameras})

    def send_report(self, backend):
        if "silent" not in self.faults and "half-open" not in self.faults:
            backend.text(self.report())

    def send_faults(self, backend):
        if "garbage" in self.faults:
            backend.text("\0 this is no JSON {")
        if "wrong-json" in self.faults:
            for text in WRONG:
                backend.text(text)
        if "not-utf8" in self.faults:
            backend.send(1, b'{"type":"\xff\xfe"}')
        if "binary" in self.faults:
            backend.send(2, b"\0\1\2")
        if "giant" in self.faults:
            backend.text('{"type":"' + "x" * (5 << 20) + '"}')

    def detect(self, identifier, detection):
        self.number += 1
        message = {"type": "imageDetection", "subscriptionIdentifier": identifier,
                   "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
                   + ".%03dZ" % (time.time() % 1 * 1000)}
        session = self.sessions.get(identifier.split(";")[0])
        if session is not None:
            message["sessionId"] = session
        models = [one for one in self.subscriptions if one["subscriptionIdentifier"] == identifier]
        model = models[0] if models else {"modelId": 1, "modelName": "unknown"}
        message["data"] = {"detection": {"n": self.number, "from": self.index, **detection},
                           "modelId": model["modelId"], "modelName": model["modelName"]}
        self.kept.append((self.number, json.dumps(message)))
        self.log("detected", n=self.number, subscription=identifier)
        self.send_kept(1)

    def send_kept(self, latest):
        """So many of the latest that were kept, and a ping behind them."""
        if self.owner and "half-open" not in self.faults and self.kept and latest:
            for _, text in list(self.kept)[-latest:]:
                self.owner.text(text)
            self.owner.send(9, b"%d" % self.kept[-1][0])

    def take_pong(self, payload):
        number = int(payload) if payload.isdigit() else 0
        while self.kept and self.kept[0][0] <= number:
            self.kept.popleft()

    # ---- What it is told --------------------------------------------------------------------

    def own(self, backend):
        if self.owner is not backend:
            if self.owner in self.backends:
                self.owner.close(4001, "another backend owns this worker now")
            self.owner = backend
            self.send_kept(len(self.kept))

    def set_list(self, backend, message):
        epoch = message.get("epoch", 0)
        if epoch and epoch < self.epoch:
            self.log("fenced", epoch=epoch)
            backend.close(4001, "a higher epoch was here")
            return
        self.epoch = max(epoch, self.epoch)
        self.own(backend)
        wanted = message["subscriptions"]
        if "no-removal" in self.faults:
            names = {one["subscriptionIdentifier"] for one in wanted}
            wanted = wanted + [one for one in self.subscriptions
                               if one["subscriptionIdentifier"] not in names]
        if "picky" in self.faults:
            wanted = wanted[::2]
        if "late" in self.faults:
            asyncio.get_running_loop().call_later(3, self.confirm, backend, wanted)
        else:
            self.confirm(backend, wanted)

    def confirm(self, backend, wanted):
        self.subscriptions = wanted[:self.options.max]
        self.log("has", subscriptions=[one["subscriptionIdentifier"]
                                       for one in self.subscriptions])
        self.send_report(backend)

    def take(self, backend, text):
        message = json.loads(text)
        kind, payload = message["type"], message.get("payload", {})
        self.log("command", message=message)
        if kind == "setSubscriptionList":
            self.set_list(backend, message)
        elif kind == "setSessionId":
            self.own(backend)
            self.sessions[payload["displayIdentifier"]] = payload["sessionId"]
        elif kind == "setProgressionStage":
            self.own(backend)
            self.stages[payload["displayIdentifier"]] = payload["progressionStage"]
        elif kind == "requestState":
            self.send_report(backend)

    # ---- Connections ------------------------------------------------------------------------

    async def converse(self, backend):
        while backend.is_open:
            while self.faults & {"slow", "half-open"}:
                await asyncio.sleep(0.05)
            opcode, payload = await backend.frame()
            if opcode == 1:
                self.take(backend, payload.decode())
            elif opcode == 8:
                backend.code = int.from_bytes(payload[:2], "big")
                backend.close(1000)
            elif opcode == 9:
                backend.send(10, payload)
            elif opcode == 10:
                self.take_pong(payload)

    def answer(self, writer, path):
        identifier = path[len("/camera/"):-len("/image")].replace("%3B", ";")
        is_there = path.startswith("/camera/") and path.endswith("/image") and any(
            one["subscriptionIdentifier"] == identifier for one in self.subscriptions)
        status, kind, body = ("200 OK", "image/jpeg", JPEG) if is_there else \
            ("404 Not Found", "application/json", b'{"error":"no such camera"}')
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                     "Connection: close\r\n\r\n".encode() + body)
        writer.close()

    async def shake_hands(self, reader, writer):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {key.lower(): value for key, value in
                   (line.split(": ", 1) for line in lines[1:] if ": " in line)}
        if self.options.token and \
                headers.get("authorization") != "Bearer " + self.options.token:
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return None
        if "sec-websocket-key" not in headers:
            self.answer(writer, lines[0].split()[1])
            return None
        digest = hashlib.sha1(headers["sec-websocket-key"].encode() + GUID).digest()
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + base64.b64encode(digest)
                     + b"\r\n\r\n")
        return Backend(reader, writer)

    async def serve(self, reader, writer):
        backend = None
        try:
            backend = await self.shake_hands(reader, writer)
            if backend:
                self.log("connected", peer=backend.peer)
                self.backends.append(backend)
                self.send_report(backend)
                await self.converse(backend)
        except (asyncio.IncompleteReadError, OSError, ValueError):
            pass
        finally:
            if backend:
                self.log("disconnected", code=backend.code, peer=backend.peer)
                self.backends.remove(backend)
                backend.is_open = False
                self.owner = None if self.owner is backend else self.owner
            writer.close()

    async def beat(self):
        await asyncio.sleep(self.options.reports_every * (self.index % 16) / 16)
        while True:
            for backend in list(self.backends):
                self.send_report(backend)
                self.send_faults(backend)
            await asyncio.sleep(self.options.reports_every)

    async def detect_on_and_on(self):
        turn = 0
        while True:
            await asyncio.sleep(1 / self.options.detections_per_second)
            if self.subscriptions:
                one = self.subscriptions[turn % len(self.subscriptions)]
                self.detect(one["subscriptionIdentifier"], {"licensePlateText": "T%d" % turn})
                turn += 1

    async def listen(self, port):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", port,
                                                 ssl=self.options.tls)
        self.port = self.server.sockets[0].getsockname()[1]

    async def start(self, port):
        await self.listen(port)
        self.log("ready", port=self.port)
        tasks = [asyncio.create_task(self.beat())]
        if self.options.detections_per_second:
            tasks.append(asyncio.create_task(self.detect_on_and_on()))
        return tasks

    # ---- Commands of the test -----------------------------------------------------------------

    async def obey(self, word, rest):
        if word == "fault":
            self.faults.add(rest)
        elif word == "heal":
            self.faults.clear()
        elif word == "drop":
            for backend in list(self.backends):
                backend.close(1000)
        elif word == "reset":
            for backend in list(self.backends):
                backend.writer.transport.abort()
        elif word == "refuse":
            self.server.close()
        elif word == "accept":
            await self.listen(self.port)
        elif word == "detect":
            self.detect(rest.split(" ", 1)[0], json.loads(rest.split(" ", 1)[1]))
        elif word == "patch" and self.owner:
            session, data = rest.split(" ", 1)
            self.owner.text(json.dumps({"type": "patchSession", "sessionId": int(session),
                                        "data": json.loads(data)}))
        elif word == "send":
            for backend in self.backends:
                backend.text(rest)


async def commands(workers):
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        words = line.strip().split(" ", 1)
        chosen = workers
        if words[0].isdigit():
            chosen, words = [workers[int(words[0])]], words[1].split(" ", 1)
        for worker in chosen:
            await worker.obey(words[0], words[1] if len(words) > 1 else "")
            worker.log("obeyed", command=words[0])


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--reports-every", type=float, default=2)
    parser.add_argument("--detections-per-second", type=float, default=0)
    parser.add_argument("--max", type=int)
    parser.add_argument("--token")
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    options.tls = None
    if options.certificate:
        options.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        options.tls.load_cert_chain(options.certificate, options.key)
    workers = [Worker(index, options) for index in range(options.workers)]
    tasks = []
    for worker in workers:
        tasks += await worker.start(options.port + worker.index if options.port else 0)
    await commands(workers)


asyncio.run(main())
