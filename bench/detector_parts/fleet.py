"""Cameras over RTSP, a backend over WebSocket: baton-detector and a plain Python worker at the
same job, one after the other in the same run, with the cameras and the backend on the same machine.

  cameras   16 cameras of 720p at 15 frames a second and the small model: frames, CPU, memory
  latency   one camera: from the picture's sending by the camera to the message at the backend; the
            position of the red rectangle tells which picture it was
  images    GET /camera/NAME/image of that camera by wrk, eight connections
"""
import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

from detector_parts import models
from detector_parts.stand import FPS, cpu_s, memory_mib, run, start

CAMERAS, CLIP_S, WINDOW_S, LATENCY_S = 16, 20, 10, 12
RED_STEP, RED_LEFT, RED_WIDTH, RED_TURN = 120 // FPS, 40, 200, 1000
DEADLINE_S = 60


class Cameras:
    """The RTSP server of the tests; each camera loops the same clip."""

    def __init__(self, stand, count, tells_pictures=False):
        path = os.path.join(stand.folder, "camera.h264")
        if not os.path.exists(path):
            run(["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", stand.clip(CLIP_S),
                 "-c", "copy", "-bsf:v", "h264_mp4toannexb,h264_metadata=aud=insert",
                 "-f", "h264", path])
        self.sent = {}  # number of the picture in its clip: when it was sent last, in ns
        self.process = start(
            ["tests/detector/rtsp_server.py", "0"] + ["tell=pictures"] * tells_pictures +
            [f"c{number}={path}" for number in range(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "picture":
                self.sent[int(words[2])] = int(words[3])

    def sent_of(self, left, width):
        """When the newest picture was sent whose red rectangle is there. None: none was, or the
        rectangle is half covered by another."""
        picture = round((left + (width - RED_WIDTH) / 2 - RED_LEFT) / RED_STEP)
        if abs(width - RED_WIDTH) > RED_STEP // 2:
            return None
        turn = RED_TURN // RED_STEP
        return max((at for number, at in list(self.sent.items()) if (number - picture) % turn == 0),
                   default=None)

    def subscriptions(self, count):
        return [{"subscriptionIdentifier": f"bench;c{number}", "modelId": 1, "modelName": "bench",
                 "rtspUrl": f"rtsp://127.0.0.1:{self.port}/c{number}",
                 "modelUrl": "http://127.0.0.1:1/none"} for number in range(count)]

    def close(self):
        self.process.kill()
        self.process.wait()


class Worker:
    """A program that is a worker; `status` is what it says of its frames, or None."""

    def __init__(self, command, pattern):
        self.process = start(command, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(pattern, line):
                break
        else:
            sys.exit("bench/detector: " + "".join(self.said))
        self.port = int(found[1])
        threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True).start()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Ours(Worker):
    def __init__(self, stand, archive, engine):
        super().__init__([stand.program("baton-detector"), "--port", "0", "--host", "127.0.0.1",
                          "--model", models.make(stand)[archive][1], "--engine", engine,
                          "--log-level", "info"], r"listening port=(\d+)")

    def counts(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/status") as answer:
            cameras = json.load(answer)["cameras"]
        streams = [camera.get("stream", {}) for camera in cameras]
        runs = [camera.get("model_state", {}) for camera in cameras]
        return {"received": sum(one.get("received", 0) for one in streams),
                "decoded": sum(one.get("decoded", 0) for one in streams),
                "shown": sum(one.get("shown", 0) for one in streams),
                "inferred": sum(one.get("inferred", 0) for one in runs),
                "model_dropped": sum(one.get("dropped", 0) for one in runs)}


class Plain(Worker):
    def __init__(self, stand, archive, _engine):
        model = models.make(stand)[archive][0]
        width, height = models.SIZES["small"]
        super().__init__(["bench/peers/plain_worker.py", model, str(width), str(height),
                          str(int(archive == "each"))], r"port (\d+)")

    def counts(self):
        """It says its counts when it is asked with a signal."""
        before = len(self.said)
        self.process.send_signal(signal.SIGUSR1)
        limit = time.monotonic() + DEADLINE_S
        while len(self.said) == before and time.monotonic() < limit:
            time.sleep(0.01)
        return json.loads(self.said[-1])


class Backend:
    """Takes what a worker sends; `latencies` in ms of every detection whose picture is known."""

    def __init__(self, cameras):
        self.cameras, self.detections, self.latencies, self.is_online = cameras, 0, [], False

    def take(self, text, count):
        now = time.monotonic_ns()
        message = json.loads(text)
        if message["type"] == "stateReport":
            online = [one["online"] for one in message["cameraConnections"]]
            self.is_online = len(online) == count and all(online)
        elif message["type"] == "imageDetection":
            self.detections += 1
            detection = message["data"]["detection"]
            if detection["bodyType"] == "red":
                sent = self.cameras.sent_of(detection["x"], detection["width"])
                if sent is not None:
                    self.latencies.append((now - sent) / 1e6)

    async def until(self, socket, count, condition, seconds):
        limit = time.monotonic() + seconds
        while not condition() and time.monotonic() < limit:
            try:
                self.take(await asyncio.wait_for(socket.recv(), limit - time.monotonic()), count)
            except asyncio.TimeoutError:
                break

    async def run(self, worker, count, seconds, then):
        """Subscribes; when all is under way, measures for so long. Then calls `then`."""
        import websockets
        uri = f"ws://127.0.0.1:{worker.port}/"
        async with websockets.connect(uri, max_size=None) as socket:
            await socket.send(json.dumps({"type": "setSubscriptionList",
                                          "subscriptions": self.cameras.subscriptions(count)}))
            await self.until(socket, count, lambda: self.is_online, DEADLINE_S)
            if not self.is_online:
                sys.exit("bench/detector: not every camera came online: " + "".join(worker.said))
            await self.until(socket, count, lambda: False, 3)  # the models are open, too
            before, cpu, begin = worker.counts(), cpu_s(worker.process.pid), time.monotonic()
            self.detections, self.latencies = 0, []
            await self.until(socket, count, lambda: False, seconds)
            after, elapsed = worker.counts(), time.monotonic() - begin
            figures = {key: round((after[key] - before[key]) / elapsed, 1) for key in before}
            figures["cores"] = round((cpu_s(worker.process.pid) - cpu) / elapsed, 3)
            figures["memory_mib"] = memory_mib(worker.process.pid)
            return figures, then() if then else None


def run_one(stand, kind, archive, engine, count, seconds, then=None):
    with contextlib.closing(Cameras(stand, count, tells_pictures=archive == "each")) as cameras, \
            contextlib.closing(kind(stand, archive, engine)) as worker:
        backend = Backend(cameras)
        return (backend, *asyncio.run(backend.run(
            worker, count, seconds, then and (lambda: then(worker)))))


def measure_images(worker):
    if not shutil.which("wrk"):
        return None
    output = run(["wrk", "-t", "1", "-c", "8", "-d", "4s", "--latency",
                  f"http://127.0.0.1:{worker.port}/camera/bench%3Bc0/image"],
                 stdout=subprocess.PIPE, text=True).stdout
    return {"requests_per_s": float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1]),
            "p99": re.search(r"99%\s+(\S+)", output)[1],
            "errors": re.search(r"Non-2xx.*|Socket errors.*", output) is not None}


def measure_worker(stand, name, kind, engine):
    stand.progress(f"{name}: one camera")
    backend, one, images = run_one(stand, kind, "each", engine, 1, LATENCY_S,
                                   measure_images if kind is Ours else None)
    ordered = sorted(backend.latencies)
    stand.progress(f"{name}: {CAMERAS} cameras")
    _, all_of_them, _ = run_one(stand, kind, "small", engine, CAMERAS, WINDOW_S)
    figures = {"one_camera": one, "cameras": all_of_them}
    figures["memory_mib_per_camera"] = round(
        (all_of_them["memory_mib"] - one["memory_mib"]) / (CAMERAS - 1), 1)
    if ordered:
        figures["latency_ms"] = {"count": len(ordered), "p50": round(statistics.median(ordered), 2),
                                 "p99": round(ordered[min(len(ordered) - 1,
                                                          int(len(ordered) * 0.99))], 2)}
    if images:
        figures["images"] = images
    show(stand, name, figures)
    return figures


def show(stand, name, figures):
    cameras = figures["cameras"]
    stand.show(f"{name}, {CAMERAS} cameras: frames/s decoded, inferred",
               f"{cameras['decoded']} {cameras['inferred']} of {CAMERAS * FPS}")
    stand.show("  cores; MiB in all; MiB for each more camera",
               f"{cameras['cores']} {cameras['memory_mib']} {figures['memory_mib_per_camera']}")
    if "latency_ms" in figures:
        stand.show("  picture sent to message there, ms: p50, p99",
                   f"{figures['latency_ms']['p50']} {figures['latency_ms']['p99']}")
    if "images" in figures:
        stand.show("  images a second; p99",
                   f"{figures['images']['requests_per_s']} {figures['images']['p99']}")


ROWS = {"baton": ("baton-detector", Ours, "any"),
        "baton_opencv": ("baton-detector on OpenCV", Ours, "opencv"),
        "plain": ("plain Python on OpenCV", Plain, None)}


def measure(stand, rows):
    return {row: measure_worker(stand, *ROWS[row]) for row in rows}
