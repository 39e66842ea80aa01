"""Data directories that are emptied, restored, copied or of another group: which the group
refuses, and how a member is repaired while the others run on."""
import hashlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import tempfile
import threading

from harness import (BATON, DEADLINE_S, LASTING, LONGER, ClusterTest, baton, clean_environment,
                     free_ports, main, until)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def frame(kind, payload, version=7):
    """docs/protocol.md: what travels between nodes."""
    head = struct.pack("<IBB", 14 + len(payload), version, kind)
    whole = head + hashlib.sha256(b"default").digest()[:4] + payload
    return whole + struct.pack("<I", crc32c(whole))


def greeting_of_a_joiner(name, expected=b""):
    """docs/protocol.md: what a node says of itself that knows no group yet."""
    birth = struct.pack("<Q", 77)
    cluster = b"default"
    names = b"".join(bytes([len(one)]) + one for one in (cluster, name, expected))
    payload = names + hashlib.sha256(name + b"\0" + birth).digest()[:8] + birth
    payload += struct.pack("<8QII", 0, 0, 1, 0, 0, 0, 10**9, 10**9, 10000, 1)
    payload += struct.pack("<Q", 1) + bytes(16) + bytes(32) + bytes(1)
    return frame(1, payload)


def refusal(reason, text):
    """docs/protocol.md: turned away."""
    return frame(11, struct.pack("<Q", reason) + text)


class Mute(threading.Thread):
    """Waits to be taken in, greets whoever dials, and says `then` when it has been greeted."""

    def __init__(self, name, then=b""):
        super().__init__(daemon=True)
        self.greeting, self.then = greeting_of_a_joiner(name), then
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.may_speak = threading.Event()
        self.may_speak.set()
        self.start()

    def run(self):
        connections = []
        while True:
            connections.append(self.listener.accept()[0])
            connections[-1].sendall(self.greeting)
            if self.then:
                connections[-1].recv(1)
                self.may_speak.wait()
                connections[-1].sendall(self.then)


