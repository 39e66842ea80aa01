"""Shared by the end-to-end tests: a cluster of real nodes in a temporary directory.

No test sleeps for a guessed time: `until` waits for a condition with a generous deadline.
"""
import functools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import leash  # noqa: F401

BATON = os.environ.get("BATON_PROGRAM", "build-dev/bin/baton")
DEADLINE_S = float(os.environ.get("HARNESS_DEADLINE_S", "240"))  # ends a hang, measures nothing
TRACER_S = 5  # in which strace lets go of a process

# What is ignored, as behind nohup(1), would stay ignored in the programs.
for one in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(one) == signal.SIG_IGN:
        signal.signal(one, signal.SIG_DFL)

# A lease that outlasts a hiccup of a busy machine, and still ends within a test's patience.
STEADY = ("--heartbeat-interval", "50ms", "--heartbeat-timeout", "1500ms", "--lease", "1500ms",
          "--election-timeout", "100ms-250ms")
# And one for tests in which a leadership ends by proof alone, if at all.
LASTING = ("--heartbeat-timeout", "1m", "--lease", "1m")
# And one whose end may be waited for, by nodes that start again, too.
LONGER = ("--heartbeat-timeout", "5s", "--lease", "5s")


@functools.cache
def others_can_run(program=BATON):
    """Whether another user may: not below a folder of root's own, such as /root."""
    return shutil.which("setpriv") is not None and subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "test", "-x",
         program], stderr=subprocess.DEVNULL, check=False).returncode == 0


def clean_environment():
    return {key: value for key, value in os.environ.items() if not key.startswith("BATON_")}


def baton(*words, env=None, text=None):
    """Runs a command to its end; the result has returncode, stdout, stderr."""
    environment = clean_environment()
    environment.update(env or {})
    return subprocess.run([BATON, *words], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, env=environment,
                          timeout=DEADLINE_S, check=False)


def until(condition, what):
    """Waits until condition() is true, and returns what it gave. `what`: a text, or makes one then.

    It is asked less often the longer the wait lasts, and the more each answer costs: many ask by
    starting a process, and what is waited for needs the processor too.
    """
    begin = asked = time.monotonic()
    while asked < begin + DEADLINE_S:
        value = condition()
        if value:
            return value
        now = time.monotonic()
        time.sleep(max(0.01, min((now - begin) / 10, 0.1), min(3 * (now - asked), 0.5)))
        asked = time.monotonic()
    raise AssertionError("not in %g s: %s" % (DEADLINE_S, what() if callable(what) else what))


def ask_node(data, what, **request):
    """The answer of the node with this data directory; None: it gives none."""
    with socket.socket(socket.AF_UNIX) as node:
        node.settimeout(5)
        try:
            node.connect(os.path.join(data, "control.sock"))
            node.sendall(json.dumps({"do": what, **request}).encode() + b"\n")
            with node.makefile() as lines:
                answer = json.loads(lines.readline())
        except (OSError, ValueError):  # it is killed while it answers
            return None
    return answer if answer.pop("ok", False) else None


