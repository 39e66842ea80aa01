"""The examples do what they say, on a real Redis server; and so does the README."""
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import unittest

from harness import (BATON, DEADLINE_S, ProgramTest, baton, clean_environment, free_ports, main,
                     until)

BUILD = os.environ["BATON_BUILD"]
SOURCE = os.environ["BATON_SOURCE"]
EXAMPLES = os.path.join(SOURCE, "examples")


class Service:
    """A program whose lines are kept as they come."""

    def __init__(self, *words):
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        universal_newlines=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def watched(self):
        """The cameras of the latest assignment."""
        told = [line for line in self.lines if line.startswith("watching:")]
        return told[-1].split()[1:] if told else []

    def leads(self):
        told = [line for line in self.lines if "leading" in line]
        return bool(told) and told[-1].startswith("leading")

    def end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(DEADLINE_S)
        self.reader.join()
        self.process.stdout.close()


class Examples(ProgramTest):
    def setUp(self):
        self.port = free_ports(1)[0]
        self.url = ("redis://127.0.0.1:%d?lease=600s&max-lease=600s&heartbeat-interval=5s"
                    % self.port)
        self.server = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dbfilename", "", "--appendonly", "no"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        until(lambda: self.ask("PING") == "PONG", "an answer of redis-server")

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], stdout=subprocess.PIPE,
                              text=True, timeout=DEADLINE_S, check=False).stdout.strip()

    def has_long_been_there(self, election):
        """The server can have forgotten no lease of this election."""
        lines = self.ask("INFO", "replication").splitlines()
        history = next(line[14:] for line in lines if line.startswith("master_replid:"))
        self.ask("HSET", election + ":epoch", "server", history, "since", "0")

    def test_cameras_are_shared_and_taken_over(self):
        self.has_long_been_there("cameras")
        cameras = ["front-door", "car-park", "loading-dock", "roof", "hall"]
        services = []
        for _ in range(3):
            service = Service(os.path.join(BUILD, "bin", "example_cameras"), self.url, *cameras)
            self.addCleanup(service.end, signal.SIGKILL)
            services.append(service)

        def all_watched_once(among):
            return sorted(sum((one.watched() for one in among), [])) == sorted(cameras)
        until(lambda: all_watched_once(services) and all(one.watched() for one in services),
              "each camera watched by one")
        first = next(one for one in services if one.leads())
        first.end(signal.SIGKILL)
        services.remove(first)
        until(lambda: all_watched_once(services), "the cameras of the dead are taken over")
        services[0].end(signal.SIGTERM)
        self.assertEqual(services[0].process.returncode, 0)
        until(lambda: sorted(services[1].watched()) == sorted(cameras), "one watches all")

    def test_cameras_are_shared_in_a_group_of_their_own(self):
        ports = free_ports(3)
        peers = ",".join("n%d@127.0.0.1:%d" % pair for pair in enumerate(ports))
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        cameras = ["front-door", "car-park", "loading-dock", "roof", "hall"]
        services = []
        for number, port in enumerate(ports):
            data = os.path.join(folder, str(number))
            os.mkdir(data, 0o700)
            services.append(Service(
                os.path.join(BUILD, "bin", "example_cameras"),
                "raft://127.0.0.1:%d?node=n%d&preset=fast&data=%s&peers=%s" % (
                    port, number, data, peers), *cameras))
            self.addCleanup(services[-1].end, signal.SIGKILL)

        def each_watched_once(among):
            return (sorted(sum((one.watched() for one in among), [])) == sorted(cameras)
                    and all(one.watched() for one in among))
        until(lambda: each_watched_once(services), "each camera watched by one")
        services.pop().end(signal.SIGKILL)
        until(lambda: each_watched_once(services), "the cameras of the dead are taken over")

    def group_urls(self, count):
        """Of nodes n0, n1, … that hold elections by name."""
        ports = free_ports(count)
        peers = ",".join("n%d@127.0.0.1:%d" % pair for pair in enumerate(ports))
        for number, port in enumerate(ports):
            data = os.path.join(self.folder(), "data")
            os.mkdir(data, 0o700)
            yield ("raft://127.0.0.1:%d?group=examples&preset=fast&data=%s&peers=%s"
                   % (port, data, peers))

    def begin(self, name, url, number, *words):
        service = Service(os.path.join(BUILD, "bin", "example_" + name), url, "n%d" % number,
                          *words)
        self.addCleanup(service.end, signal.SIGKILL)
        return service

    def test_the_jobs_of_a_worker_that_is_killed_are_done_by_others(self):
        jobs = 200
        first, second, third = self.group_urls(3)
        workers = [self.begin("jobs", first, 0), self.begin("jobs", second, 1)]
        asks = self.begin("jobs", third, 2, str(jobs))
        until(lambda: workers[0].lines, "a job runs in the first process")
        workers[0].end(signal.SIGKILL)
        self.assertEqual(asks.process.wait(DEADLINE_S), 0)
        asks.reader.join()
        sieve = bytearray(b"\1") * (jobs * 10000)
        sieve[:2] = b"\0\0"
        for number in range(2, int(len(sieve) ** 0.5) + 1):
            if sieve[number]:
                sieve[number * number::number] = bytes(len(sieve[number * number::number]))
        # A job whose result the dead leader had just stored runs again, perhaps after this line.
        self.assertIn("%d primes below %d" % (sum(sieve), len(sieve)), asks.lines)
        self.begin("jobs", first, 0)  # two of three: alone, no leader would confirm n1's results
        workers[1].end(signal.SIGTERM)
        self.assertEqual(workers[1].process.returncode, 0)

    def counts(self, service, after=0):
        """What it has counted under higher epochs than that one, with their epochs."""
        lines = [tuple(map(int, line.split()[1::2])) for line in service.lines]
        return [line for line in lines if line[1] > after]

    def test_a_service_goes_on_elsewhere_from_its_checkpoint(self):
        services = [self.begin("service", url, number)
                    for number, url in enumerate(self.group_urls(3))]
        count, epoch = 0, 0
        for end in (signal.SIGKILL, None):
            until(lambda: any(len(self.counts(one, epoch)) > 3 for one in services), "one counts")
            counts = next(one for one in services if len(self.counts(one, epoch)) > 3)
            if end:
                counts.end(end)
                services.remove(counts)
                count, epoch = self.counts(counts)[-1]
        later, higher = self.counts(counts, epoch)[0]
        self.assertGreater(later, count)
        self.assertGreater(higher, epoch)
        until(lambda: all(one.process.poll() is None for one in services), "both live")
        counts.end(signal.SIGTERM)
        self.assertEqual(counts.process.returncode, 0)

    def lead_a_group(self):
        """The example leads nodes b and c: it is preferred."""
        three = self.cluster(3, "--election", "example", "--preferred-stable", "100ms")
        three.suffixes["a"] = "^5"
        for name in ("b", "c"):
            three.start(name)
        os.mkdir(three.data("a"))
        peers = ",".join("%s=%s%s" % (name, three.address(name), "%5E5" if name == "a" else "")
                         for name in three.names)
        service = Service(os.path.join(BUILD, "bin", "example_leader"),
                          "raft://%s?node=a&peers=%s&data=%s&preset=fast&heartbeat-interval=50ms&"
                          "heartbeat-timeout=1500ms&lease=1500ms&preferred-stable=100ms" % (
                              three.address("a"), peers, three.data("a")))
        self.addCleanup(service.end, signal.SIGKILL)
        until(service.leads, "the example leads")
        return three, service

    def test_the_group_removes_a_leader_whose_work_has_stopped(self):
        three, service = self.lead_a_group()
        done = baton("leave", "--data", three.data("b"), "a")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: not service.leads(), "the example leads no more")
        told = [line for line in service.lines if not line.startswith(("working", "leader:"))]
        self.assertEqual(told[-3:], ["leading example", "draining", "no longer leading: resigned"])

    def test_a_migration_runs_once(self):
        database = os.path.join(self.folder(), "shop.db")
        self.has_long_been_there("default")
        with sqlite3.connect(database) as before:
            before.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT NOT NULL, "
                           "state TEXT)")
            before.execute("INSERT INTO orders (what) VALUES ('tea')")
        environment = dict(clean_environment(), PROVIDER=self.url, DATABASE=database, BATON=BATON)
        copies = [subprocess.Popen(["sh", os.path.join(EXAMPLES, "migration", "migrate.sh")],
                                   env=dict(environment, NODE="copy-%d" % number),
                                   stdin=subprocess.DEVNULL)
                  for number in range(4)]
        self.assertEqual([copy.wait(DEADLINE_S) for copy in copies], [0, 0, 0, 0])
        with sqlite3.connect(database) as after:
            self.assertEqual(after.execute("SELECT count(*) FROM versions").fetchone(), (1,))
            self.assertEqual(after.execute("SELECT state FROM orders").fetchall(), [("new",)])
            epoch = after.execute("SELECT epoch FROM baton_token").fetchone()[0]
        late = subprocess.run(
            ["sh", "-c", 'sed "s/:epoch/$1/g" 0007-orders.sql | sqlite3 -bail "$2"', "sh",
             str(epoch - 1), database], cwd=os.path.join(EXAMPLES, "migration"),
            stderr=subprocess.PIPE, check=False)
        self.assertNotEqual(late.returncode, 0)
        self.assertIn(b"CHECK", late.stderr)

    def test_databases_of_one_name_are_each_migrated(self):
        self.has_long_been_there("default")
        for number in range(2):
            folder = self.folder()
            done = subprocess.run(
                ["sh", os.path.join(EXAMPLES, "migration", "migrate.sh")], cwd=folder, check=False,
                env=dict(clean_environment(), PROVIDER=self.url, DATABASE="shop.db", BATON=BATON,
                         NODE="copy-%d" % number), stdin=subprocess.DEVNULL, timeout=DEADLINE_S)
            self.assertEqual(done.returncode, 0)
            with sqlite3.connect(os.path.join(folder, "shop.db")) as database:
                versions = database.execute("SELECT version FROM versions").fetchall()
            self.assertEqual(versions, [(7,)])

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name