class Identity(ClusterTest):
    def names(self, cluster, name):
        done = baton("members", "--data", cluster.data(name), "--json")
        return {one["name"]: one for one in json.loads(done.stdout or "[]")}

    def three(self, *flags, **more):
        three = self.cluster(3, *flags, **more)
        three.start_all()
        three.wait_leader()
        self.all_follow(three)
        return three

    def all_follow(self, cluster):
        """Everybody is met, so that births are written down."""
        def knows(name):
            status = cluster.status(name)
            return status and status["leader"]["id"] and all(
                one["connected"] for one in status["raft"]["peers"]) and status["raft"]["group"]
        until(lambda: all(knows(name) for name in cluster.names), "all follow")

    def follower(self, cluster):
        leader = cluster.wait_leader()
        return leader, next(name for name in cluster.names if name != leader)

    def ends_with(self, cluster, name, code):
        self.assertEqual(cluster.processes[name].wait(DEADLINE_S), code, cluster.log(name))

    def stop(self, cluster, name):
        cluster.signal(name, signal.SIGTERM)
        self.ends_with(cluster, name, 0)

    def empty(self, cluster, name):
        shutil.rmtree(cluster.data(name))

    def peers(self, cluster, name):
        """As in a file that was written for the first start; the greatest name first."""
        return [word for peer in reversed(cluster.names) if peer != name
                for word in ("--peer", "%s=%s" % (peer, cluster.address(peer)))]

    def start_joining(self, cluster, name):
        log = open(os.path.join(cluster.dir, name + ".log"), "ab")
        cluster.processes[name] = subprocess.Popen(
            [BATON, "node", "--node", name, "--data", cluster.data(name), "--preset", "fast",
             "--listen", cluster.address(name), "--join", *self.peers(cluster, name),
             *cluster.flags],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment(),
            start_new_session=True)
        log.close()

    def join(self, cluster, asked, name, *more):
        return baton("join", "--data", cluster.data(asked), *more,
                     "%s=%s" % (name, cluster.address(name)))

    def answered(self, join):
        """The node answers shortly before the command's time is over, and a slow one after it."""
        return until(lambda: (done := join()).returncode != 124 and done, "an answer in time")

    def test_the_documented_repair_needs_nobody_elses_restart(self):
        three = self.three()
        for _ in range(2):  # and once more: the second time it is no founder that is replaced
            leader, lost = self.follower(three)
            three.kill(lost)
            done = baton("leave", "--data", three.data(leader), lost)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.empty(three, lost)
            self.start_joining(three, lost)
            done = self.join(three, leader, lost)
            self.assertEqual(done.returncode, 0, done.stderr)
            member = self.names(three, leader)[lost]
            self.assertEqual((member["kind"], member["alive"]), ("voter", True))
            self.all_follow(three)
        other = next(name for name in three.names if name not in (leader, lost))
        three.kill(other)  # what is left is a quorum: the repaired one votes
        three.kill(leader)
        three.start(other)
        three.wait_leader([other, lost])

    def test_a_member_that_was_away_while_another_was_repaired_follows_that_one(self):
        three = self.cluster(3)
        three.suffixes, arguments = {"b": "*3"}, three.arguments
        three.arguments = lambda name: arguments(name) + ["--weight", "3"] * (name == "b")
        three.start_all()
        three.wait_leader()
        self.all_follow(three)
        three.kill("c")
        three.kill("a")
        three.wait_leader(["b"])
        self.empty(three, "a")
        for done in (baton("leave", "--data", three.data("b"), "a"),
                     self.start_joining(three, "a") or self.join(three, "b", "a"),
                     baton("pass", "--data", three.data("b"), "--to", "a")):
            self.assertEqual(done.returncode, 0, done.stderr)
        three.wait_leader(["a"])
        three.start("c")
        until(lambda: (three.status("c") or {"leader": {"id": ""}})["leader"]["id"] == "a",
              lambda: three.log("c"))
        self.assertEqual(three.leader(), "a")

    def test_an_emptied_founder_that_is_simply_started_again_is_refused(self):
        three = self.three(*LASTING)
        leader, lost = self.follower(three)
        epoch = three.status(leader)["epoch"]
        three.kill(lost)
        self.empty(three, lost)
        for _ in range(2):  # the second time by its own data directory, whoever is there
            three.start(lost)
            self.ends_with(three, lost, 78)
            self.assertIn("; start it with that one if it is still there, or else run `baton leave "
                          + lost, three.log(lost))
            self.assertIn("baton join %s=" % lost, three.log(lost))
        self.assertEqual(three.status(leader)["epoch"], epoch)
        self.assertIn("peer-not-recognised", "".join(three.log(name) for name in three.names))
        done = self.answered(lambda: self.join(three, leader, lost, "--timeout", "1s"))
        self.assertIn(done.returncode, (1, 69), done.stderr)  # it is no member because it is named

    def test_a_restored_directory_is_refused(self):
        three = self.three()
        leader, lost = self.follower(three)
        self.stop(three, lost)
        shutil.copytree(three.data(lost), three.data(lost) + ".backup")
        three.start(lost)
        self.all_follow(three)
        self.stop(three, lost)
        self.empty(three, lost)
        shutil.copytree(three.data(lost) + ".backup", three.data(lost))
        three.start(lost)
        self.ends_with(three, lost, 78)
        self.assertIn("is a copy, or was restored", three.log(lost))

    def test_a_directory_that_went_back_in_place_is_refused_by_the_others(self):
        """As after a rollback of the machine's disk: the file is the same, its content is older."""
        three = self.three(*LASTING)
        leader, lost = self.follower(three)
        self.stop(three, lost)
        file = os.path.join(three.data(lost), "raft.db")
        with open(file, "rb") as database:
            older = database.read()
        three.start(lost)
        self.all_follow(three)
        self.stop(three, lost)
        with open(file, "r+b") as database:
            database.write(older)
            database.truncate()
        for _ in range(2):
            three.start(lost)
            self.ends_with(three, lost, 78)
        self.assertRegex(three.log(lost), "has (an older|a) copy of (its|a) data directory")
        self.assertEqual(three.leader(), leader)

    def clone(self, three, name):
        """A second node of the same name from the same files, as a cloned machine would have it."""
        clone = self.cluster(1)
        clone.names, clone.ports = [name], {name: clone.ports["a"]}
        os.makedirs(clone.data(name))
        for file in os.listdir(three.data(name)):
            if file.startswith("raft.db"):
                shutil.copy(os.path.join(three.data(name), file), clone.data(name))
        return clone

    def test_a_cloned_directory_is_recognised_where_it_starts(self):
        three = self.three()
        leader, twin = self.follower(three)
        clone = self.clone(three, twin)
        clone.start(twin)
        self.ends_with(clone, twin, 78)
        self.assertIn("; remove it if the original is in use, or else run `baton leave",
                      clone.log(twin))

    def test_a_clone_beside_the_living_leader_ends_nobodys_promise(self):
        three = self.three(*LASTING)
        leader = three.wait_leader()
        epoch = three.status(leader)["epoch"]
        clone = self.clone(three, leader)
        self.forget_when_made(clone, leader)
        clone.start(leader)
        self.ends_with(clone, leader, 78)
        self.assertIn("has a copy of a data directory", clone.log(leader))
        self.assertIn("; remove the copy if that process is to go on, or else run `baton leave",
                      clone.log(leader))
        self.assertEqual(three.status(leader)["epoch"], epoch)
        self.assertTrue(three.status(leader)["is_leader"])

    def forget_when_made(self, clone, name):
        """As on a disk that was copied block by block: its own start cannot notice."""
        database = sqlite3.connect(os.path.join(clone.data(name), "raft.db"))
        database.execute("UPDATE identity SET made_ns = 0")
        database.commit()
        database.close()

    def test_a_later_life_is_accepted_once_the_earlier_one_is_silent_for_long(self):
        """Else a member whose old connections hang in the air could never come back."""
        three = self.three(*LONGER)
        leader, other = self.follower(three)
        moved = self.clone(three, other)
        self.forget_when_made(moved, other)
        three.signal(other, signal.SIGSTOP)
        moved.start(other)
        until(lambda: (moved.status(other) or {"leader": {"id": ""}})["leader"]["id"] == leader,
              "the later life follows")
        self.assertTrue(three.status(leader)["is_leader"])
        three.signal(other, signal.SIGCONT)
        self.ends_with(three, other, 78)  # and not both of them go on

    def test_nodes_that_formed_groups_of_their_own_are_refused_with_peers(self):
        three = self.cluster(3)
        with_peers = three.arguments
        three.arguments = lambda name: ["--node", name, "--data", three.data(name), "--listen",
                                        three.address(name), *three.flags]
        three.start_all()
        for name in three.names:
            three.wait_leader([name])
            self.stop(three, name)
        three.arguments = with_peers
        for name in three.names:
            three.start(name)
            self.ends_with(three, name, 78)
            self.assertRegex(three.log(name), "its group is of %s=[0-9.:]*, but peer names" % name)
            self.assertIn("baton join", three.log(name))

    def test_nodes_with_peers_found_no_group_beside_one_that_leads_alone(self):
        three = self.cluster(3)
        with_peers = three.arguments
        three.arguments = lambda name: ["--node", name, "--data", three.data(name), "--listen",
                                        three.address(name), *three.flags]
        three.start("a")
        three.wait_leader(["a"])
        three.arguments = with_peers
        for name in ("b", "c"):
            three.start(name)
            self.ends_with(three, name, 78)
            self.assertIn("belong to two groups of the name", three.log(name))
        self.assertTrue(three.status("a")["is_leader"])
        self.stop(three, "a")  # and now it is told of them
        three.start("a")
        self.ends_with(three, "a", 78)

    def test_a_node_that_forgot_its_peers_stops_when_they_reach_it(self):
        three = self.cluster(3, *LASTING, "--key-file", self.key())
        with_peers = three.arguments
        three.start("b")
        three.start("c")
        leader = three.wait_leader(["b", "c"])
        three.arguments = lambda name: ["--node", name, "--data", three.data(name), "--listen",
                                        three.address(name), *three.flags]
        three.start("a")
        self.ends_with(three, "a", 78)
        self.assertIn("belong to two groups of the name", three.log("a"))
        self.assertTrue(three.status(leader)["is_leader"])
        self.empty(three, "a")
        three.arguments = with_peers
        three.start("a")
        self.all_follow(three)

    def key(self):
        key = os.path.join(tempfile.mkdtemp(dir="/tmp"), "key")
        self.addCleanup(shutil.rmtree, os.path.dirname(key))
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write("k" * 44)
        return key

    def grown(self, *names):
        """A group that began with `a` alone, whose file names no peers; with a key."""
        group = self.cluster(1, *LASTING, "--key-file", self.key())
        group.arguments = lambda name: ["--node", name, "--data", group.data(name), "--listen",
                                        group.address(name), *group.flags]
        group.start("a")
        group.wait_leader(["a"])
        self.grow(group, *names)
        return group

    def grow(self, group, *names):
        for name in names:
            group.names.append(name)
            group.ports[name] = free_ports(1)[0]
            self.start_joining(group, name)
            done = self.join(group, "a", name)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.all_follow(group)

    def test_a_founder_that_was_once_alone_leads_no_second_group_when_it_was_emptied(self):
        group = self.grown("b", "c")
        group.kill("a")
        epoch = group.status(group.wait_leader(["b", "c"]))["epoch"]
        self.empty(group, "a")
        for _ in range(2):
            group.start("a")
            self.ends_with(group, "a", 78)
        self.assertIn("baton leave a", group.log("a"))
        leader = group.wait_leader(["b", "c"])
        self.assertEqual(group.status(leader)["epoch"], epoch)

    def test_founders_that_were_emptied_together_found_no_second_group(self):
        """They are a quorum of the members in their files; those who could refuse them are not."""
        group = self.cluster(3, "--key-file", self.key())
        founders = dict(group.ports)
        group.start_all()
        group.wait_leader()
        self.all_follow(group)
        self.grow(group, "d", "e", "f")
        done = baton("leave", "--data", group.data("d"), "c")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in "abc":
            group.kill(name)
        leader = group.wait_leader(["d", "e", "f"])
        epoch = group.status(leader)["epoch"]
        group.names, ports = list("abc"), group.ports
        group.ports = founders
        for name in "ab":
            self.empty(group, name)
            group.start(name)
        for name in "ab":
            self.ends_with(group, name, 78)
        group.ports = ports
        self.assertEqual(group.status(group.wait_leader(["d", "e", "f"]))["epoch"], epoch)

    def test_a_founder_whose_directory_went_back_to_when_it_was_alone_does_not_lead(self):
        group = self.grown()
        self.stop(group, "a")
        file = os.path.join(group.data("a"), "raft.db")
        with open(file, "rb") as database:
            older = database.read()
        group.start("a")
        group.wait_leader(["a"])
        self.grow(group, "b", "c")
        self.stop(group, "a")
        group.wait_leader(["b", "c"])
        with open(file, "r+b") as database:
            database.write(older)
            database.truncate()
        for _ in range(2):
            group.start("a")
            self.ends_with(group, "a", 78)
        group.wait_leader(["b", "c"])

    def test_a_node_that_leads_a_group_of_its_own_is_not_started_to_join(self):
        alone = self.grown()
        self.stop(alone, "a")
        self.start_joining(alone, "a")
        self.ends_with(alone, "a", 78)
        self.assertIn("has founded one, of a", alone.log("a"))
        self.empty(alone, "a")
        self.start_joining(alone, "a")
        until(lambda: alone.status("a"), "it waits to be added")

    def test_whatever_answers_at_the_address_of_a_newcomer_ends_nobody(self):
        for reason in (2, 3, 4, 6):
            one = self.cluster(1)
            one.start("a")
            one.wait_leader()
            stranger = Mute(b"d", refusal(reason, b"you are an older copy"))
            done = baton("join", "--data", one.data("a"), "d=" + stranger.address)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("you are an older copy", done.stderr)
            self.assertTrue(one.status("a")["is_leader"])

    def test_who_was_added_a_moment_ago_ends_nobody_either(self):
        for reason in (2, 3, 4, 6):
            one = self.cluster(1)
            one.start("a")
            one.wait_leader()
            stranger = Mute(b"d", refusal(reason, b"you are an older copy"))
            stranger.may_speak.clear()
            self.addCleanup(stranger.may_speak.set)
            join = subprocess.Popen(
                [BATON, "join", "--data", one.data("a"), "d=" + stranger.address],
                stderr=subprocess.DEVNULL, env=clean_environment())
            self.addCleanup(join.wait)
            self.addCleanup(join.kill)
            until(lambda: "d" in self.names(one, "a"), lambda: "it is a member: " + one.log("a"))
            stranger.may_speak.set()
            until(lambda: "you are an older copy" in one.log("a"), lambda: one.log("a"))
            self.assertTrue(one.status("a")["is_leader"], one.log("a"))

    def test_a_node_that_is_no_member_changes_no_members(self):
        three = self.three()
        leader, other = self.follower(three)
        request = json.dumps({"do": "remove", "peer": other}).encode()
        with socket.create_connection(("127.0.0.1", three.ports[leader]), 20) as stranger:
            stranger.sendall(greeting_of_a_joiner(b"x", leader.encode()) +
                             frame(5, struct.pack("<Q", 1) + request))
            said = b""
            while b'"code"' not in said:
                said += stranger.recv(4096)
        self.assertIn(b"asked by a node that is no member", said)
        self.assertEqual(sorted(self.names(three, leader)), three.names)

    def test_other_members_than_configured_are_said_at_every_start(self):
        three = self.three()
        leader, other = self.follower(three)
        self.stop(three, other)
        three.names.append("z")
        three.ports["z"] = 1
        for _ in range(2):
            three.start(other)
            until(lambda: three.status(other), "it runs")
            self.stop(three, other)
        said = [line for line in three.log(other).splitlines() if "members-differ" in line]
        self.assertEqual(len(said), 2)
        for line in said:
            stored, configured = line.split("configured=")
            self.assertNotIn("z", stored)
            self.assertIn("z", configured)

    def test_a_group_whose_addresses_have_all_changed_finds_itself_by_its_files(self):
        three = self.three(*LONGER)
        for name in three.names:
            self.stop(three, name)
        three.ports = dict(zip(three.names, free_ports(3)))
        three.start_all()
        leader = three.wait_leader()
        self.all_follow(three)
        self.assertIn("members-differ", three.log(leader))
        heir = next(name for name in three.names if name != leader)
        for asked, moved in [(leader, name) for name in three.names if name != leader] + \
                [(heir, leader)]:
            if moved == leader:
                done = self.join(three, asked, moved, "--replace")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("hand leadership over first", done.stderr)
                until(lambda: baton("pass", "--data", three.data(leader), "--to",
                                    heir).returncode == 0, "the heir votes, and leads")
            done = self.join(three, asked, moved, "--replace")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({name: one["address"] for name, one in self.names(three, heir).items()},
                         {name: three.address(name) for name in three.names})

    def test_a_join_whose_address_does_not_answer_changes_nothing(self):
        three = self.three(*LASTING)
        leader, dead = self.follower(three)
        three.kill(dead)  # the usual occasion: one of three is gone, and replaced
        done = self.answered(lambda: baton("join", "--data", three.data(leader), "--timeout", "2s",
                                           "d=127.0.0.1:1"))
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("no node answers at 127.0.0.1:1", done.stderr)
        self.assertEqual(sorted(self.names(three, leader)), ["a", "b", "c"])
        done = baton("leave", "--data", three.data(leader), dead)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(three.status(leader)["is_leader"])

    def test_a_node_that_hangs_up_leaves_open_whether_the_order_was_carried_out(self):
        one = self.cluster(1)
        os.makedirs(one.data("a"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(one.data("a"), "control.sock"))
            listener.listen()
            with subprocess.Popen([BATON, "leave", "--data", one.data("a"), "b"], text=True,
                                  stderr=subprocess.PIPE, env=clean_environment()) as leave:
                node = listener.accept()[0]
                node.recv(1)
                node.close()
                said = leave.communicate(timeout=20)[1]
        self.assertEqual(leave.returncode, 69, said)
        self.assertIn("may have been carried out", said)

    def test_a_voter_that_never_catches_up_is_taken_out_again(self):
        three = self.three(*LASTING)
        leader, dead = self.follower(three)
        three.kill(dead)  # with the newcomer's vote the quorum would be three of four
        mute, epoch = Mute(b"d"), three.status(leader)["epoch"]
        done = baton("join", "--data", three.data(leader), "--timeout", "2s", "d=" + mute.address)
        self.assertEqual(done.returncode, 124, done.stderr)
        until(lambda: sorted(self.names(three, leader)) == ["a", "b", "c"], "it is taken back")
        self.assertTrue(three.status(leader)["is_leader"])
        self.assertEqual(three.status(leader)["epoch"], epoch)

    def test_a_dead_member_is_replaced_by_one_command_where_it_has_a_new_machine(self):
        three = self.three()
        leader, dead = self.follower(three)
        three.kill(dead)
        self.empty(three, dead)
        three.ports[dead] = free_ports(1)[0]
        self.start_joining(three, dead)
        done = self.join(three, leader, dead, "--replace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(self.names(three, leader)), three.names)
        self.all_follow(three)

    def test_a_newcomer_survives_that_its_leader_dies_before_it_is_a_member(self):
        group = self.cluster(5, "--heartbeat-timeout", "10s", "--lease", "10s")
        group.flags = [*group.flags[:2], *group.flags[6:]]  # in place of the harness's own
        group.start_all()
        leader = group.wait_leader()
        self.all_follow(group)
        dead, *rest = [name for name in group.names if name != leader]
        group.kill(dead)
        self.empty(group, dead)
        group.ports[dead] = free_ports(1)[0]
        self.start_joining(group, dead)
        until(lambda: group.status(dead), "the new one waits")
        for name in rest:  # the change reaches the new one, and nobody else
            group.kill(name)
        with subprocess.Popen([BATON, "join", "--data", group.data(leader), "--replace",
                               "%s=%s" % (dead, group.address(dead))],
                              stderr=subprocess.DEVNULL, env=clean_environment()):
            until(lambda: group.status(dead)["raft"]["joint"], "the new one knows of the change")
            group.kill(leader)
        for name in rest:
            group.start(name)
        leader = group.wait_leader(rest)
        until(lambda: "peer-not-recognised" in group.log(dead), "it is refused")
        done = self.join(group, leader, dead, "--replace")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_join_of_a_member_whose_directory_was_emptied_says_what_to_do(self):
        three = self.three()
        leader, lost = self.follower(three)
        three.kill(lost)
        self.empty(three, lost)
        self.start_joining(three, lost)  # without `leave`
        done = self.join(three, leader, lost)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("baton leave %s" % lost, done.stderr)

    def test_settings_that_differ_are_named_and_a_group_forms_all_the_same(self):
        three = self.cluster(3)
        three.start("a", "--heartbeat-timeout", "1200ms", "--lease", "1200ms")
        three.start("b", "--clock-drift-ppm", "20000")
        three.start("c")
        three.wait_leader()
        self.all_follow(three)
        said = {name: three.log(name) for name in three.names}
        self.assertIn("lease here: 1500 ms; heartbeat-timeout of a: 1200 ms", said["b"])
        self.assertIn("lease here: 1500 ms; heartbeat-timeout of a: 1200 ms", said["c"])
        self.assertIn("clock-drift-ppm here: 10000; of b: 20000", said["c"])
        peers = {one["name"]: one for one in three.status("c")["raft"]["peers"]}
        self.assertIn("clock-drift-ppm", peers["b"]["settings"])
        self.assertNotIn("settings", peers["c"])

    def test_a_bound_on_clocks_that_leaves_no_lease_is_refused_by_name(self):
        three = self.cluster(3, "--heartbeat-interval", "600ms")
        three.start("a", "--clock-drift-ppm", "500000", "--heartbeat-timeout", "100s", "--lease",
                    "100s")
        three.start("b")
        three.start("c")
        three.wait_leader(["b", "c"])
        told = "clock-drift-ppm of a: 500000"
        until(lambda: all(told in three.log(name) for name in three.names), "it is refused")


if __name__ == "__main__":
    main()
