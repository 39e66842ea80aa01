#!/usr/bin/env python3
"""usage: make.py FOLDER: writes small models with weights set by hand, whose answers are exact.

  rectangles.onnx  detector; picture of 3 x 192 x 320 RGB from 0 to 1 ─▶ [1, 7, 3840], as YOLOv8
                   gives it: middle x, y, width, height in pixels, a score each for red, green and
                   blue. It finds filled upright rectangles of those colours.
  colours.onnx     classifier; [N, 3, 32, 32] ─▶ [N, 3]: logits of red, green, blue
  single.onnx      as colours.onnx, but that it can answer for one picture only: [N, 3, 32, 32] ─▶
                   [1, 3]
  stripes.onnx     reader; [1, 3, 16, 64] ─▶ [1, 8, 4]: in each of eight columns a score each for
                   nothing, red, green, blue; a text for who takes the colours for letters
  yolov5.onnx, yolov10.onnx, ssd.onnx
                   the same detector with its results laid out as the decoder of that name wants
                   them; yolov10's gives each rectangle once
  retinaface.onnx  the same for red alone, as offsets from priors; for sides up to 64
  nothing.onnx     as rectangles.onnx, but that it keeps no box: [1, 7, 0]
  vast.onnx        as rectangles.onnx, but that its output is larger than one may be
  endless.onnx     as rectangles.onnx, but that it never comes to an end
  product.onnx     an operator that OpenCV does not know, for errors
  rectangles.mpta  archive of the first three and of pipeline.json, which lies beside this script
  renamed.mpta     the same, where red cars are of another brand
  boxes.mpta       archive that reports class and box of each rectangle in each frame
  yolov5.mpta, yolov10.mpta, ssd.mpta, retinaface.mpta
                   as boxes.mpta, each of the model whose layout it names
  product.mpta     archive of product.onnx

How the detector measures: a mask for each colour says of each cell of 4 x 4 pixels how much of it
is covered. To the left and right, up and down of each cell, the length of the run of covered cells
is r(x) = m(x) * (1 + r(x + 1)), which leaves a half-covered edge cell its half; it is computed for
1, 2, 4 ... cells at a time. So the box is exact where the rectangle is sharp.
"""
import json
import os
import sys
import zipfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEIGHT, CELL, DOUBLINGS = 320, 192, 4, 6
CELLS_X, CELLS_Y = WIDTH // CELL, HEIGHT // CELL
STRONG = 1 / 0.5  # a colour this much above the sum of the two others is wholly there
FLOAT = TensorProto.FLOAT


class Graph:
    """Nodes and constants of one model, named as they come."""

    def __init__(self):
        self.nodes, self.constants, self.count = [], [], 0

    def add(self, kind, *inputs, to=None, **attributes):
        self.count += 1
        name = to or f"{kind.lower()}{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, values, dtype=numpy.float32):
        self.count += 1
        name = f"constant{self.count}"
        values = numpy.asarray(values, dtype)
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def clip(self, name):
        return self.add("Clip", name, min=0.0, max=1.0)

    def mix(self, name, weights, bias):
        """Each output channel is a weighted sum of the input's."""
        weights = numpy.asarray(weights, numpy.float32)
        return self.add("Conv", name, self.constant(weights.reshape(*weights.shape, 1, 1)),
                        self.constant(bias), kernel_shape=[1, 1])

    def save(self, path, given, result, **others):
        def info(name, sides):
            return helper.make_tensor_value_info(name, FLOAT, sides)
        results = [info(name, sides) for name, sides in {"output": result, **others}.items()]
        graph = helper.make_graph(self.nodes, "model", [info("images", given)], results,
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)],
                                  producer_name="baton")
        model.ir_version = 5
        onnx.checker.check_model(model)
        onnx.save(model, path)


def masks(graph, name):
    """How much of each pixel is red, green and blue: 0 or 1 but for what lies between."""
    apart = numpy.full((3, 3), -STRONG) + numpy.eye(3) * 2 * STRONG
    return graph.clip(graph.mix(name, apart, [0, 0, 0]))


