"""A run of one group: storms of faults, calms in which somebody must act, and what was found."""
import collections
import random
import signal
import sys
import time

import nemeses
from agents import AgentsGround
from checker import Patience, epochs_back, overlaps
from ground import KeysGround, RaftGround, RedisGround, TunnelGround, boot_ns

STORM_S = 8  # of faults, before all of them end and somebody must act
AROUND_NS = 5000000000  # of the timeline that is shown
CRASHES = (-4, -6, -7, -8, -11, 132, 134, 135, 136, 139)  # as exit codes
SETTLED_KINDS = {"d": "/witness", "e": "/learner"}

GROUNDS = {
    "raft3": (lambda dice: RaftGround(3, dice), nemeses.RAFT),
    "redis": (lambda dice: RedisGround(3, dice), nemeses.REDIS),
    "raft5": (lambda dice: RaftGround(5, dice, SETTLED_KINDS), nemeses.RAFT),
    "keys": (lambda dice: KeysGround(3, dice), nemeses.KEYS),
    "agents": (lambda dice: AgentsGround(3, dice), nemeses.AGENTS),
    "tunnels": (lambda dice: TunnelGround(3, dice), nemeses.TUNNELS),
}


class Interrupted(Exception):
    pass


class HarnessFailed(Exception):
    pass


class Stop:
    """SIGINT and SIGTERM are only noted, and obeyed where nothing is left half done."""

    def __init__(self):
        self.by = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.note)

    def note(self, number, _):
        self.by = signal.Signals(number).name

    def obey(self):
        if self.by:
            raise Interrupted(self.by)


