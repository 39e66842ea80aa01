"""`baton worker` and `baton work`: commands that a pool runs."""
import json
import os
import re
import resource
import signal
import subprocess

from agents import LONG
from harness import (BATON, DEADLINE_S, baton, clean_environment, free_ports, is_alive, main,
                     until)
from pools import PoolTest


def told(text):
    """Its lines, but for what is said of a leader that a slow machine holds up."""
    return [line for line in text.splitlines() if "nobody who leads it has replied" not in line]


class Commands(PoolTest):
    def setUp(self):
        super().setUp()
        self.on_agent()
        self.workers("one")

    def shell(self, script, *flags):
        return self.run_work("submit", "--wait", *flags, "--", "sh", "-c", script)

    def test_the_output_and_the_exit_code_of_a_command_come_back(self):
        done = self.shell("echo out; echo error >&2; exit 3")
        self.assertEqual((done.returncode, done.stdout), (3, "out\nerror\n"))
        item = next(iter(self.items()))
        self.assertEqual(self.work("logs", item), "out\nerror\n")
        self.await_state(item, "failed")  # the ledger has it a moment after the result has come
        shown = json.loads(self.work("show", item))
        self.assertEqual((shown["state"], shown["code"], shown["attempt"]), ("failed", 3, 1))
        unread, end = os.pipe()
        os.close(unread)  # as `| head -0` does
        waits = subprocess.run([BATON, "work", "--provider", self.provider, "submit", "--wait",
                                "--", "echo", "out"], stdout=end, stderr=subprocess.PIPE,
                               env=clean_environment(), timeout=DEADLINE_S, check=False)
        os.close(end)
        self.assertEqual((told(waits.stderr.decode()), waits.returncode), ([], -signal.SIGPIPE))

    def test_a_command_finds_its_item_its_attempt_its_epoch_and_what_it_was_given(self):
        done = self.shell("echo $BATON_ITEM $BATON_ATTEMPT $BATON_NODE $BATON_ELECTION $A; pwd; "
                          "test $BATON_EPOCH -gt 0", "--id", "here", "--env", "A=b=c", "--dir", "/")
        self.assertEqual((done.returncode, done.stdout), (0, "here 1 one default b=c\n/\n"))

    def test_a_command_that_cannot_run_says_why(self):
        for words, code, text in (
                (["baton-no-such-command"], 127, "No such file or directory; no folder of PATH"),
                (["./no-such"], 127, "does this host have it, and the interpreter"),
                (["/etc/passwd"], 126, "/etc/passwd: Permission denied"),
                (["--dir", "/no/such", "true"], 126, "/no/such"),
                (["sh", "-c", "kill -9 $$"], 137, "")):
            done = self.run_work("submit", "--wait", *words)
            self.assertEqual(done.returncode, code, (words, done.stdout))
            self.assertIn(text, done.stdout)

    def test_how_far_a_command_is_can_be_seen_while_it_runs(self):
        end = os.path.join(self.folder.name, "end")
        self.work("submit", "--id", "far", "--", "sh", "-c",
                  "echo half >$BATON_PROGRESS; for i in 7 40.5%%; do echo $i >$BATON_PROGRESS; "
                  "done; until test -e %s; do sleep 0.1; done" % end)
        self.work("submit", "--id", "silent", "--", "sh", "-c",
                  "until test -e %s; do sleep 0.1; done" % end)
        until(lambda: json.loads(self.work("show", "far")).get("progress_permille") == 405,
              "its progress is told")
        self.assertRegex(self.work("ls"), r"far +processing +\S+ +1 +40\.5% ")
        self.assertNotIn("progress_permille", json.loads(self.work("show", "silent")))
        with open(end, "w", encoding="ascii"):
            pass
        self.await_state("far", "completed")
        self.assertNotIn("progress_permille", json.loads(self.work("show", "far")))

    def test_of_much_output_the_end_is_kept(self):
        done = self.shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo the end")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stdout), 16384)
        self.assertTrue(done.stdout.endswith("x\nthe end\n"))

    def test_a_command_that_closes_its_output_runs_on(self):
        self.assertEqual(self.shell("exec >&- 2>&-; sleep 0.1; exit 5").returncode, 5)

    def test_what_a_command_leaves_behind_is_dead_when_its_item_ends(self):
        path = os.path.join(self.folder.name, "left")
        done = self.shell("setsid sh -c 'trap \"\" TERM HUP; echo $$ >%s; while :; do sleep 1; "
                          "done' & while ! test -s %s; do sleep 0.01; done" % (path, path))
        self.assertEqual(done.returncode, 0)
        with open(path, encoding="ascii") as file:
            self.assertFalse(is_alive(int(file.read())))

    def test_each_line_of_a_file_is_a_command(self):
        lines = "\ufeffecho one\n\n  # a comment\n\ttest x != x\r\n   \necho three"
        done = self.run_work("submit", "--name", "bag", "--wait", "--file", "-", text=lines)
        self.assertEqual((done.returncode, done.stdout), (1, "bag.1 failed\n"))
        self.assertEqual([self.work("logs", "bag.%d" % i) for i in range(3)],
                         ["one\n", "", "three\n"])
        self.await_state("bag.1", "failed")
        self.assertEqual(json.loads(self.work("show", "bag.1"))["code"], 1)

    def test_with_json_each_end_is_a_line(self):
        done = self.run_work("submit", "--json", "--wait", "--name", "bag", "--file", "-",
                             text="true\nfalse\n")
        ends = sorted(map(json.loads, done.stdout.splitlines()), key=lambda end: end["id"])
        self.assertEqual(ends, [{"id": "bag.0", "state": "completed", "code": 0},
                                {"id": "bag.1", "state": "failed", "code": 1}])

    def test_a_command_that_starts_while_the_last_one_ends_is_heard_of(self):
        for _ in range(60):
            done = self.run_work("submit", "--wait", "--file", "-", text="true\n" * 3)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_a_file_of_ten_thousand_commands_is_kept_and_begun(self):
        path = os.path.join(self.folder.name, "count")
        ids = self.work("submit", "--name", "many", "--file", "-",
                        text="".join("echo %d >>%s\n" % (i, path) for i in range(10000))).split()
        self.assertEqual(len(set(ids)), 10000)
        self.assertEqual(len(self.items()), 10000)
        until(lambda: os.path.exists(path), "the first of them has run")
        with open(path, encoding="ascii") as file:
            done = file.read().split()
        self.assertEqual(len(set(done)), len(done))

    def test_a_failed_job_is_repeated_as_often_as_it_may(self):
        done = self.run_work("submit", "--wait", "--id", "job", "--retries", "2", "--backoff",
                             "10ms", "--", *self.actor(0, 7))
        self.assertEqual(done.returncode, 7)
        self.assertEqual([one.number for one in self.attempts("job")], [1, 2, 3])
        self.assert_never_twice_at_once()

    def test_an_attempt_that_takes_too_long_is_ended(self):
        done = self.shell("trap '' TERM; echo begun; while :; do sleep 1; done", "--time-limit",
                          "300ms", "--id", "long")
        self.assertEqual((done.returncode, done.stdout), (124, ""))
        self.assertIn("long failed\n", done.stderr)
        self.await_state("long", "failed")

    def test_a_service_is_started_again_when_it_ends(self):
        self.work("submit", "--service", "--backoff", "10ms", "--id", "service", "--",
                  *self.actor(0))
        until(lambda: len(self.attempts("service")) >= 3, "it was started again")
        self.assert_never_twice_at_once()

    def test_items_are_cancelled_before_while_and_after_they_run(self):
        self.work("submit", "--id", "ended", "--", "true")
        self.await_state("ended", "completed")
        self.work("submit", "--id", "runs", "--", *self.actor(1000))
        self.work("submit", "--id", "waits", "--needs", "gold", "--", "true")
        acting = self.await_acting("runs")
        self.work("cancel", "runs", "waits", "ended")
        self.await_state("runs", "cancelled")
        self.await_state("waits", "cancelled")
        self.assertFalse(is_alive(acting.pid))
        self.assertEqual(self.state("ended"), "completed")

    def test_the_same_submission_twice_is_one(self):
        for _ in range(2):
            done = self.run_work("submit", "--name", "bag", "--wait", "--", *self.actor(0))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.attempts("bag.0")), 1)
        other = self.run_work("submit", "--name", "bag", "--", "true")
        self.assertNotEqual(other.returncode, 0)
        self.assertIn('submission "bag"', other.stderr)

    def test_an_id_is_of_one_item_and_what_has_ended_is_not_started_again_unnoticed(self):
        self.work("submit", "--id", "x", "--", *self.actor(0))
        self.await_state("x", "completed")
        other = self.run_work("submit", "--id", "x", "--wait", "--", "echo", "other")
        self.assertEqual((other.returncode, other.stdout), (1, ""), other.stderr)
        self.assertIn("--id x: ", other.stderr)
        again = self.run_work("submit", "--id", "x", "--", *self.actor(0))
        self.assertEqual((again.returncode, again.stdout), (0, "x\n"), again.stderr)
        self.assertIn("x: was submitted before and is completed", again.stderr)
        service = "submit", "--service", "--id", "y", "--", *self.actor(1000)
        self.work(*service)
        self.await_acting("y")
        self.assertEqual(told(self.run_work(*service).stderr), [])
        self.work("cancel", "y")
        self.await_state("y", "cancelled")
        again = self.run_work(*service)
        self.assertEqual((again.returncode, again.stdout), (1, ""), again.stderr)
        self.assertIn("y: was submitted before and is cancelled", again.stderr)
        self.assertEqual([len(self.attempts(item)) for item in "xy"], [1, 1])

    def test_a_wait_that_is_interrupted_leaves_the_items_to_the_pool(self):
        command = [BATON, "work", "--provider", self.provider, "submit", "--wait", "--name", "bag",
                   "--", *self.actor(1000)]
        waits = subprocess.Popen(command, stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(waits.stderr.close)
        self.await_acting("bag.0")
        waits.send_signal(signal.SIGINT)
        self.assertEqual(waits.wait(DEADLINE_S), 128 + signal.SIGINT)
        self.assertIn(b'submission "bag": 1 of 1 items', waits.stderr.read())
        self.end_actors()
        self.assertEqual(subprocess.run(command, env=clean_environment(), timeout=DEADLINE_S,
                                        check=False).returncode, 0)
        self.assertEqual(len(self.attempts("bag.0")), 1)

    def test_stats_lists_the_workers(self):
        self.worker("two", "--slots", "7", "--label", "gpu")
        until(lambda: len(json.loads(self.work("stats", "--json"))["workers"]) == 2, "two workers")
        table = [line.split() for line in self.work("stats").splitlines()[:3]]
        self.assertEqual(table[0], ["WORKER", "STATE", "ITEMS", "SLOTS", "CPU", "LABELS"])
        self.assertEqual((table[1][:2], table[2][:2], table[2][3], table[2][5:]),
                         (["one", "online"], ["two", "online"], "7", ["gpu"]))

    def test_changes_are_watched_as_they_happen(self):
        watch = subprocess.Popen([BATON, "work", "--provider", self.provider, "watch"],
                                 stdout=subprocess.PIPE, text=True, env=clean_environment())
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.kill)
        self.work("submit", "--id", "seen", "--", *self.actor(1000))
        line = watch.stdout.readline()
        if line == "seen idle\n":  # it may have looked before the item had its place
            line = watch.stdout.readline()
        self.assertEqual(line, "seen processing on one\n")
        self.end_actors()
        self.assertEqual(watch.stdout.readline(), "seen completed\n")
        self.work("submit", "--wait", "--", "sleep", "1")  # for two looks, and more
        self.work("submit", "--id", "last", "--", "true")
        lines = iter(watch.stdout.readline, "last completed\n")
        self.assertNotIn("seen", [line.split()[0] for line in lines])
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(DEADLINE_S), 128 + signal.SIGINT)

    def test_what_cannot_be_is_refused_with_its_value(self):
        odd = os.path.join(self.folder.name, "odd")
        with open(odd, "wb") as file:
            file.write(b"true\ntr\0ue\n")
        for words, text in (
                (["submit"], "CMD, or --file"),
                (["submit", "--file", odd, "true"], "CMD, or --file"),
                (["submit", "--file", odd], "line 2: has a NUL"),
                (["submit", "--file", self.folder.name], "Is a directory"),
                (["submit", "--file", "/no/such"], "/no/such: No such file"),
                (["submit", "--file", "/dev/null"], "has no command"),
                (["submit", "--id", "x", "--file", odd], "--id x"),
                (["submit", "--id", "a b", "true"], '"a b"'),
                (["submit", "--name", "a b", "true"], '"a b"'),
                (["submit", "--needs", "a b", "true"], '"a b"'),
                (["submit", "--env", "=x", "true"], "--env =x"),
                (["submit", "--env", os.fsdecode(b"A=\xff"), "true"], "--env: is not UTF-8"),
                (["submit", "--", "echo", os.fsdecode(b"\xff")], "argument 2: is not UTF-8"),
                (["submit", "--service", "--wait", "true"], "--wait"),
                (["cancel", "x", "--pool", "p"], "--pool: flags stand before"),
                (["ls", "--pool", "a/b"], '"a/b"'),
                (["drain", "all"], '"all"'),
                (["frob"], "'frob'")):
            done = self.run_work(*words)
            self.assertEqual(done.returncode, 64, (words, done.stderr))
            self.assertIn(text, done.stderr)
        for words in (["show", "x"], ["cancel", "x"], ["logs", "x"], ["drain", "x"],
                      ["undrain", "x"]):
            done = self.run_work(*words)
            self.assertEqual(done.returncode, 1, (words, done.stderr))
            self.assertIn("x", done.stderr)
        self.assertEqual(self.items(), {})


