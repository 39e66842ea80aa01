"""Checks that the requests for keys were linearizable: that each took effect at one instant between
its beginning and its end, so that all of them make sense one after the other (history.c records
them).

For each key apart, by the search of Wing and Gong, which remembers where it has been (Lowe). A
request whose outcome is not known may take effect at any later time, or never.
"""
import collections
import struct

RECORD = struct.Struct("<QqQQQIcc2x")  # struct record of history.c
ABSENT = 0
WINDOW_NS = 4 * 10**9  # for so long a key is written; history.c
KEYS = 3
SETTLED_NS = 6 * 10**9  # after its last request a key is judged


class Request:
    def __init__(self, kind, value, expected, begin_ns):
        self.kind, self.value, self.expected = kind, value, expected
        self.begin_ns, self.end_ns, self.outcome = begin_ns, None, "?"

    def after(self, state):
        """The state that it leaves, or None if it cannot have taken effect in this one."""
        if self.kind == "r":
            return state if state == self.value else None
        if self.kind == "w":
            return self.value
        is_met = state == self.expected
        if self.outcome != "?" and is_met != (self.outcome == "y"):
            return None
        return self.value if is_met else state

    def __repr__(self):
        what = {"r": "read %x", "w": "write %x", "s": "swap %x"}[self.kind] % self.value
        what += " for %x" % self.expected if self.kind == "s" else ""
        end = "%.6f" % (self.end_ns / 1e9) if self.end_ns else "?"
        return "%s, %.6f to %s: %s" % (what, self.begin_ns / 1e9, end, self.outcome)


class Entry:
    """The beginning or the end of a request, in a list that both leave and come back to."""

    def __init__(self, number, request, end):
        self.number, self.request, self.end = number, request, end
        self.before = self.behind = None

    def lift(self):
        for one in (self, self.end):
            one.before.behind = one.behind
            if one.behind:
                one.behind.before = one.before

    def unlift(self):
        for one in (self.end, self):
            one.before.behind = one
            if one.behind:
                one.behind.before = one


def entries(requests):
    """The head of the list, in the order of time; ends that are not known come last."""
    marks = []
    for number, request in enumerate(requests):
        end = Entry(number, request, None)
        marks.append((request.begin_ns, 0, number, Entry(number, request, end)))
        marks.append((request.end_ns if request.outcome != "?" else float("inf"), 1, number, end))
    head = last = Entry(None, None, None)
    for *_, entry in sorted(marks, key=lambda mark: mark[:3]):
        last.behind, entry.before = entry, last
        last = entry
    return head


def is_linearizable(requests, state=ABSENT):
    head = entries(requests)
    done, seen, path = 0, set(), []
    entry = head.behind
    while head.behind:
        if entry.end:
            after = entry.request.after(state)
            if after is not None and (done | 1 << entry.number, after) not in seen:
                path.append((entry, state))
                state, done = after, done | 1 << entry.number
                seen.add((done, state))
                entry.lift()
                entry = head.behind
            else:
                entry = entry.behind
        elif not path:
            return False
        else:
            entry, state = path.pop()
            done ^= 1 << entry.number
            entry.unlift()
            entry = entry.behind
    return True


def is_sound(requests):
    """Most writes without a known outcome and a reader never happened: tries it without them first,
    since each of them doubles the search."""
    read = {one.value for one in requests if one.kind == "r"} | {
        one.expected for one in requests if one.kind == "s"}
    seen = [one for one in requests if one.outcome != "?" or one.value in read]
    return is_linearizable(seen) or (len(seen) < len(requests) and is_linearizable(requests))


def lost(requests, value):
    """Whether the present value of a key is none that was asked for, or an acknowledged write began
    after that of the value had ended."""
    writes = [one for one in requests if one.kind == "w"]
    if value == ABSENT:
        return any(one.outcome == "y" for one in writes)
    written = next((one for one in writes if one.value == value), None)
    return not written or written.outcome == "y" and any(
        one.begin_ns > written.end_ns for one in writes if one.outcome == "y")


class Histories:
    """The file of records, read on from where it was left."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.rest = b""
        self.open = {}  # the request that a client has begun
        self.keys = collections.defaultdict(list)
        self.revisions = {}
        self.contradictions = []
        self.judged = 0

    def read(self):
        data = self.rest + self.file.read()
        whole = len(data) - len(data) % RECORD.size
        self.rest = data[whole:]
        for client, at_ns, value, expected, revision, key, kind, phase in RECORD.iter_unpack(
                data[:whole]):
            if phase == b"b":
                self.open[client] = Request(kind.decode(), value, expected, at_ns)
                self.keys[key].append(self.open[client])
            elif client in self.open:
                self.end(self.open.pop(client), phase.decode(), at_ns, key, value, revision)

    def end(self, request, outcome, at_ns, key, value, revision):
        request.end_ns, request.outcome = at_ns, outcome
        if request.kind == "r":
            request.value = value
            if outcome == "y" and self.revisions.setdefault((key, value), revision) != revision:
                self.contradictions.append((
                    key, "value %x of key %d had the revisions %d and %d" % (
                        value, key, self.revisions[key, value], revision)))

    def judge(self, now_ns):
        """[(key, what)] of keys that nobody uses any more; each key once."""
        found, self.contradictions = self.contradictions, []
        for key in [key for key in self.keys
                    if (key // KEYS + 2) * WINDOW_NS + SETTLED_NS < now_ns]:
            requests = [one for one in self.keys.pop(key) if one.kind != "r" or one.outcome == "y"]
            self.judged += len(requests)
            if not is_sound(requests):
                found.append((key, "the history of key %d is not linearizable:\n    %s" % (
                    key, "\n    ".join(map(repr, requests)))))
        return found

    def close(self):
        self.file.close()
