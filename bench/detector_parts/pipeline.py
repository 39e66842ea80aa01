"""pipeline_overhead: CPU a frame of the whole pipeline, beside decoding and the model alone.

The whole is `baton-detector --try` on a clip, with all of its processes: decode, shared memory,
scale, model in its confined child, boxes, tracker, and what was found as JSON on standard output.
Alone is one process that decodes a frame and runs the model, in turn (bench/detector_alone.c).
Scaled is the same process, if it also scales the frame into the model's input: the least that a
program can be which finds something. What the whole costs more than that is the price of separate
processes, of the boxes, the tracker and the output.

All are of the same frames: those of a long clip after as many as a short one has. Of the whole,
the short clip's cost is subtracted from the long one's, so that no start is in the figure; the
others begin to count there. In a round the four take turns on one core, half a second each
(turns.py), and a figure is the median of the rounds' own ratios. More of them would leave less
in the caches for each other. That the pipeline's processes may use two cores is another advantage,
and not what is measured here.
"""
import json

from detector_parts import models
from detector_parts.stand import FPS, median, spread
from detector_parts.turns import run_in_turns

CLIPS_S = {"small": (8, 72), "large": (4, 12)}  # as long in CPU: the small one is five times faster


def commands_of(stand, name):
    model, archive = models.make(stand)[name]
    width, height = models.SIZES[name]
    short_s, long_s = CLIPS_S[name]
    commands = {clip_s: [
        stand.program("baton-detector"), "--try", stand.clip(clip_s), "--model", archive,
        "--engine", "any", "--log-level", "error"] for clip_s in (short_s, long_s)}
    for work in ("alone", "scaled"):
        commands[work] = [
            stand.program("baton-bench-alone"), stand.clip(long_s), "any", model, str(width),
            str(height), str(short_s * FPS), work]
    return commands


def measure_model(stand, name):
    commands = commands_of(stand, name)
    short_s, long_s = CLIPS_S[name]
    wholes, alones, scaleds = [], [], []
    for number in range(stand.rounds):
        stand.progress(f"pipeline {name}: round {number + 1} of {stand.rounds}")
        done = run_in_turns(commands)
        alone = json.loads(done["alone"][0])
        alones.append(alone["ms"])
        scaleds.append(json.loads(done["scaled"][0])["ms"])
        cpu_s = done[long_s][1] - done[short_s][1]
        wholes.append(1000 * cpu_s / ((long_s - short_s) * FPS))
    ratios = {"pipeline_overhead": (wholes, alones), "scaling_overhead": (scaleds, alones),
              "process_overhead": (wholes, scaleds)}
    ratios = {key: [of / least - 1 for of, least in zip(*pair)] for key, pair in ratios.items()}
    figures = {"engine": alone["engine"], "whole_ms": median(wholes),
               "decode_model_ms": median(alones)}
    stand.show(f"pipeline, {name} model, {alone['engine']}: CPU ms a frame",
               figures["whole_ms"])
    stand.show("  decoding and the model alone", figures["decode_model_ms"])
    for key, text in (("pipeline_overhead", "  pipeline_overhead (target: 0.05)"),
                      ("scaling_overhead", "    one process that also scales, beside alone"),
                      ("process_overhead", "    the whole, beside that one")):
        figures[key] = spread(ratios[key])
        figure = figures[key]
        stand.show(text, f"{figure['median']} ({figure['min']} to {figure['max']})")
    return figures


def measure(stand):
    return {name: measure_model(stand, name) for name in ("small", "large")}
