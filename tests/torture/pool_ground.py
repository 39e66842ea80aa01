"""Workers of a pool, through the agents of their hosts."""
import json
import os

from agents import AgentsGround
from ground import program
from harness import BATON

STRATEGIES = ("round-robin", "least-loaded", "capability", "priority")
REBALANCES = ("0", "1s", "5s")
DISK_BYTES = 128 << 20  # at most; an hour of items and their results


class PoolGround(AgentsGround):
    """Workers a0, a1, … on host a. Lives of a worker differ in their settings."""

    disk_bytes = DISK_BYTES

    def __init__(self, count, dice, workers):
        super().__init__(count, dice, clients=0)
        self.dice = dice
        self.workers = {name + str(i): None for name in self.names for i in range(workers)}

    def start_worker(self, worker):
        self.workers[worker] = self.launch(worker[0], self.words_of_worker(worker))

    def words_of_worker(self, worker):
        return [os.path.abspath(BATON), "worker", *self.pool_of(worker[0]), "--worker", worker,
                "--slots", "2", "--memory-mib", "1024", "--report-interval", "200ms", "--silence",
                "1s", "--stop-timeout", "500ms", "--strategy", self.dice.choice(STRATEGIES),
                "--rebalance-every", self.dice.choice(REBALANCES), "--log-level", "info",
                *(["--never-lead"] if self.dice.random() < 0.2 else [])]

    def pool_of(self, name):
        return ["--provider", "agent:" + self.socket(name)]

    def submission(self, name, words):
        """The words of a client's process on that host."""
        return self.in_space(name, os.path.abspath(BATON), "work", "submit", *self.pool_of(name),
                             "--json", "--retries", "1000", "--backoff", "20ms", "--timeout", "2s",
                             *words)

    def job(self, milliseconds, kind):
        return [program("torture_job"), self.path("records"), str(milliseconds), kind]

    def ledger(self, name):
        """{id: its entry} as a client of that host sees it; None: it does not see it now."""
        code, said = self.operator(name, "work", "ls", *self.pool_of(name), "--json", "--timeout",
                                   "5s", "--log-level", "error")
        return {entry["id"]: entry for entry in json.loads(said)} if code == 0 else None

    def cancellation(self, name, item):
        return self.in_space(name, os.path.abspath(BATON), "work", "cancel", *self.pool_of(name),
                             item)

    def started(self, name):
        return [*super().started(name), *(process for worker, process in self.workers.items()
                                          if process and worker[0] == name)]

    def dead_workers(self):
        return [worker for worker, process in self.workers.items()
                if process is None or process.poll() is not None]

    def parts(self, name):
        """{part: [pid]} of what runs on a host: agent, guardian, worker, supervisor, foreman, job,
        client."""
        found, agent = {}, self.processes.get(name)
        workers = {process.pid for process in self.workers.values() if process}
        for pid in self.pids(name):
            part = part_of(pid, agent and agent.pid, workers)
            if part:
                found.setdefault(part, []).append(pid)
        return found

    def chains(self):
        """{part: pid} of each job that runs: itself and its ancestors, up to its worker."""
        found, workers = [], {process.pid for process in self.workers.values() if process}
        for pid in [pid for name in self.names for pid in self.parts(name).get("job", ())]:
            try:
                chain = {"job": pid}
                for part in ("foreman", "supervisor", "worker"):
                    pid = chain[part] = parent_of(pid)
            except OSError:
                continue  # it has ended
            if pid in workers:
                found.append(chain)
        return found


def part_of(pid, agent, workers):
    """None: it is gone, or it only enters the host."""
    try:
        name = os.path.basename(os.readlink("/proc/%d/exe" % pid))
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read().split(b"\0")
        if name.startswith("baton-guardian") or name == "torture_job":
            return "job" if name == "torture_job" else "guardian"
        if name != "baton":
            return None
        if pid == agent or pid in workers:
            return "agent" if pid == agent else "worker"
        if words[1:2] == [b"work"]:
            return "client"
        return "foreman" if parent_of(parent_of(pid)) in workers else "supervisor"
    except OSError:
        return None


def parent_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])
