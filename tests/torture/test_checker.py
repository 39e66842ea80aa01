#!/usr/bin/python3
"""The checks are no comfort unless they can fail: each finds what is planted for it.

torture.py runs these before anything else.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(os.path.dirname(HERE), "e2e"),
             os.path.join(os.path.dirname(HERE), "integration/faults")]

from checker import (Life, Patience, Records, epochs_back,  # noqa: E402  pylint: disable=C0413
                     overlaps)
from harness import until  # noqa: E402  pylint: disable=wrong-import-position
from linear import Request, is_sound, lost  # noqa: E402  pylint: disable=C0413
from locks import Mark, Marks, story, turns_of  # noqa: E402  pylint: disable=C0413
from namespaces import Network  # noqa: E402  pylint: disable=wrong-import-position
from store import Register  # noqa: E402  pylint: disable=wrong-import-position

PROGRAMS = os.environ.get("TORTURE_PROGRAMS", "build/tests/torture")
ACTOR, MEMBER = (os.path.join(PROGRAMS, name) for name in ("baton_actor", "torture_member"))


def life(node, epoch, first_ns, last_ns):
    one = Life(node, epoch, first_ns)
    one.act(1, last_ns)
    return one


class Overlaps(unittest.TestCase):
    def test_lives_one_after_the_other_are_none(self):
        self.assertEqual(overlaps([life("a", 1, 0, 10), life("b", 2, 11, 20)]), [])

    def test_a_life_that_begins_in_the_instant_of_anothers_last_act_is_one(self):
        a, b = life("a", 1, 0, 10), life("b", 2, 10, 20)
        self.assertEqual(overlaps([a, b]), [(a, b)])

    def test_a_life_that_is_outlived_hides_none(self):
        a, b, c = life("a", 1, 0, 100), life("b", 2, 5, 10), life("c", 3, 50, 60)
        self.assertEqual(overlaps([a, b, c]), [(a, b), (a, c)])

    def test_two_lives_on_one_node_overlap_too(self):
        self.assertEqual(len(overlaps([life("a", 1, 0, 10), life("a", 1, 5, 20)])), 1)


class Epochs(unittest.TestCase):
    def test_the_same_epoch_again_is_right_on_the_same_node_alone(self):
        self.assertEqual(epochs_back([life("a", 3, 0, 1), life("a", 3, 2, 3)]), [])
        self.assertEqual(len(epochs_back([life("a", 3, 0, 1), life("b", 3, 2, 3)])), 1)

    def test_a_lower_epoch_is_found(self):
        self.assertEqual(len(epochs_back([life("a", 3, 0, 1), life("b", 2, 2, 3)])), 1)


class TheStore(unittest.TestCase):
    def setUp(self):
        self.found = []
        self.store = Register(lambda **fields: self.found.append(fields["what"]))

    def test_a_late_writer_is_refused(self):
        self.store.ask("register", "a", 1, 0, 0)
        self.store.ask("register", "b", 2, 0, 0)
        self.assertFalse(self.store.ask("write", "a", 1, 0, 0)[0])
        self.assertEqual(self.found, [])

    def test_a_lost_update_is_found(self):
        self.store.ask("register", "a", 1, 0, 0)
        self.store.ask("write", "a", 1, 0, 0)
        self.store.ask("write", "a", 1, 0, 0)
        self.assertEqual(self.found, ["lost update"])

    def test_an_epoch_of_two_nodes_is_found(self):
        self.store.ask("register", "a", 1, 0, 0)
        self.store.ask("register", "b", 1, 0, 0)
        self.assertEqual(self.found, ["epoch of two nodes"])


def request(kind, value, begin_ns, end_ns, outcome="y", expected=0):
    one = Request(kind, value, expected, begin_ns)
    one.end_ns, one.outcome = end_ns, outcome
    return one


class Histories(unittest.TestCase):
    def assert_sound(self, *requests):
        self.assertTrue(is_sound(requests), requests)

    def assert_unsound(self, *requests):
        self.assertFalse(is_sound(requests), requests)

    def test_an_acknowledged_write_is_read(self):
        self.assert_sound(request("w", 1, 0, 1), request("r", 1, 2, 3))
        self.assert_unsound(request("w", 1, 0, 1), request("r", 0, 2, 3))

    def test_a_read_during_a_write_may_see_it_or_not_but_never_goes_back(self):
        self.assert_sound(request("w", 1, 0, 9), request("r", 0, 1, 2), request("r", 1, 3, 4))
        self.assert_unsound(request("w", 1, 0, 9), request("r", 1, 1, 2), request("r", 0, 3, 4))

    def test_a_write_of_unknown_outcome_happens_late_or_never_but_not_twice(self):
        unknown = request("w", 1, 0, None, "?")
        self.assert_sound(unknown, request("r", 0, 2, 3), request("r", 1, 4, 5))
        self.assert_sound(unknown, request("r", 0, 2, 3))
        self.assert_unsound(unknown, request("r", 1, 2, 3), request("w", 2, 4, 5),
                            request("r", 1, 6, 7))

    def test_a_swap_happens_where_its_condition_holds_and_only_there(self):
        self.assert_sound(request("s", 2, 0, 1), request("s", 3, 2, 3, "n", 1))
        self.assert_unsound(request("s", 2, 0, 1, "y", 1))
        self.assert_unsound(request("s", 2, 0, 1, "n"))

    def test_an_unknown_write_that_nobody_read_explains_a_refused_swap(self):
        self.assert_sound(request("w", 1, 0, None, "?"), request("s", 2, 2, 3, "n"))

    def test_two_swaps_of_one_value_are_not_both_granted(self):
        self.assert_unsound(request("s", 1, 0, 9), request("s", 2, 0, 9))


class LostWrites(unittest.TestCase):
    """What a key has after all nodes were killed (killall.py)."""

    def assert_lost(self, is_lost, value, *requests):
        self.assertEqual(lost(list(requests), value), is_lost, requests)

    def test_an_acknowledged_write_that_is_gone_is_found(self):
        self.assert_lost(True, 0, request("w", 1, 0, 1))
        self.assert_lost(True, 1, request("w", 1, 0, 1), request("w", 2, 2, 3))

    def test_a_value_that_nobody_asked_for_is_found(self):
        self.assert_lost(True, 7, request("w", 1, 0, 1))

    def test_of_two_writes_at_once_either_may_be_the_last(self):
        self.assert_lost(False, 1, request("w", 1, 0, 2), request("w", 2, 1, 3))
        self.assert_lost(False, 2, request("w", 1, 0, 2), request("w", 2, 1, 3))

    def test_a_write_that_was_not_acknowledged_may_be_there_or_not(self):
        unknown = request("w", 2, 2, None, "?")
        self.assert_lost(False, 1, request("w", 1, 0, 1), unknown)
        self.assert_lost(False, 2, request("w", 1, 0, 1), unknown)
        self.assert_lost(False, 0, unknown)


class Turns(unittest.TestCase):
    """The history of an election as a lock: lives of one process each, and what was recorded."""

    def turn(self, pid, epoch, first_ns, last_ns):
        one = Life("a", epoch, first_ns)
        one.act(pid, first_ns)
        one.act(pid, last_ns)
        return one

    def assert_sound(self, lives, *marks):
        self.assertIsNone(story(turns_of(lives, marks)))

    def assert_unsound(self, lives, *marks):
        self.assertIsNotNone(story(turns_of(lives, marks)))

    def test_turns_one_after_the_other_are_right(self):
        self.assert_sound([self.turn(1, 3, 10, 20), self.turn(2, 5, 21, 30),
                           self.turn(1, 9, 31, 40)], Mark("d", 1, 3, 20))

    def test_two_holders_are_found(self):
        self.assert_unsound([self.turn(1, 3, 10, 20), self.turn(2, 5, 15, 30)])

    def test_two_holders_of_one_epoch_are_found(self):
        self.assert_unsound([self.turn(1, 3, 10, 20), self.turn(2, 3, 21, 30)])

    def test_an_epoch_that_falls_is_found(self):
        lives = [self.turn(1, 5, 10, 20), self.turn(2, 3, 21, 30)]
        self.assert_unsound(lives)
        self.assert_unsound(lives, Mark("c", 2, 0, 5))

    def test_an_act_after_resigning_is_found(self):
        self.assert_unsound([self.turn(1, 3, 10, 20)], Mark("d", 1, 3, 15))

    def test_a_leader_that_others_were_told_of_leads_from_then_on(self):
        lives = [self.turn(1, 3, 10, 20), self.turn(2, 5, 25, 30)]
        self.assert_sound(lives, Mark("o", 2, 5, 21))
        self.assert_unsound(lives, Mark("o", 2, 5, 19))

    def test_a_leader_that_never_acted_counts(self):
        self.assert_sound([self.turn(1, 3, 10, 20)], Mark("o", 2, 5, 25))
        self.assert_unsound([self.turn(1, 3, 10, 20)], Mark("c", 2, 0, 5), Mark("o", 2, 5, 15))
        self.assert_unsound([self.turn(1, 3, 10, 20)], Mark("c", 2, 0, 21), Mark("o", 2, 2, 25))

    def test_a_process_leads_in_no_election_before_it_takes_part(self):
        self.assert_unsound([self.turn(1, 3, 10, 20)], Mark("c", 1, 0, 15))


class Stuck(unittest.TestCase):
    def test_a_group_without_an_act_is_stuck_once_patience_is_over(self):
        patience = Patience(100)
        self.assertFalse(patience.is_over(0, 0, True))
        self.assertFalse(patience.is_over(100, 0, True))
        self.assertTrue(patience.is_over(101, 0, True))

    def test_patience_begins_anew_with_an_act_and_when_the_quorum_is_healthy_again(self):
        patience = Patience(100)
        self.assertFalse(patience.is_over(150, 60, True))
        self.assertFalse(patience.is_over(200, 60, False))
        self.assertFalse(patience.is_over(290, 60, True))
        self.assertTrue(patience.is_over(391, 60, True))


@unittest.skipUnless(os.geteuid() == 0, "needs root, for namespaces")
class OneWay(unittest.TestCase):
    """A cut in one direction drops the packets of that direction, and only those."""

    def setUp(self):
        self.network = Network(["a", "b"])
        self.addCleanup(self.network.close)

    def run_at(self, name, code):
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.network.space(name), sys.executable, "-c",
             "import socket; s = socket.socket(type=socket.SOCK_DGRAM); " + code],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def receiver_at(self, name):
        """Prints the first datagram that it gets."""
        process = self.run_at(name, "s.bind(('', 7)); s.settimeout(60); "
                                    "print(flush=True); print(s.recv(9).decode(), flush=True)")
        process.stdout.readline()
        return process

    def send(self, name, to, text):
        self.run_at(name, "s.sendto(b'%s', ('%s', 7))" % (text, self.network.hosts[to])).wait()

    def test_packets_of_the_other_direction_pass(self):
        here, there = self.receiver_at("a"), self.receiver_at("b")
        self.send("a", "b", "1")  # the addresses are known to both, from here on
        self.assertEqual(there.stdout.readline(), "1\n")
        there.wait()  # its port is free
        there = self.receiver_at("b")
        cut = self.network.deafen(["b"], ["a"])
        self.send("a", "b", "2")
        self.send("b", "a", "3")
        self.assertEqual(here.stdout.readline(), "3\n")
        self.network.mend(cut)
        self.send("a", "b", "4")
        self.assertEqual(there.stdout.readline(), "4\n")


class Planted(unittest.TestCase):
    """The real program, twice at once under one epoch, on the real store."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="baton-planted-", dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.store, self.log, self.path = (os.path.join(directory.name, name)
                                           for name in ("store", "log", "records"))
        self.locks = os.path.join(directory.name, "locks")
        for path in (self.log, self.path, self.locks):
            with open(path, "wb"):
                pass
        self.run_program(sys.executable, os.path.join(HERE, "store.py"), self.store, self.log)
        until(lambda: os.path.exists(self.store), "the store listens")

    def run_program(self, *words, **environment):
        process = subprocess.Popen(words, env=dict(os.environ, **environment))
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def act(self, node):
        self.run_program(ACTOR, "plain", self.path, self.store, BATON_NODE=node, BATON_EPOCH="7")

    def logged(self):
        with open(self.log, encoding="utf-8") as file:
            return {json.loads(line)["what"] for line in file}

    def test_two_that_act_at_once_and_lose_updates_are_found(self):
        records = Records(self.path)
        self.addCleanup(records.close)

        def overlap():
            records.read()
            return overlaps(records.in_order())
        self.act("a")
        self.act("b")
        until(overlap, "the overlap is found")
        self.assertEqual(len(epochs_back(records.in_order())), 1)
        until(lambda: self.logged() == {"lost update", "epoch of two nodes"}, "the lost updates")

    def test_two_that_lead_elections_through_the_library_are_found_in_each_apart(self):
        """Each in a group of its own."""
        records, marks = Records(self.path, ("x", "y")), Marks(self.locks)
        self.addCleanup(records.close)
        self.addCleanup(marks.close)
        self.run_program(MEMBER, "memory:", "x,y", "a.0", self.path, self.store, "", self.locks)

        def acted():
            records.read()
            marks.read()
            return all(records.last_of.values()) and marks.of("x") and marks.of("y")
        until(acted, "it leads both")
        for election, lives in zip("xy", records.by_election()):
            self.assertEqual(overlaps(lives), [])
            self.assertIsNone(story(turns_of(lives, marks.of(election))))
        self.run_program(MEMBER, "memory:", "x", "b.0", self.path, self.store, "", self.locks)

        def overlap():
            records.read()
            marks.read()
            return overlaps(records.by_election()[0])
        until(overlap, "the overlap is found")
        lives = records.by_election()
        self.assertIsNotNone(story(turns_of(lives[0], marks.of("x"))))
        self.assertEqual(overlaps(lives[1]), [])
        self.assertIsNone(story(turns_of(lives[1], marks.of("y"))))


def prove():
    """Whether all of them hold; what failed goes to standard error."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    return unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful()


if __name__ == "__main__":
    unittest.main(verbosity=2)
