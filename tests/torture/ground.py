"""A group of real nodes, each on a host of its own: network namespace, disk, account and clocks.

What differs from host to host, and from one life of a node to the next, is drawn from the seed.
"""
import contextlib
import functools
import mmap
import os
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

from checker import Records
from faults import skip
from harness import BATON, Cluster, clean_environment, is_alive, others_can_run, until
from linear import Histories
from namespaces import Network, run

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.environ.get("TORTURE_PROGRAMS", "build/tests/torture")
PORT = 7400
LIBRARY = "library"  # the kind of a program that is a member by the library, not by `baton run`
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
REDIS_REST = "&check-interval=400ms&answer-timeout=400ms&process-lifetime=6s&max-lease=3s"

ROOTS_KINDS = ("plain", "setuid", "daemon", "forks", "setuid+daemon", "stubborn",
               "daemon+stubborn", "moves+daemon")
OTHERS_KINDS = ("plain", "daemon", "opaque+daemon", "opaque", "forks", "opaque+daemon+stubborn")


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Host:
    """What stays as it is while the group lives, but for what changes from life to life: `setting`
    and `kinds`."""

    def __init__(self, dice, number, suffix):
        self.number = number
        self.suffix = suffix
        account = dice.choice([None, FIRST_ACCOUNT + number])
        self.account = account if others_can_run() else None
        self.has_cgroup = dice.random() < 0.5
        self.ppm = dice.choice(SKEWS_PPM)
        self.setting = dice.randrange(len(SETTINGS))
        # One: nobody can be asked to change the members at a host that has no control socket.
        self.may_be_library = number == 1
        self.kinds, self.allowed = None, None
        self.is_joined = False
        self.draw_kinds(dice)

    def draw_kinds(self, dice):
        drawn = dice.choice(OTHERS_KINDS if self.account else ROOTS_KINDS)
        drawn = LIBRARY if dice.random() < 0.5 and self.may_be_library else drawn
        self.kinds = drawn if not self.allowed or drawn in self.allowed else self.allowed[0]

    def restrict(self, kinds):
        if self.allowed:
            kinds = [one for one in kinds if one in self.allowed] or self.allowed
        self.allowed = kinds
        self.kinds = self.kinds if self.kinds in kinds else kinds[0]

    def __str__(self):
        return "%s as %s, %s cgroups, clock %+d ppm, setting %d" % (
            self.kinds, self.account or "root", "with" if self.has_cgroup else "without",
            self.ppm, self.setting)


