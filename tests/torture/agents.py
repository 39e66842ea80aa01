"""Agents: one on each host, and programs that lead elections and use keys through it."""
import os

from ground import LIBRARY, RaftGround, boot_ns, program
from harness import BATON
from locks import Marks, story, turns_of

CLIENTS = 2  # on each host
ELECTIONS = ("x0", "x1", "x2")
CLIENT_LEASES = ("1500ms", "3s", "1s", "2s")  # by setting
AGAIN_NS = 500000000  # between two starts of a client


class AgentsGround(RaftGround):
    """The node of a host is its agent. Every client takes part in all elections; the first one of
    each host reads and writes keys, too."""

    elections = ELECTIONS

    def __init__(self, count, dice, clients=CLIENTS):
        super().__init__(count, dice)
        for host in self.hosts_of.values():
            host.restrict([LIBRARY])
        self.clients = {name: [None] * clients for name in self.names}
        self.began_ns = {}  # of a client's start
        self.marks = None

    def open_files(self):
        super().open_files()
        self.marks = Marks(self.path("locks"))

    def socket(self, name):
        return os.path.join(self.disk(name), "agent.sock")

    def words(self, name):
        return [os.path.abspath(BATON), "agent", *self.arguments(name), "--checkpoint", "3s",
                "--socket", self.socket(name), "--client-lease",
                CLIENT_LEASES[self.hosts_of[name].setting]]

    def words_of_client(self, name, number):
        return [program("torture_member"), "agent:" + self.socket(name), ",".join(ELECTIONS),
                "%s.%d" % (name, number), self.path("records"), self.path("store"),
                self.path("history") if number == 0 else "", self.path("locks")]

    def tend(self, name):
        ended = []
        for number, client in enumerate(self.clients[name]):
            if client and client.poll() is None or not self.may_start(name, number):
                continue
            if client:
                ended.append(client.returncode)
            self.began_ns[name, number] = boot_ns()
            self.clients[name][number] = self.launch(name, self.words_of_client(name, number))
        return ended

    def may_start(self, name, number):
        return boot_ns() > self.began_ns.get((name, number), 0) + AGAIN_NS and \
            os.path.exists(self.socket(name))

    def started(self, name):
        return [*super().started(name), *filter(None, self.clients[name])]

    def unlinear_locks(self):
        self.marks.read()
        found = []
        for election, lives in zip(self.elections, self.records.by_election()):
            turns = turns_of(lives, self.marks.of(election))
            self.turns += len(turns)
            what = story(turns)
            if what:
                found.append("the turns of election %s are not linearizable:\n    %s" % (
                    election, what))
        return found

    def close(self):
        super().close()
        if self.marks:
            self.marks.close()
