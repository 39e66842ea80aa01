#!/usr/bin/python3
"""A server of model archives, for tests, and some that break, lie or lead elsewhere.

usage: model_server.py [CERTIFICATE_FOLDER]

With a folder it speaks TLS and leaves its own certificate there, ca.pem. It says "ready PORT", then
for each request "get NAME", with "from N" where a part is asked for and "if ETAG" where the ETag is
known, and ends with its standard input. The archive is that of ?v=N, else of 1; its ETag is "vN".
"""
import base64
import collections
import io
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)) + "/../../detector")
from answers import Answers, certified, serve  # noqa: E402

PIPELINE = {
    "version": 1,
    "models": {"cars": {"file": "models/cars.onnx", "decoder": "tensor",
                        "input": {"width": 8, "height": 8}}},
    "stages": [{"name": "s", "model": "cars", "fields": {"n": "number"}}],
}
MODEL_BYTES = 1 << 20
PAGE = b"<p>It has moved.</p>"  # redirects of real servers have one


def archive(version):
    """Streamed, as from a pipe: such archives have their lengths behind the data."""
    class Pipe(io.RawIOBase):
        def __init__(self):
            super().__init__()
            self.parts = []

        def writable(self):
            return True

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("pipeline.json", json.dumps(PIPELINE))
        made.writestr("models/cars.onnx", random.Random(version).randbytes(MODEL_BYTES))
    return b"".join(pipe.parts)


class Server(Answers):
    archives = {}
    asked = collections.Counter()
    lock = threading.Lock()
    released = threading.Event()

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        name = parts.path.split("/")[1].removesuffix(".mpta")
        self.version = int(dict(urllib.parse.parse_qsl(parts.query)).get("v", 1))
        wanted, known = self.headers.get("Range"), self.headers.get("If-None-Match")
        self.start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        with self.lock:
            self.asked[name] += 1
            self.count = self.asked[name]
            if self.version not in self.archives:
                self.archives[self.version] = archive(self.version)
            self.body = self.archives[self.version]
            print("get", name, *(["from", self.start] if wanted else []),
                  *(["if", known] if known else []), flush=True)
        self.give(name, self.get_gone)

    def etag(self):
        return f'"v{self.version}"'

    def rest(self, start, etag):
        self.answer(206, self.body[start:], ETag=etag,
                    Content_Range=f"bytes {start}-{len(self.body) - 1}/{len(self.body)}")

    def get_good(self, etag=None):
        etag = etag or self.etag()
        if self.headers.get("If-None-Match") == etag:
            self.answer(304, ETag=etag)
        elif self.start and self.headers.get("If-Range") == etag:
            self.rest(self.start, etag)
        else:
            self.answer(200, self.body, ETag=etag)

    def cut(self, upto, etag):
        """The head promises all, and then the connection ends."""
        partly = self.start and self.headers.get("If-Range") == etag
        start = self.start if partly else 0
        self.send_response(206 if partly else 200)
        if partly:
            self.send_header("Content-Range",
                             f"bytes {start}-{len(self.body) - 1}/{len(self.body)}")
        self.send_header("Content-Length", str(len(self.body) - start))
        if etag:
            self.send_header("ETag", etag)
        self.end_headers()
        self.wfile.write(self.body[start:upto])
        self.close_connection = True

    def get_broken(self):
        """Each time a quarter more."""
        if self.count < 4:
            self.cut(len(self.body) * self.count // 4, self.etag())
        else:
            self.get_good()

    def get_renewed(self):
        """It breaks, and is another one afterwards."""
        if self.count == 1:
            self.cut(len(self.body) // 2, '"v0"')
        else:
            self.get_good()

    def get_swapped(self):
        """As get_renewed(), and it looks at no If-Range."""
        if self.count == 1:
            self.body = bytes(len(self.body))
            self.cut(len(self.body) // 2, '"v0"')
        elif self.start:
            self.rest(self.start, self.etag())
        else:
            self.get_good()

    def get_nameless(self):
        """It breaks and has no ETag."""
        if self.count == 1:
            self.cut(len(self.body) // 2, None)
        else:
            self.answer(200, self.body)

    def get_liar(self):
        """It goes on somewhere else."""
        if self.count == 1:
            self.cut(len(self.body) // 2, self.etag())
        else:
            self.rest(9, self.etag())

    def get_stuck(self):
        """Always broken at the same place."""
        self.cut(1000, self.etag())

    def get_silent(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x")
        if self.count == 1:
            time.sleep(1000)
        self.close_connection = True

    def get_busy(self):
        self.answer(503) if self.count < 3 else self.get_good()

    def get_signed(self):
        """For a fresh signature; else out of order, or refused once another asks for `release`."""
        query = urllib.parse.urlsplit(self.path).query
        if query == "fresh=1":
            self.get_good()
        elif query == "busy=1":
            self.answer(503)
        else:
            self.released.wait()
            self.answer(403)

    def get_release(self):
        self.released.set()
        self.answer(404)

    def get_down(self):
        self.answer(503, b"maintenance")

    def get_gone(self):
        self.answer(404, b"no such model")

    def get_refused(self):
        self.answer(403, b"<Error>signature canary8</Error>")

    def get_secret(self):
        if self.headers.get("Authorization") == \
                "Basic " + base64.b64encode(b"viewer:canary7").decode():
            self.get_good()
        else:
            self.answer(401, WWW_Authenticate='Basic realm="models"')

    def get_moved(self):
        self.answer(307, PAGE, Location="/good.mpta?sig=canary9")

    def get_metadata(self):
        self.answer(302, PAGE, Location="http://169.254.169.254/latest/meta-data/canary9")

    def get_loop(self):
        self.answer(302, PAGE, Location="/loop.mpta?sig=canary9")

    def get_file(self):
        self.answer(302, PAGE, Location="file:///etc/passwd")

    def get_away(self):
        self.answer(302, PAGE, Location=f"http://localhost:{self.server.server_port}/good.mpta")

    def get_onto(self):
        """To the host that the query names, of this server's own port."""
        host = urllib.parse.urlsplit(self.path).query.split("=")[1]
        self.answer(302, PAGE, Location=f"http://{host}:{self.server.server_port}/good.mpta")

    def get_large(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        self.close_connection = True

    def get_page(self):
        """An error page."""
        self.answer_without_end(404)

    def get_weak(self):
        etag = f'W/"v{self.version}"'
        self.cut(len(self.body) // 2, etag) if self.count == 1 else self.get_good(etag)

    def get_careless(self):
        """Always all of it, with its ETag."""
        self.answer(200, self.body, ETag=self.etag())

    def get_vast(self):
        self.answer_without_end(200, ETag=self.etag())

    def get_bad(self):
        self.answer(200, b"PK no archive", ETag=self.etag())

    def get_test(self):
        """An archive of the folder that TEST_MODELS names."""
        with open(os.environ["TEST_MODELS"] + "/" + os.path.basename(self.path), "rb") as file:
            self.answer(200, file.read(), ETag=f'"{self.path}"')

    def get_plain(self):
        """Always all of it, without an ETag."""
        self.answer(200, self.body)

    def get_empty(self):
        self.answer(200, ETag=self.etag())

    def get_odd(self):
        self.answer(204)


serve(Server, certified(sys.argv[1]) if len(sys.argv) > 1 else None)
