"""The pictures of examples/softbody: well-formed, and of what the run and its log say.

usage: test_draw.py draw.py example_softbody
"""
import os
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

DRAW, SIMULATION = sys.argv[1:]
LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.log")
SVG = "{http://www.w3.org/2000/svg}"
BODIES, SHOTS = 30, 5  # of 20 frames, each fifth and the first


def draw(*arguments):
    return subprocess.run([sys.executable, "-B", DRAW, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, check=False)


def picture(*arguments):
    run = draw(*arguments)
    assert run.returncode == 0, run.stderr
    return ElementTree.fromstring(run.stdout)


def texts(tree):
    return [text.text for text in tree.iter(SVG + "text")]


class Pictures(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def states(self):
        path = os.path.join(self.folder.name, "states")
        subprocess.run([SIMULATION, "1", "20", "4", path], check=True, stdout=subprocess.DEVNULL)
        return path

    def log(self, text):
        path = os.path.join(self.folder.name, "log")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_a_film_moves_every_body_through_every_shot(self):
        moves = [path.find(SVG + "animate") for path in picture("film", self.states(), "4").iter(
            SVG + "path")]
        self.assertEqual(len(moves), BODIES)
        for body in moves:
            self.assertEqual(body.get("attributeName"), "d")
            self.assertEqual(len(set(body.get("values").split(";"))), SHOTS)

    def test_a_body_takes_the_colour_of_the_process_that_runs_its_batch(self):
        tree = picture("film", self.states(), "4", LOG)
        colours = dict(zip(texts(tree), (mark.get("fill") for mark in tree.iter(SVG + "rect")
                                         if mark.get("rx") == "4")))
        fill = next(tree.iter(SVG + "use")).find(SVG + "animate").get("values").split(";")
        self.assertEqual(fill, [colours["b"]] * 2 + [colours["c"]] * 3)  # b until frame 5

    def test_a_sheet_has_six_moments_with_all_bodies(self):
        tree = picture("sheet", self.states(), "4")
        kinds = [part.get("class") for part in tree.iter()]
        self.assertEqual(kinds.count("body"), 6 * BODIES)
        self.assertEqual(kinds.count("lattice"), 6 * BODIES)
        self.assertIn("batch 3", texts(tree))

    def test_a_timeline_says_what_each_death_has_cost(self):
        said = texts(picture("timeline", LOG))
        self.assertIn("0.10 s: b dies; its 2 batches run again after 65 ms", said)
        self.assertIn("0.20 s: a dies; a new master after 4 ms", said)

    def test_a_timeline_says_that_a_lane_stays_idle(self):
        log = self.log("0 master a 1\n0 batch 0 on a attempt 1\n1 end a\n2 frame 1\n")
        self.assertIn("1.00 s: a dies; no master any more; its batch never runs again",
                      texts(picture("timeline", log)))

    def test_what_is_no_event_is_refused_by_its_line(self):
        for wrong in ("0 master a", "0 master <a> 1", "x frame 1", "0 batch 0 on a", "0 dies a",
                      "1 frame 1 2"):
            run = draw("timeline", self.log("0 frame 0\n" + wrong + "\n"))
            self.assertEqual(run.returncode, 1, wrong)
            self.assertIn("log:2: ", run.stderr)
        self.assertEqual(draw("timeline", self.log("1 frame 1\n0.9 frame 2\n")).returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
