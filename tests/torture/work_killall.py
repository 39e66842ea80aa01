#!/usr/bin/python3
"""Kills and stops a pool's processes under load, again and again: no item that was acknowledged is
lost, and no two copies of an item act at once.

    work_killall.py [--fault all|worker] [--rounds N] [--seed N] [--json]

Three agents with hosts of their own, workers on each, and clients that submit jobs all the time.
A round is one fault: at a random moment all processes, or some of them, get SIGKILL or SIGSTOP;
with `--fault worker` the processes of one worker get SIGKILL. It needs root (docs/torture.md).
"""
import argparse
import collections
import itertools
import json
import logging
import os
import random
import signal
import sys
import threading
import time
import unittest

from torture import FAILED, HELD, INTERRUPTED, ROOT, SKIPPED, VIOLATED, why_not  # sets the paths

sys.path.append(os.path.join(ROOT, "clients/python"))

import baton  # noqa: E402  pylint: disable=wrong-import-position
import test_work_checker  # noqa: E402  pylint: disable=wrong-import-position
from ground import boot_ns, send  # noqa: E402  pylint: disable=wrong-import-position
from harness import until  # noqa: E402  pylint: disable=wrong-import-position
from pool_ground import PoolGround  # noqa: E402  pylint: disable=wrong-import-position
from run import CRASHES, Interrupted, Stop, say  # noqa: E402  pylint: disable=C0413
from work_checker import Copies, faults_of, not_completed  # noqa: E402  pylint: disable=C0413

WORKERS = {"all": 2, "worker": 3}  # on each host
CLIENTS = 2  # on each host
SERVICES = ("v0", "v1", "v2")
KINDS = ("plain", "plain", "flaky", "stubborn")
LONGEST_JOB_MS = 800
LONGEST_BATCH = 4
REST_S = 0.5  # of a client, at most, between two submissions
MOST_WAITING = 60  # items, before clients submit more of them
UNDER_LOAD_S = (0.3, 1, 5)  # at most, before a fault
LONGEST_PAUSE_S = 5.0  # longer than a lease
BETWEEN_KILLS_S = 0.35  # at most, of a single worker
PATIENCE_S = 60.0  # with a pool whose processes all live
MOST_SHOWN = 5  # of each kind
MUST_BE_NONE = ("lost", "doubles", "stale", "again", "stuck", "crashes")

# How often each fault of all hosts, and of one worker. The words after the verb name what it hits.
FAULTS = {
    "all": {"kill all": 6, "kill all but jobs": 3, "kill some": 5, "kill host": 2,
            "kill agents": 2, "kill workers": 2, "stop some": 5},
    "worker": {"kill worker": 12, "kill worker+supervisor": 2, "kill supervisor": 2,
               "kill foreman": 2, "kill job": 1, "kill worker+foreman": 1},
}


class Submission:
    def __init__(self, name, count):
        self.ids = ["%s.%d" % (name, i) for i in range(count)]
        self.is_acknowledged = False


