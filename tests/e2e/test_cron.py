"""`baton cron`: a crontab that runs on one node of a group.

Judged by what the commands did: each writes (line, scheduled instant, attempt, node, time) when it
starts, every few milliseconds while it lives, and when it ends. No two commands of a line
may live at once, and every instant ends at most once. A command waits for the file "go" before it
ends, so that it is the test that decides what a fault meets.
"""
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from agents import Agent, LONG
from harness import (BATON, DEADLINE_S, Cluster, ClusterTest, baton, clean_environment, free_ports,
                     main, until)

PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# argv: the folder of records and "go".
ACTOR = r"""
import os, sys, time
folder = sys.argv[1]
records = os.open(folder + "/records", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
def note(what):
    os.write(records, ("%s %s %s %s %s %d\n" % (
        what, os.environ["BATON_CRON_LINE"], os.environ["BATON_CRON_FIRE"],
        os.environ["BATON_CRON_ATTEMPT"], os.environ["BATON_NODE"],
        time.clock_gettime_ns(time.CLOCK_BOOTTIME))).encode())
note("start")
while not os.path.exists(folder + "/go"):
    note("lives")
    time.sleep(0.005)
note("end")
"""

Run = collections.namedtuple("Run", "line fire attempt node")


class Hosts(Cluster):
    """Several `baton cron run` of one crontab; with the embedded provider they are the group."""

    def __init__(self, count, *flags, more=()):
        super().__init__(count, "--heartbeat-timeout", "3s", "--lease", "3s", *flags)
        self.more = list(more)
        self.file = os.path.join(self.dir, "crontab")
        self.script = os.path.join(self.dir, "actor.py")
        with open(self.script, "w", encoding="ascii") as file:
            file.write(ACTOR)
        self.act = "%s %s %s" % (PYTHON, self.script, self.dir)

    def write(self, *lines):
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(self.file + ".new", self.file)

    def go(self, goes=True):
        path = os.path.join(self.dir, "go")
        if goes:
            with open(path, "w", encoding="ascii"):
                pass
        elif os.path.exists(path):
            os.unlink(path)

    def start(self, name, *more, env=None, under=()):
        log = open(os.path.join(self.dir, name + ".log"), "ab")
        self.processes[name] = subprocess.Popen(
            [*under, BATON, "cron", "run", "--file", self.file, *self.arguments(name), *more],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=dict(clean_environment(), **(env or {})), start_new_session=True)
        log.close()

    def asking(self):
        """The flags of `baton cron ls`."""
        alive = [name for name in self.names if name in self.processes
                 and self.processes[name].poll() is None]
        return ["--data", self.data(alive[0])] if alive else None

    def ls(self):
        """{line: record}, or {} where nobody answers."""
        for name in self.names:
            if name in self.processes and self.processes[name].poll() is None:
                done = baton("cron", "ls", "--json", "--timeout", "5s", "--data", self.data(name))
                if done.returncode == 0:
                    return {line["line"]: line for line in json.loads(done.stdout)}
        return {}

    def records(self):
        try:
            with open(os.path.join(self.dir, "records"), encoding="ascii") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        text = text[:text.rfind("\n") + 1]  # one may be being written
        return [(what, Run(line, fire, int(attempt), node), int(now)) for what, line, fire, attempt,
                node, now in (record.split() for record in text.splitlines())]

    def runs(self, what, line=None):
        return [run for kind, run, _ in self.records()
                if kind == what and line in (None, run.line)]

    def lives(self):
        """{run: (first, last)}"""
        lives = {}
        for _, run, now in self.records():
            lives[run] = (lives.get(run, (now,))[0], now)
        return lives

    def logs(self):
        return "\n".join("%s:\n%s" % (name, self.log(name)) for name in self.processes)


