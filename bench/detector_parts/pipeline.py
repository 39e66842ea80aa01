"""pipeline_overhead: CPU a frame of the whole pipeline, beside decoding and the model alone.

The whole is `baton-detector --try` on a clip, with all of its processes: decode, shared memory,
scale, model in its confined child, boxes, tracker, and what was found as JSON on standard output.
Alone is one process that decodes a frame and runs the model, in turn (bench/detector_alone.c).

Both are of the same frames: those of a long clip after as many as a short one has. Of the whole,
the short clip's cost is subtracted from the long one's, so that no start is in the figure; alone
begins to count there. In a round each whole run stands between two runs alone, which it is measured
against together, and the overhead is the median of the rounds' own ratios: what slows the machine
down for a while slows down both. Everything runs on one core: that the
pipeline's processes may use two is another advantage, and not what is measured here.
"""
import json

from detector_parts import models
from detector_parts.stand import FPS, median, run_measured, spread

SHORT_S, LONG_S = 8, 40
ONE_CORE = ["taskset", "-c", "1"]


def whole_ms(stand, archive, engine):
    costs = [run_measured(ONE_CORE + [
        stand.program("baton-detector"), "--try", stand.clip(seconds), "--model", archive,
        "--engine", engine, "--log-level", "error"], quiet=True)[1]
        for seconds in (SHORT_S, LONG_S)]
    return 1000 * (costs[1] - costs[0]) / ((LONG_S - SHORT_S) * FPS)


def alone(stand, name, engine, what):
    model, _ = models.make(stand)[name]
    width, height = models.SIZES[name]
    return json.loads(run_measured(ONE_CORE + [
        stand.program("baton-bench-alone"), stand.clip(LONG_S), engine, model, str(width),
        str(height), what, str(SHORT_S * FPS)])[0])


def measure_model(stand, name, engine):
    archive = models.make(stand)[name][1]
    keys = ("whole", "decode", "model", "scale")
    rounds = {key: [] for key in keys}
    for number in range(stand.rounds):
        stand.progress(f"pipeline {name}: round {number + 1} of {stand.rounds}")
        least = alone(stand, name, engine, "model")
        rounds["scale"].append(alone(stand, name, engine, "scale")["ms"])
        rounds["whole"].append(whole_ms(stand, archive, engine))
        rounds["model"].append((least["ms"] + alone(stand, name, engine, "model")["ms"]) / 2)
        rounds["decode"].append(alone(stand, name, engine, "decode")["ms"])
    overhead = [whole / least - 1 for whole, least in zip(rounds["whole"], rounds["model"])]
    own = [whole / least - 1 for whole, least in zip(rounds["whole"], rounds["scale"])]
    figures = {"engine": least["engine"], "whole_ms": median(rounds["whole"]),
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