def shifted(graph, name, by_x, by_y):
    """The value that lies so many cells away; 0 beyond the edge."""
    pads = [0, 0, max(-by_y, 0), max(-by_x, 0), 0, 0, max(by_y, 0), max(by_x, 0)]
    padded = graph.add("Pad", name, mode="constant", pads=pads, value=0.0)
    starts = [max(by_y, 0), max(by_x, 0)]
    ends = [starts[0] + CELLS_Y, starts[1] + CELLS_X]
    return graph.add("Slice", padded, graph.constant(starts, numpy.int64),
                     graph.constant(ends, numpy.int64), graph.constant([2, 3], numpy.int64))


def run_length(graph, mask, step_x, step_y):
    length, product = mask, mask
    for doubling in range(DOUBLINGS):
        x, y = step_x << doubling, step_y << doubling
        length = graph.add("Add", length, graph.add("Mul", product, shifted(graph, length, x, y)))
        product = graph.add("Mul", product, shifted(graph, product, x, y))
    return graph.mix(length, [[1, 1, 1]], [0])  # only one colour's is above 0


def found(graph):
    """Middle, width and height at each cell, [N, 4, y, x], and a score for each colour."""
    mask = graph.add("AveragePool", masks(graph, "images"), kernel_shape=[CELL, CELL],
                     strides=[CELL, CELL])
    left, right = run_length(graph, mask, -1, 0), run_length(graph, mask, 1, 0)
    up, down = run_length(graph, mask, 0, -1), run_length(graph, mask, 0, 1)
    runs = graph.add("Concat", left, right, up, down, axis=1)
    half = CELL / 2
    boxes = graph.mix(runs, [[-half, half, 0, 0], [0, 0, -half, half],
                             [CELL, CELL, 0, 0], [0, 0, CELL, CELL]], [0, 0, -CELL, -CELL])
    grid = numpy.zeros((1, 4, CELLS_Y, CELLS_X))
    grid[0, 0] = (numpy.arange(CELLS_X) + 0.5) * CELL
    grid[0, 1] = ((numpy.arange(CELLS_Y) + 0.5) * CELL)[:, None]
    boxes = graph.add("Add", boxes, graph.constant(grid))
    # Only a cell that is wholly covered knows the size.
    scores = graph.clip(graph.mix(mask, numpy.eye(3) * 20, [-19, -19, -19]))
    return boxes, graph.mix(scores, numpy.eye(3) * 0.9, [0, 0, 0])


def rectangles(path):
    graph = Graph()
    whole = graph.add("Concat", *found(graph), axis=1)
    graph.add("Reshape", whole, graph.constant([0, 7, -1], numpy.int64), to="output")
    graph.save(path, [1, 3, HEIGHT, WIDTH], [1, 7, CELLS_X * CELLS_Y])


def rows(graph, name, fields, to=None):
    """From fields at each cell to a row for each cell."""
    last = graph.add("Transpose", name, perm=[0, 2, 3, 1])
    return graph.add("Reshape", last, graph.constant([1, -1, fields], numpy.int64), to=to)


def corners(graph, boxes, scale_x=1, scale_y=1):
    return graph.mix(boxes, [[scale_x, 0, -scale_x / 2, 0], [0, scale_y, 0, -scale_y / 2],
                             [scale_x, 0, scale_x / 2, 0], [0, scale_y, 0, scale_y / 2]], [0] * 4)


def yolov5(path):
    graph = Graph()
    boxes, scores = found(graph)
    sure = graph.mix(scores, [[0, 0, 0]], [1])
    rows(graph, graph.add("Concat", boxes, sure, scores, axis=1), 8, "output")
    graph.save(path, [1, 3, HEIGHT, WIDTH], [1, CELLS_X * CELLS_Y, 8])


def yolov10(path):
    """The upper left of the cells of a rectangle stands for it."""
    graph = Graph()
    boxes, scores = found(graph)
    for x, y in (-1, 0), (0, -1):
        free = graph.clip(graph.mix(shifted(graph, scores, x, y), numpy.eye(3) * -2, [1, 1, 1]))
        scores = graph.add("Mul", scores, free)
    score = graph.mix(scores, [[1, 1, 1]], [0])
    label = graph.mix(scores, [[0, 1 / 0.9, 2 / 0.9]], [0])
    rows(graph, graph.add("Concat", corners(graph, boxes), score, label, axis=1), 6, "output")
    graph.save(path, [1, 3, HEIGHT, WIDTH], [1, CELLS_X * CELLS_Y, 6])


