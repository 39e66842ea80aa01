#!/usr/bin/python3
"""A detector worker as one writes it in an afternoon, of Debian's python3-opencv and
python3-websockets, beside which ours is measured.

usage: plain_worker.py MODEL.onnx WIDTH HEIGHT EACH

A thread a camera reads frames and keeps the newest; one thread runs the model on them in turn and
sends an imageDetection for each red, green or blue rectangle: every one in every frame if EACH is
1, else each colour of a camera once, for there is no tracker. Prints "port N"; on SIGUSR1 how many
frames were read and seen so far, as JSON.
"""
import asyncio
import json
import signal
import sys
import threading
import time

import cv2
import numpy
import websockets

CLASSES = ("red", "green", "blue")
CONFIDENCE, NMS = 0.5, 0.45


class Camera:
    def __init__(self, subscription, wake):
        self.identifier = subscription["subscriptionIdentifier"]
        self.model = subscription["modelId"], subscription["modelName"]
        self.url, self.wake = subscription["rtspUrl"], wake
        self.newest, self.read, self.inferred, self.reported = None, 0, 0, set()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            capture = cv2.VideoCapture(self.url, cv2.CAP_FFMPEG)
            while True:
                is_there, frame = capture.read()
                if not is_there:
                    break
                self.read += 1
                self.newest = frame, time.time()
                self.wake.set()
            capture.release()
            time.sleep(1)

    def state(self):
        return {"subscriptionIdentifier": self.identifier, "modelId": self.model[0],
                "modelName": self.model[1], "online": self.read > 0}


class Model:
    def __init__(self, path, width, height):
        self.network = cv2.dnn.readNetFromONNX(path)
        self.size = width, height

    def run(self, frame):
        """Boxes (left, top, width, height in the frame's pixels) with their classes."""
        height, width = frame.shape[:2]
        scale = min(self.size[0] / width, self.size[1] / height)
        inner = round(width * scale), round(height * scale)
        left, top = (self.size[0] - inner[0]) // 2, (self.size[1] - inner[1]) // 2
        picture = numpy.full((self.size[1], self.size[0], 3), 114, numpy.uint8)
        picture[top:top + inner[1], left:left + inner[0]] = cv2.resize(frame, inner)
        self.network.setInput(cv2.dnn.blobFromImage(picture, 1 / 255, swapRB=True))
        output = self.network.forward()[0].T
        scores = output[:, 4:].max(axis=1)
        output = output[scores > CONFIDENCE]
        classes = output[:, 4:].argmax(axis=1)
        boxes = output[:, :4] - [left, top, 0, 0]
        boxes[:, :2] -= boxes[:, 2:] / 2
        boxes = boxes / scale
        kept = cv2.dnn.NMSBoxes(boxes.tolist(), scores[scores > CONFIDENCE].tolist(), CONFIDENCE,
                                NMS)
        return [(boxes[i], CLASSES[classes[i]]) for i in numpy.array(kept).flatten()]


class Worker:
    def __init__(self, model, reports_each):
        self.model, self.reports_each = model, reports_each
        self.cameras, self.backend, self.wake = [], None, threading.Event()

    async def serve(self, backend, _path=None):
        self.backend = backend
        async for text in backend:
            message = json.loads(text)
            if message["type"] == "setSubscriptionList":
                self.cameras = [Camera(one, self.wake) for one in message["subscriptions"]]

    async def report(self):
        while True:
            if self.backend:
                await self.send({"type": "stateReport", "cpuUsage": 0, "memoryUsage": 0,
                                 "gpuUsage": 0, "gpuMemoryUsage": 0,
                                 "cameraConnections": [one.state() for one in self.cameras]})
            await asyncio.sleep(1)

    def tell_counts(self):
        print(json.dumps({"decoded": sum(one.read for one in self.cameras),
                          "inferred": sum(one.inferred for one in self.cameras)}), flush=True)

    async def send(self, message):
        try:
            await self.backend.send(json.dumps(message))
        except websockets.ConnectionClosed:
            pass

    def look(self, camera, loop):
        frame, captured = camera.newest
        camera.newest = None
        for box, name in self.model.run(frame):
            if self.reports_each or name not in camera.reported:
                camera.reported.add(name)
                stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(captured))
                asyncio.run_coroutine_threadsafe(self.send({
                    "type": "imageDetection", "subscriptionIdentifier": camera.identifier,
                    "timestamp": f"{stamp}.{int(captured % 1 * 1000):03}Z",
                    "data": {"detection": {"bodyType": name, "x": round(float(box[0])),
                                           "width": round(float(box[2]))},
                             "modelId": camera.model[0], "modelName": camera.model[1]}}), loop)
        camera.inferred += 1

    def infer(self, loop):
        while True:
            self.wake.wait()
            self.wake.clear()
            for camera in self.cameras:
                if camera.newest is not None:
                    self.look(camera, loop)


async def main():
    cv2.setNumThreads(1)
    worker = Worker(Model(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), sys.argv[4] == "1")
    loop = asyncio.get_running_loop()
    end = loop.create_future()
    loop.add_signal_handler(signal.SIGTERM, end.set_result, None)
    loop.add_signal_handler(signal.SIGUSR1, worker.tell_counts)
    async with websockets.serve(worker.serve, "127.0.0.1", 0) as server:
        print("port", server.sockets[0].getsockname()[1], flush=True)
        threading.Thread(target=worker.infer, args=(loop,), daemon=True).start()
        reporting = asyncio.ensure_future(worker.report())
        await end
        reporting.cancel()


if __name__ == "__main__":
    asyncio.run(main())
