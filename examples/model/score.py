#!/usr/bin/python3
"""How right a model is on a clip of which it is known what is in each frame.

usage: score.py TRUTH.jsonl OBJECTS.jsonl [LEAST]

Both files have a line {"frame": 1, "class": "red", "box": [left, top, width, height]} for each
object, as baton-detector --try --out FOLDER writes them to FOLDER/objects.jsonl; what else is in a
line does not matter. An object is right if one of the same class is there in the same frame, and
the two boxes have half of what they cover together in common (IoU 0.5); each counts once. Prints
precision (of what was seen, how much was right) and recall (of what was there, how much was seen),
for each class and in all; and once more in all without the objects that are "unsure": those score
less than the model's confidence. Exit status 1 if one of the two is below LEAST (0.99) in all.
"""
import collections
import json
import sys

IOU = 0.5


def read(path):
    """The boxes of each frame and class; and those that are sure."""
    boxes, sure = collections.defaultdict(list), collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                one = json.loads(line)
                left, top, width, height = map(float, one["box"])
                for some in (boxes,) if one.get("unsure") else (boxes, sure):
                    some[int(one["frame"]), str(one["class"])].append((left, top, width, height))
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"score.py: {path}, line {number}: {error!r}: it needs a frame, a class "
                         "and a box of four numbers")
    return boxes, sure


def overlap(one, other):
    width = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    height = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    both = max(width, 0) * max(height, 0)
    total = one[2] * one[3] + other[2] * other[3] - both
    return both / total if total > 0 else 0


def hits(there, seen):
    """How many of the boxes of one frame and class find each other, the closest first."""
    pairs = sorted(((overlap(a, b), i, j) for i, a in enumerate(there) for j, b in enumerate(seen)),
                   reverse=True)
    used_there, used_seen = set(), set()
    for share, i, j in pairs:
        if share >= IOU and i not in used_there and j not in used_seen:
            used_there.add(i)
            used_seen.add(j)
    return len(used_there)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        there, (seen, sure) = read(sys.argv[1])[0], read(sys.argv[2])
        least = float(sys.argv[3]) if len(sys.argv) == 4 else 0.99
    except (OSError, ValueError) as error:
        sys.exit(f"score.py: {error}")
    if not there:
        sys.exit(f"score.py: {sys.argv[1]}: has no objects in it")
    rows = collections.defaultdict(lambda: [0, 0, 0])  # class: there, seen, right

    def count(some, key, *names):
        right = hits(there[key], some[key])
        for name in names:
            for i, number in enumerate((len(there[key]), len(some[key]), right)):
                rows[name][i] += number

    for key in there.keys() | seen.keys():
        count(seen, key, key[1], "all")
    for key in there.keys() | sure.keys() if sure != seen else ():
        count(sure, key, "all sure")
    is_good = True
    print(f"{'class':<12} {'there':>6} {'seen':>6} {'right':>6} {'precision':>10} {'recall':>8}")
    for name in sorted(rows, key=lambda name: (name.startswith("all"), name)):
        number, found, right = rows[name]
        precision, recall = right / max(found, 1), right / max(number, 1)
        print(f"{name:<12} {number:6} {found:6} {right:6} {precision:10.4f} {recall:8.4f}")
        is_good = is_good and (name != "all" or min(precision, recall) >= least)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
