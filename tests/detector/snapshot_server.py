#!/usr/bin/python3
"""A camera that gives single pictures over HTTP, for tests, and some that lie.

usage: snapshot_server.py STILL.jpg [FOLDER]

With a FOLDER it speaks https, with a certificate of its own that it puts there as ca.pem.

It says "ready PORT", then "get NAME" for each request, and ends with its standard input.
  still      the picture
  secret     the picture, for user viewer with password canary7 (basic)
  digest     the same by digest, which never sends the password
  missing    404                    redirect   to where clouds keep their secrets
  words      no picture             cut        half of one
  giant      a header that claims 65500 x 65500
  endless    bytes without end      slow       one byte, then silence
  drip       a byte every tenth of a second, without end
  chunk      a chunk of nearly 2^63 bytes, which never ends
  chunks     a chunk whose length no number can hold
  uneven     the picture, every second one 300 ms late
"""
import hashlib
import re
import sys
import time

sys.dont_write_bytecode = True
from answers import Answers, certified, serve  # noqa: E402


NONCE = "b7c1f0"


class Camera(Answers):
    still = b""
    asked = 0

    def do_GET(self):
        name = self.path.split("?")[0].strip("/")
        print("get", name, flush=True)
        self.give(name, self.get_missing)

    def get_still(self):
        self.answer(200, self.still, Content_Type="image/jpeg")

    def get_secret(self):
        if self.is_viewer():
            self.get_still()

    def get_digest(self):
        """RFC 7616, with MD5, which is what cameras have."""
        given = dict(re.findall(r'(\w+)="?([^",]*)"?', self.headers.get("Authorization", "")))
        md5 = lambda *words: hashlib.md5(":".join(words).encode()).hexdigest()
        wanted = md5(md5("viewer", "camera", "canary7"), NONCE, given.get("nc", ""),
                     given.get("cnonce", ""), "auth", md5("GET", self.path))
        if given.get("nonce") == NONCE and given.get("response") == wanted:
            self.get_still()
        else:
            challenge = f'Digest realm="camera", nonce="{NONCE}", qop="auth", algorithm=MD5'
            self.answer(401, WWW_Authenticate=challenge)

    def get_missing(self):
        self.answer(404)

    def get_redirect(self):
        self.answer(302, Location="http://169.254.169.254/latest/meta-data/")

    def get_words(self):
        self.answer(200, b"no picture" * 100)

    def get_cut(self):
        self.answer(200, self.still[:len(self.still) // 2])

    def get_giant(self):
        at = self.still.index(b"\xff\xc0") + 5
        self.answer(200, self.still[:at] + b"\xff\xdc\xff\xdc" + self.still[at + 4:])

    def get_uneven(self):
        Camera.asked += 1
        time.sleep(0.3 * (Camera.asked % 2))
        self.get_still()

    def get_drip(self):
        self.begin(200)
        while True:
            self.wfile.write(b"\xff")
            time.sleep(0.1)

    def get_chunk(self, length=b"7fffffffffffffff"):
        self.begin(200, length + b"\r\n", Transfer_Encoding="chunked")
        while True:
            self.wfile.write(bytes(65536))

    def get_chunks(self):
        self.get_chunk(b"f" * 16)

    def get_slow(self):
        self.begin(200, b"\xff", Content_Length=1000)
        self.connection.recv(1)


with open(sys.argv[1], "rb") as file:
    Camera.still = file.read()
serve(Camera, certified(sys.argv[2]) if len(sys.argv) > 2 else None)
