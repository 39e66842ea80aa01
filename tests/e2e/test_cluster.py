"""Three real nodes: queries, commands and faults."""
import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from harness import (BATON, DEADLINE_S, LASTING, LONGER, ClusterTest, baton, clean_environment,
                     free_ports, main, slow_disk, until)


def fetch(port, path, **headers):
    request = urllib.request.Request("http://127.0.0.1:%d%s" % (port, path), headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Asking(ClusterTest):
    def setUp(self):
        self.three = self.cluster(3, *LONGER, "--http", "127.0.0.1:0")
        self.three.start_all()
        self.leader = self.three.wait_leader()

    def port(self, name):
        return self.three.status(name)["http_port"]

    def test_status_and_members_tell_one_story(self):
        follower = next(name for name in self.three.names if name != self.leader)
        until(lambda: self.three.status(follower)["leader"]["id"] == self.leader,
              "the follower knows its leader")
        theirs, ours = self.three.status(follower), self.three.status(self.leader)
        self.assertEqual(theirs["epoch"], ours["epoch"])
        self.assertGreater(ours["lease_left_ms"], 0)
        self.assertEqual(theirs["role"], "follower")
        members = json.loads(baton("members", "--data", self.three.data(follower),
                                   "--json").stdout)
        self.assertEqual(sorted(member["name"] for member in members), self.three.names)
        table = baton("members", "--data", self.three.data(follower)).stdout
        self.assertTrue(table.startswith("NODE"), table)
        told = baton("status", "--data", self.three.data(follower)).stdout
        self.assertIn(self.leader, told)
        self.assertNotIn("lease left", told)  # it has none

    def test_http_tells_the_leader_from_the_others(self):
        for name in self.three.names:
            code, text = fetch(self.port(name), "/leader")
            self.assertEqual(code, 200 if name == self.leader else 503, text)
            self.assertEqual(fetch(self.port(name), "/healthz")[0], 200)
        port = self.port(self.leader)
        self.assertEqual(json.loads(fetch(port, "/status")[1])["node"], self.leader)
        metrics = fetch(port, "/metrics")[1]
        self.assertIn("baton_is_leader 1\n", metrics)
        with open(os.path.join(os.path.dirname(__file__), "../../docs/operations.md"),
                  encoding="utf-8") as page:
            told = re.findall(r"^\| `(baton_\w+)` \| (\w+) ", page.read(), re.M)
        self.assertEqual(told, re.findall(r"^# TYPE (\w+) (\w+)$", metrics, re.M))
        self.assertEqual(fetch(port, "/nothing")[0], 404)
        self.assertEqual(fetch(port, "/status", Host="evil.example")[0], 403)
        refused = baton("status", "--http", "0.0.0.0:%d" % port)
        self.assertEqual(refused.returncode, 77, refused.stderr)
        self.assertIn("status 403: this host or origin is not allowed", refused.stderr)
        by_http = baton("status", "--http", "127.0.0.1:%d" % port, "--json")
        self.assertEqual(json.loads(by_http.stdout)["node"], self.leader, by_http.stderr)

    def test_hostile_requests_leave_the_leader_leading(self):
        port, epoch = self.port(self.leader), self.three.status(self.leader)["epoch"]
        hostile = [b"GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 1000000,
                   b"\0" * 4096, b"GET " + b"/" * 60000 + b" HTTP/1.1\r\n\r\n",
                   b"POST /status HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n"]
        for data in hostile * 5:
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as one:
                try:
                    one.sendall(data)
                except OSError:
                    pass
        self.assertEqual(fetch(port, "/healthz")[0], 200)
        self.assertEqual(self.three.status(self.leader)["epoch"], epoch)

    def test_the_socket_is_private_and_goes_with_the_node(self):
        path = os.path.join(self.three.data(self.leader), "control.sock")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.three.signal(self.leader, signal.SIGTERM)
        self.assertEqual(self.three.processes[self.leader].wait(timeout=DEADLINE_S), 0)
        self.assertFalse(os.path.exists(path))
        self.three.wait_leader([name for name in self.three.names if name != self.leader])


class Operating(ClusterTest):
    def setUp(self):
        self.begin(*LASTING)

    def begin(self, *flags):
        self.three = self.cluster(3, *flags)
        self.three.start_all()
        self.leader = self.three.wait_leader()
        self.others = [name for name in self.three.names if name != self.leader]

    def test_pass_hands_over_to_the_named_node_in_a_higher_epoch(self):
        before = self.three.status(self.leader)["epoch"]
        until(lambda: all(self.three.status(name)["leader"]["id"] == self.leader
                          for name in self.others), "all follow")
        done = baton("pass", "--data", self.three.data(self.leader), "--to", self.others[1],
                     "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["leader"], self.others[1])
        until(lambda: self.three.status(self.others[1])["is_leader"], "it leads")
        self.assertGreater(self.three.status(self.others[1])["epoch"], before)

    def test_pass_to_a_node_that_is_dead_changes_nothing(self):
        epoch, to = self.three.status(self.leader)["epoch"], self.others[0]
        self.three.kill(to)
        until(lambda: [peer for peer in self.three.status(self.leader)["raft"]["peers"]
                       if peer["name"] == to and not peer["connected"]],
              "the leader knows that it is dead")
        done = baton("pass", "--data", self.three.data(self.leader), "--to", to)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('member "%s" does not answer; this node goes on leading' % to, done.stderr)
        self.assertEqual(self.three.status(self.leader)["epoch"], epoch)

    def test_pass_to_a_node_that_does_not_vote_yet_says_when_it_will(self):
        silent = self.cluster(3, *LASTING)
        silent.start_all()
        leader = silent.wait_leader()
        to = next(name for name in silent.names if name != leader)
        until(lambda: silent.status(to)["leader"]["id"] == leader, "it follows")
        epoch = silent.status(leader)["epoch"]
        silent.kill(to)
        silent.start(to)
        until(lambda: (silent.status(to) or {"leader": {"id": ""}})["leader"]["id"] == leader,
              "it follows again")
        def passes():
            done = baton("pass", "--data", silent.data(leader), "--to", to, "--timeout", "1s")
            return done if "votes in" in done.stderr else None
        done = until(passes, "the leader knows that it does not vote")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, '"%s": has just started and votes in [0-9.]+ s' % to)
        self.assertEqual(silent.status(leader)["epoch"], epoch)
        other = next(name for name in silent.names if name not in (leader, to))
        silent.kill(other)
        until(lambda: [peer for peer in silent.status(leader)["raft"]["peers"]
                       if peer["name"] == other and not peer["connected"]],
              "the leader knows that the other one is dead")
        done = baton("pass", "--data", silent.data(leader))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, 'nobody can take over now: .*"%s" has just started and votes '
                         'in [0-9.]+ s' % to)
        self.assertIn('"%s" does not answer' % other, done.stderr)
        self.assertEqual(silent.status(leader)["epoch"], epoch)

    def test_pass_is_an_error_if_another_node_leads_instead(self):
        """The node that is named stands still; c, of higher priority, campaigns before others."""
        three = self.cluster(3, "--preferred-stable", "1h")
        three.suffixes["c"] = "^9"
        three.start("a")
        three.start("b")
        leader = three.wait_leader(["a", "b"])
        three.start("c", "--priority", "9")
        until(lambda: (three.status("c") or {"leader": {"id": ""}})["leader"]["id"] == leader,
              "c follows")
        to = "b" if leader == "a" else "a"
        def passed():
            three.signal(to, signal.SIGSTOP)
            done = baton("pass", "--data", three.data(leader), "--to", to)
            three.signal(to, signal.SIGCONT)
            # This machine may be so slow that the leader knows that the other one stands still.
            return None if "goes on leading" in done.stderr else done
        done = until(passed, "leadership is passed")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stderr, "c leads now, and not %s|no other node took over" % to)

    def fourth(self):
        """A node d that waits to be taken in."""
        fourth = self.cluster(1, *LASTING, "--join")
        fourth.names = ["d"]
        fourth.ports = {"d": fourth.ports["a"]}
        fourth.start("d")
        return fourth

    def test_a_node_joins_and_leaves(self):
        fourth = self.fourth()
        done = baton("join", "--data", self.three.data(self.leader),
                     "d=127.0.0.1:%d" % fourth.ports["d"])
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: (fourth.status("d") or {"leader": {"id": ""}})["leader"]["id"],
              "the fourth follows")
        until(lambda: "leader-changed" in fourth.log("d"), "it is told whom")
        for line in fourth.log("d").splitlines():
            if "leader-changed" in line:
                self.assertEqual(line.split(" member=")[1].split()[0], self.leader)
        def names():
            members = json.loads(baton("members", "--data", self.three.data(self.leader),
                                       "--json").stdout or "[]")
            return sorted(member["name"] for member in members)
        self.assertEqual(names(), ["a", "b", "c", "d"])
        done = baton("leave", "--data", self.three.data(self.leader), "d")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: names() == ["a", "b", "c"], "it has left")
        until(lambda: " warning removed " in fourth.log("d"), "it is told so, too")
        self.assertIn(" notice  waits-to-join ", fourth.log("d"))
        last = [line for line in self.three.log(self.leader).splitlines()
                if " notice  members " in line][-1]
        self.assertNotIn("d=", last)

    def test_a_vote_that_is_a_quorum_by_itself_is_warned_of(self):
        two = self.cluster(2)
        two.suffixes["a"] = "*3"
        two.start("a", "--weight", "3")
        two.start("b")
        two.wait_leader()
        for name in two.names:
            until(lambda one=name: "weight-of-majority member=a" in two.log(one), "it is logged")
        self.assertNotIn("weight-of-majority", self.three.log(self.leader))

    def joined(self, text):
        """What the group has of the member that was added so."""
        done = baton("join", "--data", self.three.data(self.leader), text)
        self.assertEqual(done.returncode, 0, done.stderr)
        members = json.loads(baton("members", "--data", self.three.data(self.leader),
                                   "--json").stdout)
        return [(one["kind"], one["weight"], one["priority"]) for one in members
                if one["name"] == text.split("=")[0]][0]

    def test_who_adds_a_member_says_its_kind_weight_and_priority(self):
        d = "d=" + self.fourth().address("d")
        self.assertEqual(self.joined(d + "/learner"), ("learner", 0, 0))
        self.assertEqual(self.joined(d + "^7"), ("learner", 0, 7))
        other = "%s=%s" % (self.others[0], self.three.address(self.others[0]))
        self.assertEqual(self.joined(other + "*2^-3"), ("voter", 2, -3))
        self.assertEqual(self.joined(other), ("voter", 2, -3))
        self.assertEqual(self.joined(other + "/learner"), ("learner", 0, -3))
        self.assertEqual(self.joined(other + "/voter"), ("voter", 1, -3))

    def test_a_join_that_was_interrupted_is_completed_by_the_same_command(self):
        other = "%s=%s" % (self.others[0], self.three.address(self.others[0]))
        self.assertEqual(self.joined(other + "/learner"), ("learner", 0, 0))
        self.assertEqual(self.joined(other), ("voter", 1, 0))

    def addresses(self):
        members = json.loads(baton("members", "--data", self.three.data(self.leader),
                                   "--json").stdout)
        return {member["name"]: member["address"] for member in members}

    def test_a_member_that_is_there_is_replaced_only_where_asked(self):
        before = self.addresses()
        other = self.others[0]
        elsewhere = "%s=127.0.0.1:1" % other
        def join(*words):
            return baton("join", "--data", self.three.data(self.leader), *words)
        done = join(elsewhere)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('"%s"' % other, done.stderr)
        self.assertIn(before[other], done.stderr)
        self.assertEqual(self.addresses(), before)
        done = join("%s=%s" % (other, before[other]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.addresses(), before)
        done = until(lambda: (one := join("--replace", "--timeout", "1s", elsewhere)).returncode
                     != 124 and one, "an answer in time")  # nobody is there
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertEqual(self.addresses(), before)
        self.three.kill(other)
        self.three.ports[other] = free_ports(1)[0]
        self.three.start(other)  # it has moved, with its data directory
        done = join("--replace", "%s=%s" % (other, self.three.address(other)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.addresses()[other], self.three.address(other))

    def test_a_wrong_member_is_refused(self):
        for text in ("d", "d=nowhere", "=127.0.0.1:1", "d=127.0.0.1:0", "d=127.0.0.1:1*heavy",
                     "d=127.0.0.1:1^", "d=127.0.0.1:1/boss", "d=127.0.0.1:1*1*2",
                     "d=127.0.0.1:1*" + 40 * "0" + "/voter"):
            done = baton("join", "--data", self.three.data(self.leader), text)
            self.assertEqual(done.returncode, 64, (text, done.stderr))

    def test_a_follower_cannot_pass_what_it_has_not(self):
        done = baton("pass", "--data", self.three.data(self.others[0]))
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not lead, %s does; ask there" % self.leader, done.stderr)

    def test_a_pass_without_any_leader_says_where_to_look(self):
        two = self.cluster(2)
        two.start("a")
        until(lambda: two.status("a"), "it answers")
        done = baton("pass", "--data", two.data("a"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("a does not lead, and knows no leader; `baton members` shows", done.stderr)

    def test_a_cordoned_leader_hands_over(self):
        done = baton("cordon", "--data", self.three.data(self.leader))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.three.wait_leader(self.others)
        self.assertTrue(self.three.status(self.leader)["cordoned"])
        self.assertEqual(baton("uncordon", "--data",
                               self.three.data(self.leader)).returncode, 0)
        self.assertFalse(self.three.status(self.leader)["cordoned"])

    def test_every_node_tells_who_is_cordoned(self):
        one, asked = self.others
        def cordoned():
            members = json.loads(baton("members", "--data", self.three.data(asked),
                                       "--json").stdout or "[]")
            return [member["name"] for member in members if member["cordoned"]]
        until(lambda: self.three.status(one)["leader"]["id"], "it follows")
        self.assertEqual(cordoned(), [])
        self.assertEqual(baton("cordon", "--data", self.three.data(one)).returncode, 0)
        until(lambda: cordoned() == [one], "another follower knows")
        self.three.kill(asked)
        self.three.start(asked)
        until(lambda: cordoned() == [one], "it is told anew")
        self.assertRegex(baton("members", "--data", self.three.data(asked)).stdout,
                         r"CORDONED(.*\n)*%s .* yes\n" % one)
        self.assertEqual(baton("uncordon", "--data", self.three.data(one)).returncode, 0)
        until(lambda: cordoned() == [], "it may lead again")

    def test_watch_prints_events_until_the_node_ends(self):
        follower = self.others[0]
        watch = subprocess.Popen([BATON, "watch", "--data", self.three.data(follower), "--json"],
                                 stdout=subprocess.PIPE, universal_newlines=True,
                                 stderr=subprocess.DEVNULL, env=clean_environment())
        self.addCleanup(watch.stdout.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(map(json.loads, watch.stdout)))
        reader.start()
        # Passing to and fro until an event came: the subscription is under way all the while.
        def has_event():
            leader = self.three.leader()
            if leader:
                baton("pass", "--data", self.three.data(leader), "--timeout", "5s")
            return any(line["event"] == "leader-changed" for line in list(lines))
        until(has_event, "an event")
        self.three.kill(follower)
        self.assertEqual(watch.wait(timeout=DEADLINE_S), 69)
        reader.join()
        done = baton("watch", "--data", self.three.data(self.others[1]), "--timeout", "1ms")
        self.assertEqual(done.returncode, 124)
        self.assertIn("--timeout 1ms: the time is over", done.stderr)

    def test_a_killed_leader_is_followed_by_another(self):
        before = self.three.status(self.leader)["epoch"]
        self.three.kill(self.leader)
        heir = self.three.wait_leader(self.others)
        self.assertGreater(self.three.status(heir)["epoch"], before)
        self.three.start(self.leader)
        until(lambda: (self.three.status(self.leader) or {}).get("leader", {}).get("id"),
              "the old leader follows")

    def test_a_stopped_leader_finds_itself_a_follower(self):
        self.begin()
        self.three.signal(self.leader, signal.SIGSTOP)
        heir = self.three.wait_leader(self.others)
        self.three.signal(self.leader, signal.SIGCONT)
        status = until(lambda: self.three.status(self.leader), "it answers")
        self.assertFalse(status["is_leader"])
        self.assertTrue(self.three.status(heir)["is_leader"])


class Starting(ClusterTest):
    @unittest.skipUnless(os.geteuid() == 0, "it takes another user")
    def test_other_processes_of_its_user_cannot_read_its_memory(self):
        """What /proc has of a process that is not dumpable belongs to root, whoever runs it."""
        one = self.cluster(1)
        nobody = 65534
        os.chown(one.dir, nobody, nobody)
        one.start("a", under=("setpriv", "--reuid=%d" % nobody, "--clear-groups"))
        one.wait_leader()
        self.assertEqual(os.stat("/proc/%d/mem" % one.processes["a"].pid).st_uid, 0)

    def test_systemd_is_told_ready_alive_and_stopping(self):
        one = self.cluster(1)
        path = os.path.join(one.dir, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(60)
            one.start("a", env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"})
            told = []
            # Twice alive: it has waited in between. What gcc's thread sanitizer gets to keep a
            # signal in is made at a thread's first wait, and a signal of that moment is lost.
            while "READY=1" not in told or told.count("WATCHDOG=1") < 2:
                told.append(manager.recv(4096).decode())
            one.signal("a", signal.SIGTERM)
            while "STOPPING=1" not in told:
                told.append(manager.recv(4096).decode())
            self.assertTrue(any(text.startswith("STATUS=") for text in told), told)

    def test_without_standard_descriptors_their_numbers_are_given_to_nothing_else(self):
        one = self.cluster(1)
        one.start("a", under=("sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-'))
        one.wait_leader()
        for fd in range(3):
            self.assertEqual(os.readlink("/proc/%d/fd/%d" % (one.processes["a"].pid, fd)),
                             "/dev/null")

    def test_who_starts_first_says_whom_it_waits_for(self):
        three = self.cluster(3)
        expected = "1 of 3 votes is here, and 2 are needed; no answer from "
        done = baton("run", *three.arguments("a"), "--wait-timeout", "300ms", "--", "true")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn(expected, done.stderr)
        three.start("a")
        until(lambda: "no-quorum" in three.log("a"), "it is logged")
        line = next(line for line in three.log("a").splitlines() if "no-quorum" in line)
        self.assertIn(expected, line)
        for name in "bc":
            self.assertIn("%s at %s" % (name, three.address(name)), line)
        three.start("b")
        three.wait_leader(["a", "b"])

    def test_disks_slower_than_a_round_of_votes_still_get_a_leader(self):
        under = slow_disk(400)
        if not under:
            self.skipTest("strace cannot delay writes here")
        cluster = self.cluster(3)  # its rounds take 100 to 250 ms
        for name in cluster.names:
            cluster.start(name, under=under)
        leader = cluster.wait_leader()
        self.assertIn("slow-disk", cluster.log(leader))

    def test_a_lease_without_an_end_is_called_so(self):
        one = self.cluster(1)
        one.start("a", "--http", "127.0.0.1:0")
        one.wait_leader()
        self.assertRegex(baton("status", "--data", one.data("a")).stdout, r"\nlease left +no end\n")
        status = one.status("a")
        self.assertIsNone(status["lease_left_ms"])
        metrics = fetch(status["http_port"], "/metrics")[1]
        self.assertIn("\nbaton_lease_left_seconds +Inf\n", metrics)

    def test_a_second_process_on_one_directory_is_refused(self):
        one = self.cluster(1)
        one.start("a")
        one.wait_leader()
        done = baton("node", *one.arguments("a"))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(one.data("a"), done.stderr)
        self.assertTrue(one.status("a")["is_leader"])

    @unittest.skipUnless(slow_disk(0), "strace cannot be used here")
    def test_a_second_process_that_starts_at_once_leaves_the_first_its_control_socket(self):
        one = self.cluster(1)
        one.start("a", under=["strace", "-D", "-f", "-o", "/dev/null", "-e", "trace=listen", "-e",
                              "inject=listen:delay_enter=1000s:when=1"])
        until(lambda: os.path.exists(os.path.join(one.data("a"), "control.sock")), "it is bound")
        done = baton("node", *one.arguments("a"))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("another process is starting with this data directory", done.stderr)
        with open("/proc/%d/status" % one.processes["a"].pid, encoding="ascii") as file:
            tracer = re.search(r"TracerPid:\t(\d+)", file.read()).group(1)
        os.kill(int(tracer), signal.SIGKILL)  # it lets the first one go on
        one.wait_leader()

    def test_who_cannot_begin_says_why_by_its_exit_code(self):
        one = self.cluster(1)
        one.start("a")
        one.wait_leader()
        folder = os.path.join(one.dir, "b")
        done = baton("node", "--node", "b", "--data", folder, "--listen", one.address("a"))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("in use", done.stderr)
        one.kill("a")
        done = baton("node", "--node", "b", "--data", one.data("a"), "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn('belongs to node "a"', done.stderr)
        file = os.path.join(one.data("a"), "raft.db")
        with contextlib.closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA user_version = 99")
        done = baton("node", *one.arguments("a"))
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("its format is 99", done.stderr)
        with open(file, "wb") as damaged:
            damaged.write(b"x" * 8192)
        done = baton("node", *one.arguments("a"))
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("let this member leave the group", done.stderr)
        for command in ("node", "status"):
            done = baton(command, "--data", os.path.join(one.dir, 100 * "x"))
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("socket", done.stderr)

    def test_the_data_directory_may_stand_in_the_url(self):
        one = self.cluster(1)
        folder = os.path.join(one.dir, "in url")
        url = "raft://%s?data=%s" % (one.address("a"), folder.replace(" ", "%20"))
        one.arguments = lambda name: ["--node", name, "--provider", url, *one.flags]
        one.data = lambda name: folder
        one.start("a")
        self.assertEqual(one.wait_leader(), "a")
        done = baton("node", "--provider", "raft://127.0.0.1:0?data=")
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("data: is empty", done.stderr)
        self.assertNotIn("--data", done.stderr)

    def test_peers_off_loopback_need_a_key(self):
        """0.0.0.0 is this machine to whoever connects, and no loopback address."""
        one = self.cluster(1)
        done = baton("node", *one.arguments("a"), "--peer", "b=0.0.0.0:1")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("b@0.0.0.0:1", done.stderr)
        one.start("a")
        one.wait_leader()
        done = baton("join", "--data", one.data("a"), "b=0.0.0.0:1")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("key-file", done.stderr)
        self.assertEqual(len(one.status("a")["members"]), 1)

    def test_peers_on_disk_need_a_key_too(self):
        one = self.cluster(2)
        alone = ["--node", "a", "--data", one.data("a"), "--listen", one.address("a"), *one.flags]
        one.arguments = lambda name: alone
        one.start("a", "--insecure")
        one.wait_leader()
        one.arguments = lambda name: ["--node", name, "--data", one.data(name), "--listen",
                                      "0.0.0.0:%d" % one.ports["b"], *one.flags]
        one.start("b", "--insecure", "--join")
        done = baton("join", "--data", one.data("a"), "b=0.0.0.0:%d" % one.ports["b"])
        self.assertEqual(done.returncode, 0, done.stderr)
        one.kill("a")
        done = baton("node", *alone)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("b@0.0.0.0", done.stderr)

    def test_another_cluster_key_is_named_with_its_peer_once_a_minute(self):
        two = self.cluster(2)
        for name in two.names:
            path = os.path.join(two.dir, name + ".key")
            with open(path, "w", encoding="utf-8") as file:
                file.write("a key of its own for " + name)
            os.chmod(path, 0o600)
            two.start(name, "--key-file", path)
        def refused(name):
            return (two.status(name) or {"raft": {"counters": {"refused_greeting": 0}}})[
                "raft"]["counters"]["refused_greeting"]
        until(lambda: min(refused(name) for name in two.names) >= 5, "both refuse, often")
        for name, peer in (("a", "b"), ("b", "a")):
            lines = [line for line in two.log(name).splitlines() if "peer-not-auth" in line]
            self.assertEqual(len(lines), 1, lines)
            self.assertIn('peer=%s address=127.0.0.1' % peer, lines[0])
            self.assertIn('reason="other cluster key; give both nodes the same key-file"', lines[0])

    def test_http_off_loopback_needs_a_token(self):
        one = self.cluster(1, "--http", "0.0.0.0:0")
        done = baton("node", *one.arguments("a"))
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("--http-token-file", done.stderr)

    def test_a_token_that_others_may_read_is_refused(self):
        one = self.cluster(1)
        path = os.path.join(one.dir, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("0123456789abcdef0123\n")
        os.chmod(path, 0o644)
        done = baton("node", *one.arguments("a"), "--http", "127.0.0.1:0", "--http-token-file",
                     path)
        self.assertEqual(done.returncode, 77, done.stderr)
        os.chmod(path, 0o600)
        one.start("a", "--http", "127.0.0.1:0", "--http-token-file", path)
        one.wait_leader()
        port = one.status("a")["http_port"]
        self.assertEqual(fetch(port, "/status")[0], 401)
        self.assertEqual(
            fetch(port, "/status", Authorization="Bearer 0123456789abcdef0123")[0], 200)
        asked = baton("status", "--http", "127.0.0.1:%d" % port, "--http-token-file", path)
        self.assertEqual(asked.returncode, 0, asked.stderr)


if __name__ == "__main__":
    main()
