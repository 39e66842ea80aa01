#!/usr/bin/env python3
"""A whole fleet on this machine, and what its cameras miss when its processes are killed.

usage: demo.py [--programs DIR] [--tests DIR] [--stay]

Three baton-fleet that elect among themselves, two baton-detector, cameras of a real RTSP server
that plays generated clips, and the page at the address that is printed. The master, a worker and an
owner of workers are killed, one after another, and are started again; a table says for how long no
detection of each camera came. With --stay everything goes on until Ctrl-C. All processes end with
this one, however it ends.
"""
import argparse
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = "heartbeat-interval=100ms&heartbeat-timeout=5s&lease=5s&election-timeout=100ms-200ms"
CAMERAS = {"entry": "rects.h264", "pump-1": "larger.h264", "pump-2": "rects265.h265",
           "exit": "rects.h264"}
PATIENCE_S = 60
SETTLE_S = 8
WITH_ITS_PARENT = ["setpriv", "--pdeathsig", "KILL"]


class Failure(Exception):
    pass


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def say(text):
    print(text, flush=True)


class Process:
    """A program that can be killed and started again; its output is in FOLDER/NAME.log."""

    def __init__(self, folder, name, words):
        self.name, self.words = name, words
        self.log = open(os.path.join(folder, name + ".log"), "ab")
        self.run = None
        self.start()

    def start(self):
        self.run = subprocess.Popen([*WITH_ITS_PARENT, *self.words], stdin=subprocess.DEVNULL,
                                    stdout=self.log, stderr=self.log, start_new_session=True)

    def end(self):
        self.run.kill()
        self.run.wait()


class Watcher:
    """Follows /events of all processes, and notes when detections of each camera came."""

    def __init__(self, ports):
        self.news = threading.Lock()
        self.came = {name: [] for name in CAMERAS}
        self.keys = set()
        for port in ports:
            threading.Thread(target=self.follow, args=(port,), daemon=True).start()

    def follow(self, port):
        url = f"http://127.0.0.1:{port}/events?only=detection"
        while True:
            try:
                with urllib.request.urlopen(url, timeout=30) as stream:
                    for line in stream:
                        if line.startswith(b"data:"):
                            self.note(json.loads(line[5:]))
            except (OSError, ValueError):
                time.sleep(0.05)

    def note(self, detection):
        camera = detection.get("subscriptionIdentifier", "").rsplit(";", 1)[-1]
        with self.news:
            if camera in self.came and detection.get("key") not in self.keys:
                self.keys.add(detection.get("key"))
                self.came[camera].append(time.monotonic())

    def counts(self):
        with self.news:
            return {name: len(times) for name, times in self.came.items()}

    def missing_ms(self, camera, since, until):
        """The longest time without a detection of the camera."""
        with self.news:
            times = [since] + [t for t in self.came[camera] if since < t < until] + [until]
        return 1000 * max(later - earlier for earlier, later in zip(times, times[1:]))


