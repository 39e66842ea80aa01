"""The faults of the nodes. Each method begins one, holds it, ends it, and is counted.

Which faults, where and for how long is drawn from the seed alone; what comes of it, on the machine
too. Faults overlap: each runs in a thread of its own, and no two of them on one host.
"""
import collections
import itertools
import os
import random
import shutil
import signal
import threading
import time

from ground import LIBRARY, boot_ns, send
from harness import end_tracer

PATIENCE_S = 30  # with a group that is healthy
LONGEST_S = 5.0  # of a fault: longer than a lease and what comes after it
AGAIN_NS = 500000000  # between two starts of a node that ends by itself
FRESH_NS = 300000000
FOREVER_NS = 1 << 63
THAW_NS = 1000000000  # in which a program is stopped whose lease ended while all was frozen
AGAIN_S = 0.1  # in which a wrapper is started again at once
PARTS = ("wrapper", "guardian", "supervisor", "cmd")
ALL_OF_OURS = {"wrapper", "guardian", "supervisor"}
METHODS = {"pass": "pass_leadership"}  # where the word is Python's own

# How often each fault, by its kind. A word after the kind names the processes that it strikes.
ANYWHERE = {
    "pause wrapper": 4, "pause guardian": 1, "pause supervisor": 1, "pause cmd": 1,
    "pause wrapper+guardian": 1, "pause wrapper+supervisor": 1, "pause guardian+supervisor": 1,
    "pause wrapper+cmd": 1, "pause guardian+cmd": 1, "freeze": 1,
    "kill wrapper": 5, "kill guardian": 2, "kill supervisor": 2, "kill cmd": 2,
    "kill wrapper+guardian": 2, "kill wrapper+supervisor": 1, "kill guardian+supervisor": 1,
    "kill wrapper+cmd": 1, "kill guardian+cmd": 1, "kill supervisor+cmd": 1,
    "kill wrapper+guardian+supervisor": 1, "kill wrapper+guardian+supervisor+cmd": 1,
    "restart-at-once": 4, "pause-and-restart guardian": 2, "pause-and-restart supervisor": 2,
    "end": 2, "settings": 2,
    "cut-off": 3, "deaf": 2, "mute": 2, "one-way": 3, "loss": 2, "disk-stalls": 2,
    "wall-jumps": 1, "space-torn": 1,
}
RAFT = {**ANYWHERE, "disk-full": 2, "part": 2, "repair": 3, "forget": 1, "restore": 1,
        "join-nobody": 1, "pass": 1}
# One at a time: what was forgotten by two of three is lost. And none waits for another with its
# host down, which would leave the other's group without a quorum.
OPERATED = {"repair", "forget", "restore", "join-nobody"}
TUNNELS = {**ANYWHERE, "tunnel-dies": 8, "disk-full": 1}
KEYS = {"pause wrapper": 3, "freeze": 1, "kill wrapper": 4, "kill guardian": 1, "kill-all": 4,
        "restart-at-once": 3, "end": 2, "settings": 1, "cut-off": 3, "deaf": 3, "mute": 3,
        "one-way": 4, "part": 2, "loss": 2, "disk-full": 2, "disk-stalls": 2, "wall-jumps": 1}
AGENTS = {**KEYS, "kill-all": 2, "client-stops": 5, "client-dies": 5, "pause cmd": 1,
          "kill wrapper+guardian+cmd": 2, "space-torn": 1}
REDIS = {**ANYWHERE, "server-stops": 2, "server-restarts": 1, "pass": 1}


class Plan:
    """One fault, drawn whole, so that the plans of a seed are the same whatever they meet."""

    def __init__(self, dice, kinds):
        self.kind = dice.choices(list(kinds), list(kinds.values()))[0]
        self.aims_at_leader = dice.random() < 0.7  # the others' troubles move less
        self.at = dice.random()
        self.lasts_s = dice.choice([0.3, LONGEST_S]) * dice.random()
        self.wait_s = dice.choice([0.1, 2.0]) * dice.random()
        self.dice = random.Random(dice.random())


