"""The demonstration and the benchmark, as people run them."""
import json
import unittest

from harness import baton, main


class Shows(unittest.TestCase):
    def test_the_demo_ends_by_itself_with_its_table(self):
        done = baton("demo", "--nodes", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\033", done.stdout)
        for row in ("killed (kill -9)", "stopped (SIGSTOP)", "cut off", "passed on"):
            self.assertIn("\n" + row, done.stdout)

    def test_the_benchmark_counts_each_round(self):
        for fault in ("kill", "crash", "stop", "resign", "partition"):
            done = baton("bench", "failover", "--fault", fault, "--rounds", "2", "--preset", "fast",
                         "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertEqual(result["rounds"], 2)
            for key in ("min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms"):
                self.assertGreater(result[key], 0, (fault, key))
            self.assertLessEqual(result["min_ms"], result["max_ms"])

    def test_an_unknown_benchmark_is_refused(self):
        self.assertEqual(baton("bench", "speed").returncode, 64)


if __name__ == "__main__":
    main()
