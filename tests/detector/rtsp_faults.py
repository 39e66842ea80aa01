#!/usr/bin/python3
"""Cameras that lie, for tests: an RTSP server whose paths are its faults.

usage: rtsp_faults.py [CLIP.h264 [FOLDER SUBJECT]]

With a FOLDER it speaks rtsps, with a certificate of its own for SUBJECT (IP:127.0.0.1) that it
puts there as ca.pem, and says "asked" for each request.

It says "ready PORT" and ends with its standard input. The faults:
  garbage    any request is answered with random bytes
  silent     a connection is taken and nothing is ever said
  drop       the connection ends at the first request
  huge       an answer that claims 4 GiB, and sends on and on
  endless    an answer whose headers never end
  redirect   to where clouds keep their secrets
  circle     to itself, again and again
  babble     PLAY is answered with a status that is no number
  onward     to its own path hush, by rtsp
  audio      a description without video
  midstall   plays, and falls silent in the middle of a packet
  noise      plays, and every packet's payload is random
  lengths    plays, and frames its packets with random lengths
  source     over UDP: media come from 127.0.0.2, it says; and "astray" if anything is sent there
  healthy    no fault: plays the clip again and again, picture n at n / 15 s by its own clock
  hush       plays twenty pictures of the clip whole, and falls silent between two
"""
import base64
import itertools
import random
import socket
import socketserver
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
from answers import certified  # noqa: E402

# What a decoder of H.264 wants to know beforehand: 320x240, baseline.
SPS = bytes.fromhex("6742c00ddb0283f420000003002000000303c1e2855c")
PPS = bytes.fromhex("68ce3c80")


def description(kind):
    if kind == "audio":
        return "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=a\r\nt=0 0\r\nm=audio 0 RTP/AVP 0\r\n" \
               "a=control:track\r\n"
    sets = ",".join(base64.b64encode(unit).decode() for unit in (SPS, PPS))
    return "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=v\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\n" \
           "a=rtpmap:96 H264/90000\r\na=control:track\r\n" \
           f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={sets}\r\n"

PICTURES = 20
FPS = 15
TLS_GREETING = b"\x16"
PART = 1200


def pictures(path):
    """Of an elementary clip whose pictures begin with a delimiter: each a list of its units."""
    start = b"\0\0\0\1\x09"
    with open(path, "rb") as clip:
        whole = [start + rest for rest in clip.read().split(start) if rest]
    return [[unit.lstrip(b"\0") for unit in picture.split(b"\0\0\1") if unit.strip(b"\0")]
            for picture in whole]


def payloads(unit):
    """What RTP carries of a unit: it as it is, or in parts (FU-A)."""
    if len(unit) <= PART:
        return [unit]
    parts = [unit[at:at + PART] for at in range(1, len(unit), PART)]
    kind = bytes([unit[0] & 0x60 | 28])
    return [kind + bytes([unit[0] & 0x1f | (i == 0) << 7 | (i == len(parts) - 1) << 6]) + part
            for i, part in enumerate(parts)]


def listen_astray():
    """Ports of 127.0.0.2, as a camera gives them; who sends there is told."""
    astray = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    astray.bind(("127.0.0.2", 0))

    def listen():
        astray.recv(2048)
        print("astray", flush=True)

    threading.Thread(target=listen, daemon=True).start()
    port = astray.getsockname()[1]
    return f"{port}-{port}"


