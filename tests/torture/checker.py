"""Checks what the programs did, by their own records and by one clock (actor.c).

A life is one start of the program, with all processes that came of it. It acts from the first of
its records to the last one. Two lives must share no instant, and epochs must grow.
"""
import struct

RECORD = struct.Struct("<QQqI12s")  # struct record of actor.c


class Life:
    def __init__(self, node, epoch, at_ns, election=""):
        self.node, self.epoch, self.election = node, epoch, election
        self.first_ns = self.last_ns = at_ns
        self.pids = set()

    @property
    def who(self):
        return "%s in %s" % (self.node, self.election) if self.election else self.node

    def act(self, pid, at_ns):
        self.pids.add(pid)
        self.first_ns = min(self.first_ns, at_ns)
        self.last_ns = max(self.last_ns, at_ns)

    def __repr__(self):
        return "%s epoch %d [%.3f, %.3f] s, pids %s" % (
            self.who, self.epoch, self.first_ns / 1e9, self.last_ns / 1e9,
            " ".join(map(str, sorted(self.pids))))


class Records:
    """The file of records, read on from where it was left. A record's node is HOST, or
    ELECTION:HOST.PROGRAM where there are several."""

    def __init__(self, path, elections=("",)):
        self.file = open(path, "rb")
        self.rest = b""
        self.lives = {}
        self.last_of = dict.fromkeys(elections, 0)  # by election: its last act

    def read(self):
        data = self.rest + self.file.read()
        whole = len(data) - len(data) % RECORD.size
        self.rest = data[whole:]
        for life, epoch, at_ns, pid, node in RECORD.iter_unpack(data[:whole]):
            one = self.lives.get((life, node))
            if not one:
                election, _, program = node.rstrip(b"\0").decode().rpartition(":")
                one = Life(program.partition(".")[0], epoch, at_ns, election)
                self.lives[life, node] = one
            one.act(pid, at_ns)
            self.last_of[one.election] = max(self.last_of[one.election], at_ns)

    @property
    def last_ns(self):
        """Of the election in which nobody has acted for longest."""
        return min(self.last_of.values())

    def in_order(self):
        return sorted(self.lives.values(), key=lambda one: one.first_ns)

    def by_election(self):
        """Their lives in order."""
        lives = self.in_order()
        return [[one for one in lives if one.election == election] for election in self.last_of]

    def leader(self, since_ns):
        """The node that acted last, if it has since then."""
        last = max(self.lives.values(), key=lambda one: one.last_ns, default=None)
        return last.node if last and last.last_ns >= since_ns else None

    def close(self):
        self.file.close()


def overlaps(lives):
    """[(earlier, later)] of lives by their beginning: the later began before the earlier ended."""
    found, latest = [], None
    for life in lives:
        if latest and life.first_ns <= latest.last_ns:
            found.append((latest, life))
        if not latest or life.last_ns > latest.last_ns:
            latest = life
    return found


def epochs_back(lives):
    """[(earlier, later)]: a later leader of a lower epoch, or of the same one on another node, is
    refused by every store that remembers the earlier one."""
    found, highest = [], None
    for life in lives:
        if highest and (life.epoch < highest.epoch or
                        life.epoch == highest.epoch and life.node != highest.node):
            found.append((highest, life))
        if not highest or life.epoch > highest.epoch:
            highest = life
    return found


class Patience:
    """How long a group with a healthy quorum may be without an act."""

    def __init__(self, limit_ns):
        self.limit_ns = limit_ns
        self.healthy_since_ns = None

    def is_over(self, now_ns, last_act_ns, is_healthy):
        if not is_healthy:
            self.healthy_since_ns = None
        elif self.healthy_since_ns is None:
            self.healthy_since_ns = now_ns
        return is_healthy and now_ns - max(self.healthy_since_ns, last_act_ns) > self.limit_ns
