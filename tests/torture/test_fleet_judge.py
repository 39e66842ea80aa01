"""That the judge of the fleet's soak finds what is planted for it, and nothing else."""
import unittest

from fleet_judge import Record, two_owners, two_workers


def record(*events):
    made = Record()
    for at, name, value in events:
        key = "subscriptions" if name == "has" else "peer"
        made.take({"at": at, "event": name, key: value})
    return made


class Judge(unittest.TestCase):
    def test_two_connections_at_once_are_two_owners(self):
        both = record((0, "connected", 1), (5, "connected", 2), (9, "disconnected", 1))
        self.assertEqual(two_owners({"w": both}, []), [("w", 5, 9)])
        self.assertEqual(two_owners({"w": both}, [(4.5, 8)]), [])  # one was stopped
        both.begin_fault(3, "slow")
        self.assertEqual(two_owners({"w": both}, []), [])  # it does not read the end

    def test_an_overlap_of_a_pass_is_none(self):
        passed = record((0, "connected", 1), (5, "connected", 2), (5.5, "disconnected", 1))
        self.assertEqual(two_owners({"w": passed}, []), [])

    def test_a_subscription_of_two_connected_workers_is_found(self):
        workers = {"v": record((0, "connected", 1), (1, "has", ["s"])),
                   "w": record((0, "connected", 1), (30, "has", ["s", "t"]), (31, "has", []))}
        self.assertEqual(two_workers(workers), ([("s", ("v", "w"), 30, 31)], []))
        workers["v"].connections.append((-5, 0, 7))  # it was away for less than the grace
        self.assertEqual(len(two_workers(workers)[0]), 1)
        workers["v"].begin_fault(25, "no-removal")  # the master must wait longer than that
        workers["v"].begin_fault(20, "late")
        self.assertEqual(len(two_workers(workers)[0]), 1)
        workers["v"].begin_fault(20, "silent")
        self.assertEqual(two_workers(workers), ([], [("s", ("v", "w"), 30, 31)]))

    def test_a_worker_that_reads_an_old_list_late_is_counted_apart(self):
        workers = {"v": record((0, "connected", 1), (29, "has", ["s"])),
                   "w": record((0, "connected", 1), (30, "has", ["s"]), (31, "has", []))}
        self.assertEqual(len(two_workers(workers)[0]), 1)
        workers["w"].begin_fault(15, "slow")
        workers["w"].end_faults(29.9)
        self.assertEqual(two_workers(workers)[0], [])

    def test_a_worker_that_was_cut_off_keeps_its_list_and_is_counted_apart(self):
        workers = {"v": record((0, "connected", 1), (1, "has", ["s"]), (20, "disconnected", 1)),
                   "w": record((0, "connected", 1), (30, "has", ["s"]))}
        bad, apart = two_workers(workers)
        self.assertEqual((bad, len(apart)), ([], 1))

    def test_a_list_that_lets_go_first_is_no_overlap(self):
        workers = {"v": record((0, "connected", 1), (1, "has", ["s"]), (29, "has", [])),
                   "w": record((0, "connected", 1), (30, "has", ["s"]))}
        self.assertEqual(two_workers(workers), ([], []))
        workers["w"].die(31)
        workers["v"].take({"at": 32, "event": "has", "subscriptions": ["s"]})
        self.assertEqual(two_workers(workers), ([], []))


if __name__ == "__main__":
    unittest.main()
