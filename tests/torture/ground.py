"""A group of real nodes, each on a host of its own: network namespace, disk, account and clocks.

What differs from host to host, and from one life of a node to the next, is drawn from the seed.
"""
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time

from checker import Records
from harness import BATON, Cluster, clean_environment, is_alive, until
from namespaces import Network, run

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.environ.get("TORTURE_PROGRAMS", "build/tests/torture")
PORT = 7400
FIRST_ACCOUNT = 61900  # of a wrapper that does not run as root: this one, and the next for the next
SKEWS_PPM = (0, 0, 9900, -9900)  # what is allowed by default is 10,000
DISK_BYTES = 8 << 20

# Leases that outlast a hiccup of a busy machine. Lives of a node differ in them.
SETTINGS = (
    ("--heartbeat-interval", "300ms", "--heartbeat-timeout", "1500ms", "--lease", "1500ms",
     "--election-timeout", "100ms-250ms"),
    ("--preset", "lan"),
    ("--heartbeat-interval", "250ms", "--heartbeat-timeout", "2500ms", "--lease", "1200ms",
     "--election-timeout", "150ms-300ms", "--clock-drift-ppm", "20000"),
    ("--heartbeat-interval", "400ms", "--heartbeat-timeout", "1200ms", "--lease", "1200ms",
     "--election-timeout", "100ms-200ms"),
)
LEASES = ("lease=1500ms&heartbeat-interval=300ms", "lease=2s&heartbeat-interval=500ms",
          "lease=3s&heartbeat-interval=700ms", "lease=1200ms&heartbeat-interval=300ms")
REDIS_REST = "&check-interval=400ms&answer-timeout=400ms&process-lifetime=6s"

ROOTS_KINDS = ("plain", "setuid", "daemon", "forks", "setuid+daemon", "stubborn",
               "daemon+stubborn")
OTHERS_KINDS = ("plain", "daemon", "opaque+daemon", "opaque", "forks", "opaque+daemon+stubborn")


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Host:
    """What stays as it is while the group lives, but for what changes from life to life: `setting`
    and `kinds`."""

    def __init__(self, dice, number, suffix):
        self.number = number
        self.suffix = suffix
        self.account = dice.choice([None, FIRST_ACCOUNT + number])
        self.ppm = dice.choice(SKEWS_PPM)
        self.setting = dice.randrange(len(SETTINGS))
        self.kinds, self.allowed = None, None
        self.is_joined = False
        self.draw_kinds(dice)

    def draw_kinds(self, dice):
        drawn = dice.choice(OTHERS_KINDS if self.account else ROOTS_KINDS)
        self.kinds = drawn if not self.allowed or drawn in self.allowed else self.allowed[0]

    def restrict(self, kinds):
        self.allowed = kinds
        self.kinds = self.kinds if self.kinds in kinds else kinds[0]

    def __str__(self):
        return "%s as %s, clock %+d ppm, setting %d" % (
            self.kinds, self.account or "root", self.ppm, self.setting)


