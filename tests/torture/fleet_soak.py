#!/usr/bin/python3
"""A fleet under faults: three processes of baton-fleet, workers that stand in for detectors,
clients of the API, and a declared file that changes. Faults come at random; then they end, and
everything must come to rest.

usage: fleet_soak.py [--provider raft|redis] [--seconds 60] [--seed N] [--build DIR] [--workers 12]
                     [--keep]

Judged: each subscription is at one worker at the end, and each worker in sync; no process ended by
itself; acknowledged changes are there; memory does not grow; what the workers saw (fleet_judge.py).
Exit code: 0 nothing wrong, 1 a violation, 2 the harness failed.
"""
import argparse
import collections
import http.client
import json
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))

BASE, DISPLAYS, CLIENTS, OWN = 40, 6, 3, 8  # declared cameras; cameras of each client
REST_S = 120          # within which everything must come to rest
LONGEST_STOP_S = 6
RSS_ROOM_KB = 12 << 10
FAULTS = ("wrong-json", "giant", "binary", "not-utf8", "garbage", "silent", "half-open", "slow",
          "late", "picky", "no-removal")
# What a client is answered when all is right: done, a conflict, not there, too many, no quorum.
EXPECTED = {0, 200, 201, 202, 204, 404, 409, 412, 429, 502, 503, 504}


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(text):
    print("%s %s" % (time.strftime("%H:%M:%S"), text), flush=True)


class Client(threading.Thread):
    """Changes what is its own, and remembers what was acknowledged."""

    def __init__(self, soak, number, seed):
        super().__init__(daemon=True)
        self.soak, self.number, self.dice = soak, number, random.Random(seed)
        self.asked = 0                     # patches, each of which leaves its number in the data
        self.subscriptions = {}            # id: body, None: deleted, "?": unknown
        self.statuses = collections.Counter()

    def run(self):
        while not self.soak.over.is_set():
            try:
                self.dice.choice((self.patch, self.patch, self.subscription, self.subscription,
                                  self.session, self.stage, self.worker))()
            except (http.client.HTTPException, ValueError) as error:
                self.soak.violation("client %d: an answer that is none: %r" % (self.number, error))
            self.soak.over.wait(self.dice.uniform(0, 0.5))

    def ask(self, method, path, body=None):
        name = self.dice.choice(sorted(self.soak.processes))
        try:
            status, answer, _ = self.soak.processes[name].ask(method, path, body)
        except http.client.IncompleteRead:
            status, answer = 0, None       # it was killed
        self.statuses[status] += 1
        if status not in EXPECTED:
            self.soak.violation("%s %s %s at %s: %s %s" % (method, path, body, name, status,
                                                           answer))
        return status

    def patch(self):
        self.asked += 1
        key = (self.number, self.asked % DISPLAYS)
        status = self.ask("PATCH", "/api/displays/display-%d/data" % key[1],
                          {"weatherData": {"soak-%d" % self.number: self.asked}})
        least = self.asked if status == 204 else self.soak.patched.get(key, (0, 0))[0]
        self.soak.patched[key] = (least, self.asked)

    def subscription(self):
        camera = "api-%d-%d" % (self.number, self.dice.randrange(OWN))
        name = "display-%d;%s" % (self.number, camera)
        path = "/api/subscriptions/" + name
        if self.dice.random() < 0.3:
            status, wanted = self.ask("DELETE", path), None
        else:
            wanted = {"model": 101, "paused": self.dice.random() < 0.3,
                      "priority": self.dice.randrange(3)}
            status = self.ask("PUT", path, wanted)
        if status in (200, 201, 204):
            self.subscriptions[name] = wanted
        elif status != 404 or wanted is None:
            # A process that does not know the latest may answer 404 to a deletion.
            self.subscriptions[name] = "?"

    def session(self):
        self.ask("PUT", "/api/displays/display-%d/session" % self.dice.randrange(DISPLAYS),
                 {"sessionId": self.dice.choice((None, self.dice.randrange(1, 9)))})

    def stage(self):
        self.ask("PUT", "/api/displays/display-%d/stage" % self.dice.randrange(DISPLAYS),
                 {"progressionStage": self.dice.choice((None, "welcome", "car_fueling"))})

    def worker(self):
        worker = self.soak.workers[self.dice.randrange(len(self.soak.workers))]
        path = "/api/workers/%s/" % worker.id
        act = self.dice.choice(("cordon", "uncordon", "uncordon", "drain", "undrain", "undrain",
                                "move", "move", "move"))
        camera = self.dice.randrange(BASE)
        body = {"subscription": "display-%d;cam-%d" % (camera % DISPLAYS, camera)} \
            if act == "move" else None
        self.ask("POST", path + act, body)