class Load:
    """Clients, each a thread that starts one process after the other. A submission of unknown
    outcome is mostly submitted again, by the same name, until it is acknowledged."""

    def __init__(self, ground, copies, seed):
        self.ground, self.copies = ground, copies
        self.over = threading.Event()
        self.numbers = itertools.count()
        self.submissions = []
        self.failures = []  # of the harness
        self.threads = [threading.Thread(target=self.run, args=(name, "%d %s%d" % (seed, name, i)),
                                         daemon=True)
                        for name in ground.names for i in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def run(self, name, seed):
        dice = random.Random(seed)
        try:
            while not self.over.wait(REST_S * dice.random()):
                if self.submitted() - len(self.copies.ended_items) < MOST_WAITING:
                    self.submit(name, dice)
        except InterruptedError:
            pass  # the ground is closed
        except Exception as error:  # pylint: disable=broad-except  # reported by the main thread
            self.failures.append("a client of %s: %r" % (name, error))

    def submit(self, name, dice):
        ground, count = self.ground, dice.choice((1, 1, LONGEST_BATCH))
        label = "s%d" % next(self.numbers)
        submission = Submission(label, count)
        self.submissions.append(submission)
        jobs = [ground.job(1 + dice.randrange(LONGEST_JOB_MS), dice.choice(KINDS))
                for _ in range(count)]
        words = ["--name", label, "--priority", str(dice.randrange(3))]
        path = ground.path(label + ".jobs")
        if count == 1:
            words += ["--", *jobs[0]]
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines("exec %s\n" % " ".join(job) for job in jobs)
            words += ["--file", path]
        while not self.is_stored(name, words, submission) and not self.over.is_set() and \
                dice.random() < 0.8:
            self.over.wait(0.1)
        if count > 1:
            os.remove(path)

    def is_stored(self, name, words, submission):
        with open(self.ground.path("clients.log"), "ab") as log:
            process = self.ground.spawn(self.ground.submission(name, words), stderr=log,
                                        stdout=-1)  # a pipe
        said, _ = process.communicate()
        if process.returncode == 0:
            if json.loads(said) != submission.ids:
                raise ValueError("%s: it has the ids %s" % (words, said))
            submission.is_acknowledged = True
        elif process.returncode == 64:
            raise ValueError("a wrong command: %s" % words)
        return submission.is_acknowledged

    def submitted(self):
        return sum(len(one.ids) for one in self.submissions[:])

    def acknowledged(self):
        return [one for some in self.submissions[:] if some.is_acknowledged for one in some.ids]

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Rounds:
    def __init__(self, options, stop):
        self.options, self.stop = options, stop
        self.dice = random.Random("work %s %d" % (options.fault, options.seed))
        self.ground = PoolGround(3, self.dice, WORKERS[options.fault])
        self.ground.tell = lambda _: None
        self.found = collections.Counter()
        self.faults, self.killed = collections.Counter(), collections.Counter()
        self.rounds = 0
        self.load = self.copies = None
        self.completed_ns = {}  # by item: when it was seen completed
        self.shown = set()
        self.events = []  # (when, what)

    # ---- Rounds

    def play(self):
        ground = self.ground
        ground.open()
        self.copies = Copies(ground.path("records"))
        self.start()
        for item in SERVICES:
            self.order(*ground.submission("a", ["--service", "--id", item, "--name", item, "--",
                                                *ground.job(0, self.dice.choice(KINDS))]))
        self.load = Load(ground, self.copies, self.options.seed)
        while self.rounds < self.options.rounds and not self.found["stuck"]:
            self.round()
            self.rounds += 1
            if self.rounds % (10 if self.options.fault == "all" else 50) == 0:
                self.note_completed()
                self.judge_copies()
                say("%d rounds: %s" % (self.rounds, self.counts()))
        self.load.end()
        self.come_to_rest()

    def round(self):
        kinds = FAULTS[self.options.fault]
        verb, what = self.dice.choices(list(kinds), list(kinds.values()))[0].split(" ", 1)
        if self.options.fault == "all":
            self.wait_for_copy()
            self.pause(self.dice.choice(UNDER_LOAD_S) * self.dice.random())
        self.faults["%s %s" % (verb, what)] += 1
        self.events.append((boot_ns(), "%s %s" % (verb, what)))
        if verb == "stop":
            self.stop_some()
        elif self.options.fault == "worker":
            self.kill_parts_of_worker(what.split("+"))
            self.pause(BETWEEN_KILLS_S * self.dice.random())
        else:
            self.kill(getattr(self, "aim_at_" + what.replace(" ", "_"))())
            self.pause(self.dice.choice((0, 0.1, 3)) * self.dice.random())
        self.start()

    def pause(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.02)
        self.look()

    def look(self):
        self.stop.obey()
        if self.load and self.load.failures:
            raise AssertionError("; ".join(self.load.failures))
        self.copies.read()

    def start(self):
        """What is dead."""
        ground = self.ground
        for name in ground.names:
            if not ground.running(name):
                self.judge_end(name, ground.processes.get(name))
                ground.start(name)
        for worker in ground.dead_workers():
            self.judge_end(worker, ground.workers[worker])
            if os.path.exists(ground.socket(worker[0])):
                ground.start_worker(worker)

    def judge_end(self, name, process):
        if process and process.returncode in CRASHES:
            self.violation("crashes", "%s, process %d, ended with %d" % (
                name, process.pid, process.returncode))

    def wait(self, condition):
        """Whether it comes true. What ends by itself meanwhile is started again: a worker that
        finds no agent, as by a service manager."""
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.look()
            if time.monotonic() > end:
                return False
            self.start()
            time.sleep(0.05)
        return True

    def wait_for_copy(self):
        """All live: work must go on."""
        since_ns = boot_ns()
        if not self.wait(lambda: self.copies.latest_ns > since_ns):
            self.violation("stuck", "no copy begins, though all live")

    # ---- Faults

    def aim_at_all(self):
        return self.parts(self.ground.names)

    def aim_at_all_but_jobs(self):
        """What is left of a host's processes ends the jobs, or nobody does."""
        return [(part, pid) for part, pid in self.aim_at_all() if part != "job"]

    def aim_at_some(self):
        share = self.dice.choice((0.2, 0.5, 0.8))
        return [one for one in self.aim_at_all() if self.dice.random() < share]

    def aim_at_host(self):
        return self.parts([self.dice.choice(self.ground.names)])

    def aim_at_agents(self):
        return [(part, pid) for part, pid in self.aim_at_all() if part in ("agent", "guardian")]

    def aim_at_workers(self):
        return [(part, pid) for part, pid in self.aim_at_all() if part == "worker"]

    def parts(self, names):
        return [(part, pid) for name in names for part, pids in self.ground.parts(name).items()
                for pid in pids]

    def kill(self, victims):
        """In a random order, within a moment."""
        self.dice.shuffle(victims)
        for _, pid in victims:
            send(pid, signal.SIGKILL)
        self.killed.update(part for part, _ in victims)

    def kill_parts_of_worker(self, parts):
        """Of a worker that runs something."""
        chains = []
        if not self.wait(lambda: chains.extend(self.ground.chains()) or chains):
            self.violation("stuck", "nothing runs, though all live")
            return
        chain = self.dice.choice(chains)
        self.kill([(part, chain[part]) for part in parts])

    def stop_some(self):
        """Agents, guardians, jobs, and of each host's workers, supervisors and foremen two kinds:
        if all three stand still nobody is left to end what they run (docs/guardian.md)."""
        victims = []
        for name in self.ground.names:
            spared = self.dice.choice(("worker", "supervisor", "foreman"))
            victims += [pid for part, pids in self.ground.parts(name).items() for pid in pids
                        if part in ("worker", "supervisor", "foreman", "agent", "guardian", "job")
                        and part != spared and self.dice.random() < 0.4]
        for pid in victims:
            send(pid, signal.SIGSTOP)
        self.pause(LONGEST_PAUSE_S * self.dice.random())
        for pid in victims:
            send(pid, signal.SIGCONT)

    # ---- What came of it

    def order(self, *words):
        """A command of a person, who repeats it until it is done."""
        with open(self.ground.path("clients.log"), "ab") as log:
            if not self.wait(lambda: self.ground.spawn(words, stdout=log, stderr=log).wait() == 0):
                raise AssertionError("not done: %s" % (words,))

    def ledger(self, name):
        ledgers = []
        if not self.wait(lambda: ledgers.append(self.ground.ledger(name)) or ledgers[-1]):
            self.violation("stuck", "the agent of %s has no ledger" % name)
        return ledgers[-1] or {}

    def note_completed(self):
        ledger = self.ledger(self.dice.choice(self.ground.names))
        seen_ns = boot_ns()
        for item, entry in ledger.items():
            if entry["state"] == "completed":
                self.completed_ns.setdefault(item, seen_ns)
        return ledger

    def judge_copies(self):
        self.copies.read()
        for item in list(self.copies.of):
            for kind, what in faults_of(self.copies.in_order(item), self.completed_ns.get(item)):
                self.violation(kind, "%s: %s" % (item, what))

    def come_to_rest(self):
        """Everything ends; the services act, and then are cancelled. Then all is killed once more,
        and read."""
        wanted = self.load.acknowledged()
        self.wait(lambda: self.has_ended(wanted))
        self.wait_for_services()
        for item in SERVICES:
            self.order(*self.ground.cancellation("a", item))
        if not self.wait(lambda: not self.acting(SERVICES)):
            self.violation("stuck", "a cancelled service acts: %s" % self.acting(SERVICES))
        self.kill(self.aim_at_all())
        self.start()
        for name in self.ground.names:
            self.judge_items(name, wanted)
        self.judge_copies()

    def has_ended(self, wanted):
        ledger = self.note_completed()
        return all(item in self.completed_ns or ledger.get(item, {}).get("state") in
                   ("failed", "cancelled") for item in wanted)

    def acting(self, items):
        since_ns = boot_ns()
        time.sleep(0.2)
        self.copies.read()
        return [copy for item in items for copy in self.copies.acting(item, since_ns)]

    def wait_for_services(self):
        if not self.wait(lambda: len(self.acting(SERVICES)) == len(SERVICES)):
            self.violation("stuck", "services do not act: %s" % self.acting(SERVICES))

    def judge_items(self, name, wanted):
        ledger, results = self.ledger(name), self.results(name)
        known = [one for some in self.load.submissions for one in some.ids if one in ledger]
        for item in {*wanted, *known}:
            what = not_completed(self.copies, item, ledger.get(item), results.get(item))
            if what:
                self.violation("lost", "%s, read at %s: %s; copies: %s" % (
                    item, name, what, self.copies.in_order(item)))

    def results(self, name):
        """{id: its output}"""
        prefix = "work/default/r/"

        def read():
            try:
                with baton.Client(self.ground.socket(name)) as client:
                    return [{one.key[len(prefix):]: json.loads(one.data).get("output")
                             for one in client.list(prefix)}]
            except (OSError, baton.BatonError):
                return []
        return until(read, "the agent of %s has the results" % name)[0]

    # ---- The summary

    def violation(self, kind, what):
        if (kind, what) in self.shown:
            return
        self.shown.add((kind, what))
        self.found[kind] += 1
        if self.found[kind] > MOST_SHOWN:
            return
        say("VIOLATION %s: %s\n    faults before: %s" % (kind, what, [
            "%.3f %s" % (when / 1e9, fault) for when, fault in self.events[-4:]]))

    def counts(self):
        return {"rounds": self.rounds, "submitted": self.load.submitted(),
                "acknowledged": len(self.load.acknowledged()),
                "completed": len(self.completed_ns),
                **{kind: self.found[kind] for kind in MUST_BE_NONE}, "attempts": self.copies.count}

    def fields(self):
        return {**self.counts(), "faults": dict(sorted(self.faults.items())),
                "killed": dict(sorted(self.killed.items()))}

    def close(self):
        if self.load:
            self.load.over.set()
        if any(self.found.values()):
            self.ground.keep_disks()
            say("logs are kept in %s" % self.ground.dir)
        self.ground.close()
        if self.load:
            self.load.end()
        if self.copies:
            self.copies.close()
        if not any(self.found.values()):
            self.ground.forget()


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--fault", choices=FAULTS, default="all")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    return parser.parse_args(words)


def play(options, stop):
    """The summary."""
    reason = why_not()
    if reason:
        raise unittest.SkipTest(reason)
    if not test_work_checker.prove():
        raise AssertionError("the checks do not find what is planted for them")
    rounds = Rounds(options, stop)
    try:
        rounds.play()
    finally:
        rounds.close()
    return rounds.fields()


def main():
    options, stop = options_of(sys.argv[1:]), Stop()
    begin = time.monotonic()
    logging.getLogger("baton").setLevel(logging.ERROR)  # lost connections are no news here
    try:
        fields = play(options, stop)
    except unittest.SkipTest as error:
        say("work_killall: cannot run here: %s" % error)
        return SKIPPED
    except Interrupted as error:
        say("work_killall: %s" % error)
        return INTERRUPTED
    except AssertionError as error:
        say("work_killall: the harness failed: %s" % error)
        return FAILED
    fields.update(seconds=round(time.monotonic() - begin), seed=options.seed)
    say(", ".join("%s %s" % pair for pair in fields.items()))
    if options.json:
        print(json.dumps(fields, indent=2))
    return VIOLATED if any(fields[kind] for kind in MUST_BE_NONE) else HELD


if __name__ == "__main__":
    sys.exit(main())
