#!/usr/bin/python3
"""Kills all nodes of a group at once under load, again and again: no acknowledged write is lost.

    killall.py [--rounds N] [--seed N] [--json]

Three agents with hosts of their own; clients write keys through all of them, and outlive them. At a
random moment every agent and guardian gets SIGKILL. All are started again with their directories,
and each key is read through each agent. It needs root (docs/torture.md).
"""
import argparse
import collections
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
import test_checker  # noqa: E402  pylint: disable=wrong-import-position
from agents import AgentsGround  # noqa: E402  pylint: disable=wrong-import-position
from ground import boot_ns, send  # noqa: E402  pylint: disable=wrong-import-position
from harness import until  # noqa: E402  pylint: disable=wrong-import-position
from linear import ABSENT, Request, is_sound, lost  # noqa: E402  pylint: disable=C0413
from run import Interrupted, Stop, say  # noqa: E402  pylint: disable=wrong-import-position

WRITERS = 3  # through each agent
KEYS = 4  # of a round
LONGEST_S = 1.0  # under load, before the agents are killed
REST_S = 0.02  # of a writer whose agent does not answer


class Load:
    """Writers, each with a connection and a thread of its own. A write that begins when the agents
    are dead waits for the next ones."""

    def __init__(self, paths, keys, seed):
        self.over = threading.Event()
        self.requests = collections.defaultdict(list)  # by key
        self.written = 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.write, args=(path, keys, "%d %d" % (seed, i)),
                                         daemon=True)
                        for i, path in enumerate(paths * WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, path, keys, seed):
        dice = random.Random(seed)
        try:
            with baton.Client(path) as client:
                while not self.over.is_set():
                    self.put(client, dice.choice(keys))
        except (OSError, baton.BatonError):
            pass  # its agent was dead before it had a connection, or it is closed

    def put(self, client, key):
        with self.lock:
            self.written += 1
            request = Request("w", self.written, ABSENT, boot_ns())
            self.requests[key].append(request)
        try:
            client.put(key, str(request.value))
        except (OSError, baton.BatonError):  # a TimeoutError is an OSError
            self.over.wait(REST_S)
            return
        request.end_ns, request.outcome = boot_ns(), "y"

    def acknowledged(self):
        return sum(one.outcome == "y" for some in list(self.requests.values()) for one in some[:])

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Rounds:
    def __init__(self, options, stop):
        self.options, self.stop = options, stop
        self.dice = random.Random("killall %d" % options.seed)
        self.ground = AgentsGround(3, self.dice, clients=0)
        self.ground.tell = lambda _: None
        self.counts = collections.Counter(rounds=0, acknowledged=0, unknown=0, keys=0, lost=0)
        self.kept = {}  # what each key of the earlier rounds had

    def play(self):
        self.ground.open()
        for name in self.ground.names:
            self.ground.start(name)
        self.wait_for_group()
        while self.counts["rounds"] < self.options.rounds:
            self.round("round/%d/" % self.counts["rounds"])
            self.counts["rounds"] += 1
            if self.counts["rounds"] % 10 == 0:
                say("%d rounds: %s" % (self.counts["rounds"], dict(self.counts)))
        for key, value in self.kept.items():
            self.judge(key, self.read("a", key) == value, "it had %d, and has not" % value)

    def round(self, prefix):
        ground = self.ground
        load = Load([ground.socket(name) for name in ground.names],
                    [prefix + str(i) for i in range(KEYS)], self.dice.randrange(1 << 32))
        try:
            until(load.acknowledged, "a write is acknowledged")
            time.sleep(LONGEST_S * self.dice.random())
            self.kill_all()
            load.over.set()
            for name in ground.names:
                ground.start(name)
            self.wait_for_group()
        finally:
            load.end()
        for key, requests in load.requests.items():
            self.counts["acknowledged"] += sum(one.outcome == "y" for one in requests)
            self.counts["unknown"] += sum(one.outcome == "?" for one in requests)
            self.counts["keys"] += 1
            values = []
            for name in ground.names:
                values.append(self.read(name, key))
                requests.append(read_of(values[-1]))
            self.judge(key, not lost(requests, values[0]) and is_sound(requests),
                       "it has %s; %s" % (values, requests[-30:]))
            self.kept[key] = values[0]

    def kill_all(self):
        """Nobody is left who could act upon another's death."""
        pids = [pid for name in self.ground.names for pid in self.ground.pids(name)]
        self.dice.shuffle(pids)
        for pid in pids:
            send(pid, signal.SIGKILL)
        for name in self.ground.names:
            self.ground.end_all(name)

    def wait_for_group(self):
        for name in self.ground.names:
            until(lambda one=name: self.answers(one), "the agent of %s answers" % name)

    def answers(self, name):
        self.stop.obey()
        if not self.ground.running(name):
            raise AssertionError("%s ended: %s" % (name, self.ground.log(name)[-2000:]))
        return self.ask(name, "nothing")

    def ask(self, name, key):
        """[its value], or [] if the agent does not know it now."""
        try:
            with baton.Client(self.ground.socket(name)) as client:
                value = client.get(key)
        except (OSError, baton.BatonError):
            return []
        return [int(value.data) if value else ABSENT]

    def read(self, name, key):
        return until(lambda: self.ask(name, key), "the agent of %s knows %s" % (name, key))[0]

    def judge(self, key, is_right, what):
        if not is_right:
            self.counts["lost"] += 1
            say("VIOLATION lost, key %s: %s" % (key, what))

    def close(self):
        if self.counts["lost"]:
            self.ground.keep_disks()
            say("logs are kept in %s" % self.ground.dir)
        self.ground.close()
        if not self.counts["lost"]:
            self.ground.forget()


def read_of(value):
    request = Request("r", value, ABSENT, boot_ns())
    request.end_ns, request.outcome = request.begin_ns, "y"
    return request


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    return parser.parse_args(words)


def main():
    options, stop = options_of(sys.argv[1:]), Stop()
    begin = time.monotonic()
    logging.getLogger("baton").setLevel(logging.ERROR)  # lost connections are no news here
    try:
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)
        if not test_checker.prove():
            say("killall: the checks do not find what is planted for them")
            return FAILED
        rounds = Rounds(options, stop)
        try:
            rounds.play()
        finally:
            rounds.close()
    except unittest.SkipTest as error:
        say("killall: cannot run here: %s" % error)
        return SKIPPED
    except Interrupted as error:
        say("killall: %s" % error)
        return INTERRUPTED
    except AssertionError as error:
        say("killall: the harness failed: %s" % error)
        return FAILED
    fields = {**rounds.counts, "seconds": round(time.monotonic() - begin), "seed": options.seed}
    say(", ".join("%s %s" % pair for pair in fields.items()))
    if options.json:
        print(json.dumps(fields, indent=2))
    return VIOLATED if rounds.counts["lost"] else HELD


if __name__ == "__main__":
    sys.exit(main())