class Worker:
    """A stand-in that can be killed and come back at its port, and the record of what it saw."""

    def __init__(self, index, kinds):
        self.index, self.kinds = index, kinds
        self.record, self.commands = kinds.Record(), []
        self.stand_in, self.port, self.seen = None, 0, 0
        self.lock = threading.Lock()
        self.start()
        self.id = "127.0.0.1-%d" % self.port
        self.url = "ws://127.0.0.1:%d" % self.port

    def start(self):
        self.stand_in = self.kinds.StandIns(1, "--reports-every", "1", "--detections-per-second",
                                            "2", "--port", str(self.port))
        self.port, self.seen = self.stand_in.ports[0], 0

    def follow(self):
        with self.lock:
            with self.stand_in.lock:
                events = self.stand_in.events[0][self.seen:]
                self.seen += len(events)
            for event in events:
                self.record.take(event)

    def tell(self, line):
        if line.startswith("fault "):
            self.record.begin_fault(now(), line.split(" ")[1])
        elif line == "heal":
            self.record.end_faults(now())
        self.stand_in.tell(line)

    def kill(self):
        self.stand_in.close()
        self.follow()
        self.record.die(now())

    def has(self):
        self.follow()
        return set(self.record.has)


class Soak:
    def __init__(self, options, kinds):
        self.options, self.kinds = options, kinds
        self.dice = random.Random("fleet %d" % options.seed)
        self.folder = tempfile.mkdtemp(prefix="fleet-soak-")
        self.over, self.lock = threading.Event(), threading.Lock()
        self.processes, self.workers, self.violations = {}, [], []
        self.down, self.stops, self.patched = {}, [], {}
        self.faults = collections.Counter()
        self.memory = collections.defaultdict(list)  # by (process, pid): (at, KiB)
        self.changes = []                            # due: (at, function)
        self.redis = None

    def violation(self, text):
        with self.lock:
            self.violations.append(text)
        say("VIOLATION " + text)

    # ---- The ground --------------------------------------------------------------------------

    def open(self):
        self.workers = [Worker(i, self.kinds) for i in range(self.options.workers)]
        self.declare()
        ports = dict(zip("abc", self.kinds.free_ports(3)))
        ground = self.kinds.FleetTest()
        ground.folder, ground.provider = self.folder, self.options.provider
        if self.options.provider == "redis":
            ground.redis_url = ground.start_redis()
            self.redis = ground
        for name in ports:
            self.processes[name] = self.kinds.Process(
                self.folder, name, ground.url(name, ports), "--config",
                os.path.join(self.folder, "fleet.yaml"))
        self.kinds.until(lambda: all(p.ask("GET", "/readyz")[0] == 200
                                     for p in self.processes.values()), "the processes are ready")

    def declare(self):
        """The base set, of which some are paused, cropped or left out this time."""
        own = ["api-%d-%d" % (number, i) for number in range(CLIENTS) for i in range(OWN)]
        text = {"models": [{"id": 101, "name": "Cars", "url": "http://127.0.0.1:9/cars.mpta"}],
                "displays": [{"id": "display-%d" % i} for i in range(DISPLAYS)],
                "cameras": [{"id": name, "rtspUrl": "rtsp://user:canary@127.0.0.1:9/" + name}
                            for name in ["cam-%d" % i for i in range(BASE)] + own],
                "subscriptions": [self.declared(i) for i in range(BASE)],
                "workers": [worker.url for worker in self.workers]}
        path = os.path.join(self.folder, "fleet.yaml")
        with open(path + ".new", "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(text, file)
        os.rename(path + ".new", path)

    def declared(self, i):
        one = {"display": "display-%d" % (i % DISPLAYS), "camera": "cam-%d" % i, "model": 101,
               "paused": self.dice.random() < 0.2, "priority": self.dice.randrange(-2, 3)}
        if self.dice.random() < 0.3:
            one.update(cropX1=10, cropY1=10, cropX2=100 + self.dice.randrange(99), cropY2=200)
        return one

    def master(self):
        for process in self.processes.values():
            if process.is_running() and process.ask("GET", "/leader")[0] == 200:
                return process
        return None

    # ---- The faults --------------------------------------------------------------------------

    def later(self, seconds, act):
        self.changes.append((now() + seconds, act))

    def process_dies(self):
        name = self.dice.choice("abc"[:2])  # c lives long enough for its memory to be judged
        if name in self.down:
            return
        self.down[name] = "killed"
        self.processes[name].kill()
        self.later(self.dice.choice((0.1, 2, 6)), lambda: self.process_starts(name))

    def process_starts(self, name):
        self.processes[name].start()
        self.down.pop(name)

    def process_ends(self):
        name = self.dice.choice("abc"[:2])
        if name not in self.down:
            self.down[name] = "ends"
            self.processes[name].run.send_signal(signal.SIGTERM)
            self.later(8, lambda: self.process_has_ended(name))

    def process_has_ended(self, name):
        process = self.processes[name]
        try:
            code = process.run.wait(self.options.patience)
        except self.kinds.subprocess.TimeoutExpired:
            code = "not at all, after SIGTERM"
            process.kill()
        if code != 0:
            self.violation("%s ended: %s: %s" % (name, code, process.log()[-3000:]))
        self.process_starts(name)

    def process_stops(self):
        name = self.dice.choice("abc")
        if name not in self.down:
            self.down[name] = "stopped"
            run, begin = self.processes[name].run, now()
            run.send_signal(signal.SIGSTOP)
            self.stops.append([begin, self.kinds.FOREVER])
            span = self.stops[-1]
            self.later(self.dice.uniform(0.2, LONGEST_STOP_S),
                       lambda: self.goes_on(name, run, span))

    def goes_on(self, name, run, span):
        run.send_signal(signal.SIGCONT)
        span[1] = now() + 1  # until it has closed what it does not own any more
        self.down.pop(name)

    def worker_dies(self):
        worker = self.dice.choice(self.workers)
        if worker.index not in self.down:
            self.down[worker.index] = "killed"
            worker.kill()
            self.later(self.dice.choice((0.2, 3, 15)), lambda: self.worker_starts(worker))

    def worker_starts(self, worker):
        worker.start()
        self.down.pop(worker.index)

    def worker_tells(self, line, seconds=0, after=None):
        worker = self.dice.choice(self.workers)
        if worker.index not in self.down:
            self.down[worker.index] = line
            worker.tell(line)
            self.later(seconds, lambda: self.worker_heals(worker, after))

    def worker_heals(self, worker, after):
        if after:
            worker.tell(after)
        self.down.pop(worker.index)

    def worker_fault(self):
        fault = self.dice.choice(FAULTS)
        self.faults["fault " + fault] += 1
        self.worker_tells("fault " + fault, self.dice.uniform(2, 15), "heal")

    def pass_on(self):
        process = self.master()
        if process:
            process.ask("POST", "/api/leader/pass", {})

    def redis_stops(self):
        if self.redis and "redis" not in self.down:
            self.down["redis"] = "stopped"
            self.redis.server.send_signal(signal.SIGSTOP)
            self.later(self.dice.uniform(0.2, 2), self.redis_goes_on)

    def redis_goes_on(self):
        self.redis.server.send_signal(signal.SIGCONT)
        self.down.pop("redis")

    def redis_dies(self):
        if self.redis and "redis" not in self.down:
            self.redis.server.kill()
            self.redis.server.wait()
            self.redis.begin_redis()

    def one_fault(self):
        choices = [(3, self.process_dies), (1, self.process_ends), (2, self.process_stops),
                   (2, self.worker_dies), (8, self.worker_fault), (1, self.pass_on),
                   (2, self.worker_drops), (2, self.worker_resets), (2, self.worker_refuses),
                   (2, self.declare)]
        if self.redis:
            choices += [(1, self.redis_stops), (1, self.redis_dies)]
        act = self.dice.choices([one for _, one in choices], [weight for weight, _ in choices])[0]
        self.faults[act.__name__] += 1
        act()

    def worker_drops(self):
        self.worker_tells("drop")

    def worker_resets(self):
        self.worker_tells("reset")

    def worker_refuses(self):
        worker = self.dice.choice(self.workers)
        if worker.index not in self.down:
            self.down[worker.index] = "refuses"
            worker.tell("refuse")
            worker.tell("reset")
            self.later(self.dice.uniform(0.5, 15), lambda: self.worker_heals(worker, "accept"))

    # ---- The run -----------------------------------------------------------------------------

    def play(self):
        clients = [Client(self, i, self.dice.random()) for i in range(CLIENTS)]
        for client in clients:
            client.start()
        end, due, measure = now() + self.options.seconds, now() + 2, now()
        while now() < end:
            self.run_changes(now())
            if now() >= due:
                self.one_fault()
                due = now() + self.dice.uniform(0.1, 2.5)
            if now() >= measure:
                self.watch()
                measure = now() + 2
            time.sleep(0.05)
        self.over.set()
        while self.changes:
            self.run_changes(now())
            time.sleep(0.05)
        for client in clients:
            client.join()
        return clients

    def run_changes(self, at):
        for one in [one for one in self.changes if one[0] <= at]:
            self.changes.remove(one)
            one[1]()

    def watch(self):
        for name, process in self.processes.items():
            if name not in self.down and not process.is_running():
                self.violation("%s ended by itself: %s: %s" % (name, process.run.returncode,
                                                               process.log()[-6000:]))
                process.start()
            try:
                with open("/proc/%d/status" % process.run.pid, encoding="ascii") as file:
                    kib = [int(line.split()[1]) for line in file if line.startswith("VmRSS")]
                self.memory[name, process.run.pid].extend((now(), one) for one in kib)
            except OSError:
                pass
        for worker in self.workers:
            if worker.index not in self.down:
                worker.follow()

    # ---- The judgement -----------------------------------------------------------------------

    def rest(self):
        """Why it is not at rest; None: it is."""
        views = []
        for name, process in self.processes.items():
            answers = [process.ask("GET", "/api/%s?limit=1000" % what)
                       for what in ("subscriptions", "workers")]
            if any(status != 200 for status, _, _ in answers):
                return "%s answers %s" % (name, answers)
            late = [one["id"] for one in answers[1][1]["items"] if not one.get("inSync")]
            if late or len(answers[1][1]["items"]) != len(self.workers):
                return "%s: not in sync: %s of %d" % (name, late, len(answers[1][1]["items"]))
            views.append({one["id"]: one for one in answers[0][1]["items"]})
        if any(set(view) != set(views[0]) for view in views):
            return "the processes know different subscriptions"
        wanted = collections.Counter(one for one, what in views[0].items()
                                     if not what.get("paused"))
        placed = collections.Counter(one for worker in self.workers for one in worker.has())
        if wanted != placed:
            return "not placed: %s; too often: %s" % (wanted - placed, placed - wanted)
        return None

    def judge_rest(self):
        begin, reason = now(), "?"
        for worker in self.workers:
            while self.processes["a"].ask("POST", "/api/workers/%s/uncordon" % worker.id)[0] \
                    not in (200, 204) and now() < begin + REST_S:
                time.sleep(0.2)
            self.processes["a"].ask("POST", "/api/workers/%s/undrain" % worker.id)
        while reason and now() < begin + REST_S:
            reason = self.rest()
            time.sleep(0.2)
        if reason:
            self.violation("not at rest after %d s: %s" % (REST_S, reason))
        say("at rest after %.1f s" % (now() - begin))

    def judge_acknowledged(self, clients):
        for name, process in self.processes.items():
            found = {one["id"]: one
                     for one in process.ask("GET", "/api/subscriptions?limit=1000")[1]["items"]}
            for client in clients:
                for one, body in client.subscriptions.items():
                    if body != "?" and (body is None) != (one not in found) or \
                            isinstance(body, dict) and one in found and \
                            any(found[one].get(key, 0) != body[key] for key in body):
                        self.violation("%s: %s should be %s and is %s" % (name, one, body,
                                                                          found.get(one)))
            for (number, display), (least, most) in self.patched.items():
                data = process.ask("GET", "/api/displays/display-%d/data" % display)[1] or {}
                value = (data.get("weatherData") or {}).get("soak-%d" % number, 0)
                if not least <= value <= most:
                    self.violation("%s: patch %d of display-%d is lost: %s" % (name, least, display,
                                                                               value))

    def judge_memory(self):
        for (name, _), samples in [one for one in self.memory.items() if one[1]]:
            begin = samples[0][0] + 60
            early = [kib for at, kib in samples if begin <= at < begin + 60]
            late = [kib for at, kib in samples if at > samples[-1][0] - 60]
            if samples[-1][0] > begin + 120:
                before, after = statistics.median(early), statistics.median(late)
                say("memory of %s: %d KiB, %d KiB %d s later" % (name, before, after,
                                                                 samples[-1][0] - begin))
                if after > 1.25 * before + RSS_ROOM_KB:
                    self.violation("%s grows: %d KiB, then %d KiB" % (name, before, after))

    def judge_workers(self):
        records = {worker.id: worker.record for worker in self.workers}
        for worker in self.workers:
            worker.follow()
        for name, begin, end in self.kinds.two_owners(records, self.stops):
            self.violation("%s had two owners from %.2f to %.2f" % (name, begin, end))
        bad, apart = self.kinds.two_workers(records)
        for one in bad:
            self.violation("%s: at %s from %.2f to %.2f" % one)
        say("subscriptions at two workers that could not be prevented: %d" % len(apart))

    def judge_ends(self):
        for name, process in self.processes.items():
            process.run.send_signal(signal.SIGTERM)
        for name, process in self.processes.items():
            try:
                code = process.run.wait(self.options.patience)
            except self.kinds.subprocess.TimeoutExpired:
                code = "not at all"
            log = process.log()
            if code != 0:
                self.violation("%s at its end: %s: %s" % (name, code, log[-3000:]))
            for word in ("Sanitizer", "runtime error:", "assertion", "canary"):
                if word in log:
                    self.violation("%s: its log has %s" % (name, word))

    def close(self):
        for process in self.processes.values():
            process.end()
        for worker in self.workers:
            worker.stand_in.close()
        if self.redis:
            self.redis.doCleanups()


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--provider", choices=("raft", "redis"), default="raft")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--build", help="folder of a build (default: build)")
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--keep", action="store_true", help="keep the logs of a good run, too")
    options = parser.parse_args(words)
    options.patience = 30
    return options