class Nemeses:
    """`tell` is called with what happens, for the timeline."""

    def __init__(self, ground, tell):
        self.ground, self.tell = ground, tell
        self.counts = collections.Counter()
        self.over = threading.Event()  # set: faults that hold on end at once
        self.lock = threading.Lock()
        self.busy = set()  # hosts on which something happens now
        self.excuses = []  # (host, from when, until when)
        self.operating = threading.Lock()  # held by one of OPERATED
        self.threads = []
        self.failures = []  # of the harness
        self.undone = []  # what operators could not do in a healthy group

    # ---- which, where and when

    def victim(self, plan):
        free = [name for name in self.places(plan) if name not in self.busy]
        leader = self.ground.records.leader(boot_ns() - FRESH_NS)
        if plan.aims_at_leader and leader in free:
            return leader
        return free[int(plan.at * len(free))] if free else None

    def places(self, plan):
        return ["redis"] if plan.kind.startswith("server") else self.ground.names

    def begin(self, plan):
        with self.lock:
            name = self.victim(plan)
            if not name or (plan.kind in OPERATED and not self.operating.acquire(blocking=False)):
                return
            self.busy.add(name)
        self.counts[plan.kind] += 1
        thread = threading.Thread(target=self.strike, args=(name, plan), daemon=True)
        self.threads.append(thread)
        thread.start()

    def strike(self, name, plan):
        verb, _, parts = plan.kind.partition(" ")
        self.tell("%s at %s for %.2f s" % (plan.kind, name, plan.lasts_s))
        try:
            method = getattr(self, METHODS.get(verb, verb.replace("-", "_")))
            if parts:
                method(name, plan, parts.split("+"))
            else:
                method(name, plan)
        except Exception as error:  # pylint: disable=broad-except  # reported by the main thread
            self.failures.append("%s at %s: %r" % (plan.kind, name, error))
        self.tell("%s at %s is over" % (plan.kind, name))
        if plan.kind in OPERATED:
            self.operating.release()
        with self.lock:
            self.busy.discard(name)

    def hold(self, plan):
        self.over.wait(plan.lasts_s)

    def end(self, name, plan):
        """SIGTERM, as a service manager does it."""
        self.ground.signal(name, signal.SIGTERM)
        self.hold(plan)

    def is_striking(self):
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        return bool(self.threads)

    def revive(self):
        """Starts again what ended, outside of faults; [(name, exit code)]."""
        ended = []
        for name in self.ground.names:
            with self.lock:
                if name in self.busy:
                    continue
                ended += [(name, code) for code in self.ground.tend(name)]
                if self.ground.running(name) or not self.may_start(name):
                    continue
                ended.append((name, self.ground.reap(name)))
                self.ground.start(name)
        return ended

    def may_start(self, name):
        """As a service manager does: not again and again at once."""
        last_ns = next(when for when, one, _ in reversed(self.ground.born) if one == name)
        return boot_ns() > last_ns + AGAIN_NS

    # ---- what is not promised (docs/guardian.md); only the epoch helps there

    def excuse(self, name):
        """From now on, programs that act already at that host may act beside the next leader's.
        Returns what ends the excuse."""
        where, begin_ns = len(self.excuses), boot_ns()
        self.excuses.append((name, begin_ns, FOREVER_NS))

        def end():
            self.excuses[where] = (name, begin_ns, boot_ns() + THAW_NS)
        return end

    def excused(self, life, later):
        return any(name == life.node and life.first_ns <= begin_ns <= later.first_ns <= end_ns and
                   life.last_ns <= end_ns for name, begin_ns, end_ns in self.excuses)

    def leaves_nobody(self, name, parts):
        """Whether nobody is left at that host who finds the program: a supervisor holds whatever
        came of it, and after it the wrapper; a guardian knows its cgroup, and its environment if
        that can be read."""
        host = self.ground.hosts_of[name]
        is_hidden = "opaque" in host.kinds and not host.has_cgroup
        return {"wrapper", "supervisor"} <= set(parts) and (is_hidden or "guardian" in parts)

    # ---- processes

    def pause(self, name, plan, parts):
        is_promised = self.ground.hosts_of[name].kinds == LIBRARY or not ALL_OF_OURS <= set(parts)
        end_excuse = None if is_promised else self.excuse(name)
        pids = self.pids(name, plan, parts)
        for pid in pids:
            send(pid, signal.SIGSTOP)
        self.hold(plan)
        for pid in pids:
            send(pid, signal.SIGCONT)
        if end_excuse:
            end_excuse()

    def client_stops(self, name, plan):
        self.strike_client(name, plan, signal.SIGSTOP)

    def client_dies(self, name, plan):
        self.strike_client(name, plan, signal.SIGKILL)

    def strike_client(self, name, plan, number):
        """One of the programs that lead through the host's agent."""
        pids = self.pids(name, plan, ["cmd"])[:1]
        for pid in pids:
            send(pid, number)
        self.hold(plan)
        for pid in pids:
            send(pid, signal.SIGCONT)

    def freeze(self, name, plan):
        """All at once, as a virtual machine is frozen."""
        self.pause(name, plan, PARTS)

    def kill(self, name, plan, parts):
        if self.leaves_nobody(name, parts):
            self.excuse(name)
        for pid in self.pids(name, plan, parts):
            send(pid, signal.SIGKILL)
        self.hold(plan)

    def kill_all(self, _, plan):
        """All nodes of the group, within a moment: what was acknowledged is on the disks."""
        pids = [pid for name in self.ground.names for pid in self.ground.pids(name, "wrapper")]
        plan.dice.shuffle(pids)
        for pid in pids:
            send(pid, signal.SIGKILL)
        self.hold(plan)

    def pids(self, name, plan, parts):
        pids = self.ground.pids(name, *parts)
        plan.dice.shuffle(pids)
        return pids

    def wrapper_again(self, name, plan):
        self.ground.kill(name)
        self.over.wait(AGAIN_S * plan.dice.random())
        self.ground.hosts_of[name].draw_kinds(plan.dice)
        self.ground.start(name)

    def restart_at_once(self, name, plan):
        self.wrapper_again(name, plan)
        self.hold(plan)

    def pause_and_restart(self, name, plan, parts):
        """The wrapper is restarted at once while those are stopped."""
        pids = self.pids(name, plan, parts)
        for pid in pids:
            send(pid, signal.SIGSTOP)
        self.wrapper_again(name, plan)
        self.hold(plan)
        for pid in pids:
            send(pid, signal.SIGCONT)

    def settings(self, name, plan):
        """Ends the node, and starts it with others."""
        host = self.ground.hosts_of[name]
        self.ground.signal(name, signal.SIGTERM)
        self.hold(plan)
        host.setting = plan.dice.randrange(4)
        host.draw_kinds(plan.dice)

    def wall_jumps(self, name, plan):
        self.ground.jump_wall(name, plan.dice.choice([-86400, -60, 5, 3600]))
        self.hold(plan)
        self.ground.jump_wall(name, 0)

    # ---- networks

    def others(self, name):
        return [one for one in self.ground.network.hosts if one != name]

    def cut(self, plan, some, others, both):
        network = self.ground.network
        with self.lock:
            cuts = network.part(some, others) if both else [network.deafen(some, others)]
        self.hold(plan)
        with self.lock:
            network.mend(*cuts)

    def cut_off(self, name, plan):
        self.cut(plan, [name], self.others(name), True)

    def deaf(self, name, plan):
        self.cut(plan, [name], self.others(name), False)

    def mute(self, name, plan):
        self.cut(plan, self.others(name), [name], False)

    def one_way(self, name, plan):
        """Packets from one host to one other are dropped, those back to it pass."""
        pair = [name, plan.dice.choice(self.others(name))]
        plan.dice.shuffle(pair)
        self.tell("%s hears nothing from %s" % tuple(pair))
        self.cut(plan, pair[:1], pair[1:], False)

    def part(self, name, plan):
        """It and one more, from the others, or only from one of these: a bridge."""
        beside, *far = self.others(name)
        self.cut(plan, [name, beside], far if plan.at < 0.5 else far[:1], True)

    def loss(self, name, plan):
        with self.lock:
            self.ground.network.lose(name, 10 + plan.dice.randrange(40))
        self.hold(plan)
        with self.lock:
            self.ground.network.lose(name, 0)

    def space_torn(self, name, plan):
        """The host's network is gone, then its processes; it comes up with another one."""
        self.ground.network.detach(name)
        self.hold(plan)
        self.ground.end_all(name)
        with self.lock:
            self.ground.network.remake(name)
        self.ground.rebuilt(name)

    def tunnel_dies(self, name, plan):
        """Those that lead to a node, where its peers are; or all of its own host."""
        is_of_host = plan.dice.random() < 0.3
        ends = [(one, to) for one, to in self.ground.tunnels
                if (one == name if is_of_host else to == name != one)]
        for end in ends:
            self.ground.tunnels[end].kill()
            self.ground.tunnels[end].wait()
        self.hold(plan)
        for end in ends:
            self.ground.dig(*end)

    # ---- disks

    def disk_full(self, name, plan):
        """A node whose storage has failed ends with 74, and is started anew."""
        path = os.path.join(self.ground.disk(name), "filler")
        before = self.ground.log(name).count("storage-failed")
        try:
            with open(path, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(65536))
        except OSError:
            pass
        self.hold(plan)
        os.remove(path)
        if self.ground.log(name).count("storage-failed") > before:
            self.ground.end_all(name)

    def disk_stalls(self, name, plan):
        """Each fdatasync of the wrapper takes a second and more, as long as it lasts."""
        stall_us = 1000000 + plan.dice.randrange(3000000)
        tracer = self.ground.helper(  # it dies with this thread, and so with the harness
            "setpriv", "--pdeathsig", "KILL",
            "strace", "-f", "-p", str(self.ground.processes[name].pid), "-o", "/dev/null",
            "-e", "trace=fdatasync,fsync", "-e",
            "inject=fdatasync,fsync:delay_enter=%d" % stall_us)
        self.hold(plan)
        end_tracer(tracer)

    # ---- operators

    def repair(self, name, plan):
        """As docs/operations.md says: leave, an empty directory, join under the same name."""
        self.ground.end_all(name)
        self.hold(plan)
        self.leave_and_join(name)

    def leave_and_join(self, name):
        ground = self.ground
        ground.end_all(name)
        if not self.operate(name, "leave", name):
            return
        ground.empty_data(name)
        ground.hosts_of[name].is_joined = True
        ground.start(name)
        self.operate(name, "join", "%s=%s%s" % (
            name, ground.address(name), ground.hosts_of[name].suffix))

    def forget(self, name, plan):
        """The directory is emptied, and the node started all the same; then it is repaired."""
        self.ground.end_all(name)
        self.ground.empty_data(name)
        self.ground.start(name)
        self.hold(plan)
        self.leave_and_join(name)

    def restore(self, name, plan):
        """The same with an older copy of the directory."""
        self.ground.end_all(name)
        self.ground.copy_data(name)
        self.ground.start(name)
        self.hold(plan)
        self.ground.end_all(name)
        self.ground.restore_data(name)
        self.ground.start(name)
        self.hold(plan)
        self.leave_and_join(name)

    def join_nobody(self, name, plan):
        """A voter is to join at an address where nothing answers: the group must not suffer."""
        code, said = self.ground.operator(
            name, "join", "--data", self.ground.data(name), "--timeout", "5s",
            "x=%s" % self.ground.nowhere())
        self.tell("baton join x at %s: %d %s" % (name, code, said))
        self.hold(plan)
        if code in (0, 124):
            self.operate("x", "leave", "x")

    def operate(self, about, verb, member):
        """Asks one node and then another, as a person does; in a healthy group it must work."""
        others = [one for one in self.ground.names if one != about]
        healed_at = None
        for name in itertools.cycle(others):
            code, said = self.ground.operator(name, verb, "--data", self.ground.data(name), member,
                                              "--timeout", "10s")
            self.tell("baton %s %s at %s: %d %s" % (verb, member, name, code, said))
            # It may have left in an earlier try, whose leader was killed before it could say so.
            has_left = verb == "leave" and "not in the group" in said
            if code == 0 or has_left:
                return True
            if self.over.is_set() and not healed_at:
                healed_at = time.monotonic()
            if healed_at and time.monotonic() > healed_at + PATIENCE_S:
                self.undone.append("baton %s %s at %s: %d %s" % (verb, member, name, code, said))
                return False
            time.sleep(0.5)

    def pass_leadership(self, name, plan):
        to = plan.dice.choice([one for one in self.ground.electable() if one != name])
        code, said = self.ground.operator(name, "pass", "--data", self.ground.data(name),
                                          "--timeout", "3s", "--to", to)
        self.tell("baton pass %s at %s: %d %s" % (to, name, code, said))

    # ---- the Redis server

    def server_stops(self, _, plan):
        self.ground.server.send_signal(signal.SIGSTOP)
        self.hold(plan)
        self.ground.server.send_signal(signal.SIGCONT)

    def server_restarts(self, _, plan):
        """With its data, or without them."""
        server = self.ground.server
        server.kill()
        server.wait()
        if plan.dice.random() < 0.5:
            shutil.rmtree(os.path.join(self.ground.dir, "appendonlydir"), ignore_errors=True)
        self.over.wait(min(plan.lasts_s, 1))
        self.ground.start_server()
