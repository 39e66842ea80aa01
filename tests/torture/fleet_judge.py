"""Judges what the workers of a fleet saw, by their own logs (tests/fleet/stand_in_worker.py) and
one clock: whether two owners were connected to a worker, and whether two workers had a
subscription."""
import collections

FOREVER = 1e18
PASS_S = 1.0      # a connection may still be there while the next owner's begins
GRACE_S = 0.9     # so long without a connection, and the worker may count as offline
SETTLE_S = 12.0   # a worker that does not confirm counts as gone after 10 s (docs/fleet.md)
OVERDUE_S = 9.0   # so long does the master wait at least
# Faults with which a worker does not read, and with which it never confirms what it let go. One
# that is late or picky confirms in the end, and the master must wait for that.
DEAF = {"slow", "half-open"}
OBSTINATE = {"silent", "no-removal"}


def meets(spans, begin, end):
    return any(b < end and e > begin for b, e in spans)


class Record:
    """What one worker saw: spans of time, each (begin, end)."""

    def __init__(self):
        self.connections = []                      # (begin, end, peer)
        self.had = collections.defaultdict(list)   # by subscription
        self.faults = collections.defaultdict(list)
        self.open, self.has, self.begun = {}, {}, {}

    def take(self, event):
        at, name = event["at"], event["event"]
        if name == "connected":
            self.open[event["peer"]] = at
        elif name == "disconnected" and event["peer"] in self.open:
            self.connections.append((self.open.pop(event["peer"]), at, event["peer"]))
        elif name == "has":
            self.lists(at, set(event["subscriptions"]))

    def lists(self, at, wanted):
        for one in set(self.has) - wanted:
            self.had[one].append((self.has.pop(one), at))
        for one in wanted - set(self.has):
            self.has[one] = at

    def begin_fault(self, at, name):
        self.begun.setdefault(name, at)

    def end_faults(self, at):
        for name, begin in self.begun.items():
            self.faults[name].append((begin, at))
        self.begun = {}

    def die(self, at):
        """Its process ended: the connections, and what it had."""
        for peer, begin in self.open.items():
            self.connections.append((begin, at, peer))
        self.open = {}
        self.lists(at, set())
        self.end_faults(at)

    # ---- All spans, also those that have no end yet -------------------------------------------

    def all_connections(self):
        return sorted(self.connections + [(at, FOREVER, peer) for peer, at in self.open.items()])

    def spans_of(self, subscription):
        spans = self.had.get(subscription, [])
        if subscription in self.has:
            spans = spans + [(self.has[subscription], FOREVER)]
        return spans

    def fault_spans(self, names):
        spans = [span for name in names for span in self.faults.get(name, [])]
        return spans + [(at, FOREVER) for name, at in self.begun.items() if name in names]

    def was_cut_off(self, begin, end):
        """Whether it had no connection in between, for so long that it may count as offline."""
        at = begin
        for opened, closed, _ in self.all_connections():
            if min(opened, end) - at >= GRACE_S:
                return True
            at = max(at, closed)
        return end - at >= GRACE_S


def two_owners(records, stops):
    """(worker, begin, end) of two connections at once, longer than a pass takes. Not judged: while
    the worker does not read, or a process of the fleet was stopped and so could not close."""
    found = []
    for name, record in records.items():
        spans = record.all_connections()
        for i, (_, end, _) in enumerate(spans):
            for begin, other_end, _ in spans[i + 1:]:
                last = min(end, other_end)
                if begin + PASS_S < last and \
                        not meets(record.fault_spans(DEAF), begin - PASS_S, last) and \
                        not meets(stops, begin - PASS_S, begin + PASS_S):
                    found.append((name, begin, last))
    return found


def two_workers(records):
    """Of a subscription that two workers had at once: ([violations], [those that could not be
    prevented]), each (subscription, workers, begin, end). The protocol cannot prevent it if the
    worker that had it first was cut off or disobeyed; or if the other one had not read for a while,
    and came to an old list only now."""
    bad, apart = [], []
    holders = collections.defaultdict(list)
    for name, record in records.items():
        for one in set(record.had) | set(record.has):
            holders[one] += [(*span, name) for span in record.spans_of(one)]
    for one, spans in holders.items():
        spans.sort()
        for i, (_, end, first) in enumerate(spans):
            for begin, other_end, second in spans[i + 1:]:
                last = min(end, other_end)
                if second == first or begin >= last:
                    continue
                since, record = begin - SETTLE_S, records[first]
                excused = record.was_cut_off(since, begin) or \
                    meets(record.fault_spans(DEAF), since, begin) or \
                    any(b + OVERDUE_S < begin and e > since
                        for b, e in record.fault_spans(OBSTINATE)) or \
                    meets(records[second].fault_spans(DEAF | {"late"}), since, begin)
                (apart if excused else bad).append((one, (first, second), begin, last))
    return bad, apart
