"""`baton run` and `baton once`: a program that lives only where a node leads."""
import fcntl
import json
import os
import pty
import re
import signal
import socket
import subprocess
import unittest
from pathlib import Path

from harness import (BATON, DEADLINE_S, LASTING, LONGER, ProgramTest, baton, clean_environment,
                     is_alive, main, until)


class Running(ProgramTest):
    def run_alone(self, *words):
        one = self.cluster(1)
        return baton("run", *one.arguments("a"), *words)

    def test_the_program_knows_epoch_election_and_node(self):
        done = self.run_alone("--", "sh", "-c", "echo $BATON_NODE $BATON_ELECTION $BATON_EPOCH")
        node, election, epoch = done.stdout.split()
        self.assertEqual((node, election), ("a", "default"))
        self.assertGreater(int(epoch), 0)
        self.assertEqual(done.returncode, 0)

    def test_the_name_in_the_url_counts_unless_a_flag_gives_another(self):
        for words, name in ((), "b"), (("--node", "c"), "c"):
            done = baton("run", "--provider", "memory:?node=b", *words, "--", "sh", "-c",
                         "echo $BATON_NODE")
            self.assertEqual((done.returncode, done.stdout), (0, name + "\n"), done.stderr)

    def test_a_program_that_reads_the_terminal_finds_its_end(self):
        """Not the terminal's foreground group, it would be stopped there, and baton wait for it."""
        for command in "read line", "read line </dev/tty", "stty tostop <&2":
            with self.subTest(command):
                self.run_on_a_terminal(command + "; exit 42")

    def run_on_a_terminal(self, script):
        one = self.cluster(1)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(BATON, [BATON, "run", *one.arguments("a"), "--", "sh", "-c", script],
                      clean_environment())
        self.addCleanup(os.close, terminal)
        status = []
        def ended():
            found, how = os.waitpid(pid, os.WNOHANG)
            status.append(how)
            return found == pid
        try:
            until(ended, "the program ends")
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        self.assertEqual(os.waitstatus_to_exitcode(status[-1]), 42)

    def test_its_exit_code_is_ours(self):
        self.assertEqual(self.run_alone("--", "sh", "-c", "exit 42").returncode, 42)
        self.assertEqual(self.run_alone("--", "sh", "-c", "kill -9 $$").returncode, 137)

    def test_a_program_that_is_not_there_ends_with_127(self):
        done = self.run_alone("--", "/nonexistent/program")
        self.assertEqual(done.returncode, 127)
        self.assertIn("/nonexistent/program", done.stderr)
        done = self.run_alone("--", os.path.abspath(__file__))
        self.assertEqual(done.returncode, 126)
        self.assertNotIn("--help", done.stderr)
        one = self.cluster(1)
        script = Path(one.dir, "script")
        script.write_text("#!/nonexistent/interpreter\n", encoding="ascii")
        script.chmod(0o755)
        done = baton("run", *one.arguments("a"), "--", str(script))
        self.assertEqual(done.returncode, 127)
        self.assertIn("interpreter", done.stderr.split(str(script))[-1])

    def test_an_empty_folder_of_path_is_the_current_one(self):
        one = self.cluster(1)
        script = Path(one.dir, "script")
        script.write_text("#!/bin/sh\nexit 7\n", encoding="ascii")
        script.chmod(0o755)
        for path in ("", ":", ":/nonexistent", "/nonexistent:", "/nonexistent::/also-not"):
            done = subprocess.run([os.path.abspath(BATON), "run", *one.arguments("a"), "--",
                                   "script"], cwd=one.dir,
                                  env={**clean_environment(), "PATH": path}, timeout=DEADLINE_S,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual(done.returncode, 7, (path, done.stderr))

    def test_without_a_quorum_it_gives_up_in_time(self):
        three = self.cluster(3)
        for time in ("300ms", "1us"):
            done = baton("run", *three.arguments("a"), "--wait-timeout", time, "--", "true")
            self.assertEqual(done.returncode, 124, done.stderr)
            self.assertIn("--wait-timeout " + time, done.stderr)

    def test_signals_reach_the_program(self):
        one = self.cluster(1)
        process = self.start(one, "a", [], "sh", "-c", self.script(
            one, "while :; do sleep 0.05; done", first="trap 'exit 7' TERM"))
        until(lambda: self.pids(one), "the program runs")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 7)

    def test_a_signal_that_was_ignored_at_the_start_stays_ignored(self):
        one = self.cluster(1)
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process = self.start(one, "a", [], "sh", "-c", self.script(
            one, "while :; do sleep 0.05; done", first="trap 'exit 5' HUP; trap 'exit 7' TERM"))
        until(lambda: self.pids(one), "the program runs")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 7)

    def test_the_program_ignores_what_was_ignored_at_the_start_too(self):
        numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        for number in numbers:
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_IGN))
        done = self.run_alone("--", "grep", "SigIgn", "/proc/self/status")
        ignored = int(done.stdout.split()[1], 16)
        ours = int(Path("/proc/self/status").read_text().split("SigIgn:")[1].split()[0], 16)
        python = 1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)
        threads = 3 << 31  # 32 and 33 are the C library's: with threads it handles them itself
        self.assertEqual(ignored & ~threads, ours & ~python & ~threads)

    def test_a_signal_that_was_blocked_at_the_start_ends_it(self):
        one = self.cluster(1)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        process = self.start(one, "a", [], "sh", "-c", self.script(
            one, "while :; do sleep 0.05; done", first="trap 'exit 7' TERM"))
        until(lambda: self.pids(one), "the program runs")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 7)

    def test_what_is_refused_does_not_say_that_it_runs(self):
        for words in (("--provider", "redis://127.0.0.1:1/?lease=2m"), ("--peer", "b=x")):
            done = self.run_alone(*words, "--", "true")
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn("supervised", done.stderr)

    def test_an_interrupt_that_was_ignored_at_the_start_ends_nothing(self):
        one = self.cluster(1)
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN))
        process = self.start(one, "a", [], "sh", "-c", self.script(
            one, "while :; do sleep 0.05; done", first="trap 'exit 7' TERM"))
        until(lambda: self.pids(one), "the program runs")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 7)

    def test_without_room_for_the_record_of_what_runs_nothing_is_run(self):
        one = self.cluster(1)
        done = subprocess.run(
            ["prlimit", "--fsize=100", BATON, "run", *one.arguments("a"), "--", "true"],
            capture_output=True, text=True, env=clean_environment(), timeout=DEADLINE_S,
            check=False)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(one.data("a") + "/supervisor", done.stderr)

    def test_a_directory_that_another_container_uses_is_not_taken(self):
        """Its supervisor has the lock, and no number here."""
        one = self.cluster(1)
        path = Path(one.data("a")) / "supervisor"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        with path.open("w", encoding="ascii") as file:
            file.write("baton-run 1\nboot %s\nwrapper 99999998 1\nsupervisor 99999999 1\n"
                       "marker BATON_RUN=x\ncgroup -\n" % boot.strip())
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)
            done = baton("run", *one.arguments("a"), "--", "true")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("a process that cannot be seen from here has it", done.stderr)

    def test_without_descriptors_it_says_so(self):
        # What is left behind has our pipe, and run() waits for it.
        for limit in (8, 10, 12, 14, 16, 20):
            one = self.cluster(1)
            done = subprocess.run(
                ["prlimit", "--nofile=%d" % limit, BATON, "run", *one.arguments("a"), "--", "true"],
                capture_output=True, text=True, env=clean_environment(), timeout=60, check=False)
            self.assertIn(done.returncode, (1, 74), "%d: %s" % (limit, done.stderr))
            self.assertRegex(done.stderr, "(?i)too many open files")

    def test_what_the_system_lacks_is_named(self):
        for call, reason in (("flock:error=ENOLCK", "cannot be locked"),
                             ("pidfd_open:error=EPERM", "pidfd_open"),
                             ("pidfd_open:error=EMFILE:when=2", "pidfd of the supervisor")):
            words = ["strace", "-f", "-o", "/dev/null", "-e", "inject=" + call]
            if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL,
                              check=False).returncode != 0:
                self.skipTest("strace cannot inject here")
            done = subprocess.run(
                [*words, BATON, "run", *self.cluster(1).arguments("a"), "--", "true"],
                capture_output=True, text=True, timeout=DEADLINE_S, check=False,
                # AddressSanitizer cannot look for leaks beside strace.
                env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"})
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertIn(reason, done.stderr)

    def test_news_for_which_there_is_no_memory_is_sent_later(self):
        """The first words of the supervisor and of the foreman, for which baton waits."""
        words = ["strace", "-f", "-o", "/dev/null", "-e", "inject=sendto:error=ENOBUFS:when=1"]
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("strace cannot inject here")
        done = subprocess.run(
            [*words, BATON, "run", *self.cluster(1).arguments("a"), "--", "sh", "-c", "exit 7"],
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
            env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_a_guardian_for_whose_greeting_there_is_no_memory_is_known_later(self):
        one = self.cluster(1)
        words = ["strace", "-D", "-f", "-o", "/dev/null", "-e",
                 "inject=sendto:error=ENOBUFS:when=1..9"]
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("strace cannot inject here")
        with subprocess.Popen(
                [*words, BATON, "run", *one.arguments("a"), "--", "sleep", "1000"],
                stderr=subprocess.DEVNULL,
                env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"}) as process:
            self.addCleanup(process.kill)
            one.wait_leader()
            # Baton reaps the process that started the guardian when it hears the guardian.
            until(lambda: "(baton-guardian) Z" not in self.children(process.pid),
                  "the guardian is heard")
            process.terminate()

    def test_a_user_without_room_for_queued_signals_can_end_it(self):
        """Any process of the user may fill the queue, as by timers whose signal it blocks."""
        for script, rest in (("trap 'exit 3' TERM", ("--stop-timeout", "1000s")),
                             ("trap '' TERM", ("--stop-timeout", "100ms"))):
            with subprocess.Popen(
                    ["prlimit", "--sigpending=0", BATON, "run", *self.cluster(1).arguments("a"),
                     *rest, "--", "sh", "-c", script + "; echo; while :; do sleep 0.05; done"],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=clean_environment()) \
                    as process:
                process.stdout.readline()
                process.terminate()
                try:
                    code = process.wait(DEADLINE_S)
                finally:
                    process.kill()
                self.assertEqual(code, 3 if "exit" in script else 137)

    def test_a_signal_for_which_there_is_no_memory_is_sent_later(self):
        one = self.cluster(1)
        # The first message is the order to start it.
        words = ["strace", "-D", "-o", "/dev/null", "-e", "inject=sendmsg:error=ENOBUFS:when=2..9"]
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("strace cannot inject here")
        with subprocess.Popen(
                [*words, BATON, "run", *one.arguments("a"), "--guardian", "off", "--stop-timeout",
                 "1000s", "--", "sh", "-c",
                 "trap 'exit 3' TERM; echo; while :; do sleep 0.05; done"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"}) as process:
            self.addCleanup(process.kill)
            process.stdout.readline()
            process.terminate()
            self.assertEqual(process.wait(timeout=DEADLINE_S), 3)

    def test_without_a_descriptor_for_its_database_it_ends_as_for_a_failed_disk(self):
        one = self.cluster(1)
        words = ["strace", "-f", "-o", "/dev/null", "-P", os.path.join(one.data("a"), "raft.db"),
                 "-e", "inject=openat:error=EMFILE:when=2+"]
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("strace cannot inject here")
        done = subprocess.run(
            [*words, BATON, "run", *one.arguments("a"), "--", "true"], capture_output=True,
            text=True, timeout=DEADLINE_S, check=False,
            env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"})
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertRegex(done.stderr, "raft.db.*Too many open files")

    def test_a_node_goes_on_while_the_system_has_no_descriptor_for_a_connection(self):
        one = self.cluster(1)
        trace = os.path.join(one.dir, "trace")
        words = ["strace", "-D", "-f", "-o", trace,
                 "-e", "inject=accept4:error=ENFILE:when=1..5000"]
        if subprocess.run([*words, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
            self.skipTest("strace cannot inject here")
        with subprocess.Popen(
                [*words, BATON, "run", *one.arguments("a"), "--guardian", "off", "--", "sh", "-c",
                 "trap 'exit 3' TERM; echo; while :; do sleep 0.05; done"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env=clean_environment() | {"ASAN_OPTIONS": "detect_leaks=0"}) as process:
            self.addCleanup(process.kill)
            process.stdout.readline()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(os.path.join(one.data("a"), "control.sock"))
                calls = lambda: Path(trace).read_text(encoding="ascii").count("ENFILE")
                until(calls, "the client waits")
                process.terminate()
                self.assertEqual(process.wait(timeout=DEADLINE_S), 3)
            self.assertLess(calls(), 1000)

    @staticmethod
    def children(pid):
        path = Path("/proc/%d/task/%d/children" % (pid, pid))
        return "\n".join(Path("/proc/%s/stat" % child).read_text(encoding="ascii")
                         for child in path.read_text(encoding="ascii").split())

    def test_a_program_that_is_stopped_hears_of_the_signal(self):
        one = self.cluster(1)
        process = self.start(one, "a", ["--stop-timeout", "60s"], "sh", "-c", self.script(
            one, "kill -STOP $$; while :; do sleep 0.05; done", first="trap 'exit 3' TERM"))
        def is_stopped():
            pid = self.pids(one).get("a")
            with open("/proc/%d/stat" % (pid or process.pid), encoding="ascii") as file:
                return pid and file.read().rsplit(")", 1)[1].split()[0] == "T"
        until(is_stopped, "the program has stopped itself")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=DEADLINE_S), 3)

    def test_what_a_service_started_for_the_program_ends_with_it(self):
        """It descends from no process of ours, and has the program's environment."""
        one = self.cluster(1)
        process = self.start(one, "a", [], "sh", "-c", self.script(
            one, "sleep 1000", first="trap 'exit 5' TERM; echo $BATON_RUN >%s/run" % one.dir))
        until(lambda: self.pids(one), "the program runs")
        with open(one.dir + "/run", encoding="ascii") as file:
            environment = dict(clean_environment(), BATON_RUN=file.read().strip())
        service = subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True)
        self.addCleanup(service.wait)
        self.addCleanup(service.kill)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=DEADLINE_S)
        self.assertEqual(service.wait(timeout=DEADLINE_S), -signal.SIGKILL)

    def test_a_cgroup_that_somebody_removes_does_not_keep_the_program_from_running(self):
        three = self.cluster(3, *LASTING)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(three))
        old = next(iter(until(lambda: self.pids(three), "a program runs")))
        other = next(name for name in three.names if name != old)
        folder = until(lambda: re.search(r" cgroup=(\S+)", three.log(other)),
                       "the other one has a supervisor").group(1)
        if not folder.startswith("/"):
            self.skipTest("no cgroup can be made here")
        os.rmdir(folder)
        until(lambda: baton("pass", "--data", three.data(old), "--to", other).returncode == 0,
              "leadership is passed")
        until(lambda: other in self.pids(three), lambda: "it runs there; " + three.log(other))

    def test_it_dies_with_its_wrapper(self):
        one = self.cluster(1)
        process = self.start(one, "a", [], "sh", "-c", self.script(one))
        pid = until(lambda: self.pids(one), "the program runs")["a"]
        process.kill()
        process.wait()
        until(lambda: not is_alive(pid), "the program is dead")

    def test_it_moves_with_leadership_and_is_never_in_two_places(self):
        three = self.cluster(3)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(three))
        first = list(until(lambda: self.pids(three), "one program runs"))
        self.assertEqual(len(first), 1)
        old = first[0]
        pid = self.pids(three)[old]
        three.processes[old].kill()
        three.processes[old].wait()
        def moved():
            pids = self.pids(three)
            self.assertFalse(len(pids) > 1, pids)
            return [name for name in pids if name != old]
        until(moved, "the program runs elsewhere")
        self.assertFalse(is_alive(pid))

    def test_pass_stops_the_program_before_another_begins(self):
        three = self.cluster(3)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(three))
        old = list(until(lambda: self.pids(three), "one program runs"))[0]
        until(lambda: all((three.status(name) or {"leader": {"id": ""}})["leader"]["id"] == old
                          for name in three.names), "all follow")
        done = baton("pass", "--data", three.data(old))
        self.assertEqual(done.returncode, 0, done.stderr)
        def moved():
            pids = self.pids(three)
            self.assertFalse(len(pids) > 1, pids)
            return [name for name in pids if name != old]
        until(moved, "the program runs elsewhere")

    def test_pass_to_nobody_that_there_is_leaves_the_program_alone(self):
        three = self.cluster(3, *LASTING)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(three))
        leader, pid = list(until(lambda: self.pids(three), "one program runs").items())[0]
        for to in ("typo", leader):
            done = baton("pass", "--data", three.data(leader), "--to", to)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn('"%s"' % to, done.stderr)
            listed = set(done.stderr.split("these can: ")[1].split("\n")[0].split(", "))
            self.assertEqual(listed, set(three.names) - {leader})
        self.assertEqual(self.pids(three), {leader: pid})
        self.assertNotIn("command-ended", three.log(leader))

    def test_a_program_that_stopped_for_nothing_begins_again_when_that_is_known(self):
        three = self.cluster(3, *LONGER)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(three))
        leader, pid = list(until(lambda: self.pids(three), "one program runs").items())[0]
        to = next(name for name in three.names if name != leader)
        def is_silent():
            members = json.loads(baton("members", "--data", three.data(leader), "--json").stdout)
            return [one for one in members if one["name"] == to and not one["alive"]]
        def passed():
            until(lambda: not is_silent(), "the other one is heard of")
            three.signal(to, signal.SIGSTOP)
            until(is_silent, "the other one is not heard of")
            done = baton("pass", "--data", three.data(leader), "--to", to, "--timeout", "500ms")
            if done.returncode != 1:  # else it was too late: the connection to it was given up
                return done
            three.signal(to, signal.SIGCONT)
            return None
        done = until(passed, "leadership is passed")
        self.assertEqual(done.returncode, 124, done.stderr)
        def begun_again():
            return self.pids(three).get(leader, pid) != pid
        until(begun_again, "the program runs again")
        expected = ["command-started", "command-ended", "leads-on", "command-started"]
        def logged():  # the program may write its pid before the wrapper logs its start
            events = [line.split()[2] for line in three.log(leader).splitlines()]
            events = [event for event in events if event in expected]
            return events[:4] if len(events) >= len(expected) else None
        self.assertEqual(until(logged, "the second start is logged"), expected)

    def start_with_a_program_that_ends_cleanly(self, cluster, *names):
        """Nodes whose program, told to end, writes a file and ends with 7."""
        for name in names:
            priority = cluster.suffixes.get(name, "^0")[1:]
            self.start(cluster, name, ["--preferred-stable", "1s", "--priority", priority],
                       "sh", "-c",
                       self.script(cluster, "while :; do sleep 0.05; done",
                                   first="trap 'touch %s/clean; exit 7' TERM" % cluster.dir))

    def check_moved_cleanly(self, cluster, old):
        until(lambda: [name for name in self.pids(cluster) if name != old], "it runs elsewhere")
        self.assertTrue(os.path.exists(os.path.join(cluster.dir, "clean")), cluster.log(old))
        self.assertIn("drain", cluster.log(old))
        self.assertIn("exit_code=7", cluster.log(old).replace('"', "").replace(": ", "="))

    def test_a_preferred_node_that_is_back_waits_until_the_program_has_stopped(self):
        three = self.cluster(3, *LONGER)
        three.suffixes["c"] = "^9"
        self.start_with_a_program_that_ends_cleanly(three, "a", "b")
        old = list(until(lambda: self.pids(three), "one program runs"))[0]
        self.start_with_a_program_that_ends_cleanly(three, "c")
        self.check_moved_cleanly(three, old)
        until(lambda: list(self.pids(three)) == ["c"], "c leads")

    def test_a_leader_that_leaves_the_group_stops_its_program_first(self):
        three = self.cluster(3, *LASTING)
        self.start_with_a_program_that_ends_cleanly(three, *three.names)
        old = list(until(lambda: self.pids(three), "one program runs"))[0]
        done = baton("leave", "--data", three.data(old), old)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_moved_cleanly(three, old)

    def test_a_hung_wrapper_and_its_program_are_killed_where_asked(self):
        three = self.cluster(3)
        for name in three.names:
            self.start(three, name, ["--on-loss", "kill"], "sh", "-c", self.script(three))
        old, pid = list(until(lambda: self.pids(three), "one program runs").items())[0]
        three.signal(old, signal.SIGSTOP)
        until(lambda: [name for name in self.pids(three) if name != old], "it runs elsewhere")
        self.assertFalse(is_alive(pid), "the old program is dead before")
        self.assertEqual(three.processes[old].wait(timeout=DEADLINE_S), -signal.SIGKILL)

    def test_on_loss_exit_ends_with_75(self):
        three = self.cluster(3)
        processes = {name: self.start(three, name, ["--on-loss", "exit"], "sh", "-c",
                                      self.script(three)) for name in three.names}
        old = list(until(lambda: self.pids(three), "one program runs"))[0]
        for name in three.names:
            if name != old:
                three.kill(name)
        self.assertEqual(processes[old].wait(timeout=DEADLINE_S), 75, three.log(old))