class OnAgents(Hosts):
    """Each host has an agent, and the agents are a group."""

    def __init__(self, count):
        super().__init__(count)
        self.ports = dict(zip(self.names, free_ports(count)))
        self.agents = {}
        for name in self.names:
            folder = tempfile.mkdtemp(prefix="baton-agent-", dir="/tmp")
            peers = [word for other in self.names if other != name
                     for word in ("--peer", "%s=127.0.0.1:%d" % (other, self.ports[other]))]
            self.agents[name] = Agent(
                "--data", os.path.join(folder, "data"), "--listen",
                "127.0.0.1:%d" % self.ports[name], "--node", name, "--client-lease", "3s", *peers,
                folder=folder)

    def arguments(self, name):
        return ["--node", name, "--provider", "agent:" + self.agents[name].path, "--election", "n"]

    def ls(self):
        for agent in self.agents.values():
            done = baton("cron", "ls", "--json", "--election", "n", "--provider",
                         "agent:" + agent.path, "--timeout", "5s")
            if done.returncode == 0:
                return {line["line"]: line for line in json.loads(done.stdout)}
        return {}

    def close(self):
        super().close()
        for agent in self.agents.values():
            agent.close()


class OnRedis(Hosts):
    def __init__(self, count, port):
        super().__init__(count)
        self.url = "redis://127.0.0.1:%d?lease=3s&max-lease=3s" % port

    def arguments(self, name):
        return ["--node", name, "--data", self.data(name), "--provider", self.url]

    def ls(self):
        done = baton("cron", "ls", "--json", "--provider", self.url)
        self.ls_error = done.stderr
        return {line["line"]: line for line in json.loads(done.stdout)} \
            if done.returncode == 0 else {}


class CronTest(ClusterTest):
    def hosts(self, count, *lines, kind=Hosts, **more):
        hosts = kind(count, **more)
        self.addCleanup(hosts.close)
        hosts.write(*lines)
        return hosts

    def started(self, hosts, line, besides=()):
        """A run of that line which has started, and is not one of `besides`."""
        return until(lambda: [run for run in hosts.runs("start", line) if run not in besides],
                     lambda: "%s starts; %s" % (line, hosts.logs()))[-1]

    def check_apart(self, hosts):
        """No two commands of a line lived at once."""
        of_line = collections.defaultdict(list)
        for run, life in hosts.lives().items():
            of_line[run.line].append((life, run))
        for line, lives in of_line.items():
            lives.sort()
            for (one, run), (other, later) in zip(lives, lives[1:]):
                self.assertLess(one[1], other[0], "two at once: %s %s" % (run, later))
            self.assertTrue(line)

    def check_once(self, hosts):
        """No instant ended twice."""
        ended = collections.Counter((run.line, run.fire) for run in hosts.runs("end"))
        self.assertEqual([what for what, count in ended.items() if count > 1], [], hosts.logs())

    def check_accounts(self, hosts, line, period_s=1):
        """Each instant since the line was there counts once, and has come to its end."""
        def adds_up():
            record = hosts.ls().get(line)
            if not record or record["running"]:
                return False
            first = record["since"] - record["since"] % period_s + period_s
            due = (record["fire"] - first) // period_s + 1
            return due == sum(record[how] for how in ("runs", "interrupted", "skipped", "missed"))
        until(adds_up, lambda: "the accounts of %s add up: %s\n%s" % (
            line, hosts.ls().get(line), hosts.logs()))


