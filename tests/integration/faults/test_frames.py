"""Foreign connections to the peers' port are refused and counted; no leader is deposed."""
import os
import random
import resource
import socket
import unittest

import wire
from faults import DEADLINE_S, LONGER, FaultTest, main, until


class Strangers(FaultTest):
    def setUp(self):
        self.three, self.leader = self.started(3, *LONGER)
        self.port = self.three.ports[self.leader]
        self.epoch = self.three.status(self.leader)["epoch"]

    def tearDown(self):
        """Whatever was sent: the same leader, in the same epoch, whom all follow."""
        self.assertEqual(self.three.leader(), self.leader, self.three.logs())
        self.assertEqual(self.three.status(self.leader)["epoch"], self.epoch)
        self.three.follow(self.leader, self.three.names)
        self.assert_one_at_a_time(self.three)

    def refused(self, counter, *frames):
        """Sends them, each on a connection of its own; all are closed, and counted there."""
        before = self.three.counters(self.leader)[counter]
        for data in frames:
            with wire.Peer(self.port) as peer:
                peer.send(data)
                self.assertTrue(peer.is_closed())
        self.assertEqual(self.three.counters(self.leader)[counter], before + len(frames))

    def test_frames_that_are_not_ours(self):
        follower = next(name for name in self.three.names if name != self.leader)
        honest = wire.greeting(follower, self.leader)
        self.refused("refused_cluster", wire.frame(wire.PIN, cluster="another"),
                     wire.greeting(follower, self.leader, cluster="another"))
        self.refused("refused_checksum", honest[:-1] + bytes([honest[-1] ^ 1]),
                     honest[:20] + bytes([honest[20] ^ 0x80]) + honest[21:])
        self.refused("refused_version", wire.frame(wire.PIN, version=wire.VERSION + 1),
                     wire.frame(wire.PIN, version=wire.VERSION - 1))
        self.refused("refused_length", wire.frame(wire.PIN, length=0xffffffff),
                     wire.frame(wire.PIN, length=2 * 1024 * 1024 + 1),
                     wire.frame(wire.PIN, length=13), b"GET / HTTP/1.1\r\n\r\n",
                     wire.frame(wire.GREETING, b"x" * 1500, length=1 << 20))  # kept: 1 KiB
        self.refused("refused_content", wire.frame(99), wire.frame(wire.GREETING, b"\xff" * 40))
        self.assertIn("peer-refused", self.three.log(self.leader))

    def test_a_stranger_has_no_say(self):
        """Well-made frames of one who has not greeted, or whose greeting is not acceptable."""
        follower = next(name for name in self.three.names if name != self.leader)
        self.refused("refused_greeting", wire.vote(self.epoch + 1000),
                     wire.vote(1 << 55, kind=wire.PRE_VOTE), wire.frame(wire.PINNED),
                     wire.frame(wire.REQUEST, b"\0" * 8 + b"{}"),
                     wire.greeting(follower, follower),  # meant for somebody else
                     wire.greeting(self.leader, self.leader))  # its own name
        self.refused("refused_content", wire.vote(1 << 60))
        for node in self.three.names:
            self.assertLess(self.three.term(node), self.epoch + 1000)

    def test_the_log_says_what_was_wrong_with_a_greeting(self):
        """One line a second at most: each is sent until its turn has come."""
        follower = next(name for name in self.three.names if name != self.leader)
        for text, data in (
                ('another process calls itself \\"%s\\", as this node does' % self.leader,
                 wire.greeting(self.leader, self.leader)),
                ('looks for', wire.greeting(follower, follower)),
                ('another version of the protocol', wire.frame(wire.PIN, version=99)),
                ('a message before the greeting', wire.frame(wire.PINNED))):
            def logged(text=text, data=data):
                with wire.Peer(self.port) as peer:
                    peer.send(data)
                    self.assertTrue(peer.is_closed())
                return text in self.three.log(self.leader)
            until(logged, "the log has: " + text)

    def test_a_forged_certificate(self):
        before = self.three.counters(self.leader)["refused_certificate"]
        follower = next(name for name in self.three.names if name != self.leader)
        for name in self.three.names:
            with wire.Peer(self.three.ports[name]) as peer:
                peer.send(wire.certificate(self.leader, 1, b"\x5a" * 32))
                peer.send(wire.certificate(follower, 1, b"\x5a" * 32))
        until(lambda: self.three.counters(self.leader)["refused_certificate"] == before + 2,
              "both are counted as refused")
        for name in self.three.names:
            self.assertEqual(self.three.counters(name)["proofs_accepted"], 0)

    def test_a_forged_certificate_as_a_datagram(self):
        before = self.three.counters(self.leader)["refused_certificate"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for data in (wire.certificate(self.leader, 1, b"\x5a" * 32), b"", b"\0" * 500,
                         wire.certificate(self.leader, 1, b"\x5a" * 32) + b"\0",
                         wire.vote(1 << 60)):
                sender.sendto(data, ("127.0.0.1", self.port))
        until(lambda: self.three.counters(self.leader)["refused_certificate"] == before + 4,
              "all but the empty one are counted as refused")
        self.assertEqual(self.three.counters(self.leader)["proofs_accepted"], 0)

    def test_garbage(self):
        """Bytes that nobody meant: whatever they are taken for, the connection ends."""
        dice = random.Random(7)
        for _ in range(200):
            with wire.Peer(self.port) as peer:
                peer.send(dice.randbytes(dice.randrange(14, 3000)))
                peer.end()
                self.assertTrue(peer.is_closed())
        sent = self.three.counters(self.leader)
        self.assertGreater(sum(sent[name] for name in sent if name.startswith("refused_")), 150)

    def test_slow_and_torn(self):
        """An honest frame byte by byte is taken; half a frame waits, but not for ever."""
        follower = next(name for name in self.three.names if name != self.leader)
        before = self.three.counters(self.leader)
        torn = [wire.Peer(self.port) for _ in range(20)]
        for peer in torn:
            self.addCleanup(peer.socket.close)
            peer.send(wire.greeting(follower, self.leader)[:50])
        with wire.Peer(self.port) as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in wire.certificate(self.leader, 1, b"\xa5" * 32):
                peer.send(bytes([byte]))
            until(lambda: self.three.counters(self.leader)["refused_certificate"]
                  == before["refused_certificate"] + 1, "it was read to its end")
            for one in torn + [peer]:
                self.assertTrue(one.is_closed())
        self.assertEqual(self.three.counters(self.leader)["refused_pending"],
                         before["refused_pending"] + 21)
        self.assertIn("has not greeted in time", self.three.log(self.leader))


class Crowds(FaultTest):
    CROWD = 1000

    def crowd(self, port, count):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, count + 200)), hard))
        idle = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
            self.addCleanup(one.close)
            idle.append(one)
        return idle

    def test_idle_strangers_keep_nobody_out(self):
        """1,000 connections at each port say nothing; a node that starts anew gets through."""
        three, leader = self.started(3, *LONGER)
        epoch = three.status(leader)["epoch"]
        follower = next(name for name in three.names if name != leader)
        for name in three.names:
            self.crowd(three.ports[name], self.CROWD)
            until(lambda one=name: three.counters(one)["refused_pending"] > 0,
                  "the crowd is counted")
        three.kill(follower)
        three.start(follower)
        three.follow(leader, three.names)
        self.assertEqual(three.status(leader)["epoch"], epoch)
        until(lambda: three.counters(follower)["connects"] >= 2, "it gets through to both")
        self.assert_one_at_a_time(three)

    def test_without_descriptors_leases_are_renewed(self):
        three = self.watched(3, "--heartbeat-timeout", "4s", "--lease", "4s")
        for name in three.names:
            three.start(name, under=("prlimit", "--nofile=64"))
        leader = three.wait_leader()
        three.follow(leader, three.names)
        epoch = three.status(leader)["epoch"]
        idle = self.crowd(three.ports[leader], 200)
        until(lambda: len(os.listdir("/proc/%d/fd" % three.pid(leader))) >= 60, "none is left")
        # Two leases long: each ping is answered by a follower that hears its leader.
        others = [name for name in three.names if name != leader]
        sent = three.counters(others[0])["frames_received"]
        until(lambda: three.counters(others[0])["frames_received"] > sent + 160, "heartbeats go on")
        for one in idle:
            one.close()
        status = until(lambda: three.status(leader), "it answers again")
        self.assertTrue(status["is_leader"], three.logs())
        self.assertEqual(status["epoch"], epoch)
        self.assert_one_at_a_time(three)


if __name__ == "__main__":
    main()
