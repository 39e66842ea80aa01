#!/usr/bin/env python3
"""usage: make.py FOLDER: writes FOLDER/lamps.mpta, a model archive that sees which lamp of a
machine's signal tower is lit.

Nothing is trained here: the weights are set by hand, so that the whole model can be read. Yours
comes out of a training, and then only archive() is of interest.

Debian: apt install python3-onnx, and run it with /usr/bin/python3
"""
import pathlib
import sys
import zipfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEIGHT = 160, 96  # as in pipeline.json
SMALLEST = 16  # pixels of a lamp that is surely one


def save(path, nodes, constants, given, result):
    def info(name, sides):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, sides)
    constants = [numpy_helper.from_array(values, name) for name, values in constants.items()]
    graph = helper.make_graph(nodes, "model", [info("images", given)], [info("output", result)],
                              constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)])
    model.ir_version = 5  # what OpenCV of Debian 12 reads
    onnx.checker.check_model(model)
    onnx.save(model, path)


def lamps(path):
    """Picture of 3 x 96 x 160, RGB from 0 to 1 ─▶ [1, 3, 8]: a box for each colour, as YOLOv5 gives
    it: middle x, y, width, height, how sure it is that there is one, and a score for each class.

    A colour's mask says of each pixel how lit it is. Its sum is the lamp's area, its mean place the
    lamp's middle, and its variance the size: that of an even run of w pixels is (w² - 1) / 12.
    """
    x = numpy.tile(numpy.arange(WIDTH) + 0.5 - WIDTH / 2, HEIGHT)
    y = numpy.repeat(numpy.arange(HEIGHT) + 0.5 - HEIGHT / 2, WIDTH)
    grid = numpy.stack([numpy.ones(WIDTH * HEIGHT), x, y, x * x, y * y], axis=1)
    constants = {
        # Lit is what has much more of its colour than of the two others together.
        "weights": 4 * (2 * numpy.eye(3) - 1).reshape(3, 3, 1, 1), "bias": [-1, -1, -1],
        "grid": grid, "tiny": [1e-6], "one": [1], "twelve": [12], "each": [1 / SMALLEST],
        "half_width": [WIDTH / 2], "half_height": [HEIGHT / 2],
        "classes": numpy.eye(3).reshape(1, 3, 3)}
    whole = {"axis": [2], "flat_shape": [1, 3, WIDTH * HEIGHT]}
    nodes = []

    def add(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def part(name, first):
        whole[f"{name}_from"], whole[f"{name}_to"] = [first], [first + 1]
        return add("Slice", ["moments", f"{name}_from", f"{name}_to", "axis"], name)

    add("Conv", ["images", "weights", "bias"], "raw", kernel_shape=[1, 1])
    add("Clip", ["raw"], "mask", min=0.0, max=1.0)
    add("Reshape", ["mask", "flat_shape"], "flat")
    add("MatMul", ["flat", "grid"], "moments")  # [1, 3, 5]: area, and sums of x, y, x², y²
    add("Add", [part("area", 0), "tiny"], "area_above_0")
    for side, first, half in (("x", 1, "half_width"), ("y", 2, "half_height")):
        add("Div", [part(f"sum_{side}", first), "area_above_0"], f"mean_{side}")
        add("Div", [part(f"sum_{side}2", first + 2), "area_above_0"], f"mean_{side}2")
        add("Mul", [f"mean_{side}", f"mean_{side}"], f"square_{side}")
        add("Sub", [f"mean_{side}2", f"square_{side}"], f"variance_{side}")
        add("Mul", [f"variance_{side}", "twelve"], f"even_{side}")
        add("Add", [f"even_{side}", "one"], f"size_{side}2")
        add("Clip", [f"size_{side}2"], f"size_{side}2_above_0", min=1.0, max=float(WIDTH * WIDTH))
        add("Sqrt", [f"size_{side}2_above_0"], f"size_{side}")
        add("Add", [f"mean_{side}", half], f"middle_{side}")
    add("Mul", ["area", "each"], "much")
    add("Clip", ["much"], "sure", min=0.0, max=1.0)
    add("Concat", ["middle_x", "middle_y", "size_x", "size_y", "sure", "classes"], "output", axis=2)
    constants = {name: numpy.asarray(values, numpy.float32) for name, values in constants.items()}
    constants |= {name: numpy.asarray(values, numpy.int64) for name, values in whole.items()}
    save(path, nodes, constants, [1, 3, HEIGHT, WIDTH], [1, 3, 8])


def light(path):
    """A lamp, cut out, [N, 3, 32, 32] ─▶ [N, 1]: how bright its brightest colour is, 0 to 1."""
    nodes = [helper.make_node("GlobalAveragePool", ["images"], ["means"]),
             helper.make_node("ReduceMax", ["means"], ["most"], axes=[1], keepdims=1),
             helper.make_node("Flatten", ["most"], ["output"], axis=1)]
    save(path, nodes, {}, ["N", 3, 32, 32], ["N", 1])


def archive(path, pipeline, models):
    """A zip file with pipeline.json at its top and the models that it names beside it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.write(pipeline, "pipeline.json")
        for model in models:
            file.write(model, model.name)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    lamps(folder / "lamps.onnx")
    light(folder / "light.onnx")
    archive(folder / "lamps.mpta", pathlib.Path(__file__).parent / "pipeline.json",
            [folder / "lamps.onnx", folder / "light.onnx"])


if __name__ == "__main__":
    main()