def kinds_of(build):
    """What the tests of the fleet have, for the programs of this build."""
    if build:
        os.environ["BATON_FLEET_PROGRAM"] = os.path.join(build, "bin", "baton-fleet")
    os.environ.setdefault("BATON_FLEET_PROGRAM", os.path.join("build", "bin", "baton-fleet"))
    os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=4:detect_leaks=1")
    import fleet_judge  # pylint: disable=import-outside-toplevel
    import fleets  # pylint: disable=import-outside-toplevel
    everything = dict(vars(fleets), **vars(fleet_judge))
    return argparse.Namespace(**{key: value for key, value in everything.items()
                                 if not key.startswith("__")})


def main():
    options = options_of(sys.argv[1:])
    say("seed %d, provider %s" % (options.seed, options.provider))
    soak = Soak(options, kinds_of(options.build))
    try:
        soak.open()
        clients = soak.play()
        soak.judge_rest()
        soak.judge_acknowledged(clients)
        soak.judge_workers()
        soak.judge_memory()
        soak.judge_ends()
    finally:
        soak.close()
    statuses = sum((client.statuses for client in clients), collections.Counter())
    say("faults %s; answers %s" % (dict(soak.faults), dict(statuses)))
    say("%d violations; seed %d" % (len(soak.violations), options.seed))
    if soak.violations or options.keep:
        say("logs are in " + soak.folder)
    else:
        import shutil  # pylint: disable=import-outside-toplevel
        shutil.rmtree(soak.folder)
    return 1 if soak.violations else 0


if __name__ == "__main__":
    sys.exit(main())