class Readme(unittest.TestCase):
    """Its first steps, word by word, but for the places: a folder, and ports that are free."""

    def block(self, first_word):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as page:
            text = page.read()
        return re.search(r"```\n(%s.*?)```" % re.escape(first_word), text, re.S).group(1)

    def script(self, folder):
        start = self.block("PATH=").replace("$PWD/build/bin", shlex.quote(os.path.dirname(BATON)))
        use = re.sub(r"\bn1\b", "$leader", self.block("baton status "))
        ends = "jobs -p >/tmp/baton/jobs; kill $(cat /tmp/baton/jobs)"
        self.assertIn(ends, use)
        text = """
            port1=%d port2=%d port3=%d
            port() { eval "echo \\$port$1"; }
            leaders() { grep -c '^n. leads, epoch ' "$1"; }
            %s
            until [ "$(leaders out)" = 1 ]; do sleep 0.1; done
            leader=$(grep -o '^n. leads, epoch' out | cut -d' ' -f1)
            %s
            wait
            """ % (*free_ports(3), start, use.replace(
                ends, "until [ \"$(leaders out)\" = 2 ]; do sleep 0.1; done; " + ends))
        text = re.sub(r"127\.0\.0\.1:740(\$\w)", r"127.0.0.1:$(port \1)", text)
        return re.sub(r"/tmp/baton(?=[/\s])", folder + "/nodes", text)

    def test_the_first_steps_are_as_they_are_told(self):
        for shell in "sh", "bash":
            with self.subTest(shell=shell):
                self.follow(shell)

    def follow(self, name):
        folder = tempfile.mkdtemp(prefix="baton-readme-")
        self.addCleanup(shutil.rmtree, folder, True)
        with open(os.path.join(folder, "out"), "w", encoding="utf-8") as out:
            shell = subprocess.Popen([name, "-c", self.script(folder)], stdout=out, stderr=out,
                                     stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
                                     env=clean_environment())
            try:
                shell.wait(DEADLINE_S)
            finally:
                if shell.poll() is None:
                    os.killpg(shell.pid, signal.SIGKILL)
                    shell.wait()
        with open(os.path.join(folder, "out"), encoding="utf-8") as out:
            text = out.read()
        led = re.findall(r"^(n\d) leads, epoch (\d+)$", text, re.M)
        self.assertEqual(len(led), 2, text)
        self.assertNotEqual(led[0][0], led[1][0], text)
        self.assertGreater(int(led[1][1]), int(led[0][1]), text)
        self.assertRegex(text, r"(?m)^role +leader$")
        self.assertRegex(text, r"(?m)^n1 +127")


if __name__ == "__main__":
    main()