class Faults(CronTest):
    def rerun_after(self, hosts, fault, wait=True):
        """A command is met by the fault of its node, and runs again elsewhere."""
        hosts.start_all()
        first = self.started(hosts, "job")
        fault(first.node)
        def again(what):
            return [run for run in hosts.runs(what, "job") if run.fire == first.fire and
                    run.attempt > first.attempt and run.node != first.node]
        until(lambda: again("start"), hosts.logs)
        hosts.go()
        until(lambda: again("end"), hosts.logs)
        until(lambda: hosts.ls().get("job", {}).get("last", {}).get("attempt", 0) > 1 or
              hosts.ls().get("job", {}).get("runs", 0) > 1, lambda: hosts.logs())
        self.assertNotIn(first, hosts.runs("end"))
        self.check_apart(hosts)
        self.check_once(hosts)

    JOB = ("# baton: name=job", "*/2 * * * * * %s")

    def job(self, hosts):
        hosts.write(self.JOB[0], self.JOB[1] % hosts.act)
        return hosts

    def test_a_leader_killed_during_a_command(self):
        hosts = self.job(self.hosts(3))
        self.rerun_after(hosts, hosts.kill)

    def test_a_leader_stopped_during_a_command(self):
        hosts = self.job(self.hosts(3))
        old = []
        def stop(name):
            old.append(name)
            hosts.signal(name, signal.SIGSTOP)
        self.rerun_after(hosts, stop)
        hosts.signal(old[0], signal.SIGCONT)
        until(lambda: "leadership-lost" in hosts.log(old[0]), "it has heard of it")
        self.check_once(hosts)
        self.assertIsNone(hosts.processes[old[0]].poll(), "it follows, and goes on")

    def test_the_same_through_agents(self):
        hosts = self.job(self.hosts(3, kind=OnAgents))
        self.rerun_after(hosts, hosts.kill)

    def test_a_process_stopped_that_leads_through_an_agent(self):
        hosts = self.job(self.hosts(2, kind=OnAgents))
        self.rerun_after(hosts, lambda name: hosts.signal(name, signal.SIGSTOP))

    def redis(self):
        port = free_ports(1)[0]
        folder = tempfile.TemporaryDirectory(prefix="baton-redis-")
        self.addCleanup(folder.cleanup)
        server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1",
                                   "--save", "", "--dir", folder.name], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.server = server
        until(lambda: subprocess.run(["redis-cli", "-p", str(port), "PING"], check=False,
                                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                                     ).stdout == b"PONG\n", "redis answers")
        return port

    def test_the_same_on_redis(self):
        hosts = self.job(self.hosts(3, kind=OnRedis, port=self.redis()))
        self.rerun_after(hosts, hosts.kill)

    def test_a_process_stopped_that_leads_on_redis(self):
        hosts = self.job(self.hosts(2, kind=OnRedis, port=self.redis()))
        self.rerun_after(hosts, lambda name: hosts.signal(name, signal.SIGSTOP))

    def test_a_leader_killed_between_fires(self):
        hosts = self.hosts(3)
        hosts.write("# baton: name=job", "* * * * * * " + hosts.act)
        hosts.go()
        hosts.start_all()
        for _ in range(3):
            seen = hosts.runs("end")
            last = until(lambda: [run for run in hosts.runs("end") if run not in seen],
                         hosts.logs)[-1]
            until(lambda: hosts.ls().get("job", {}).get("running") == [], "its end is stored")
            hosts.kill(last.node)
            until(lambda: [run for run in hosts.runs("end") if run.node != last.node and
                           run.fire > last.fire], hosts.logs)
            hosts.start(last.node)
        self.check_accounts(hosts, "job")
        self.check_apart(hosts)

    def test_a_leader_killed_right_at_a_fire(self):
        """The command does not end before another one leads: only what was claimed counts."""
        hosts = self.hosts(3)
        hosts.write("# baton: name=job", "* * * * * * " + hosts.act)
        hosts.start_all()
        old = self.started(hosts, "job").node
        for ms in (-3, 0, 1, 2, 4, 8):
            begun, seen = hosts.runs("start"), hosts.runs("end")
            hosts.go()
            until(lambda: [run for run in hosts.runs("end") if run not in seen], hosts.logs)
            until(lambda: hosts.ls().get("job", {}).get("running") == [], "its end is stored")
            hosts.go(False)
            now = time.time()
            time.sleep(max(0, int(now) + 1 + ms / 1000 - now))  # the fault's own schedule
            hosts.kill(old)
            # What the old one began may be written late, and is no sign of a new leader.
            run = until(lambda: [run for run in hosts.runs("start") if run not in begun and
                                 run not in hosts.runs("end") and run.node != old],
                        hosts.logs)[-1]
            hosts.start(old)
            old = run.node
        hosts.go()
        self.check_accounts(hosts, "job")
        self.check_apart(hosts)
        self.check_once(hosts)

    def test_an_interrupted_fire_does_not_run_again_if_its_line_says_so(self):
        hosts = self.hosts(3)
        hosts.write("# baton: name=job interrupted=skip", "*/2 * * * * * " + hosts.act)
        hosts.start_all()
        first = self.started(hosts, "job")
        hosts.kill(first.node)
        self.started(hosts, "job", besides=[first])
        hosts.go()
        self.check_accounts(hosts, "job", 2)
        self.assertEqual({run.attempt for run in hosts.runs("start")}, {1})
        self.assertNotIn(first, hosts.runs("end"))
        self.assertIn("it does not run again", hosts.logs())

    def test_what_is_missed_runs_once_or_not_at_all(self):
        hosts = self.hosts(1)
        hosts.write("# baton: name=once", "* * * * * * " + hosts.act,
                    "# baton: name=skip missed=skip", "* * * * * * " + hosts.act)
        hosts.go()
        hosts.start("a")
        until(lambda: hosts.runs("end", "once") and hosts.runs("end", "skip"), hosts.logs)
        hosts.kill("a")
        killed = time.time()
        until(lambda: time.time() > killed + 3, "some fires are missed")
        seen, back = hosts.runs("start"), time.time()
        hosts.start("a")
        def after(line):  # what the kill interrupted runs again as a second attempt
            return until(lambda: [run for run in hosts.runs("start", line) if run not in seen and
                                  run.attempt == 1], hosts.logs)[0]
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(back))
        self.assertGreaterEqual(after("skip").fire, at)
        after("once")
        self.check_accounts(hosts, "once")
        self.check_accounts(hosts, "skip")
        for line in ("once", "skip"):
            self.assertGreaterEqual(hosts.ls()[line]["missed"], 1)
        self.check_apart(hosts)

    def test_a_supervisor_that_is_killed_ends_the_wrapper_and_the_command_runs_elsewhere(self):
        hosts = self.job(self.hosts(3))
        def kill_supervisor(name):
            word = [w for w in hosts.log(name).split() if w.startswith("supervisor=")][-1]
            os.kill(int(word.split("=")[1]), signal.SIGKILL)
            self.assertEqual(hosts.processes[name].wait(timeout=DEADLINE_S), 1, hosts.log(name))
        self.rerun_after(hosts, kill_supervisor)

    def test_a_foreman_that_is_killed_fails_its_command_alone(self):
        hosts = self.hosts(1)
        hosts.write("# baton: name=one", "*/2 * * * * * " + hosts.act,
                    "# baton: name=other", "*/2 * * * * * exec " + hosts.act)
        hosts.start("a")
        self.started(hosts, "one")
        self.started(hosts, "other")
        actor = next(int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
                     if self.has(pid, b"BATON_CRON_LINE=other") and self.has(
                         pid, ("BATON_NODE=a\0", hosts.dir)))
        with open("/proc/%d/stat" % actor, encoding="ascii") as file:
            os.kill(int(file.read().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)
        until(lambda: hosts.ls().get("other", {}).get("last", {}).get("state") == "failed",
              hosts.logs)
        self.assertEqual(hosts.ls()["other"]["last"]["exit_code"], 128 + signal.SIGKILL)
        self.assertEqual(len(hosts.ls()["one"]["running"]), 1)

    def has(self, pid, what):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                environment = file.read()
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read()
        except OSError:
            return False
        if isinstance(what, bytes):
            return what in environment
        return what[0].encode() in environment and what[1].encode() in words

    def test_leadership_is_passed_on_when_the_command_has_ended(self):
        hosts = self.job(self.hosts(3))
        hosts.start_all()
        first = self.started(hosts, "job")
        passing = subprocess.Popen([BATON, "pass", "--data", hosts.data(first.node), "--timeout",
                                    "60s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=clean_environment())
        self.addCleanup(passing.communicate)
        self.addCleanup(passing.kill)
        until(lambda: "drain" in hosts.log(first.node), hosts.logs)
        self.assertIsNone(passing.poll())
        hosts.go()
        until(lambda: [run for run in hosts.runs("start") if run.node != first.node], hosts.logs)
        self.assertEqual(passing.wait(timeout=DEADLINE_S), 0)
        self.assertIn(first, hosts.runs("end"))
        self.check_once(hosts)
        self.check_apart(hosts)

    def test_sigterm_ends_it_though_the_server_does_not_answer(self):
        """The end of the command cannot be written, and the lease goes on for ten minutes."""
        port = self.redis()
        hosts = self.job(self.hosts(1, kind=OnRedis, port=port))
        hosts.url = "redis://127.0.0.1:%d?lease=600s&max-lease=600s&heartbeat-interval=5s" % port
        info = subprocess.run(["redis-cli", "-p", str(port), "INFO", "replication"], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout
        history = next(line[14:] for line in info.splitlines() if line.startswith("master_replid:"))
        subprocess.run(["redis-cli", "-p", str(port), "HSET", "default:epoch", "server", history,
                        "since", "0"], check=True, stdout=subprocess.DEVNULL)
        hosts.start("a", "--stop-timeout", "100ms")
        self.started(hosts, "job")
        self.server.send_signal(signal.SIGSTOP)
        hosts.signal("a", signal.SIGTERM)
        self.assertEqual(hosts.processes["a"].wait(timeout=DEADLINE_S), 0, hosts.log("a"))

    def test_sigterm_stops_the_command_and_hands_over(self):
        hosts = self.job(self.hosts(3))
        self.rerun_after(hosts, lambda name: hosts.signal(name, signal.SIGTERM))
        ended = [name for name in hosts.names if hosts.processes[name].poll() is not None]
        self.assertEqual([hosts.processes[name].returncode for name in ended], [0])


class Lines(CronTest):
    def alone(self, *lines, go=True):
        hosts = self.hosts(1)
        hosts.write(*[line.replace("ACT", hosts.act) for line in lines])
        hosts.go(go)
        hosts.start("a")
        return hosts

    def test_the_output_goes_to_the_log_and_its_end_to_the_record(self):
        hosts = self.alone("# baton: name=job", "V = \"a b\"",
                           "* * * * * * echo \"one $V\"; printf 'two\\tx'; cat; exit 4")
        record = until(lambda: (hosts.ls().get("job") or {}).get("last"), hosts.logs)
        self.assertEqual((record["state"], record["exit_code"]), ("failed", 4))
        self.assertEqual(record["output"], "one a b\ntwo x")
        self.assertIn('cron-output line=job text="one a b"', hosts.log("a"))

    def test_the_end_of_a_long_output_is_kept(self):
        hosts = self.alone("# baton: name=job", "* * * * * * seq 100000 | tr '\\n' ' '; echo end")
        record = until(lambda: (hosts.ls().get("job") or {}).get("last"), hosts.logs)
        self.assertEqual(len(record["output"]), 4096)
        self.assertTrue(record["output"].endswith("99999 100000 end\n"), record["output"][-40:])

    def test_overlap_is_skipped_waited_for_or_allowed(self):
        hosts = self.alone("# baton: name=skip", "* * * * * * ACT",
                           "# baton: name=wait overlap=wait", "* * * * * * ACT",
                           "# baton: name=allow overlap=allow", "* * * * * * ACT", go=False)
        until(lambda: len(hosts.runs("start", "allow")) >= 3, hosts.logs)
        until(lambda: hosts.ls()["skip"]["skipped"] >= 2, hosts.logs)
        self.assertEqual(len(hosts.runs("start", "skip")), 1)
        self.assertEqual(len(hosts.runs("start", "wait")), 1)
        self.assertGreaterEqual(len(hosts.ls()["allow"]["running"]), 3)
        self.assertEqual(hosts.ls()["wait"]["skipped"], 0)
        hosts.go()
        until(lambda: len(hosts.runs("end", "wait")) >= 2, hosts.logs)
        self.check_accounts(hosts, "wait")
        self.check_once(hosts)

    def test_a_shell_that_is_not_there_fails_its_line_alone(self):
        hosts = self.alone("# baton: name=good", "* * * * * * ACT", "SHELL=/nowhere/sh",
                           "# baton: name=bad", "* * * * * * ACT")
        until(lambda: (hosts.ls().get("bad") or {}).get("last", {}).get("exit_code") == 127,
              hosts.logs)
        self.assertIn("/nowhere/sh", hosts.ls()["bad"]["last"]["output"])
        until(lambda: hosts.runs("end", "good"), hosts.logs)

    def test_sighup_reads_the_file_again_and_a_bad_one_changes_nothing(self):
        hosts = self.alone("# baton: name=old", "* * * * * * ACT")
        until(lambda: hosts.runs("end", "old"), hosts.logs)
        hosts.write("# baton: name=old", "* * * * * * %s" % hosts.act, "61 * * * * x")
        hosts.signal("a", signal.SIGHUP)
        until(lambda: "crontab-refused" in hosts.log("a"), hosts.logs)
        self.assertIn("crontab:3: minute '61'", hosts.log("a"))
        count = len(hosts.runs("end", "old"))
        until(lambda: len(hosts.runs("end", "old")) > count, "the old line goes on")
        hosts.write("# baton: name=new", "* * * * * * %s" % hosts.act)
        hosts.signal("a", signal.SIGHUP)
        until(lambda: hosts.runs("end", "new"), hosts.logs)
        until(lambda: hosts.ls()["old"]["removed"], hosts.logs)
        shown = baton("cron", "ls", "--data", hosts.data("a")).stdout
        self.assertIn("new", shown)
        self.assertNotIn("old", shown)
        seen = hosts.runs("start", "old")
        back = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        hosts.write("# baton: name=old", "* * * * * * %s" % hosts.act)
        hosts.signal("a", signal.SIGHUP)
        run = until(lambda: [run for run in hosts.runs("start", "old") if run not in seen],
                    hosts.logs)[0]
        self.assertGreaterEqual(run.fire, back, "it does not make up for the time it was gone")

    def test_ls_shows_each_line(self):
        hosts = self.alone("CRON_TZ=Asia/Kathmandu", "# baton: name=job", "* * * * * * ACT",
                           "30 4 1 jan * happy-new-year")
        until(lambda: hosts.runs("end"), hosts.logs)
        until(lambda: hosts.ls()["job"]["runs"] >= 1, hosts.logs)
        lines = baton("cron", "ls", "--data", hosts.data("a")).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["LINE", "SCHEDULE", "FIRED", "STATE", "TOOK", "NODE",
                                            "NEXT"])
        other, job = sorted(lines[1:], key=lambda line: line.startswith("job"))
        self.assertRegex(job, r"^job +\* \* \* \* \* \* +20.*\+05:45 +(done|running|skipped) ")
        self.assertRegex(other, r"^[0-9a-f]{16} +30 4 1 jan \* +- +never +- +- +20\d\d-01-01 "
                                r"04:30:00 \+05:45$")

    def test_alone_in_memory_it_fires_too(self):
        hosts = self.hosts(1)
        hosts.write("* * * * * * " + hosts.act)
        hosts.go()
        hosts.arguments = lambda name: ["--provider", "memory:"]
        hosts.start("a")
        until(lambda: len(hosts.runs("end")) >= 2, hosts.logs)
        hosts.signal("a", signal.SIGTERM)
        self.assertEqual(hosts.processes["a"].wait(timeout=DEADLINE_S), 0)


class Check(CronTest):
    def test_a_good_file_is_shown_with_its_next_fires(self):
        hosts = self.hosts(1, "CRON_TZ=Europe/Berlin", "# baton: name=job", "30 2 29 3 * backup")
        done = baton("cron", "check", "--file", hosts.file, "--count", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "job  30 2 29 3 *  backup")
        self.assertEqual(len(lines), 3)
        shown = json.loads(baton("cron", "check", "--file", hosts.file, "--json").stdout)
        self.assertEqual([line["line"] for line in shown], ["job"])
        self.assertEqual(len(shown[0]["next"]), 3)

    def test_a_bad_file_is_refused_with_its_line(self):
        hosts = self.hosts(1, "* * * * * good", "* * * * bad")
        for words in (["check"], ["run", "--provider", "memory:"]):
            done = baton("cron", *words, "--file", hosts.file)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("crontab:2: day of the week 'bad'", done.stderr)
        done = baton("cron", "check", "--file", hosts.file + ".gone")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("No such file", done.stderr)
        self.assertIn("--file is missing", baton("cron", "check").stderr)
        self.assertIn("must be run, ls or check", baton("cron", "walk").stderr)


if __name__ == "__main__":
    main()
