#!/usr/bin/python3
"""The checks of work_killall.py find what is planted for them. It runs these before all else."""
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(os.path.dirname(HERE), "e2e"),
             os.path.join(os.path.dirname(HERE), "integration/faults")]

from harness import until  # noqa: E402  pylint: disable=wrong-import-position
from work_checker import (RECORD, Copies, Copy, faults_of,  # noqa: E402  pylint: disable=C0413
                          not_completed)

JOB = os.path.join(os.environ.get("TORTURE_PROGRAMS", "build/tests/torture"), "torture_job")


def copy(epoch, first_ns, last_ns, worker="a0"):
    one = Copy("x", worker, epoch, first_ns)
    one.act(1, last_ns)
    return one


class TheCopiesOfAnItem(unittest.TestCase):
    def assert_kinds(self, kinds, *copies, seen_ns=None):
        self.assertEqual([kind for kind, _ in faults_of(copies, seen_ns)], kinds)

    def test_act_one_after_the_other(self):
        self.assert_kinds([], copy(1, 0, 10), copy(2, 11, 20, "b0"), copy(3, 21, 30))

    def test_are_doubles_if_one_begins_before_the_last_act_of_another(self):
        self.assert_kinds(["doubles"], copy(1, 0, 10), copy(2, 10, 20, "b0"))
        self.assert_kinds(["doubles"], copy(1, 0, 10), copy(2, 5, 6))

    def test_have_epochs_that_grow(self):
        self.assert_kinds(["stale"], copy(2, 0, 10), copy(1, 11, 20))
        self.assert_kinds(["stale"], copy(2, 0, 10), copy(2, 11, 20))

    def test_do_not_begin_once_the_item_is_completed(self):
        self.assert_kinds([], copy(1, 0, 10), seen_ns=5)
        self.assert_kinds(["again"], copy(1, 0, 10), copy(2, 16, 20), seen_ns=15)


class WithRecords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "records")
        with open(self.path, "wb"):
            pass
        self.copies = Copies(self.path)
        self.addCleanup(self.copies.close)

    def write(self, data):
        with open(self.path, "ab") as file:
            file.write(data)
        self.copies.read()


class AFileOfRecords(WithRecords):
    def test_is_read_on_in_the_midst_of_a_record(self):
        record = RECORD.pack(5, 3, 7, 1, 0, b"x", b"a0")
        self.write(record[:11])
        self.assertEqual(self.copies.in_order("x"), [])
        self.write(record[11:] + RECORD.pack(5, 3, 9, 1, 1, b"x", b"a0"))
        self.assertEqual([(one.first_ns, one.last_ns, one.has_ended)
                          for one in self.copies.in_order("x")], [(7, 9, True)])

    def test_has_two_copies_of_one_placing(self):
        self.write(RECORD.pack(5, 3, 7, 1, 0, b"x", b"a0") +
                   RECORD.pack(5, 3, 8, 2, 0, b"x", b"a0"))
        self.assertEqual([kind for kind, _ in faults_of(self.copies.in_order("x"), None)],
                         ["stale"])


class AnItem(WithRecords):
    def setUp(self):
        super().setUp()
        self.write(RECORD.pack(5, 3, 7, 1, 1, b"x", b"a0") +
                   RECORD.pack(8, 4, 9, 1, 0, b"x", b"a0"))

    def assert_wrong(self, said, entry, output):
        self.assertIn(said, not_completed(self.copies, "x", entry, output) or "nothing")

    def test_is_completed_by_the_ledger_and_the_result_of_one_copy_that_ended(self):
        self.assert_wrong("nothing", {"state": "completed", "epoch": 3}, "5 3\n")
        self.assert_wrong("nothing", {"state": "completed", "epoch": 4}, "5 3\n")

    def test_is_lost_if_any_of_these_is_missing(self):
        self.assert_wrong("not in the ledger", None, "5 3\n")
        self.assert_wrong("it is", {"state": "idle", "epoch": 3}, "5 3\n")
        self.assert_wrong("its result is", {"state": "completed", "epoch": 3}, None)
        self.assert_wrong("its result has epoch", {"state": "completed", "epoch": 2}, "5 3\n")
        self.assert_wrong("never ended", {"state": "completed", "epoch": 4}, "8 4\n")


class TheProgram(WithRecords):
    """Real processes that act at once: planted."""

    def start(self, epoch, worker):
        process = subprocess.Popen([JOB, self.path, "0", "plain"], env={
            "BATON_ITEM": "x", "BATON_EPOCH": str(epoch), "BATON_NODE": worker})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_copies(self, count):
        def begun():
            self.copies.read()
            return self.copies.count == count
        until(begun, "%d copies" % count)

    def kinds(self):
        return [kind for kind, _ in faults_of(self.copies.in_order("x"), None)]

    def test_acts_beside_another_copy(self):
        first = self.start(1, "a0")
        self.wait_for_copies(1)
        first.kill()
        first.wait()
        self.start(2, "b0")
        self.wait_for_copies(2)
        self.assertEqual(self.kinds(), [])
        self.start(3, "c0")
        self.wait_for_copies(3)

        def overlap():
            self.copies.read()
            return self.kinds()
        self.assertEqual(until(overlap, "the overlap is found"), ["doubles"])

    def test_prints_what_its_result_is_told_by(self):
        done = subprocess.run([JOB, self.path, "5", "stubborn"], stdout=subprocess.PIPE, check=True,
                              env={"BATON_ITEM": "x", "BATON_EPOCH": "9", "BATON_NODE": "a0"})
        self.copies.read()
        self.assertIsNone(not_completed(self.copies, "x", {"state": "completed", "epoch": 9},
                                        done.stdout.decode()))


def prove():
    """Whether all of them hold; what failed goes to standard error."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    return unittest.TextTestRunner(verbosity=0).run(suite).wasSuccessful()


if __name__ == "__main__":
    unittest.main(verbosity=2)
