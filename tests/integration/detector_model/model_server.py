#!/usr/bin/python3
"""A server of model archives, for tests, and some that break, lie or lead elsewhere.

usage: model_server.py [CERTIFICATE_FOLDER]

With a folder it speaks TLS and leaves its own certificate there, ca.pem. It says "ready PORT", then
for each request "get NAME", with "from N" where a part is asked for and "if ETAG" where the ETag is
known, and ends with its standard input. The archive is that of ?v=N, else of 1; its ETag is "vN".
"""
import collections
import os
import sys
import threading
import time
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)) + "/../../detector")
from answers import Answers, certified, serve  # noqa: E402
from archives import archive  # noqa: E402

MODEL_BYTES = 1 << 20
PAGE = b"<p>It has moved.</p>"  # redirects of real servers have one
# What is always the same: status, body, and where a redirect leads.
FIXED = {
    "gone": (404, b"no such model", None),
    "refused": (403, b"<Error>signature canary8</Error>", None),
    "down": (503, b"maintenance", None),
    "odd": (204, b"", None),
    "moved": (307, PAGE, "/good.mpta?sig=canary9"),
    "metadata": (302, PAGE, "http://169.254.169.254/latest/meta-data/canary9"),
    "loop": (302, PAGE, "/loop.mpta?sig=canary9"),
    "file": (302, PAGE, "file:///etc/passwd"),
    "away": (302, PAGE, "http://localhost:{port}/good.mpta"),
    "onto": (302, PAGE, "http://{host}:{port}/good.mpta"),  # the one that the query names
}


class Server(Answers):
    archives = {}
    asked = collections.Counter()
    lock = threading.Lock()
    released = threading.Event()

    def do_GET(self):
        parts = urllib.parse.urlsplit(self.path)
        name = parts.path.split("/")[1].removesuffix(".mpta")
        self.name, self.query = name, dict(urllib.parse.parse_qsl(parts.query))
        self.version = int(self.query.get("v", 1))
        wanted, known = self.headers.get("Range"), self.headers.get("If-None-Match")
        self.start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        with self.lock:
            self.asked[name] += 1
            self.count = self.asked[name]
            if self.version not in self.archives:
                self.archives[self.version] = archive(self.version, MODEL_BYTES)
            self.body = self.archives[self.version]
            print("get", name, *(["from", self.start] if wanted else []),
                  *(["if", known] if known else []), flush=True)
        self.give(name, self.get_fixed)

    def get_fixed(self):
        status, body, where = FIXED.get(self.name, FIXED["gone"])
        where = where and where.format(host=self.query.get("to"), port=self.server.server_port)
        self.answer(status, body, **({"Location": where} if where else {}))

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
        more = {"ETag": etag} if etag else {}
        if partly:
            more["Content_Range"] = f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"
        self.begin(206 if partly else 200, self.body[start:upto],
                   Content_Length=len(self.body) - start, **more)
        self.close_connection = True

    def breaks(self, etag):
        """The first time, in the middle."""
        if self.count == 1:
            self.cut(len(self.body) // 2, etag)
        return self.count == 1

    def get_broken(self):
        """Each time a quarter more."""
        if self.count < 4:
            self.cut(len(self.body) * self.count // 4, self.etag())
        else:
            self.get_good()

    def get_renewed(self):
        """It breaks, and is another one afterwards."""
        if not self.breaks('"v0"'):
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
        if not self.breaks(None):
            self.answer(200, self.body)

    def get_liar(self):
        """It goes on somewhere else."""
        if not self.breaks(self.etag()):
            self.rest(9, self.etag())

    def get_stuck(self):
        """Always broken at the same place."""
        self.cut(1000, self.etag())

    def get_silent(self):
        self.begin(200, b"x", Content_Length=1000)
        if self.count == 1:
            time.sleep(1000)
        self.close_connection = True

    def get_busy(self):
        self.answer(503) if self.count < 3 else self.get_good()

    def get_signed(self):
        """For a fresh signature; else out of order, or refused once another asks for `release`."""
        if "fresh" in self.query:
            self.get_good()
        elif "busy" in self.query:
            self.answer(503)
        else:
            self.released.wait()
            self.answer(403)

    def get_release(self):
        self.released.set()
        self.answer(404)

    def get_secret(self):
        if self.is_viewer():
            self.get_good()

    def get_large(self):
        self.begin(200, Content_Length=1 << 40)
        self.close_connection = True

    def get_page(self):
        """An error page."""
        self.answer_without_end(404)

    def get_weak(self):
        etag = f'W/"v{self.version}"'
        if not self.breaks(etag):
            self.get_good(etag)

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


serve(Server, certified(sys.argv[1]) if len(sys.argv) > 1 else None)
