#!/usr/bin/python3
"""Real groups of real nodes under faults; the checks use the records of the programs that they run.

    torture.py [--seconds N] [--seed N] [--ground NAME,...] [--only FAULT,...] [--json] [--keep]

docs/torture.md says what happens and what is judged. It needs root, for namespaces and mounts.
"""
import argparse
import collections
import json
import os
import random
import shutil
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
os.environ.setdefault("BATON_PROGRAM", os.path.join(ROOT, "build/bin/baton"))
os.environ.setdefault("TORTURE_PROGRAMS", os.path.join(ROOT, "build/tests/torture"))
sys.path += [os.path.join(ROOT, "tests/e2e"), os.path.join(ROOT, "tests/integration/faults")]

import test_checker  # noqa: E402  pylint: disable=wrong-import-position
from run import (GROUNDS, HarnessFailed, Interrupted, Run,  # noqa: E402  pylint: disable=C0413
                 Stop, say)

TOOLS = ("ip", "nft", "nsenter", "setpriv", "strace", "redis-server")
HELD, VIOLATED, FAILED, SKIPPED, INTERRUPTED = 0, 1, 2, 77, 130  # exit codes
MUST_BE_NONE = ("overlaps", "lost_fenced", "unlinear", "stuck", "crashes")


class Summary:
    """Of the runs of all groups."""

    def __init__(self, seed):
        self.seed = seed
        self.begin = time.monotonic()
        self.found, self.counts = collections.Counter(), collections.Counter()
        self.leaderships = self.requests = self.turns = self.excused = 0

    def add(self, run):
        self.found += run.found
        self.counts += run.nemeses.counts
        self.leaderships += len(run.ground.records.lives)
        self.requests += run.ground.histories.judged
        self.turns += run.ground.turns
        self.excused += len(run.excused)

    def fields(self):
        return {**{kind: self.found[kind] for kind in MUST_BE_NONE}, "excused": self.excused,
                "seconds": round(time.monotonic() - self.begin), "seed": self.seed,
                "leaderships": self.leaderships, "requests": self.requests, "turns": self.turns,
                "nemeses": dict(sorted(self.counts.items()))}


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--ground", default=",".join(GROUNDS), help="of " + ", ".join(GROUNDS))
    parser.add_argument("--only", help="only these faults, by name, separated by commas")
    parser.add_argument("--kinds", help="of the program, separated by commas: actor.c lists them")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    parser.add_argument("--verbose", action="store_true", help="show each fault")
    return parser.parse_args(words)


def again(options):
    words = ["tests/torture/torture.py --seconds %g --seed %d --ground %s" % (
        options.seconds, options.seed, options.ground)]
    words += ["--only '%s'" % options.only] if options.only else []
    words += ["--kinds '%s'" % options.kinds] if options.kinds else []
    return " ".join(words)


def why_not():
    if os.geteuid() != 0:
        return "it needs root, for namespaces and mounts"
    missing = [one for one in TOOLS if not shutil.which(one)]
    return "not installed: " + ", ".join(missing) if missing else None


def torment(options, summary, stop):
    names = options.ground.split(",")
    for name in names:
        kinds = {kind: often for kind, often in GROUNDS[name][1].items()
                 if not options.only or kind in options.only.split(",")}
        if not kinds:
            continue
        run = Run(name, options, kinds, options.seconds / len(names), stop)
        try:
            run.play()
        finally:
            run.close()
        summary.add(run)
    return VIOLATED if any(summary.found.values()) else HELD


def main():
    options = options_of(sys.argv[1:])
    summary, stop = Summary(options.seed), Stop()
    try:
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        if not test_checker.prove():
            say("torture: the checks do not find what is planted for them")
            return FAILED
        say("seed %d; again: %s" % (options.seed, again(options)))
        code = torment(options, summary, stop)
    except unittest.SkipTest as error:
        say("torture: cannot run here: %s" % error)
        return SKIPPED
    except Interrupted as error:
        say("torture: %s" % error)
        return INTERRUPTED
    except HarnessFailed as error:
        say("torture: the harness failed: %s" % error)
        return FAILED
    fields = summary.fields()
    say(", ".join("%s %s" % (key, value) for key, value in fields.items()))
    if code == VIOLATED:
        say("torture: failed; the same again: " + again(options))
    if options.json:
        print(json.dumps(fields, indent=2))
    return code


if __name__ == "__main__":
    sys.exit(main())
