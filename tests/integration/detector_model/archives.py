"""Archives of a small model for tests: each seed makes another one, always the same."""
import io
import json
import random
import zipfile

PIPELINE = {
    "version": 1,
    "models": {"cars": {"file": "models/cars.onnx", "decoder": "tensor",
                        "input": {"width": 8, "height": 8}}},
    "stages": [{"name": "s", "model": "cars", "fields": {"n": "number"}}],
}


class Pipe(io.BytesIO):
    """What is streamed has its lengths behind the data."""

    def seek(self, *_):
        raise io.UnsupportedOperation


def archive(seed, model_bytes):
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("pipeline.json", json.dumps(PIPELINE))
        made.writestr("models/cars.onnx", random.Random(seed).randbytes(model_bytes))
    return pipe.getvalue()