def ssd(path):
    graph = Graph()
    boxes, scores = found(graph)
    rows(graph, corners(graph, boxes, 1 / WIDTH, 1 / HEIGHT), 4, "output")
    rows(graph, graph.mix(scores, [[-1, -1, -1], *numpy.eye(3)], [1, 0, 0, 0]), 4, "scores")
    sides = [1, CELLS_X * CELLS_Y, 4]
    graph.save(path, [1, 3, HEIGHT, WIDTH], sides, scores=sides)


def retinaface(path):
    """All is found by the priors of 16 x 16, eight pixels apart; the others see background."""
    graph = Graph()
    boxes, scores = found(graph)
    far = dict(kernel_shape=[1, 1], strides=[2, 2])
    boxes, scores = graph.add("MaxPool", boxes, **far), graph.add("MaxPool", scores, **far)
    prior = numpy.zeros((1, 2, HEIGHT // 8, WIDTH // 8))
    prior[0, 0] = -(numpy.arange(WIDTH // 8) + 0.5) * 8
    prior[0, 1] = -((numpy.arange(HEIGHT // 8) + 0.5) * 8)[:, None]
    middle = graph.add("Add", graph.mix(boxes, numpy.eye(4)[:2], [0, 0]), graph.constant(prior))
    middle = graph.mix(middle, numpy.eye(2) / 1.6, [0, 0])
    sides = graph.mix(boxes, numpy.eye(4)[2:] / 16, [0, 0])
    sides = graph.mix(graph.add("Log", graph.add("Clip", sides, min=0.01, max=100.0)),
                      numpy.eye(2) * 5, [0, 0])
    unused = graph.mix(boxes, numpy.zeros((4, 4)), [0] * 4)
    near, count = WIDTH // 8 * HEIGHT // 8 * 2, WIDTH // 8 * HEIGHT // 8 * 21 // 8
    offsets = rows(graph, graph.add("Concat", middle, sides, unused, axis=1), 4)
    red = rows(graph, graph.mix(scores, [[-1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]],
                                [1, 0, 1, 0]), 2)
    for name, fields, to in (offsets, [0] * 4, "output"), (red, [1, 0], "scores"):
        others = graph.constant(numpy.tile(fields, (1, count - near, 1)))
        graph.add("Concat", name, others, axis=1, to=to)
    graph.save(path, [1, 3, HEIGHT, WIDTH], [1, count, 4], scores=[1, count, 2])


def colours(path):
    graph = Graph()
    mean = graph.add("GlobalAveragePool", masks(graph, "images"))
    graph.add("Flatten", graph.mix(mean, numpy.eye(3) * 10, [0, 0, 0]), axis=1, to="output")
    graph.save(path, ["N", 3, 32, 32], ["N", 3])


def single(path):
    graph = Graph()
    mean = graph.add("GlobalAveragePool", masks(graph, "images"))
    graph.add("Reshape", graph.mix(mean, numpy.eye(3) * 10, [0, 0, 0]),
              graph.constant([1, 3], numpy.int64), to="output")
    graph.save(path, ["N", 3, 32, 32], [1, 3])


def stripes(path):
    graph = Graph()
    columns = graph.add("AveragePool", masks(graph, "images"), kernel_shape=[16, 8], strides=[8, 8])
    scores = graph.mix(columns, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [0.4, 0, 0, 0])
    flat = graph.add("Reshape", scores, graph.constant([1, 4, 8], numpy.int64))
    graph.add("Transpose", flat, perm=[0, 2, 1], to="output")
    graph.save(path, [1, 3, 16, 64], [1, 8, 4])


def product(path):
    graph = Graph()
    flat = graph.add("ReduceMean", "images", axes=[2, 3], keepdims=0)
    graph.add("Erf", graph.add("Mod", flat, graph.constant([0.5]), fmod=1),
              to="output")
    graph.save(path, [1, 3, 32, 32], [1, 3])


def nothing(path):
    graph = Graph()
    mean = graph.add("ReduceMean", "images", axes=[1, 2, 3], keepdims=1)
    flat = graph.add("Reshape", mean, graph.constant([1, 1, 1], numpy.int64))
    boxes = graph.add("Expand", flat, graph.constant([1, 7, 2], numpy.int64))
    graph.add("Slice", boxes, graph.constant([0], numpy.int64), graph.constant([0], numpy.int64),
              graph.constant([2], numpy.int64), to="output")
    graph.save(path, [1, 3, HEIGHT, WIDTH], [1, 7, "kept"])


def vast(path):
    graph, sides = Graph(), [1, 7, 3 << 20]
    mean = graph.add("ReduceMean", "images", axes=[1, 2, 3], keepdims=1)
    flat = graph.add("Reshape", mean, graph.constant([1, 1, 1], numpy.int64))
    graph.add("Expand", flat, graph.constant(sides, numpy.int64), to="output")
    graph.save(path, [1, 3, HEIGHT, WIDTH], sides)


def endless(path):
    """It counts to 2^60 first, which OpenCV cannot."""
    def info(name, kind, sides):
        return helper.make_tensor_value_info(name, kind, sides)
    graph, flag, sides = Graph(), TensorProto.BOOL, [1, 7, 2]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["goes"]),
         helper.make_node("Add", ["x", "x"], ["y"])],
        "body", [info("i", TensorProto.INT64, []), info("go", flag, []), info("x", FLOAT, sides)],
        [info("goes", flag, []), info("y", FLOAT, sides)])
    mean = graph.add("ReduceMean", "images", axes=[1, 2, 3], keepdims=1)
    flat = graph.add("Reshape", mean, graph.constant([1, 1, 1], numpy.int64))
    start = graph.add("Expand", flat, graph.constant(sides, numpy.int64))
    graph.add("Loop", graph.constant(2 ** 60, numpy.int64), graph.constant(True, numpy.bool_),
              start, to="output", body=body)
    graph.save(path, [1, 3, HEIGHT, WIDTH], sides)


def archive(folder, name, change, models=("rectangles", "colours", "stripes")):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/pipeline.json", encoding="utf-8") as file:
        pipeline = change(file.read())
    with zipfile.ZipFile(f"{folder}/{name}.mpta", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("pipeline.json", pipeline)
        for model in models:
            file.write(f"{folder}/{model}.onnx", f"models/{model}.onnx")


def only_boxes(text, **more):
    pipeline = json.loads(text)
    fields = {name: name for name in ("class", "x", "y", "width", "height")}
    models = {"rectangles": pipeline["models"]["rectangles"]}
    return json.dumps({"version": 1, "models": models, **more,
                       "stages": [{"name": "objects", "model": "rectangles", "fields": fields}]})


def archives_of_boxes(folder):
    """What finds the rectangles in every frame, twice; and once each."""
    archive(folder, "boxes", only_boxes, ("rectangles",))
    archive(folder, "boxes_too", lambda text: only_boxes(text) + " ", ("rectangles",))
    archive(folder, "tracked", lambda text: only_boxes(text, tracker={"report": "once"}),
            ("rectangles",))


def archives_of_layouts(folder):
    for decoder in "yolov5", "yolov10", "ssd", "retinaface":
        def laid_out(text):
            pipeline = json.loads(only_boxes(text))
            model = pipeline["models"]["rectangles"]
            model.update(file=f"models/{decoder}.onnx", decoder=decoder)
            if decoder == "retinaface":
                model["classes"] = ["red"]
            return json.dumps(pipeline)
        archive(folder, decoder, laid_out, (decoder,))


def archive_of_product(folder):
    model = {"file": "product.onnx", "decoder": "classify", "input": {"width": 32, "height": 32},
             "classes": ["red", "green", "blue"]}
    stage = {"name": "colour", "model": "product", "fields": {"bodyType": "class"}}
    with zipfile.ZipFile(f"{folder}/product.mpta", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("pipeline.json", json.dumps(
            {"version": 1, "models": {"product": model}, "stages": [stage]}))
        file.write(f"{folder}/product.onnx", "product.onnx")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for make in (rectangles, yolov5, yolov10, ssd, retinaface, colours, single, stripes,
                 nothing, vast, endless, product):
        make(f"{sys.argv[1]}/{make.__name__}.onnx")
    archive(sys.argv[1], "rectangles", lambda text: text)
    archive_of_product(sys.argv[1])
    archives_of_boxes(sys.argv[1])
    archives_of_layouts(sys.argv[1])
    archive(sys.argv[1], "renamed", lambda text: text.replace("Ferrari", "Fiat"))


if __name__ == "__main__":
    main()