class Liar(socketserver.StreamRequestHandler):
    sequence = 0

    def handle(self):
        try:
            if self.rfile.peek(1)[:1] == TLS_GREETING:
                self.send(b"RTSP/1.0 400 Bad Request\r\n\r\n")
                return
            while self.answer():
                pass
        except (OSError, ValueError):
            pass  # it went away, or speaks something else

    def send(self, data):
        self.request.sendall(data)

    def answer(self):
        """One request; false: enough said."""
        line = self.rfile.readline(4096).split()
        headers = {}
        while row := self.rfile.readline(4096).strip():
            key, _, value = row.partition(b":")
            headers[key.lower()] = value.strip()
        if len(line) < 3:
            return False
        if len(sys.argv) > 2:
            print("asked", flush=True)
        method = line[0].decode()
        kind = line[1].decode().split("/")[3]
        fault = getattr(self, "fault_" + kind, None)
        if fault:
            return fault()
        if method == "PLAY" and kind == "babble":
            self.send(b"RTSP/1.0 babble\r\n\r\n")
            return self.wait_for_end()
        self.reply(method, kind, headers)
        if method == "PLAY":
            getattr(self, "play_" + kind, self.wait_for_end)()
            return False
        return True

    def reply(self, method, kind, headers, more=""):
        body = ""
        if method == "DESCRIBE":
            body = description(kind)
            more = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
        if method == "SETUP":
            more = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"
            if kind == "source":
                ports = headers[b"transport"].decode().split("client_port=")[1].split(";")[0]
                more = (f"Transport: RTP/AVP/UDP;unicast;client_port={ports};"
                        f"server_port={listen_astray()};source=127.0.0.2\r\n")
        self.send(f"RTSP/1.0 200 OK\r\nCSeq: {headers.get(b'cseq', b'0').decode()}\r\n"
                  f"Session: 1;timeout=60\r\n{more}\r\n{body}".encode())

    def wait_for_end(self):
        while self.request.recv(65536):
            pass
        return False

    def fault_garbage(self):
        self.send(random.Random(7).randbytes(200000))
        return self.wait_for_end()

    def fault_silent(self):
        return self.wait_for_end()

    def fault_drop(self):
        return False

    def fault_huge(self):
        self.send(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 4294967295\r\n\r\n")
        while True:
            self.send(bytes(65536))

    def fault_endless(self):
        self.send(b"RTSP/1.0 200 OK\r\n")
        while True:
            self.send(b"X-More: " + b"y" * 500 + b"\r\n")

    def fault_redirect(self):
        return self.redirect("rtsp://169.254.169.254/x")

    def redirect(self, where):
        self.send(f"RTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: {where}\r\n\r\n".encode())
        return self.wait_for_end()

    def fault_onward(self):
        port = self.server.server_address[1]
        return self.redirect(f"rtsp://127.0.0.1:{port}/hush")

    def fault_circle(self):
        port = self.server.server_address[1]
        return self.redirect(f"rtsp://127.0.0.1:{port}/circle")

    def packet(self, number, payload):
        return struct.pack(">BBHII", 0x80, 96 | (number % 2 << 7), number & 0xffff,
                           number * 6000 & 0xffffffff, 1) + payload

    def play_picture(self, number, picture):
        parts = [part for unit in picture for part in payloads(unit)]
        for i, part in enumerate(parts):
            packet = struct.pack(">BBHII", 0x80, 96 | (i == len(parts) - 1) << 7,
                                 self.sequence & 0xffff, number * 6000, 1) + part
            self.send(struct.pack(">cBH", b"$", 0, len(packet)) + packet)
            self.sequence += 1

    def play_hush(self):
        for number, picture in enumerate(pictures(sys.argv[1])[:PICTURES]):
            self.play_picture(number, picture)
        self.wait_for_end()

    def play_healthy(self):
        for number, picture in enumerate(itertools.cycle(pictures(sys.argv[1]))):
            self.play_picture(number, picture)
            time.sleep(1 / FPS)

    def play_midstall(self):
        packet = self.packet(0, bytes(1000))
        self.send(struct.pack(">cBH", b"$", 0, len(packet)) + packet[:500])
        self.wait_for_end()

    def play_noise(self):
        dice = random.Random(8)
        number = 0
        while True:
            unit = bytes([dice.choice((1, 5, 6, 7, 8, 24, 28, 29))])
            packet = self.packet(number, unit + dice.randbytes(dice.randrange(1, 1300)))
            self.send(struct.pack(">cBH", b"$", 0, len(packet)) + packet)
            number += 1

    def play_lengths(self):
        dice = random.Random(9)
        while True:
            self.send(struct.pack(">cBH", b"$", dice.randrange(4), dice.randrange(65536)) +
                      dice.randbytes(500))


TLS = certified(sys.argv[2], sys.argv[3]) if len(sys.argv) > 2 else None


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def get_request(self):
        connection, address = super().get_request()
        return (TLS.wrap_socket(connection, server_side=True) if TLS else connection), address


def main():
    with Server(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print("ready", server.server_address[1], flush=True)
        sys.stdin.read()


main()
