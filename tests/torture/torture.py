#!/usr/bin/python3
"""Real groups of real nodes, tormented, and judged by what the programs did that they run.

    torture.py [--seconds N] [--seed N] [--ground NAME,...] [--only NEMESIS,...] [--json] [--keep]

docs/torture.md says what happens and what is judged. Needs root, for namespaces and mounts.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
os.environ.setdefault("BATON_PROGRAM", os.path.join(ROOT, "build/bin/baton"))
os.environ.setdefault("TORTURE_PROGRAMS", os.path.join(ROOT, "build/tests/torture"))
sys.path += [os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/integration/faults")]

import nemeses  # noqa: E402  pylint: disable=wrong-import-position
from checker import Patience, epochs_back, overlaps  # noqa: E402  pylint: disable=C0413
import test_checker  # noqa: E402  pylint: disable=wrong-import-position
from ground import (RaftGround, RedisGround, TunnelGround,  # noqa: E402  pylint: disable=C0413
                    boot_ns)

PATIENCE_S = 30
STORM_S = 8  # of faults, before all of them end and somebody must act
AROUND_NS = 5000000000  # of the timeline that is shown
SETTLED_KINDS = {"d": "/witness", "e": "/learner"}

GROUNDS = {
    "raft3": (lambda dice: RaftGround(3, dice), nemeses.RAFT),
    "redis": (lambda dice: RedisGround(3, dice), nemeses.REDIS),
    "raft5": (lambda dice: RaftGround(5, dice, SETTLED_KINDS), nemeses.RAFT),
    "tunnels": (lambda dice: TunnelGround(3, dice), nemeses.TUNNELS),
}


class Interrupted(Exception):
    pass


def interrupted(number, _):
    raise Interrupted(signal.Signals(number).name)


class Run:
    """One group, from its first start to its end."""

    def __init__(self, name, options, kinds, seconds):
        self.name, self.options, self.kinds = name, options, kinds
        self.dice = random.Random("%s %d" % (name, options.seed))
        self.seconds = seconds
        self.ground = GROUNDS[name][0](self.dice)
        if options.kinds:
            for host in self.ground.hosts_of.values():
                host.restrict(options.kinds.split(","))
        self.ground.tell = self.tell
        self.nemeses = nemeses.Nemeses(self.ground, self.tell)
        self.patience = Patience(PATIENCE_S * 10**9)
        self.events = []  # (when, what), for the timeline
        self.found = collections.Counter()
        self.seen = set()  # violations that were shown
        self.store_lines = 0

    def tell(self, what):
        self.events.append((boot_ns(), what))
        if self.options.verbose:
            say("    " + what)

    def play(self):
        ground, end = self.ground, time.monotonic() + self.seconds
        ground.open()
        for name in ground.names:
            ground.start(name)
        self.calm()
        while time.monotonic() < end and not self.found["stuck"]:
            self.storm(min(time.monotonic() + STORM_S, end))
            self.nemeses.settle()
            self.calm()
            progress(self)

    def storm(self, end):
        while time.monotonic() < end and not self.found["stuck"]:
            plan = nemeses.Plan(self.dice, self.kinds)
            self.nemeses.begin(plan)
            next_at = min(time.monotonic() + plan.wait_s, end)
            while time.monotonic() < next_at:
                self.look()
                time.sleep(0.05)

    def calm(self):
        """All faults are over: waits until somebody acts who began after that, or for too long."""
        since_ns = boot_ns()
        while not self.found["stuck"]:
            self.look()
            if self.ground.records.last_ns > since_ns:
                return
            time.sleep(0.05)

    def look(self):
        ground = self.ground
        for name, code in self.nemeses.revive():
            self.tell("%s had ended with %s" % (name, code))
            if code is not None and code in CRASHES:
                self.violation("crashes", (name, code, boot_ns()), boot_ns(),
                               "%s ended with %s" % (name, code))
        ground.records.read()
        lives = ground.records.in_order()
        for kind, pairs in (("overlaps", overlaps(lives)), ("lost_fenced", epochs_back(lives))):
            for earlier, later in pairs:
                if self.violation(kind, earlier.first_ns, later.first_ns, "%s\n    %s" % (
                        earlier, later)):
                    ground.end_life(earlier)
        self.look_at_store()
        if self.patience.is_over(boot_ns(), ground.records.last_ns,
                                 ground.is_healthy(self.nemeses.busy)):
            self.violation("stuck", boot_ns(), ground.records.last_ns,
                           "nobody acts though a quorum has been healthy for %d s" % PATIENCE_S)

    def look_at_store(self):
        with open(self.ground.path("store.log"), encoding="utf-8") as file:
            lines = file.readlines()
        for line in lines[self.store_lines:]:
            self.violation("lost_fenced", line, boot_ns(), line.strip())
        self.store_lines = len(lines)

    def violation(self, kind, key, at_ns, what):
        """Counts it, and shows it, if it is new."""
        if (kind, key) in self.seen:
            return False
        self.seen.add((kind, key))
        self.found[kind] += 1
        say("VIOLATION %s, ground %s:\n    %s" % (kind, self.name, what))
        self.show_timeline(at_ns)
        return True

    def show_timeline(self, at_ns):
        lines = [(when, what) for when, what in self.events]
        for life in self.ground.records.in_order():
            lines += [(life.first_ns, "%s begins to act, epoch %d" % (life.node, life.epoch)),
                      (life.last_ns, "%s acts for the last time, epoch %d" % (
                          life.node, life.epoch))]
        for when, what in sorted(lines):
            if abs(when - at_ns) < AROUND_NS:
                say("    %+9.3f s  %s" % ((when - at_ns) / 1e9, what))

    def close(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not stop the clearing
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.nemeses.over.set()
        self.ground.close()
        if any(self.found.values()) or self.nemeses.failures or self.options.keep:
            with open(self.ground.path("timeline"), "w", encoding="utf-8") as file:
                file.writelines("%.6f %s\n" % (when / 1e9, what) for when, what in self.events)
            say("logs are kept in %s" % self.ground.dir)
        else:
            self.ground.forget()
        listen_to_signals()


CRASHES = (-6, -11, -4, -7, -8, 134, 139)


def say(text):
    print(text, file=sys.stderr, flush=True)


def progress(run):
    say("%s: %d leaderships, %d faults" % (
        run.name, len(run.ground.records.lives), sum(run.nemeses.counts.values())))


def listen_to_signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--ground", default=",".join(GROUNDS), help="of " + ", ".join(GROUNDS))
    parser.add_argument("--only", help="only these faults, by name, separated by commas")
    parser.add_argument("--kinds", help="of the program, separated by commas: actor.c lists them")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    parser.add_argument("--verbose", action="store_true", help="tell each fault")
    return parser.parse_args(words)


def chosen(kinds, only):
    return {kind: often for kind, often in kinds.items() if not only or kind in only.split(",")}


def can_run():
    """Why not, if it cannot."""
    if os.geteuid() != 0:
        return "it needs root, for namespaces and mounts"
    missing = [one for one in ("ip", "nft", "nsenter", "setpriv", "strace", "redis-server")
               if not shutil.which(one)]
    if missing:
        return "not installed: " + ", ".join(missing)
    return None


def main():
    options = options_of(sys.argv[1:])
    reason = can_run()
    if reason:
        say("torture: cannot run: " + reason)
        return 77
    if not test_checker.prove():
        say("torture: the checks do not find what is planted for them")
        return 2
    listen_to_signals()
    again = "tests/torture/torture.py --seconds %g --seed %d --ground %s%s%s" % (
        options.seconds, options.seed, options.ground,
        " --only '%s'" % options.only if options.only else "",
        " --kinds " + options.kinds if options.kinds else "")
    say("seed %d; again: %s" % (options.seed, again))
    names = options.ground.split(",")
    found, counts, leaderships, begin = (collections.Counter(), collections.Counter(), 0,
                                         time.monotonic())
    for name in names:
        kinds = chosen(GROUNDS[name][1], options.only)
        if not kinds:
            continue
        run = Run(name, options, kinds, options.seconds / len(names))
        try:
            run.play()
        except unittest.SkipTest as error:
            say("torture: cannot run: %s" % error)
            return 77
        except Interrupted as error:
            say("torture: %s" % error)
            return 130
        finally:
            run.close()
        found += run.found
        counts += run.nemeses.counts
        leaderships += len(run.ground.records.lives)
        if run.nemeses.failures:
            say("torture: the harness failed: " + "; ".join(run.nemeses.failures))
            return 2
    summary = {"overlaps": found["overlaps"], "lost_fenced": found["lost_fenced"],
               "stuck": found["stuck"], "crashes": found["crashes"],
               "seconds": round(time.monotonic() - begin), "seed": options.seed,
               "leaderships": leaderships, "nemeses": dict(sorted(counts.items()))}
    if any(found.values()):
        say("torture: failed; the same again: " + again)
    if options.json:
        print(json.dumps(summary, indent=2))
    else:
        say(", ".join("%s %s" % (key, value) for key, value in summary.items()))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