class Fleet:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.processes, self.workers, self.helpers = {}, {}, []
        self.http = {}

    def program(self, name):
        return os.path.join(self.options.programs, name)

    def prepare(self):
        """Clips, models, and the servers of both."""
        tests = self.options.tests
        subprocess.run(["sh", f"{tests}/detector/clips.sh", self.folder], check=True)
        subprocess.run(["/usr/bin/python3", f"{tests}/models/make.py", self.folder], check=True)
        cameras = subprocess.Popen(
            [*WITH_ITS_PARENT, "/usr/bin/python3", f"{tests}/detector/rtsp_server.py", "0",
             *(f"{name}={self.folder}/{clip}" for name, clip in CAMERAS.items())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.helpers.append(cameras)
        rtsp = cameras.stdout.readline().split()[1]
        threading.Thread(target=lambda: [None for _ in cameras.stdout], daemon=True).start()
        folder = self.folder

        class Models(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *words):
                super().__init__(*words, directory=folder)

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return rtsp, server.server_port

    def declare(self, rtsp, models, workers):
        lines = ["models:", "  - {id: 1, name: Rectangles, "
                 f"url: 'http://127.0.0.1:{models}/boxes.mpta'}}",
                 "displays:", "  - {id: lane-1, name: Lane 1}", "  - {id: lane-2, name: Lane 2}",
                 "cameras:"]
        lines += [f"  - {{id: {name}, rtspUrl: 'rtsp://127.0.0.1:{rtsp}/{name}'}}"
                  for name in CAMERAS]
        lines += ["subscriptions:"]
        lines += [f"  - {{display: lane-{1 + i % 2}, camera: {name}, model: 1}}"
                  for i, name in enumerate(CAMERAS)]
        lines += ["workers:"] + [f"  - ws://127.0.0.1:{port}" for port in workers]
        path = os.path.join(self.folder, "fleet.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        return path

    def start(self):
        rtsp, models = self.prepare()
        ports = free_ports(8)
        workers, self.http = ports[:2], dict(zip(("one", "two", "three"), ports[2:5]))
        peers = dict(zip(self.http, ports[5:]))
        config = self.declare(rtsp, models, workers)
        for number, port in enumerate(workers):
            name = f"detector-{number + 1}"
            self.workers[name] = Process(self.folder, name, [
                self.program("baton-detector"), "--host", "127.0.0.1", "--port", str(port),
                "--model-cache", os.path.join(self.folder, name)])
        for name, port in self.http.items():
            others = ",".join(f"{o}=127.0.0.1:{p}" for o, p in peers.items() if o != name)
            url = (f"raft://127.0.0.1:{peers[name]}?group=fleet&data={self.folder}/{name}"
                   f"&peers={others}&{SETTINGS}")
            self.processes[name] = Process(self.folder, name, [
                self.program("baton-fleet"), "--provider", url, "--node", name, "--http",
                f"127.0.0.1:{port}", "--config", config])

    def ask(self, path):
        """From the first process that answers."""
        for port in self.http.values():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                    return json.load(answer)
            except (OSError, ValueError):
                continue
        return {}

    def master(self):
        return self.ask("/leader").get("leader")

    def ends_of_logs(self):
        text = ""
        for process in [*self.processes.values(), *self.workers.values()]:
            with open(process.log.name, encoding="utf-8", errors="replace") as file:
                text += f"{process.name}:\n{file.read()[-1500:]}\n"
        return text

    def end(self):
        for process in [*self.processes.values(), *self.workers.values()]:
            process.end()
        for helper in self.helpers:
            helper.kill()
            helper.wait()


def until(condition, what):
    limit = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise Failure(f"not within {PATIENCE_S} s: {what}")


def all_seen(watcher, at_least=1):
    before = watcher.counts()

    def more():
        now = watcher.counts()
        return all(now[name] >= before[name] + at_least for name in now)
    until(more, f"detections of each camera; so far {watcher.counts()}")


def strike(watcher, what, process):
    all_seen(watcher, 20)
    since = time.monotonic()
    process.end()
    time.sleep(SETTLE_S)
    process.start()
    all_seen(watcher, 20)
    missing = {name: watcher.missing_ms(name, since, since + SETTLE_S) for name in CAMERAS}
    say(f"{what:<34}" + "".join(f"{missing[name]:>9.0f} ms" for name in CAMERAS))


def owner_of(fleet, but):
    """A process that owns a worker and is not `but`; the other one if none does."""
    workers = fleet.ask("/api/workers").get("items", [])
    owners = [worker.get("owner") for worker in workers if worker.get("owner")]
    return next((name for name in owners if name != but), owners[0] if owners else None)


def show(fleet, options):
    watcher = Watcher(fleet.http.values())
    page = f"http://127.0.0.1:{next(iter(fleet.http.values()))}/"
    say(f"the page: {page}")
    until(fleet.master, "a master")
    all_seen(watcher, 20)
    say(f"{fleet.master()} is the master; detections of {len(CAMERAS)} cameras come\n")
    say(f"{'without a detection, at most':<34}" + "".join(f"{name:>12}" for name in CAMERAS))
    since = time.monotonic()
    time.sleep(SETTLE_S)
    quiet = {name: watcher.missing_ms(name, since, time.monotonic()) for name in CAMERAS}
    say(f"{'nothing is killed':<34}" + "".join(f"{quiet[name]:>9.0f} ms" for name in CAMERAS))
    master = fleet.master()
    strike(watcher, f"the master, {master}, is killed", fleet.processes[master])
    worker = next(iter(fleet.workers))
    strike(watcher, f"a worker, {worker}, is killed", fleet.workers[worker])
    owner = until(lambda: owner_of(fleet, fleet.master()), "an owner")
    strike(watcher, f"an owner, {owner}, is killed", fleet.processes[owner])
    if options.stay:
        say(f"\nEverything goes on: {page}   Ctrl-C ends it.")
        signal.pause()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", default="build/bin", help="folder of the programs")
    parser.add_argument("--tests", default="tests", help="folder with the clips and the cameras")
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="baton-fleet-demo-") as folder:
        os.chmod(folder, 0o755)
        fleet = Fleet(folder, options)
        try:
            fleet.start()
            show(fleet, options)
        except KeyboardInterrupt:
            say("")
        except Failure as failure:
            sys.exit(f"demo.py: {failure}\n{fleet.ends_of_logs()}")
        finally:
            fleet.end()


if __name__ == "__main__":
    main()
