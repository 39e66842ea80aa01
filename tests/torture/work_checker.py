"""Checks what the copies of items did, by their own records and by one clock (job.c).

A copy is one start of an item's command. It acts from the first of its records to the last one.
"""
import struct

from checker import Life, overlaps

RECORD = struct.Struct("<QQqII12s4s")  # struct record of job.c


class Copy(Life):
    """One that has ended was at the end of its work, though nobody may have learned of it."""

    def __init__(self, item, worker, epoch, at_ns):
        super().__init__(worker, epoch, at_ns, item)
        self.has_ended = False


class Copies:
    """The file of records, read on from where it was left."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rest = b""
        self.of = {}  # by item: {life: Copy}
        self.latest_ns = 0  # when the latest copy began
        self.count = 0
        self.ended_items = set()

    def read(self):
        data = self.rest + self.file.read()
        whole = len(data) - len(data) % RECORD.size
        self.rest = data[whole:]
        for life, epoch, at_ns, pid, is_end, item, worker in RECORD.iter_unpack(data[:whole]):
            item, worker = (text.rstrip(b"\0").decode() for text in (item, worker))
            copies = self.of.setdefault(item, {})
            copy = copies.get((life, pid))
            if not copy:
                copy = copies[life, pid] = Copy(item, worker, epoch, at_ns)
                self.latest_ns = max(self.latest_ns, at_ns)
                self.count += 1
            copy.act(pid, at_ns)
            if is_end:
                copy.has_ended = True
                self.ended_items.add(item)

    def in_order(self, item):
        return sorted(self.of.get(item, {}).values(), key=lambda one: one.first_ns)

    def ended(self, item, life, epoch):
        """Whether the copy of this result has ended."""
        return any(copy.has_ended and copy.epoch == epoch
                   for (begin, _), copy in self.of.get(item, {}).items() if begin == life)

    def acting(self, item, since_ns):
        return [copy for copy in self.in_order(item) if copy.last_ns > since_ns]

    def close(self):
        self.file.close()


def not_above(copies):
    """[(earlier, later)] of the copies of an item in order: a later one's epoch must be higher. An
    equal one is a placing that started twice."""
    found, highest = [], None
    for copy in copies:
        if highest and copy.epoch <= highest.epoch:
            found.append((highest, copy))
        if not highest or copy.epoch > highest.epoch:
            highest = copy
    return found


def after_the_end(copies, seen_ns):
    """Those that began after somebody had seen that the item is completed."""
    return [copy for copy in copies if copy.first_ns > seen_ns]


def faults_of(copies, seen_ns):
    """[(kind, what)] of the copies of an item, in order. `seen_ns`: when it was seen completed, or
    None."""
    found = [("doubles", "%s; %s" % pair) for pair in overlaps(copies)]
    found += [("stale", "%s; %s" % pair) for pair in not_above(copies)]
    if seen_ns is not None:
        found += [("again", str(copy)) for copy in after_the_end(copies, seen_ns)]
    return found


def not_completed(copies, item, entry, output):
    """What is wrong with an item that has to be completed: with its entry in the ledger, a dict, or
    with its result's output; None: nothing. The result is the first that was stored: if its leader
    died at that moment, the ledger has the epoch of a later attempt."""
    if not entry:
        return "it is not in the ledger"
    if entry["state"] != "completed":
        return "it is %s" % entry
    try:
        life, epoch = map(int, output.split())
    except (AttributeError, ValueError):
        return "its result is %r" % output
    if epoch > entry["epoch"]:
        return "its result has epoch %d, and the ledger has %s" % (epoch, entry)
    return None if copies.ended(item, life, epoch) else "the copy of its result never ended"
