"""The processes of bench/fleet: the workers, the fleet, a backend in Node.js, and their ends."""
import ctypes
import json
import os
import queue
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

PATIENCE_S = 120
CLOCK = time.CLOCK_BOOTTIME
WS = "ws@8.23.0"
HERE = os.path.dirname(os.path.abspath(__file__))


def now_ms():
    return time.clock_gettime_ns(CLOCK) / 1e6


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def dies_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(command, **more):
    return subprocess.Popen(command, preexec_fn=dies_with_parent, **more)


def ended(process):
    if process.poll() is None:
        process.kill()
    process.wait()


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / (1 << 20)


def worker_url(number, port):
    return f"ws://127.1.{number // 250}.{number % 250 + 1}:{port}"


def declare(path, options, port):
    """Displays with four cameras each; every camera is seen by one display."""
    lines = ["models:", "  - {id: 1, name: cars, url: 'http://127.0.0.1:9/cars.mpta'}"]
    displays = (options.subscriptions + 3) // 4
    lines += ["displays:"] + [f"  - {{id: d{i}}}" for i in range(displays)]
    lines += ["cameras:"] + [f"  - {{id: c{i}, rtspUrl: 'rtsp://127.0.0.1:9/{i}'}}"
                             for i in range(options.subscriptions)]
    lines += ["subscriptions:"] + [f"  - {{display: d{i // 4}, camera: c{i}, model: 1}}"
                                   for i in range(options.subscriptions)]
    lines += ["workers:"] + [f"  - {worker_url(i, port)}" for i in range(options.workers)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Workers:
    """baton-bench-workers, and what it says."""

    def __init__(self, options, port):
        self.process = start([os.path.join(options.build, "bin", "baton-bench-workers"),
                              str(options.workers), str(port)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = queue.Queue()
        self.whole_at, self.is_whole = None, False
        threading.Thread(target=self.read, daemon=True).start()
        self.wait("ready")

    def read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put({"event": "ended"})

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def take(self, limit):
        event = self.said.get(timeout=max(0.001, limit - time.monotonic()))
        if event["event"] in ("whole", "broken"):
            self.is_whole = event["event"] == "whole"
            self.whole_at = event["at_ns"] / 1e6
        elif event["event"] == "ended":
            raise SystemExit("bench/fleet: the workers have ended")
        return event

    def wait(self, name, patience=PATIENCE_S):
        limit = time.monotonic() + patience
        while True:
            event = self.take(limit)
            if event["event"] == name:
                return event

    def stats(self):
        self.tell("stats")
        return self.wait("stats")

    def settle(self, since_ms, quiet_s=0.5):
        """The time of the change to whole after which nothing broke for a while."""
        limit = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.take(time.monotonic() + quiet_s)
            except queue.Empty:
                if self.is_whole and self.whole_at > since_ms:
                    return self.whole_at
            if time.monotonic() > limit:
                raise SystemExit(f"bench/fleet: not whole within {PATIENCE_S} s: {self.stats()}")


class Process:
    """One baton-fleet."""

    def __init__(self, stand, name, url, port, more=()):
        self.stand, self.name, self.url, self.port, self.more = stand, name, url, port, more
        self.log = open(stand.folder / f"{name}.log", "ab")
        self.run = None
        self.start()

    def start(self):
        self.run = start([os.path.join(self.stand.options.build, "bin", "baton-fleet"),
                          "--provider", self.url, "--node", self.name,
                          "--http", f"127.0.0.1:{self.port}", *self.more],
                         stdout=self.log, stderr=self.log)

    def get(self, path):
        address = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            return answer.read().decode()

    def status(self):
        return json.loads(self.get("/status"))

    def wait_ready(self):
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            try:
                self.get("/readyz")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"bench/fleet: {self.name} is not ready: see {self.log.name}")


class Stand:
    def __init__(self, folder, options):
        self.folder, self.options, self.processes = folder, options, []
        self.port = free_ports(1)[0]
        self.workers = None

    def __enter__(self):
        self.workers = Workers(self.options, self.port)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            ended(process.run)
        if self.workers:
            ended(self.workers.process)

    def stats(self):
        return self.workers.stats()

    def begin(self):
        declare(self.folder / "fleet.yaml", self.options, self.port)
        self.workers.tell(f"expect {self.options.subscriptions}")
        names = [f"n{i}" for i in range(self.options.processes)]
        ports = free_ports(2 * len(names))
        peers = {name: ports[i] for i, name in enumerate(names)}
        since = now_ms()
        for i, name in enumerate(names):
            others = ",".join(f"{o}=127.0.0.1:{p}" for o, p in peers.items() if o != name)
            url = (f"raft://127.0.0.1:{peers[name]}?group=fleet&data={self.folder}/{name}"
                   f"&peers={others}")
            more = ("--config", str(self.folder / "fleet.yaml")) if i == 0 else ()
            self.processes.append(Process(self, name, url, ports[len(names) + i], more))
        whole = self.workers.settle(since, 2)
        for process in self.processes:
            process.wait_ready()
        return whole - since

    def master(self):
        for process in self.processes:
            if process.status().get("leader", {}).get("isLeader"):
                return process
        raise SystemExit("bench/fleet: nobody leads")

    def at_rest(self, seconds):
        before = [cpu_s(p.run.pid) for p in self.processes]
        time.sleep(seconds)
        used = [cpu_s(p.run.pid) - b for p, b in zip(self.processes, before)]
        each = [resident_mib(p.run.pid) for p in self.processes]
        return {"rest_cpu_percent": round(100 * sum(used) / seconds, 1),
                "rest_mib_each": round(max(each), 1)}

    def kill_process(self, process):
        since = now_ms()
        process.run.kill()
        process.run.wait()
        whole = self.workers.settle(since, 1)
        process.start()
        process.wait_ready()
        time.sleep(3)  # its share of the workers comes back to it
        self.workers.settle(0, 1)
        return whole - since

    def kill_worker(self, number):
        since = now_ms()
        self.workers.tell(f"kill {number}")
        whole = self.workers.settle(since, 1)
        self.workers.tell(f"start {number}")
        time.sleep(2)
        self.workers.settle(0, 1)
        return whole - since


# ---- Detections ------------------------------------------------------------------------------


def offer(workers, rate, seconds, pid):
    """What happens to `rate` detections a second, and the processor's time that they take."""
    workers.tell(f"rate {rate}")
    time.sleep(2)
    before, cpu = workers.stats(), cpu_s(pid)
    time.sleep(seconds)
    cpu, after = cpu_s(pid) - cpu, workers.stats()
    workers.tell("rate 0")
    time.sleep(1)
    last = workers.stats()
    took = (after["at_ns"] - before["at_ns"]) / 1e9
    return {"sent_per_s": round((after["sent"] - before["sent"]) / took),
            "blocked": last["blocked"] - before["blocked"],
            "lost": last["sent"] - last["heard"],
            "core_percent": round(100 * cpu / took, 1),
            "age_p50_ms": after["age_p50_ms"], "age_p99_ms": after["age_p99_ms"]}


def flood(folder, options, show):
    figures = {}
    small = argparse_like(options, workers=min(options.workers, 100), subscriptions=1000)
    with Stand(folder, small) as stand:
        declare(folder / "flood.yaml", small, stand.port)
        stand.workers.tell("expect 1000")
        process = Process(stand, "alone", "memory:", free_ports(1)[0],
                          ("--config", str(folder / "flood.yaml")))
        stand.processes.append(process)
        stand.workers.settle(0, 1)
        stand.workers.tell(f"listen {process.port}")
        time.sleep(0.5)
        for name, rate in ("full", options.rate), ("half", options.rate // 2):
            seen = offer(stand.workers, rate, 10, process.run.pid)
            show(f"{rate} detections a second: {seen}")
            figures |= {f"detections_{name}_{key}": value for key, value in seen.items()}
    return figures


def flood_node(folder, options, show):
    """The same load to the backend of Node.js; {} where npm has no ws."""
    home = os.path.abspath(os.path.join(options.build, "bench-ws"))
    if not shutil.which("npm") or not shutil.which("node"):
        show("node or npm is missing: no backend in Node.js beside it")
        return {}
    if not os.path.isdir(os.path.join(home, "node_modules", "ws")):
        os.makedirs(home, exist_ok=True)
        if subprocess.run(["npm", "install", "--silent", "--no-audit", "--prefix", home, WS],
                          check=False).returncode != 0:
            show(f"npm cannot install {WS}: no backend in Node.js beside it")
            return {}
    small = argparse_like(options, workers=min(options.workers, 100), subscriptions=1000)
    port, http = free_ports(2)
    shutil.copy(os.path.join(HERE, "backend.mjs"), home)
    workers = Workers(small, port)
    backend = start(["node", os.path.join(home, "backend.mjs"), str(http),
                     str(small.subscriptions),
                     *[worker_url(i, port) for i in range(small.workers)]])
    try:
        workers.tell(f"expect {small.subscriptions}")
        workers.settle(0, 1)
        workers.tell(f"listen {http}")
        time.sleep(0.5)
        seen = offer(workers, options.rate // 2, 10, backend.pid)
        show(f"Node.js, {options.rate // 2} detections a second: {seen}")
        return {f"node_half_{key}": value for key, value in seen.items()}
    finally:
        ended(backend)
        ended(workers.process)


def argparse_like(options, **changed):
    return type(options)(**(vars(options) | changed))
