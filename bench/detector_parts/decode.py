"""decode_ratio: frames a second and core of the camera's child, beside ffmpeg on the same clip.

Both decode with one thread and are started anew in each round, in turn, at the niceness that a
camera's child has; what counts is the CPU of their whole lives. The child also looks at every
frame's time and puts it into shared memory.
"""
import json

from detector_parts.stand import run_measured, spread

SECONDS = 40


def measure_codec(stand, codec):
    clip = stand.clip(SECONDS, codec)
    ours, theirs, parent, ratio = [], [], [], []
    for number in range(stand.rounds):
        stand.progress(f"decode {codec}: round {number + 1} of {stand.rounds}")
        output, _ = run_measured([stand.program("baton-bench-decode"), clip])
        result = json.loads(output)
        frames, cpu = result["frames"], result["child_cpu_s"]
        _, ffmpeg_cpu = run_measured(["nice", "-n", "5", "ffmpeg", "-nostdin", "-v", "error",
                                      "-threads", "1", "-i", clip, "-f", "null", "-"])
        ours.append(frames / cpu)
        theirs.append(frames / ffmpeg_cpu)
        parent.append(1000 * result["parent_cpu_s"] / frames)
        ratio.append(ffmpeg_cpu / cpu)
    figures = {"clip": f"720p {codec}, {frames} frames", "fps_per_core": spread(ours),
               "ffmpeg_fps_per_core": spread(theirs), "parent_ms_per_frame": spread(parent),
               "decode_ratio": spread(ratio)}
    stand.show(f"decode {codec}: frames a second and core", figures["fps_per_core"]["median"])
    stand.show("  ffmpeg -threads 1 -f null -", figures["ffmpeg_fps_per_core"]["median"])
    stand.show("  decode_ratio (target: 0.95)", figures["decode_ratio"]["median"])
    return figures


def measure(stand):
    return {codec: measure_codec(stand, codec) for codec in ("h264", "hevc")}