class Run:
    """One group, from its first start to its end."""

    def __init__(self, name, options, kinds, seconds, stop):
        self.name, self.options, self.kinds, self.stop = name, options, kinds, stop
        self.dice = random.Random("%s %d" % (name, options.seed))
        self.seconds = seconds
        self.ground = GROUNDS[name][0](self.dice)
        if options.kinds:
            for host in self.ground.hosts_of.values():
                host.restrict(options.kinds.split(","))
        self.ground.tell = self.tell
        self.nemeses = nemeses.Nemeses(self.ground, self.tell)
        self.patience = Patience(nemeses.PATIENCE_S * 10**9)
        self.events = []  # (when, what), for the timeline
        self.found = collections.Counter()
        self.excused = set()  # lives that acted beside another one, where that is not promised
        self.seen = set()  # violations that were shown
        self.store_lines = 0

    def tell(self, what):
        self.events.append((boot_ns(), what))
        if self.options.verbose:
            say("    " + what)

    def play(self):
        ground, end = self.ground, time.monotonic() + self.seconds
        ground.open()
        for name in ground.names:
            ground.start(name)
        self.calm()
        while time.monotonic() < end and not self.found["stuck"]:
            self.storm(min(time.monotonic() + STORM_S, end))
            self.nemeses.over.set()
            while self.nemeses.is_striking():
                self.look()
                time.sleep(0.05)
            self.nemeses.over.clear()
            for what in self.nemeses.undone:
                self.violation("stuck", what, boot_ns(), what)
            self.calm()
            progress(self)
        self.look_at_histories(nemeses.FOREVER_NS)
        for what in ground.unlinear_locks():
            self.violation("unlinear", what, boot_ns(), what)

    def storm(self, end):
        while time.monotonic() < end and not self.found["stuck"]:
            plan = nemeses.Plan(self.dice, self.kinds)
            self.nemeses.begin(plan)
            next_at = min(time.monotonic() + plan.wait_s, end)
            while time.monotonic() < next_at:
                self.look()
                time.sleep(0.05)

    def calm(self):
        """All faults are over: waits until somebody acts, or for too long."""
        for life in self.excused:
            self.ground.end_life(life)
        since_ns = boot_ns()
        while not self.found["stuck"]:
            self.look()
            if self.ground.records.last_ns > since_ns:
                return
            time.sleep(0.05)

    def look(self):
        self.stop.obey()
        if self.nemeses.failures:
            raise HarnessFailed("; ".join(self.nemeses.failures))
        ground = self.ground
        for name, code in self.nemeses.revive():
            self.tell("%s had ended with %s" % (name, code))
            if code is not None and code in CRASHES:
                self.violation("crashes", (name, code, boot_ns()), boot_ns(),
                               "%s ended with %s" % (name, code))
        ground.records.read()
        for lives in ground.records.by_election():
            self.look_at_lives("overlaps", overlaps(lives))
            self.look_at_lives("lost_fenced", epochs_back(lives))
        self.look_at_store()
        ground.histories.read()
        self.look_at_histories(boot_ns())
        if self.patience.is_over(boot_ns(), ground.records.last_ns,
                                 ground.is_healthy(self.nemeses.busy)):
            self.violation("stuck", "nobody acts", ground.records.last_ns,
                           "nobody acts, though a quorum has been healthy for %d s"
                           % nemeses.PATIENCE_S)

    def look_at_lives(self, kind, pairs):
        for earlier, later in pairs:
            if kind == "overlaps" and self.nemeses.excused(earlier, later):
                self.excused.add(earlier)
            elif self.violation(kind, (earlier.election, earlier.first_ns), later.first_ns,
                                "%s\n    %s" % (self.story(earlier), self.story(later))):
                self.ground.end_life(earlier)

    def story(self, life):
        """What befell its host while it acted, and shortly before."""
        faults = [what for when, what in self.events
                  if (" at %s for " % life.node) in what and
                  life.first_ns - AROUND_NS < when < life.last_ns]
        return "%s, %s; its host saw: %s" % (life, self.ground.kinds_of(life),
                                             ", ".join(faults) or "nothing")

    def look_at_store(self):
        with open(self.ground.path("store.log"), encoding="utf-8") as file:
            lines = file.readlines()
        for line in lines[self.store_lines:]:
            self.violation("lost_fenced", line, boot_ns(), line.strip())
        self.store_lines = len(lines)

    def look_at_histories(self, now_ns):
        for key, what in self.ground.histories.judge(now_ns):
            self.violation("unlinear", (key, what), boot_ns(), what)

    def violation(self, kind, key, at_ns, what):
        """Counts it, and shows it, if it is new."""
        if (kind, key) in self.seen:
            return False
        self.seen.add((kind, key))
        self.found[kind] += 1
        say("VIOLATION %s, ground %s:\n    %s" % (kind, self.name, what))
        self.show_timeline(at_ns)
        return True

    def show_timeline(self, at_ns):
        lines = [(when, what) for when, what in self.events]
        for life in self.ground.records.in_order():
            lines += [(life.first_ns, "%s begins to act, epoch %d" % (life.who, life.epoch)),
                      (life.last_ns, "%s acts for the last time, epoch %d" % (
                          life.who, life.epoch))]
        for when, what in sorted(lines):
            if abs(when - at_ns) < AROUND_NS:
                say("    %+9.3f s  %s" % ((when - at_ns) / 1e9, what))

    def close(self):
        self.nemeses.over.set()
        is_kept = any(self.found.values()) or self.nemeses.failures or self.options.keep
        if is_kept:
            with open(self.ground.path("timeline"), "w", encoding="utf-8") as file:
                file.writelines("%.6f %s\n" % (when / 1e9, what) for when, what in self.events)
            self.ground.keep_disks()
            say("logs are kept in %s" % self.ground.dir)
        self.ground.close()
        if not is_kept:
            self.ground.forget()


def say(text):
    print(text, file=sys.stderr, flush=True)


def progress(run):
    judged = run.ground.histories.judged
    say("%s: %d leaderships, %d faults%s" % (
        run.name, len(run.ground.records.lives), sum(run.nemeses.counts.values()),
        ", %d requests" % judged if judged else ""))