class Once(ProgramTest):
    def test_a_provider_without_shared_state_is_refused(self):
        done = baton("once", "schema", "--provider", "memory:", "--", "true")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("keeps no state", done.stderr)

    def test_a_name_that_is_too_long_hears_how_long_it_may_be(self):
        done = baton("once", "x" * 300, "--provider", "memory:", "--", "true")
        self.assertEqual(done.returncode, 64)
        self.assertRegex(done.stderr, r"the name has 300 bytes; must have at most \d+\n")

    def test_the_name_must_not_be_empty(self):
        one = self.cluster(1)
        done = baton("once", "", *one.arguments("a"), "--", "true")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("empty", done.stderr)

    def test_what_has_succeeded_tells_of_no_failure(self):
        one = self.cluster(1)
        for name in ("first", "second"):
            done = baton("once", name, *one.arguments("a"), "--", "sh", "-c", "exit 3")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertNotIn("baton once:", done.stderr)

    def test_keep_0_keeps_the_result(self):
        self.assertIn("0 keeps it forever", " ".join(baton("once", "--help").stdout.split()))
        one = self.cluster(1)
        for code in ("3", "4"):
            done = baton("once", "schema", *one.arguments("a"), "--keep-failed", "0", "--", "sh",
                         "-c", "exit " + code)
            self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_wait_timeout_of_0_waits_for_ever(self):
        three = self.cluster(3)
        self.once(three, "a", "exit 3", "--wait-timeout", "0")
        until(lambda: os.path.exists(os.path.join(three.data("a"), "raft.db")), "it has begun")
        self.once(three, "b", "exit 3")
        self.assertEqual(three.processes["a"].wait(timeout=DEADLINE_S), 3, three.log("a"))

    def test_a_failed_result_is_kept_for_a_time_of_its_own(self):
        one = self.cluster(1)
        def once(script, *flags):
            return baton("once", "schema", *one.arguments("a"), *flags, "--", "sh", "-c", script)
        self.assertEqual(once("exit 3").returncode, 3)
        self.assertEqual(once("exit 4").returncode, 3)  # it is kept for a minute
        until(lambda: once("exit 0", "--keep-failed", "1ms").returncode == 0,
              "the failure is forgotten, and CMD runs again")
        self.assertEqual(once("exit 3").returncode, 0)  # the success is kept

    def test_a_program_that_is_not_there_is_an_error_before_the_election(self):
        """Nothing is there to win: neither command would ever start CMD, or find it missing."""
        for words in (["run"], ["once", "x"]):
            for program, code in (("/nonexistent/cmd", 127), ("no-such-command", 127), ("/", 126)):
                done = baton(*words, "--node", "a", "--provider", "redis://127.0.0.1:1", "--",
                             program)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(program, done.stderr)

    def once(self, cluster, name, script, *flags):
        log = open(os.path.join(cluster.dir, name + ".log"), "ab")
        cluster.processes[name] = subprocess.Popen(
            [BATON, "once", "schema", *cluster.arguments(name), *flags, "--", "sh", "-c", script],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=clean_environment(),
            start_new_session=True)
        log.close()

    def begun(self, cluster):
        try:
            with open(os.path.join(cluster.dir, "begun"), encoding="utf-8") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def test_one_node_runs_it_and_all_share_its_exit_code(self):
        three = self.cluster(3, *LASTING)
        for name in three.names:
            self.once(three, name, "echo $BATON_NODE >>%s/begun; exit 7" % three.dir)
        codes = {name: three.processes[name].wait(timeout=DEADLINE_S) for name in three.names}
        self.assertEqual(set(codes.values()), {7}, "".join(map(three.log, three.names)))
        self.assertEqual(len(self.begun(three)), 1)

    def first_of_three(self, *flags):
        """Three nodes, of which the second to run CMD succeeds, and the one that has begun it."""
        three = self.cluster(3, *flags)
        script = "echo $BATON_NODE >>%s/begun; test $(wc -l <%s/begun) -gt 1 || sleep 1000" % (
            three.dir, three.dir)
        for name in three.names:
            self.once(three, name, script)
        first = until(lambda: self.begun(three),
                      lambda: "somebody runs it\n" + "".join(map(three.log, three.names)))[0]
        return three, first

    def test_another_node_runs_it_when_the_first_one_dies(self):
        three, first = self.first_of_three(*LASTING)
        three.kill(first)
        codes = {name: three.processes[name].wait(timeout=DEADLINE_S)
                 for name in three.names if name != first}
        self.assertEqual(set(codes.values()), {0}, "".join(map(three.log, three.names)))
        self.assertEqual(len(self.begun(three)), 2)

    def script_that_ends_cleanly(self, cluster):
        """The second to run it succeeds; the first, told to end, writes a file and ends with 0."""
        return ("trap 'echo $BATON_NODE >>%s/clean; exit 0' TERM HUP; echo $BATON_NODE >>%s/begun; "
                "test $(wc -l <%s/begun) -gt 1 && exit 5; while :; do sleep 0.05; done"
                % (3 * (cluster.dir,)))

    def clean(self, cluster):
        with open(os.path.join(cluster.dir, "clean"), encoding="utf-8") as file:
            return file.read().split()

    def test_a_preferred_node_waits_until_the_program_has_stopped_and_runs_it_again(self):
        three = self.cluster(3, *LONGER)
        three.suffixes["c"] = "^9"
        script = self.script_that_ends_cleanly(three)
        for name in ("a", "b"):
            self.once(three, name, script, "--preferred-stable", "1s")
        first = until(lambda: self.begun(three), "somebody runs it")[0]
        self.once(three, "c", script, "--preferred-stable", "1s", "--priority", "9")
        until(lambda: all(one.poll() is not None for one in three.processes.values()),
              lambda: "all end\n" + "\n".join(map(three.log, three.names)))
        codes = {name: three.processes[name].wait() for name in three.names}
        self.assertEqual(set(codes.values()), {5}, "".join(map(three.log, three.names)))
        self.assertEqual(self.begun(three), [first, "c"])
        self.assertEqual(self.clean(three), [first], three.log(first))

    def test_signals_that_end_nothing_reach_the_program(self):
        for name in ("USR1", "USR2", "QUIT"):
            one = self.cluster(1)
            self.once(one, "a", "trap 'exit 3' %s; echo $BATON_NODE >>%s/begun; "
                      "while :; do sleep 0.05; done" % (name, one.dir))
            until(lambda: self.begun(one), "it runs")
            one.signal("a", getattr(signal, "SIG" + name))
            self.assertEqual(one.processes["a"].wait(timeout=DEADLINE_S), 3, one.log("a"))

    def test_a_quit_that_the_program_survives_ends_nothing_later(self):
        three = self.cluster(3, *LASTING)
        for name in three.names:
            self.start(three, name, [], "sh", "-c", self.script(
                three, "while :; do sleep 0.05; done", first="trap '' QUIT"))
        old = next(iter(until(lambda: self.pids(three), "a program runs")))
        three.signal(old, signal.SIGQUIT)
        other = next(name for name in three.names if name != old)
        until(lambda: baton("pass", "--data", three.data(old), "--to", other).returncode == 0,
              "leadership is passed")
        until(lambda: (three.status(old) or {"leader": {}})["leader"].get("id") == other,
              lambda: "the old leader follows; its log: " + three.log(old))
        self.assertIsNone(three.processes[old].poll())

    def test_a_signal_stops_the_program_cleanly_and_another_node_runs_it_again(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            three = self.cluster(3, *LASTING)
            for name in three.names:
                self.once(three, name, self.script_that_ends_cleanly(three))
            first = until(lambda: self.begun(three), "somebody runs it")[0]
            three.signal(first, number)
            self.assertEqual(three.processes[first].wait(timeout=DEADLINE_S), 128 + number,
                             three.log(first))
            others = [name for name in three.names if name != first]
            codes = {name: three.processes[name].wait(timeout=DEADLINE_S) for name in others}
            self.assertEqual(set(codes.values()), {5}, "".join(map(three.log, three.names)))
            self.assertEqual(self.clean(three), [first])

    def test_a_program_that_does_not_stop_is_killed_after_the_stop_timeout(self):
        one = self.cluster(1)
        self.once(one, "a", "trap : TERM; echo $BATON_NODE >>%s/begun; "
                  "while :; do sleep 0.05; done" % one.dir, "--stop-timeout", "100ms")
        until(lambda: self.begun(one), "it runs")
        one.signal("a", signal.SIGTERM)
        self.assertEqual(one.processes["a"].wait(DEADLINE_S), 128 + signal.SIGTERM, one.log("a"))

    def test_what_was_killed_for_a_leadership_in_jeopardy_is_run_again(self):
        three, first = self.first_of_three()
        others = [name for name in three.names if name != first]
        for name in others:
            three.signal(name, signal.SIGSTOP)
        until(lambda: "jeopardy" in three.log(first), "its lease is not renewed")
        for name in others:
            three.signal(name, signal.SIGCONT)
        # The others may have been taken for dead, and be left behind: that is another matter.
        self.assertEqual(three.processes[first].wait(timeout=DEADLINE_S), 0, three.log(first))


if __name__ == "__main__":
    main()