class Leader(PoolTest):
    def test_a_process_without_slots_leads_and_runs_nothing(self):
        self.on_agent()
        leader = self.worker("boss", "--slots", "0")
        until(lambda: "pool-ready" in leader.log(), leader.log)
        self.worker("hand", "--never-lead")
        self.await_online("hand")
        done = self.run_work("submit", "--wait", "--file", "-", text="echo $BATON_NODE\n" * 20)
        self.assertEqual((done.returncode, self.online()), (0, ["hand"]), done.stderr)
        self.assertEqual({self.work("logs", item) for item in self.items()}, {"hand\n"})
        leader.process.send_signal(signal.SIGTERM)
        self.assertEqual(leader.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        idle = baton("worker", "--provider", self.provider, "--slots", "0", "--never-lead")
        self.assertEqual(idle.returncode, 64)
        self.assertIn("--slots 0: with --never-lead", idle.stderr)


class Providers(PoolTest):
    def test_a_provider_without_a_pool_is_refused_with_the_way_out(self):
        data = os.path.join(self.folder.name, "data")
        for words, code, text in (
                (["work", "--provider", "agent:/no/such", "ls"], 69, "baton agent"),
                (["work", "--provider", "memory:", "ls"], 64, "--provider memory: is within"),
                (["work", "--provider", "raft://127.0.0.1:1", "ls"], 64, "baton agent"),
                (["worker", "--provider", "memory:"], 64, "baton agent"),
                (["worker", "--label", "a b"], 64, '"a b"'),
                (["worker", "--provider", "raft://127.0.0.1:0?data=" + data], 1, "group=NAME")):
            done = baton(*words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
            self.assertIn(text, done.stderr)

    def test_a_worker_that_votes_itself_ends_when_its_disk_fails(self):
        """By SIGKILL of its command, which the next worker runs again."""
        ports = dict(zip(("host", "votes"), free_ports(2)))
        agent = self.member(ports["host"], "--node", "host", "--group", "g", "--preset", "fast",
                            "--peer", "votes=127.0.0.1:%d" % ports["votes"])
        self.provider = "agent:" + agent.path
        worker = self.worker("votes", provider="raft://127.0.0.1:%d?group=g&preset=fast&peer=host="
                             "127.0.0.1:%d&data=%s/votes" % (ports["votes"], ports["host"],
                                                             self.folder.name))
        until(lambda: "pool-ready" in worker.log(), worker.log)
        self.work("submit", "--id", "long", "--", *self.actor(1000))
        self.await_attempts(1, ["long"])
        resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        self.run_work("submit", "--timeout", "1s", "--", "true")
        self.assertEqual(worker.process.wait(DEADLINE_S), 74, worker.log())
        self.assertRegex(worker.log(), "baton worker: .*/raft.db: writing: .*")
        self.assertFalse(any(is_alive(one.pid) for one in self.attempts("long")))

    def test_a_question_to_no_leader_may_be_interrupted(self):
        channel = ["--socket", self.on_agent().path, "work/default/ask/status"]
        heard = subprocess.Popen([BATON, "subscribe", *channel], stdout=subprocess.PIPE,
                                 env=clean_environment())
        self.addCleanup(heard.stdout.close)
        self.addCleanup(heard.kill)
        os.set_blocking(heard.stdout.fileno(), False)
        until(lambda: baton("publish", *channel, "it listens") and heard.stdout.read(), "it hears")
        for words in (["submit", "--wait", "--", "true"], ["stats", "--timeout", "100s"]):
            waits = subprocess.Popen([BATON, "work", "--provider", self.provider, *words],
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env=clean_environment())
            until(lambda: re.search(b"^[0-9a-f]{16}$", heard.stdout.read() or b"", re.M), "it asks")
            waits.send_signal(signal.SIGINT)
            self.assertIn(b"interrupted", waits.communicate(timeout=DEADLINE_S)[1])
            self.assertEqual(waits.returncode, 128 + signal.SIGINT, words)

    def test_a_wait_for_a_worker_that_is_not_there_says_what_it_lacks(self):
        self.on_agent()
        self.workers("one")
        for flags, lacks in ((("--needs", "gold", "--needs", "gpu"), b'labels "gold gpu"'),
                             (("--gpus", "2"), b"GPUs 2"), (("--weight", "1000"), b"slots 1000"),
                             (("--timeout", "50s", "--needs", "a"), b'labels "a"')):
            waits = subprocess.Popen([BATON, "work", "--provider", self.provider, "submit",
                                      "--wait", *flags, "--", "true"], stderr=subprocess.PIPE,
                                     env=clean_environment())
            self.addCleanup(waits.stderr.close)
            said = waits.stderr.readline()
            waits.send_signal(signal.SIGINT)
            self.assertEqual(waits.wait(DEADLINE_S), 128 + signal.SIGINT)
            self.assertIn(b"1 of 1 items wait for another worker: ", said)
            self.assertIn(lacks, said)
        done = self.run_work("submit", "--wait", "--file", "-", text="true\n" * 3)
        self.assertEqual((done.returncode, told(done.stderr)), (0, []))
        done = self.run_work("submit", "--wait", "--timeout", "100ms", "--needs", "a", "--", "true")
        self.assertEqual(done.returncode, 124)
        self.assertIn("go on: --timeout 100ms: the time is over", done.stderr)

    def test_without_a_leader_the_pool_keeps_what_is_submitted(self):
        self.on_agent()
        self.work("submit", "--id", "early", "--", *self.actor(0))
        silent = self.run_work("stats", "--timeout", "100ms")
        self.assertEqual(silent.returncode, 124)
        self.assertIn("leads", silent.stderr)
        waits = subprocess.Popen([BATON, "work", "--provider", self.provider, "submit", "--wait",
                                  "--", "true"], stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(waits.stderr.close)
        self.assertIn(b"`baton worker` leads", waits.stderr.readline())
        self.worker("one")
        self.await_state("early", "completed")
        self.assertEqual(waits.wait(DEADLINE_S), 0)


class Shortage(PoolTest):
    def test_a_command_that_its_host_has_no_room_for_waits_and_does_not_fail(self):
        self.on_agent()
        one = self.worker("one", "--slots", "100", under=("prlimit", "--nofile=40:40"))
        ids = self.submit_actors("bag", 60, 1000)
        until(lambda: "item-waits" in one.log(), one.log)
        self.end_actors()
        self.await_all(ids)
        self.assertEqual({one.number for one in self.attempts()}, {1})


class Example(PoolTest):
    def test_the_example_of_a_bag_and_a_service_does_what_it_says(self):
        script = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "bag.sh")
        path = os.path.dirname(os.path.abspath(BATON)) + ":" + os.environ["PATH"]
        done = subprocess.run(["sh", script], env=dict(clean_environment(), PATH=path),
                              stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn("frames.19 wrote: frame 20\n", done.stdout)
        ran = re.findall(r"the collector ran on (\w+), epoch (\d+)", done.stdout)
        self.assertEqual({where for where, _ in ran}, {"one", "two"})
        self.assertLess(int(ran[0][1]), int(ran[1][1]))


class Leaving(PoolTest):
    def setUp(self):
        super().setUp()
        self.on_agent()

    def test_a_drained_worker_keeps_its_jobs_and_its_services_move(self):
        self.workers("one", "two")
        self.work("drain", "two")
        self.work("submit", "--id", "service", "--service", "--", *self.actor(1000))
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        self.await_acting("service")
        job = self.await_acting("job")
        self.assertEqual({self.items()[one]["worker"] for one in ("service", "job")}, {"one"})
        self.work("undrain", "two")
        self.work("drain", "one")
        until(lambda: self.items()["service"].get("worker") == "two", lambda: self.items())
        until(lambda: len(self.attempts("service")) == 2, "it runs there")
        self.assert_never_twice_at_once()
        self.assertEqual(self.items()["job"]["worker"], "one")
        self.assertTrue(is_alive(job.pid))

    def test_a_drained_worker_that_is_gone_is_still_listed_until_it_is_undrained(self):
        def listed():
            return {worker["worker"]: worker["draining"]
                    for worker in json.loads(self.work("stats", "--json"))["workers"]}
        _, two = self.workers("one", "two")
        self.work("drain", "two")
        until(lambda: listed()["two"], listed)
        two.signal(signal.SIGTERM)
        two.process.wait(DEADLINE_S)
        self.assertEqual(listed(), {"one": False, "two": True})
        self.work("undrain", "two")
        until(lambda: listed() == {"one": False}, listed)

    def test_a_service_that_has_nowhere_to_move_keeps_no_worker(self):
        [one] = self.workers("one")
        self.work("submit", "--id", "service", "--service", "--", *self.actor(1000))
        end = os.path.join(self.folder.name, "job-end")
        self.work("submit", "--id", "job", "--", "sh", "-c",
                  "until test -e %s; do sleep 0.05; done" % end)
        self.await_acting("service")
        self.await_state("job", "processing")
        one.signal(signal.SIGTERM)
        until(lambda: "leaving" in one.log(), one.log)
        with open(end, "w", encoding="ascii"):
            pass
        self.assertEqual(one.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.await_state("job", "completed")
        self.worker("two")
        until(lambda: len(self.attempts("service")) == 2, "it runs there")
        self.assert_never_twice_at_once()

    def test_on_the_first_signal_services_move_and_jobs_end(self):
        one, _ = self.workers("one", "two")
        self.work("drain", "two")
        self.work("submit", "--id", "service", "--service", "--", *self.actor(1000))
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        self.await_acting("service")
        self.await_acting("job")
        self.work("undrain", "two")
        one.signal(signal.SIGTERM)
        until(lambda: self.items()["service"].get("worker") == "two", lambda: self.items())
        self.assertIsNone(one.process.poll())
        self.end_actors()
        self.assertEqual(one.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.assertEqual(self.await_state("job", "completed")["attempt"], 1)
        self.assert_never_twice_at_once()

    def test_on_the_second_signal_jobs_are_stopped_and_run_elsewhere_without_having_failed(self):
        one = self.workers("one")[0]
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        first = self.await_acting("job")
        one.signal(signal.SIGTERM)
        until(lambda: "leaving" in one.log(), one.log)
        one.signal(signal.SIGTERM)
        self.assertEqual(one.process.wait(DEADLINE_S), 128 + signal.SIGTERM)
        self.assertFalse(is_alive(first.pid))
        self.worker("two")
        self.await_acting("job", first.last)
        self.end_actors()
        entry = self.await_state("job", "completed")
        self.assertEqual((entry["failures"], entry["losses"]), (0, 1))
        self.assert_never_twice_at_once()

    def test_a_stopped_command_has_time_to_end_unless_there_is_a_third_signal(self):
        one = self.worker("one", "--stop-timeout", LONG)
        path = os.path.join(self.folder.name, "asked")
        self.work("submit", "--id", "deaf", "--", "sh", "-c",
                  "trap 'echo >>%s' TERM; echo $$ >%s.pid; while :; do sleep 0.01; done"
                  % (path, path))
        until(lambda: os.path.exists(path + ".pid"), "it runs")
        one.signal(signal.SIGTERM)
        until(lambda: "leaving" in one.log(), one.log)
        one.signal(signal.SIGTERM)
        until(lambda: os.path.exists(path), "it was asked to end")
        self.assertIsNone(one.process.poll())
        one.signal(signal.SIGTERM)
        self.assertEqual(one.process.wait(DEADLINE_S), 128 + signal.SIGTERM)

    def test_a_worker_of_a_name_that_is_taken_waits_for_it(self):
        first = self.workers("one")[0]
        second = self.worker("one", "--never-lead")
        until(lambda: "takes part in it already" in second.log(), second.log)
        self.work("submit", "--id", "job", "--", *self.actor(1000))
        self.await_acting("job")
        first.kill()
        until(lambda: second.log().count("worker-session ") == 2, second.log)  # one is the first's


if __name__ == "__main__":
    main()
