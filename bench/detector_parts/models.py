"""The two models that are measured with, as archives of one stage.

  small  the test's detector of coloured rectangles (tests/models), 320 x 192
  large  640 x 384, with as much to compute as a YOLOv8n has at that size (5.3 thousand million
         multiplications and additions, each counted as one operation) and random weights: it costs
         what a real one costs and finds nothing
"""
import json
import os
import sys
import zipfile

from detector_parts.stand import run

SIZES = {"small": (320, 192), "large": (640, 384)}
# Channels, and by how much each layer makes the picture smaller.
LAYERS = ((16, 2), (32, 2), (32, 1), (64, 2), (64, 1), (64, 1), (64, 1), (64, 1), (128, 2),
          (128, 1), (128, 1), (128, 1), (128, 1), (256, 2), (256, 1))


def make_large(path):
    import numpy
    sys.path.insert(0, "tests/models")
    from make import Graph
    random = numpy.random.default_rng(1)
    graph, name, channels, (width, height) = Graph(), "images", 3, SIZES["large"]

    def convolve(name, given, wanted, side, stride):
        weights = random.normal(0, (2 / (given * side * side)) ** 0.5, (wanted, given, side, side))
        return graph.add("Conv", name, graph.constant(weights), kernel_shape=[side, side],
                         strides=[stride, stride], pads=[side // 2] * 4)

    for wanted, stride in LAYERS:
        width, height = width // stride, height // stride
        name, channels = graph.add("Relu", convolve(name, channels, wanted, 3, stride)), wanted
    scores = graph.add("Sigmoid", convolve(name, channels, 7, 1, 1))
    scores = graph.add("Mul", scores, graph.constant([0.1]))  # none reaches 0.25
    result = [1, 7, width * height]
    graph.add("Reshape", scores, graph.constant(result, numpy.int64), to="output")
    graph.save(path, [1, 3, SIZES["large"][1], SIZES["large"][0]], result)


def pipeline_of(name, report):
    width, height = SIZES[name]
    return {"version": 1,
            "models": {name: {"file": "model.onnx", "decoder": "yolov8", "confidence": 0.5,
                              "input": {"width": width, "height": height},
                              "classes": ["red", "green", "blue"]}},
            "stages": [{"name": "objects", "model": name,
                        "fields": {"bodyType": "class", "x": "x", "width": "width"}}],
            "tracker": report}


def make(stand):
    """Paths by name: (model, archive). The archive "each" is the small one without a tracker:
    every object of every frame is reported."""
    folder = stand.folder
    if not os.path.exists(f"{folder}/rectangles.onnx"):
        run([sys.executable, "tests/models/make.py", folder])
        make_large(f"{folder}/large.onnx")
        for name, model, report in (("small", "rectangles", {"report": "once"}),
                                    ("large", "large", {"report": "once"}),
                                    ("each", "rectangles", None)):
            with zipfile.ZipFile(f"{folder}/{name}.mpta", "w", zipfile.ZIP_DEFLATED) as file:
                size = "small" if name == "each" else name
                file.writestr("pipeline.json", json.dumps(pipeline_of(size, report)))
                file.write(f"{folder}/{model}.onnx", "model.onnx")
    models = {"small": "rectangles", "large": "large", "each": "rectangles"}
    return {name: (f"{folder}/{model}.onnx", f"{folder}/{name}.mpta")
            for name, model in models.items()}
