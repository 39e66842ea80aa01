"""The spread run of examples/softbody: five real processes, killed, come to the same bits."""
import os
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

from harness import DEADLINE_S, clean_environment, until

BUILD = os.environ["BATON_BUILD"]
RUN = os.path.join(os.environ["BATON_SOURCE"], "examples", "softbody", "run.py")
PROGRAMS = os.path.join(BUILD, "bin")
ALONE = os.path.join(PROGRAMS, "example_softbody")
# A simulation that goes wrong by one bit.
OTHER = "#!/bin/sh\n'%s' \"$@\" | sed 's/0$/x/; s/[1-9a-f]$/0/; s/x$/1/'\n"


class SpreadRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="baton-spread-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.pictures = os.path.join(self.folder, "pictures")
        # The nodes' folders, too: their paths are among the words of each process.
        self.environment = dict(clean_environment(), TMPDIR=self.folder)

    def words(self, *more, programs=PROGRAMS):
        return [sys.executable, "-B", RUN, "--programs", programs, "--folder", self.pictures,
                "--seed", "3", *more]

    def run_it(self, *more, **options):
        return subprocess.run(self.words(*more, **options), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              universal_newlines=True, env=self.environment, timeout=DEADLINE_S)

    def left(self):
        """The processes of this run."""
        pids = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    words = os.fsdecode(file.read())
            except (FileNotFoundError, ProcessLookupError):
                continue
            if self.folder in words and RUN not in words:
                pids.append(int(pid))
        return pids

    def log(self):
        if not os.path.exists(os.path.join(self.pictures, "log")):
            return []
        with open(os.path.join(self.pictures, "log"), encoding="utf-8") as file:
            return [line.split()[1:] for line in file]

    def test_a_run_with_kills_comes_to_the_state_of_one_process(self):
        done = self.run_it("--frames", "80", "--kills", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        alone = subprocess.run([ALONE, "1", "80", "1", "/dev/null", "5"], check=True,
                               stdout=subprocess.PIPE, universal_newlines=True).stdout.split()[-1]
        self.assertIn(alone + " is the hash of the last state\n", done.stdout)
        log = self.log()
        self.assertIn("end", [line[0] for line in log])
        self.assertEqual([int(line[1]) for line in log if line[0] == "frame"],
                         sorted({int(line[1]) for line in log if line[0] == "frame"}))
        epochs = [int(line[2]) for line in log if line[0] == "master"]
        self.assertGreater(len(epochs), 1)
        self.assertEqual(epochs, sorted(set(epochs)))
        self.assertGreater(len({line[3] for line in log if line[0] == "batch"}), 1)
        for name in ("film.svg", "timeline.svg"):
            ElementTree.parse(os.path.join(self.pictures, name))
        self.assertEqual(self.left(), [])

    def test_a_run_that_comes_to_another_state_fails(self):
        programs = os.path.join(self.folder, "programs")
        os.mkdir(programs)
        spread = "example_softbody_spread"
        os.symlink(os.path.join(PROGRAMS, spread), os.path.join(programs, spread))
        other = os.path.join(programs, "example_softbody")
        with open(other, "w", encoding="utf-8") as file:
            file.write(OTHER % ALONE)
        os.chmod(other, stat.S_IRWXU)
        done = self.run_it("--frames", "25", "--kills", "0", programs=programs)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "run.py: the states differ\n")

    def end_by(self, number):
        run = subprocess.Popen(self.words("--frames", "100000", "--kills", "0"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               env=self.environment)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        until(lambda: len(self.left()) >= 5 and "frame" in {line[0] for line in self.log()},
              "five processes at work")
        run.send_signal(number)
        code = run.wait(DEADLINE_S)
        until(lambda: not self.left(), "no process is left")
        return code

    def test_an_interrupted_run_leaves_no_process(self):
        self.assertEqual(self.end_by(signal.SIGTERM), 128 + signal.SIGTERM)

    def test_a_killed_run_leaves_no_process(self):
        self.assertEqual(self.end_by(signal.SIGKILL), -signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