class Ground(Cluster):
    """Nodes a, b, c … of which each runs the actor where it leads."""

    spare_spaces = ()
    disk_bytes = DISK_BYTES
    elections = ("",)
    turns = 0  # of holders of an election, that were judged

    def __init__(self, count, dice, suffixes=None):
        super().__init__(count)
        os.chmod(self.dir, 0o755)
        self.suffixes = suffixes or {}
        self.is_closed = False
        self.starting = threading.Lock()  # nothing is started any more once the ground is closed
        self.helpers = []  # processes of the harness's own
        self.mounts = []
        self.since_ns = boot_ns()
        self.hosts_of = {name: Host(dice, i, self.suffixes.get(name, ""))
                         for i, name in enumerate(self.names)}
        self.network = None
        self.records = self.histories = None
        self.tell = print  # what happens, for the timeline
        self.born = []  # (when, name, kinds of its program), for each start

    def open(self):
        self.network = Network(self.names + list(self.spare_spaces))
        self.hosts = dict(self.network.hosts)
        self.ports = dict.fromkeys(self.names, PORT)
        self.open_files()
        for name in self.names:
            try:
                self.make_disk(name)
            except OSError as error:
                skip("no disk of its own: %s" % error)
            self.make_cgroup(name)

    def path(self, name):
        return os.path.join(self.dir, name)

    def open_files(self):
        for name, mode in (("records", 0o666), ("history", 0o666), ("locks", 0o666),
                           ("key", 0o600)):
            with open(self.path(name), "wb") as file:
                os.fchmod(file.fileno(), mode)
                if name == "key":
                    file.write(os.urandom(32).hex().encode() + b"\n")
        self.records = Records(self.path("records"), self.elections)
        self.histories = Histories(self.path("history"))
        self.helper(sys.executable, os.path.join(HERE, "store.py"), self.path("store"),
                    self.path("store.log"))
        until(lambda: os.path.exists(self.path("store")), "the store listens")
        os.chmod(self.path("store"), 0o777)

    def spawn(self, words, is_helper=False, **files):
        with self.starting:
            if self.is_closed:
                raise InterruptedError("the ground is closed")
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=clean_environment(),
                                       cwd="/", start_new_session=True, **files)
            if is_helper:  # at once: close() must find it
                self.helpers.append(process)
            return process

    def helper(self, *words):
        with open(self.path("helpers.log"), "ab") as log:
            return self.spawn(words, is_helper=True, stdout=log, stderr=log)

    def in_space(self, name, *words):
        return ("nsenter", "--net=/run/netns/" + self.network.space(name), *words)

    def on_host(self, name, *words):
        """In its cgroup, if it has one. `ip netns exec` hides them all by a /sys of its own."""
        if self.hosts_of[name].has_cgroup:
            return ("sh", "-c", 'echo 0 >"$0"/cgroup.procs && exec "$@"', self.cgroup(name),
                    *self.in_space(name, *words))
        return ("ip", "netns", "exec", self.network.space(name), *words)

    def cgroup(self, name):
        return os.path.join(cgroups(), self.network.space(name))

    def make_cgroup(self, name):
        host = self.hosts_of[name]
        if not cgroups():
            host.has_cgroup = False
        if host.has_cgroup:
            os.mkdir(self.cgroup(name))
            self.own(name, self.cgroup(name), self.cgroup(name) + "/cgroup.procs")

    # ---- a host's disk, account and clocks

    def make_disk(self, name):
        host, disk = self.hosts_of[name], self.disk(name)
        os.mkdir(disk)
        run("mount", "-t", "tmpfs", "-o", "size=%d,mode=0755" % self.disk_bytes, "tmpfs", disk)
        self.mounts.append(disk)
        shutil.copy(self.path("key"), os.path.join(disk, "key"))
        with open(os.path.join(disk, "wall"), "wb") as file:
            file.write(bytes(8))
        self.own(name, disk, os.path.join(disk, "key"))
        self.make_data(name)

    def disk(self, name):
        return self.path(name + ".disk")

    def data(self, name):
        return os.path.join(self.disk(name), "data")

    def make_data(self, name):
        os.makedirs(self.data(name), mode=0o700, exist_ok=True)
        self.own(name, self.data(name))

    def empty_data(self, name):
        shutil.rmtree(self.data(name), ignore_errors=True)
        self.make_data(name)

    def copy_data(self, name):
        shutil.rmtree(self.path("copy"), ignore_errors=True)
        subprocess.run(["cp", "-a", self.data(name), self.path("copy")], check=True)

    def restore_data(self, name):
        shutil.rmtree(self.data(name), ignore_errors=True)
        subprocess.run(["cp", "-a", self.path("copy"), self.data(name)], check=True)

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
        return {"LD_PRELOAD": program("baton_clocks.so"),
                "TORTURE_PPM": str(self.hosts_of[name].ppm),
                "TORTURE_SINCE_NS": str(self.since_ns),
                "TORTURE_WALL": os.path.join(self.disk(name), "wall")}

    # ---- a node's life

    def start(self, name):
        self.born.append((boot_ns(), name, self.hosts_of[name].kinds))
        self.tell("%s starts as %s" % (name, self.hosts_of[name]))
        self.processes[name] = self.launch(name, self.words(name))

    def launch(self, name, words):
        """A process on that host, of its account and with its clocks."""
        clocks = ["%s=%s" % pair for pair in self.clocks(name).items()]
        with open(self.path(name + ".log"), "ab") as log:
            return self.spawn(self.on_host(name, *self.as_account(name), "env", *clocks, *words),
                              stdout=log, stderr=log)

    def words(self, name):
        words = self.words_of_member(name) if self.hosts_of[name].kinds == LIBRARY else [
            os.path.abspath(BATON), "run", *self.arguments(name), "--", program("baton_actor"),
            self.hosts_of[name].kinds]
        return [*words, self.path("records"), self.path("store"), *self.further_words()]

    def further_words(self):
        """For the programs."""
        return []

    def words_of_member(self, name):
        """A program that is a member itself: the same settings, in a URL."""
        settings = settings_of(self.arguments(name))
        base = settings.pop("provider", None) or "raft://" + settings.pop("listen")
        if base.startswith("redis:"):
            del settings["data"]
        return [program("torture_member"), base + ("&" if "?" in base else "?") +
                urllib.parse.urlencode(settings), "default", name]

    def processes_of(self, name):
        """{part: [pid]} of what runs on a host: wrapper, guardian, cmd, supervisor, other."""
        space = os.stat("/run/netns/" + self.network.space(name)).st_ino
        wrapper, found = self.processes.get(name), {}
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.stat("/proc/%s/ns/net" % entry).st_ino == space:
                    part = part_of(entry, wrapper and wrapper.pid)
                    if part != "rules":
                        found.setdefault(part, []).append(int(entry))
            except OSError:
                continue
        return found

    def pids(self, name, *parts):
        return [pid for part, pids in self.processes_of(name).items()
                if not parts or part in parts for pid in pids]

    def started(self, name):
        """The processes that the harness started for that host."""
        return [self.processes[name]] if name in self.processes else []

    def tend(self, name):
        """Starts again what ended beside the node; the exit codes."""
        return []

    def alive(self, name):
        """On that host, and what is still on its way there: it enters the namespace by itself."""
        pids = [*self.pids(name), *(process.pid for process in self.started(name))]
        return [pid for pid in pids if is_alive(pid)]

    def end_all(self, name):
        """Nothing is left alive on that host."""
        while pids := self.alive(name):
            for pid in pids:
                send(pid, signal.SIGKILL)
            self.reap(name)
            time.sleep(0.01)
        self.reap(name)

    def rebuilt(self, name):
        """Called when a host has a namespace anew: what must run there, beside the node."""

    def kinds_of(self, life):
        return next((kinds for when, name, kinds in reversed(self.born)
                     if name == life.node and when < life.first_ns), "?")

    def end_life(self, life):
        """What a program left behind would be in the way of all judgements to come."""
        for pid in set(self.pids(life.node, "cmd")) & life.pids:
            send(pid, signal.SIGKILL)

    def reap(self, name):
        codes = [process.poll() for process in self.started(name)]
        return codes[0] if codes else None

    def running(self, name):
        process = self.processes.get(name)
        return process is not None and process.poll() is None

    def operator(self, name, *words):
        """A command of the operator at that host; (exit code, what it said)."""
        process = self.spawn(self.in_space(name, os.path.abspath(BATON), *words),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = process.communicate()
        # To pass to a member that is down for the moment is refused; any other 64 is our mistake.
        if process.returncode == 64 and b"cannot be handed leadership" not in said:
            raise ValueError("a wrong command: %s" % said.decode())
        return process.returncode, said.decode().strip()

    def unlinear_locks(self):
        """What was wrong with the histories of elections as locks."""
        return []

    def close(self):
        """Whatever fails, the rest is cleared all the same."""
        with self.starting:
            self.is_closed = True
        with contextlib.ExitStack() as clearing:  # the last one first
            if self.records:
                clearing.callback(self.records.close)
                clearing.callback(self.histories.close)
            if self.network:
                clearing.callback(self.network.close)
            for mount in self.mounts:
                clearing.callback(run, "umount", mount)
            clearing.callback(self.remove_cgroups)
            for process in self.helpers:
                clearing.callback(process.wait)
                clearing.callback(process.kill)
            for name in self.network.hosts if self.network else ():
                clearing.callback(self.end_all, name)

    def remove_cgroups(self):
        """With those that wrappers left behind which were killed together with their guardians."""
        for name in self.names if cgroups() else ():
            for folder, _, _ in os.walk(self.cgroup(name), topdown=False):
                until(lambda one=folder: has_removed(one), folder + " is empty")

    def keep_disks(self):
        """As far as it goes: the nodes may still remove files."""
        for name in self.names:
            with contextlib.suppress(OSError):
                shutil.copytree(self.data(name), self.path(name + ".data"),
                                ignore=lambda folder, files: [
                                    one for one in files if not os.path.isfile(
                                        os.path.join(folder, one))])

    def forget(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def program(name):
    return os.path.abspath(os.path.join(PROGRAMS, name))


def settings_of(flags):
    """{"lease": "2s", …} of ["--lease", "2s", …]"""
    settings, peers, rest = {}, [], list(flags)
    while rest:
        key = rest.pop(0)[2:]
        value = "on" if key == "join" else rest.pop(0)
        if key == "peer":
            peers.append(value)
        else:
            settings[key] = value
    return {**settings, **({"peers": ",".join(peers)} if peers else {})}


@functools.cache
def cgroups():
    """Where cgroups of version 2 can be made, if anywhere."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts, \
            open("/proc/self/cgroup", encoding="utf-8") as places:
        mount = next((line.split()[4] for line in mounts if " - cgroup2 " in line), None)
        place = next((line.strip()[3:] for line in places if line.startswith("0::")), None)
    folder = mount and place and mount + place.rstrip("/")
    return folder if folder and os.access(folder + "/cgroup.procs", os.W_OK) else None


def has_removed(folder):
    try:
        os.rmdir(folder)
    except OSError:
        return False
    return True


def part_of(pid, wrapper):
    program = os.path.basename(os.readlink("/proc/%s/exe" % pid)).replace(" (deleted)", "")
    if int(pid) == wrapper:
        return "wrapper"
    if program.startswith("baton-guardian"):
        return "guardian"
    if program == "baton":
        with open("/proc/%s/cmdline" % pid, "rb") as file:
            return "supervisor" if file.read().split(b"\0")[1:2] == [b"run"] else "other"
    return {"baton_actor": "cmd", "torture_member": "cmd", "ip": "rules",
            "nft": "rules"}.get(program, "other")


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

    def nowhere(self):
        """An address at which nothing answers."""
        return "%s:%d" % (self.hosts["a"], PORT + 1)

    def voters(self):
        return [name for name in self.names if "learner" not in self.hosts_of[name].suffix]

    def electable(self):
        return [name for name in self.names if not self.hosts_of[name].suffix]

    def is_healthy(self, impaired):
        well = [name for name in self.voters() if name not in impaired]
        return 2 * len(well) > len(self.voters()) and any(name in self.electable() for name in well)


class KeysGround(RaftGround):
    """Every node is a program that leads through the library, and reads and writes keys."""

    def __init__(self, count, dice):
        super().__init__(count, dice)
        for host in self.hosts_of.values():
            host.restrict([LIBRARY])

    def arguments(self, name):
        return super().arguments(name) + ["--checkpoint", "3s"]  # the disks are small

    def further_words(self):
        return [self.path("history")]


class TunnelGround(RaftGround):
    """Every node listens on loopback. On each host a process for each peer forwards connections to
    it, and one more takes in those of the others."""

    def open(self):
        super().open()
        self.hosts = {name: "127.0.1.%d" % (i + 1) for i, name in enumerate(self.names)}
        self.tunnels = {}  # (host, the node to which it leads)
        for name in self.names:
            self.rebuilt(name)

    def rebuilt(self, name):
        for peer in self.names:
            self.dig(name, peer)

    def dig(self, name, peer):
        ends = ["%s:%d" % (self.hosts[peer], PORT), "%s:%d" % (self.network.hosts[peer], PORT)]
        self.tunnels[name, peer] = self.helper(*self.in_space(
            name, sys.executable, os.path.join(HERE, "tunnel.py"),
            "=".join(reversed(ends) if name == peer else ends)))


class RedisGround(Ground):
    spare_spaces = ("redis",)

    def electable(self):
        return self.names

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