class Ground(Cluster):
    """Nodes a, b, c … of which each runs the actor where it leads."""

    spare_spaces = ()

    def __init__(self, count, dice, suffixes=None):
        super().__init__(count)
        os.chmod(self.dir, 0o755)
        self.suffixes = suffixes or {}
        self.quiet = threading.Lock()  # one process is started at a time
        self.helpers = []  # processes of the harness's own
        self.mounts = []
        self.since_ns = boot_ns()
        self.hosts_of = {name: Host(dice, i, self.suffixes.get(name, ""))
                         for i, name in enumerate(self.names)}
        self.network = None
        self.records = None
        self.tell = print  # what happens, for the timeline

    def open(self):
        self.network = Network(self.names + list(self.spare_spaces))
        self.hosts = dict(self.network.hosts)
        self.ports = dict.fromkeys(self.names, PORT)
        self.open_files()
        for name in self.names:
            self.make_disk(name)

    def path(self, name):
        return os.path.join(self.dir, name)

    def open_files(self):
        for name, mode in (("records", 0o666), ("key", 0o600)):
            with open(self.path(name), "wb") as file:
                os.fchmod(file.fileno(), mode)
                if name == "key":
                    file.write(os.urandom(32).hex().encode() + b"\n")
        self.records = Records(self.path("records"))
        self.helper(sys.executable, os.path.join(HERE, "store.py"), self.path("store"),
                    self.path("store.log"))
        until(lambda: os.path.exists(self.path("store")), "the store listens")
        os.chmod(self.path("store"), 0o777)

    def helper(self, *words):
        with open(self.path("helpers.log"), "ab") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        self.helpers.append(process)
        return process

    def in_space(self, name, *words):
        return ("nsenter", "--net=/run/netns/" + self.network.space(name), *words)

    # ---- a host's disk, account and clocks

    def make_disk(self, name):
        host, disk = self.hosts_of[name], self.disk(name)
        os.mkdir(disk)
        run("mount", "-t", "tmpfs", "-o", "size=%d,mode=0755" % DISK_BYTES, "tmpfs", disk)
        self.mounts.append(disk)
        shutil.copy(self.path("key"), os.path.join(disk, "key"))
        with open(os.path.join(disk, "wall"), "wb") as file:
            file.write(bytes(8))
        self.own(name, disk, os.path.join(disk, "key"))
        self.make_data(name)
        host.is_joined = False

    def disk(self, name):
        return self.path(name + ".disk")

    def data(self, name):
        return os.path.join(self.disk(name), "data")

    def make_data(self, name):
        os.makedirs(self.data(name), mode=0o700, exist_ok=True)
        self.own(name, self.data(name))

    def own(self, name, *paths):
        account = self.hosts_of[name].account
        for path in paths:
            if account:
                os.chown(path, account, account)

    def as_account(self, name):
        account = self.hosts_of[name].account
        return ("setpriv", "--reuid=%d" % account, "--regid=%d" % account, "--clear-groups") \
            if account else ()

    def jump_wall(self, name, seconds):
        with open(os.path.join(self.disk(name), "wall"), "r+b") as file, \
                mmap.mmap(file.fileno(), 8) as page:
            page[:] = struct.pack("<q", seconds)

    def clocks(self, name):
        return {"LD_PRELOAD": os.path.abspath(os.path.join(PROGRAMS, "baton_clocks.so")),
                "TORTURE_PPM": str(self.hosts_of[name].ppm),
                "TORTURE_SINCE_NS": str(self.since_ns),
                "TORTURE_WALL": os.path.join(self.disk(name), "wall")}

    # ---- a node's life

    def start(self, name):
        self.tell("%s starts as %s" % (name, self.hosts_of[name]))
        clocks = ["%s=%s" % pair for pair in self.clocks(name).items()]
        words = [os.path.abspath(BATON), "run", *self.arguments(name), "--",
                 os.path.abspath(os.path.join(PROGRAMS, "baton_actor")), self.hosts_of[name].kinds,
                 self.path("records"), self.path("store")]
        with self.quiet, open(self.path(name + ".log"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                self.in_space(name, *self.as_account(name), "env", *clocks, *words),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(),
                cwd="/", start_new_session=True)

    def processes_of(self, name):
        """{part: [pid]} of what runs on a host: wrapper, guardian, cmd, supervisor, other."""
        space = os.stat("/run/netns/" + self.network.space(name)).st_ino
        wrapper, found = self.processes.get(name), {}
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.stat("/proc/%s/ns/net" % entry).st_ino == space:
                    part = part_of(entry, wrapper and wrapper.pid)
                    found.setdefault(part, []).append(int(entry))
            except OSError:
                continue
        return found

    def pids(self, name, *parts):
        return [pid for part, pids in self.processes_of(name).items()
                if not parts or part in parts for pid in pids]

    def end_all(self, name):
        """Nothing is left alive on that host."""
        while pids := [pid for pid in self.pids(name) if is_alive(pid)]:
            for pid in pids:
                send(pid, signal.SIGKILL)
            self.reap(name)
            time.sleep(0.01)

    def rebuilt(self, name):
        """Called when a host has a namespace anew: what must run there, beside the node."""

    def end_life(self, life):
        """What a program left behind would be in the way of all judgements to come."""
        for pid in set(self.pids(life.node, "cmd")) & life.pids:
            send(pid, signal.SIGKILL)

    def reap(self, name):
        process = self.processes.get(name)
        return process.poll() if process else None

    def running(self, name):
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def operator(self, name, *words):
        """A command of the operator at that host; (exit code, what it said)."""
        done = subprocess.run(
            self.in_space(name, os.path.abspath(BATON), *words), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
            env=clean_environment(), check=False, timeout=90)
        return done.returncode, done.stdout.strip()

    def close(self):
        for name in self.names + list(self.spare_spaces):
            if self.network and self.network.space(name) in self.network.made:
                self.end_all(name)
        for process in self.helpers:
            process.kill()
            process.wait()
        for process in self.processes.values():
            process.wait()
        for mount in self.mounts:
            subprocess.run(["umount", mount], check=False)
        if self.network:
            self.network.close()
        if self.records:
            self.records.close()

    def forget(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def part_of(pid, wrapper):
    program = os.path.basename(os.readlink("/proc/%s/exe" % pid)).replace(" (deleted)", "")
    if int(pid) == wrapper:
        return "wrapper"
    if program.startswith("baton-guardian"):
        return "guardian"
    return {"baton_actor": "cmd", "baton": "supervisor"}.get(program, "other")


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class RaftGround(Ground):
    def arguments(self, name):
        host = self.hosts_of[name]
        words = ["--node", name, "--data", self.data(name), "--listen", self.address(name),
                 "--key-file", os.path.join(self.disk(name), "key"), *SETTINGS[host.setting]]
        if host.is_joined:
            return words + ["--join"]
        if "/" in host.suffix:
            words += ["--kind", host.suffix.split("/")[1]]
        for peer in self.names:
            if peer != name:
                words += ["--peer", "%s=%s%s" % (peer, self.address(peer),
                                                 self.hosts_of[peer].suffix)]
        return words

    def voters(self):
        return [name for name in self.names if "learner" not in self.hosts_of[name].suffix]

    def electable(self):
        return [name for name in self.names if not self.hosts_of[name].suffix]

    def is_healthy(self, impaired):
        well = [name for name in self.voters() if name not in impaired]
        return 2 * len(well) > len(self.voters()) and any(name in self.electable() for name in well)


class TunnelGround(RaftGround):
    """Every node listens on loopback; a process on each host forwards the connections."""

    def open(self):
        super().open()
        self.hosts = {name: "127.0.1.%d" % (i + 1) for i, name in enumerate(self.names)}
        self.tunnels = {}
        for name in self.names:
            self.dig(name)

    def rebuilt(self, name):
        self.dig(name)

    def dig(self, name):
        pairs = ["%s:%d=%s:%d" % (self.hosts[peer], PORT, self.network.hosts[peer], PORT)
                 for peer in self.names if peer != name]
        pairs.append("%s:%d=%s:%d" % (self.network.hosts[name], PORT, self.hosts[name], PORT))
        self.tunnels[name] = self.helper(*self.in_space(
            name, sys.executable, os.path.join(HERE, "tunnel.py"), *pairs))


class RedisGround(Ground):
    spare_spaces = ("redis",)

    def open(self):
        super().open()
        self.server = None
        self.start_server()

    def start_server(self):
        self.server = self.helper(*self.in_space(
            "redis", "redis-server", "--port", "6379", "--bind", self.hosts["redis"],
            "--protected-mode", "no", "--save", "", "--appendonly", "yes", "--dir", self.dir))

    def arguments(self, name):
        url = "redis://%s?%s%s" % (self.hosts["redis"], LEASES[self.hosts_of[name].setting],
                                   REDIS_REST)
        return ["--node", name, "--data", self.data(name), "--provider", url]

    def is_healthy(self, impaired):
        return "redis" not in impaired and any(name not in impaired for name in self.names)
