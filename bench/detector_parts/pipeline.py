"""pipeline_overhead: CPU a frame of the whole pipeline, beside decoding and the model alone.

The whole is `baton-detector --try` on a clip, with all of its processes: decode, shared memory,
scale, model in its confined child, boxes, tracker, and what was found as JSON on standard output.
Alone is one process that decodes a frame and runs the model, in turn (bench/detector_alone.c).

Both are of the same frames: those of a long clip after as many as a short one has. Of the whole,
the short clip's cost is subtracted from the long one's, so that no start is in the figure; alone
begins to count there. In a round all of them take turns on one core, a tenth of a second each
(turns.py), and the overhead is the median of the rounds' own ratios. That the pipeline's processes
may use two cores is another advantage, and not what is measured here.
"""
import json

from detector_parts import models
from detector_parts.stand import FPS, median, spread
from detector_parts.turns import run_in_turns

SHORT_S, LONG_S = 8, 40


def commands_of(stand, name, engine):
    model, archive = models.make(stand)[name]
    width, height = models.SIZES[name]
    commands = {what: [
        stand.program("baton-bench-alone"), stand.clip(LONG_S), engine, model, str(width),
        str(height), what, str(SHORT_S * FPS)] for what in ("decode", "model", "scale")}
    for what, seconds in (("short", SHORT_S), ("long", LONG_S)):
        commands[what] = [
            stand.program("baton-detector"), "--try", stand.clip(seconds), "--model", archive,
            "--engine", engine, "--log-level", "error"]
    return commands


def measure_model(stand, name, engine):
    commands = commands_of(stand, name, engine)
    rounds = {key: [] for key in ("whole", "decode", "model", "scale")}
    for number in range(stand.rounds):
        stand.progress(f"pipeline {name}: round {number + 1} of {stand.rounds}")
        done = run_in_turns(commands)
        for what in ("decode", "model", "scale"):
            alone = json.loads(done[what][0])
            rounds[what].append(alone["ms"])
        rounds["whole"].append(1000 * (done["long"][1] - done["short"][1]) /
                               ((LONG_S - SHORT_S) * FPS))
    overhead = [whole / least - 1 for whole, least in zip(rounds["whole"], rounds["model"])]
    own = [whole / least - 1 for whole, least in zip(rounds["whole"], rounds["scale"])]
    figures = {"engine": alone["engine"], "whole_ms": median(rounds["whole"]),
               "decode_ms": median(rounds["decode"]), "decode_model_ms": median(rounds["model"]),
               "decode_scale_model_ms": median(rounds["scale"]),
               "pipeline_overhead": median(overhead), "rounds": spread(overhead),
               "pipeline_overhead_beside_scaling": median(own)}
    stand.show(f"pipeline, {name} model: CPU ms a frame", figures["whole_ms"])
    stand.show("  decoding and the model alone", figures["decode_model_ms"])
    stand.show("  decoding, scaling and the model alone", figures["decode_scale_model_ms"])
    stand.show("  pipeline_overhead (target: 0.05)", figures["pipeline_overhead"])
    stand.show("    of the rounds, between", f"{min(overhead):.4f} {max(overhead):.4f}")
    stand.show("  the same beside what scales, too", figures["pipeline_overhead_beside_scaling"])
    return figures


def measure(stand, engine="any"):
    return {name: measure_model(stand, name, engine) for name in ("small", "large")}
