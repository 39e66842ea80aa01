"""Checks that an election is a lock: that its turns, each taken and given up at one instant, make
sense one after the other, with epochs that grow.

A turn is one process's leadership in one epoch. It is taken between the moment at which the process
began to take part, or last acted in an earlier epoch, and the moment at which it was told that it
leads, or any other process was told so. It ends after the process's last act, at a moment that only
the process knows if it gave it up itself, and nobody if it died. linear.py looks for the instants.
"""
import collections
import struct

from linear import is_linearizable

RECORD = struct.Struct("<qQI8s24sc3x")  # struct record of locks.c
FREE = (0, None)  # (the highest epoch so far, the process that leads)
LONG_AGO = 0
SHOWN = 6


class Step:
    """The beginning or the end of a turn: what linear.py calls a request."""

    def __init__(self, is_taken, pid, epoch, begin_ns, end_ns):
        self.is_taken, self.pid, self.epoch = is_taken, pid, epoch
        self.begin_ns, self.end_ns = begin_ns, end_ns
        self.outcome = "?" if end_ns is None else "y"

    def after(self, state):
        highest, holder = state
        if self.is_taken:
            return (self.epoch, self.pid) if holder is None and self.epoch > highest else None
        return (highest, None) if state == (self.epoch, self.pid) else state

    def __repr__(self):
        return "%s %s epoch %d, %.6f to %s" % (
            self.pid, "takes" if self.is_taken else "ends", self.epoch, self.begin_ns / 1e9,
            "?" if self.end_ns is None else "%.6f" % (self.end_ns / 1e9))


class Mark:
    """What locks.c recorded: 'c' a process campaigns, 'd' it has resigned, 'o' it was told of the
    leader."""

    def __init__(self, kind, pid, epoch, at_ns):
        self.kind, self.pid, self.epoch, self.at_ns = kind, pid, epoch, at_ns


class Marks:
    """The file of records, by election."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rest = b""
        self.by_election = collections.defaultdict(list)

    def read(self):
        data = self.rest + self.file.read()
        whole = len(data) - len(data) % RECORD.size
        self.rest = data[whole:]
        for at_ns, epoch, pid, election, leader, kind in RECORD.iter_unpack(data[:whole]):
            if kind == b"o":  # of NODE.PID
                pid = int(leader.partition(b"\0")[0].decode().rpartition(".")[2])
            self.by_election[election.partition(b"\0")[0].decode()].append(
                Mark(kind.decode(), pid, epoch, at_ns))

    def of(self, election):
        return self.by_election[election]

    def close(self):
        self.file.close()


def turns_of(lives, marks):
    """The steps of all turns, from when programs acted and from what they recorded."""
    acted, told, began, resigned = {}, {}, {}, {}
    for life in lives:
        for pid in life.pids:
            first_ns, last_ns = acted.get((pid, life.epoch), (life.first_ns, 0))
            acted[pid, life.epoch] = (min(first_ns, life.first_ns), max(last_ns, life.last_ns))
    for mark in marks:
        one = (mark.pid, mark.epoch)
        if mark.kind == "c":
            began[mark.pid] = mark.at_ns
        elif mark.kind == "d":
            resigned[one] = mark.at_ns
        else:
            told[one] = min(told.get(one, mark.at_ns), mark.at_ns)
    steps, before = [], {}
    for pid, epoch in sorted({*acted, *told}, key=lambda one: one[1]):
        begin_ns = before.get(pid, began.get(pid, LONG_AGO))
        ends = [told.get((pid, epoch)), *acted.get((pid, epoch), ())[:1]]
        last_ns = acted[pid, epoch][1] if (pid, epoch) in acted else begin_ns
        steps += [Step(True, pid, epoch, begin_ns, min(end for end in ends if end is not None)),
                  Step(False, pid, epoch, last_ns, resigned.get((pid, epoch)))]
        before[pid] = last_ns
    return steps


def story(steps):
    """The last of the fewest first steps that cannot be; None: all of them can."""
    if is_linearizable(steps, FREE):
        return None
    in_order = sorted(steps, key=lambda one: one.begin_ns)
    count = next((i for i in range(1, len(steps)) if not is_linearizable(in_order[:i], FREE)),
                 len(steps))
    return "\n    ".join(map(repr, in_order[max(0, count - SHOWN):count]))