def slow_disk(ms):
    """Words that run a program whose every write to the disk takes so long; None: not here."""
    inject = "inject=fdatasync,fsync:delay_exit=%d" % (1000 * ms)
    words = ["strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=fdatasync,fsync", "-e", inject]
    if not shutil.which("strace") or subprocess.run(
            [*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    return words


def end_tracer(tracer):
    """Ends a strace that was attached to a running process, which lives on. If that process was
    killed while strace held it, strace may wait after SIGINT for ever: for the first thread, which
    the kernel does not report before strace has taken the other ones."""
    tracer.send_signal(signal.SIGINT)
    try:
        tracer.wait(TRACER_S)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may go while it is read
        return False


def is_guardian_of(process, pid):
    """It has the name, a pidfd of the process, and a session of its own: unlike whoever starts it,
    which looks the same and ends at once."""
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8") as file:
            name = file.read().strip()
        with open("/proc/%d/fdinfo/4" % pid, encoding="ascii") as file:
            return (name == "baton-guardian" and "\nPid:\t%d\n" % process in file.read() and
                    os.getsid(pid) == pid)
    except OSError:
        return False


def guardian_of(process):
    """Waits for its guardian. None: this is not root, to whom alone a guardian shows itself."""
    def find():
        return next((int(pid) for pid in os.listdir("/proc") if
                     pid.isdigit() and is_guardian_of(process, int(pid))), None)
    return until(find, "%d has a guardian" % process) if os.geteuid() == 0 else None


RESERVATIONS = []  # as long as this process lives, by names that all tests agree upon


def reserve(port):
    one = socket.socket(socket.AF_UNIX)
    try:
        one.bind("\0baton-test-port-%d" % port)
    except OSError:
        one.close()
        return False
    RESERVATIONS.append(one)
    return True


def free_ports(count):
    """Below those that the kernel gives to whoever connects: nobody takes one meanwhile."""
    sockets, ports = [], []
    while len(ports) < count:
        one, port = socket.socket(), random.SystemRandom().randrange(10000, 32768)
        try:
            if not reserve(port):
                raise OSError("another test has it")
            one.bind(("127.0.0.1", port))
        except OSError:
            one.close()
            continue
        sockets.append(one)
        ports.append(port)
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Nodes a, b, c … on loopback."""

    def __init__(self, count, *flags, preset="fast", command="node"):
        # Unix sockets have short paths: not below a deep build directory.
        self.dir = tempfile.mkdtemp(prefix="baton-e2e-", dir="/tmp")
        self.names = [chr(ord("a") + i) for i in range(count)]
        self.ports = dict(zip(self.names, free_ports(count)))
        self.hosts = {}  # by name; who is not in it lives on loopback
        self.suffixes = {}  # by name: *WEIGHT^PRIORITY/KIND as the others are told
        self.flags = [*STEADY, *flags]
        self.preset = preset
        self.command = command
        self.processes = {}

    def data(self, name):
        return os.path.join(self.dir, name)

    def address(self, name):
        return "%s:%d" % (self.hosts.get(name, "127.0.0.1"), self.ports[name])

    def arguments(self, name):
        words = ["--node", name, "--data", self.data(name), "--preset", self.preset,
                 "--listen", self.address(name)]
        for peer in self.names:
            if peer != name:
                words += ["--peer", "%s=%s%s" % (peer, self.address(peer),
                                                 self.suffixes.get(peer, ""))]
        return words + self.flags

    def start(self, name, *more, env=None, under=()):
        """Starts a node; `under` are the words of a program that runs it."""
        log = open(os.path.join(self.dir, name + ".log"), "ab")
        self.processes[name] = subprocess.Popen(
            [*under, BATON, self.command, *self.arguments(name), *more], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, env=dict(clean_environment(), **(env or {})),
            start_new_session=True)
        log.close()

    def start_all(self, *more):
        for name in self.names:
            self.start(name, *more)

    def log(self, name):
        with open(os.path.join(self.dir, name + ".log"), encoding="utf-8") as file:
            return file.read()

    def status(self, name):
        """What `baton status --json` prints; None: no answer. Asked at the control socket, as waits
        ask often, and each start of a process under a sanitizer costs 20 ms of a core."""
        return ask_node(self.data(name), "status")

    def leader(self, among=None):
        for name in among or self.names:
            status = self.status(name)
            if status and status["is_leader"]:
                return name
        return None

    def wait_leader(self, among=None):
        return until(lambda: self.leader(among), lambda: "a leader among %s; logs:\n%s" % (
            among or self.names, "\n".join(
                self.log(name) + str(self.status(name)) for name in self.processes)))

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class ClusterTest(unittest.TestCase):
    """A test that has clusters, which end with it."""

    def cluster(self, count, *flags, **more):
        cluster = Cluster(count, *flags, **more)
        self.addCleanup(cluster.close)
        return cluster


class ProgramTest(ClusterTest):
    """A test whose nodes run a program where they lead."""

    def start(self, cluster, name, flags, *command):
        log = open(os.path.join(cluster.dir, name + ".log"), "ab")
        process = subprocess.Popen([BATON, "run", *cluster.arguments(name), *flags, "--",
                                    *command], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                   env=clean_environment(), start_new_session=True)
        log.close()
        cluster.processes[name] = process
        return process

    def pids(self, cluster):
        """{node: pid} of the programs that have started and are alive."""
        found = {}
        for name in cluster.names:
            path = os.path.join(cluster.dir, name + ".pid")
            try:
                with open(path, encoding="utf-8") as file:
                    pid = int(file.read().strip() or 0)
            except FileNotFoundError:
                continue
            if pid and is_alive(pid):
                found[name] = pid
        return found

    def script(self, cluster, rest="exec sleep 1000", first=":"):
        """`first` is done before pids() tells of the program, `rest` is its life."""
        return "%s; echo $$ >%s/$BATON_NODE.pid.new && mv %s/$BATON_NODE.pid.new " \
               "%s/$BATON_NODE.pid; %s" % (first, cluster.dir, cluster.dir, cluster.dir, rest)


def main():
    unittest.main(verbosity=2, argv=sys.argv[:1] + sys.argv[1:])
