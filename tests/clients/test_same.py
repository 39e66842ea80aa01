"""The workers in C, Python and Node.js do the same, whatever a leader says and whatever ends.

Each of many random stories is played to all of them; what they start, halt and say is compared.
A difference is a rule of the protocol that one of them lacks.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import unittest

from baton.work import core

STORIES, STEPS = 200, 60
NODE = shutil.which("node") or shutil.which("nodejs")


class Python:
    def ask(self, step):
        verb = step["do"]
        if verb == "new":
            self.worker, self.runs = core.Worker("w", slots=2), {}
        elif verb == "session":
            self.worker.session(step["session"])
        elif verb == "hear":
            self.worker.hear(step["message"].encode())
        elif verb in ("end", "lose") and step["id"] in self.runs:
            held, epoch = self.runs.pop(step["id"])
            self.worker.ended(held, epoch, None if verb == "lose" else
                              {"success": step["success"], "code": 0,
                               "began_unix_ms": 1, "ended_unix_ms": 2})
        elif verb in ("tick", "leave"):
            getattr(self.worker, verb)()
        out = []
        for held in self.worker.orders():
            is_start = held.state == core.RUNNING
            out.append(["start" if is_start else "halt", held.id, held.now.epoch])
            if is_start:
                assert held.id not in self.runs, "two copies of %s" % held.id
                self.runs[held.id] = (held, held.now.epoch)
        return [*out, *map(json.loads, self.worker.messages()), self.worker.is_idle]


class Program:
    def __init__(self, *words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)

    def ask(self, step):
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Story:
    """A leader that is followed by others, and what it may say; sessions that come and go."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.session, self.leader, self.number, self.epoch = 0, 1, 0, 10

    def step(self):
        verb = self.random.choices(["session", "hear", "tick", "leave", "end", "lose"],
                                   [1, 6, 2, 0.2, 4, 1])[0]
        if verb == "session":
            self.session += self.random.random() < 0.6
            return {"do": verb, "session": self.random.choice([0, self.session])}
        if verb == "hear":
            return {"do": verb, "message": json.dumps(self.message())}
        if verb == "lose":
            return {"do": verb, "id": self.random.choice("abc")}
        if verb == "end":
            return {"do": verb, "id": self.random.choice("abc"),
                    "success": self.random.random() < 0.7}
        return {"do": verb}

    def message(self):
        if self.random.random() < 0.15:
            self.leader, self.number = self.leader + 1, 0
        self.number = max(1, self.number + self.random.choice([1, 1, 1, 0]))
        kind = self.random.choice(["assign", "assign", "assign", "stop", "ack", "ask"])
        message = {"type": kind, "leader": self.leader, "number": self.number,
                   "session": self.session, "ledger": self.random.choice([5, 7])}
        if kind == "ask" and self.random.random() < 0.5:
            del message["ledger"]
        if kind != "ask":
            message["items"] = [self.entry(kind, item) for item in self.random.sample("abc", 2)]
        return message

    def entry(self, kind, item):
        if kind == "assign":
            self.epoch += self.random.random() < 0.7
            return {"epoch": self.epoch - self.random.choice([0, 0, 0, 1]), "attempt": 1,
                    "item": {"id": item, "body": "x"}}
        return {"id": item, "epoch": self.epoch - self.random.choice([0, 0, 1, 2])}


def plain(value):
    """Without members that may be left out, and in an order of its own."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if one not in (False, 0, "", [])}
    if isinstance(value, list):
        return sorted(map(plain, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


class Same(unittest.TestCase):
    def test_each_story_has_the_same_end_in_every_language(self):
        others = {"C": Program(os.environ["BATON_WORKER"])}
        if NODE:
            others["Node.js"] = Program(NODE, str(pathlib.Path(__file__).with_name("worker.mjs")))
        for other in others.values():
            self.addCleanup(other.close)
        python = Python()
        for seed in range(STORIES):
            story, told = Story(seed), []
            for step in [{"do": "new"}, *(story.step() for _ in range(STEPS))]:
                told.append(step)
                mine = plain(python.ask(step))
                for name, other in others.items():
                    self.assertEqual(plain(other.ask(step)), mine, "%s differs, story %d: %s" % (
                        name, seed, told))


if __name__ == "__main__":
    unittest.main()
