#!/usr/bin/python3
"""Cameras that lie, for tests: an RTSP server whose paths are its faults.

usage: rtsp_faults.py [CLIP.h264 [FOLDER SUBJECT]]

With a FOLDER it speaks rtsps, with a certificate of its own for SUBJECT (IP:127.0.0.1) that it
puts there as ca.pem, and says "asked" for each request.

It says "ready PORT", then "circle" for each request of that path, and ends with its standard input.
The faults:
  garbage    any request is answered with random bytes
  silent     a connection is taken and nothing is ever said
  drop       the connection ends at the first request
  huge       an answer that claims 4 GiB, and sends on and on
  endless    an answer whose headers never end
  babble     PLAY is answered with a status that is no number
  midstall   plays, and falls silent in the middle of a packet
  noise      plays, and every packet's payload is random
  lengths    plays, and frames its packets with random lengths
  healthy    no fault: plays the clip again and again, picture n at n / 15 s by its own clock
  hush       plays twenty pictures of the clip whole, and falls silent between two
  drip       an answer of which a byte comes every tenth of a second
  zeros      plays, and every packet is empty
  vast       plays a picture that never ends
  bare       plays random bytes without any frame
  burst      plays the clip as fast as it can be sent
  challenge  no password is good enough: each challenge has a nonce of its own
  reset      the connection is reset at the first request
  broken     plays twenty pictures, and the connection is reset
  mural      plays pictures of 8400x4500
  those of REDIRECTS: to what stands there
  those of RAW: one kind of request is answered with what stands there, and the connection ends
  those of SDP: the description is what stands there
Damage of which a network is capable, and with which a stream goes on:
  lossy      every ninth packet is missing
  double     every packet comes twice
  swapped    every ninth picture comes after the next one
  leaps      numbers and times of packets jump, forward and back
  renamed    each picture comes from another source (SSRC)
  reports    between two pictures there is a report that is none, and one that says goodbye
  sessionless  no answer names a session
  muxed      the clip comes in a transport stream (MPEG-TS)
  sizes      each picture has another size than the one before
"""
import base64
import itertools
import os
import random
import re
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
SETS = ",".join(base64.b64encode(unit).decode() for unit in (SPS, PPS))
SESSION = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=v\r\nt=0 0\r\n"
VIDEO = "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:track\r\n"
HEALTHY = SESSION + VIDEO + f"a=fmtp:96 packetization-mode=1;sprop-parameter-sets={SETS}\r\n"
SDP = {
    "audio": SESSION + "m=audio 0 RTP/AVP 0\r\na=control:track\r\n",
    "blank": "",
    "muxed": SESSION + "m=video 0 RTP/AVP 33\r\na=control:track\r\n",
    "codec": SESSION + VIDEO.replace("H264", "ABACUS"),
    "crowd": SESSION + VIDEO * 20000,
    "sets": SESSION + VIDEO + "a=fmtp:96 sprop-parameter-sets=" + "!" * 60000 + ",AAAA,,//\r\n",
    "lines": "v=0\r\n" + "a=x\r\n" * 200000,
    "text": "".join(map(chr, range(1, 256))) * 100,
}
OK = b"RTSP/1.0 200 OK\r\nCSeq: 2\r\nSession: 1\r\n"
DICE = random.Random(10)
RAW = {
    "end-describe": ("DESCRIBE", b""),
    "end-setup": ("SETUP", b""),
    "end-play": ("PLAY", b""),
    "end-head": ("DESCRIBE", OK + b"Content-Le"),
    "end-body": ("DESCRIBE", OK + b"Content-Length: 500\r\n\r\nv=0\r\n"),
    "negative": ("DESCRIBE", OK + b"Content-Length: -1\r\n\r\nv=0\r\n"),
    "nul": ("DESCRIBE", b"RTSP/1.0 200 OK\r\n\0\0: \0\r\n\r\n"),
    "line": ("OPTIONS", b"RTSP/1.0 200 OK\r\nX: " + b"y" * (1 << 20)),
    "status": ("SETUP", b"RTSP/1.0 500 Internal Server Error\r\nCSeq: 3\r\n\r\n"),
    "transport": ("SETUP", b"RTSP/1.0 461 Unsupported transport\r\nCSeq: 3\r\n\r\n"),
    "channels": ("SETUP", OK + b"Transport: RTP/AVP/TCP;interleaved=70000-70001\r\n\r\n"),
    "datagrams": ("SETUP", OK + b"Transport: RTP/AVP;unicast;server_port=0-0\r\n\r\n"),
    "nowhere": ("DESCRIBE", b"RTSP/1.0 302 Moved\r\nLocation: file:///etc/passwd\r\n\r\n"),
    "trash-setup": ("SETUP", DICE.randbytes(200000)),
    "trash-play": ("PLAY", DICE.randbytes(200000)),
}
REDIRECTS = {
    "redirect": "169.254.169.254/x",  # where clouds keep their secrets
    "circle": "127.0.0.1:{port}/circle",
    "chase": "127.0.0.1:{port}/chase/{number}",
    "onward": "127.0.0.1:{port}/hush",
}

PICTURES = 20
FPS = 15
TLS_GREETING = b"\x16"
PART = 1200
MUXED = 7 * 188


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


def bits(*fields):
    """A unit's bytes: each field is a number in Exp-Golomb code, or a text of bits."""
    text = "".join(one if isinstance(one, str) else
                   f"{one + 1:b}".rjust(2 * (one + 1).bit_length() - 1, "0") for one in fields)
    text += "1" + "0" * (-len(text) - 1 & 7)
    raw = int(text, 2).to_bytes(len(text) // 8, "big")
    return re.sub(b"\0\0(?=[\0-\3])", b"\0\0\3", raw)


def grey(columns, rows, bottom=0):
    """A whole grey picture of so many macroblocks, without so many pairs of its last lines."""
    sps = b"\x67\x42\xc0\x3e" + bits(0, 0, 2, 1, "0", columns - 1, rows - 1, "11", "1", 0, 0, 0,
                                      bottom, "0")
    pps = b"\x68" + bits(0, 0, "00", 0, 0, 0, "000", 0, 0, 0, "000")
    blocks = "00100111" * (columns * rows)  # each as it is predicted
    return [sps, pps, b"\x65" + bits(0, 7, 0, "0000", 0, "00", 0, blocks)]


def rtp(kind, sequence, time_of, payload):
    return struct.pack(">BBHII", 0x80, kind, sequence & 0xffff, time_of & 0xffffffff, 1) + payload


def framed(part, channel=0, length=None):
    """As it is interleaved with the answers."""
    return struct.pack(">cBH", b"$", channel, len(part) if length is None else length) + part


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
        if kind in REDIRECTS:
            return self.redirect(kind)
        if kind in RAW and method == RAW[kind][0]:
            self.send(RAW[kind][1])
            return False
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
            body = SDP.get(kind, HEALTHY)
            more = f"Content-Type: application/sdp\r\nContent-Length: {len(body)}\r\n"
        if method == "SETUP":
            more = "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n"
        session = "" if kind == "sessionless" else "Session: 1;timeout=60\r\n"
        self.send(f"RTSP/1.0 200 OK\r\nCSeq: {headers.get(b'cseq', b'0').decode()}\r\n"
                  f"{session}{more}\r\n{body}".encode())

    def wait_for_end(self):
        while self.request.recv(65536):
            pass
        return False

    def fault_garbage(self):
        self.send(random.Random(7).randbytes(200000))
        return self.wait_for_end()

    fault_silent = wait_for_end

    def fault_drop(self):
        return False

    def fault_challenge(self):
        print("challenge", flush=True)
        self.send(b"RTSP/1.0 401 Unauthorized\r\nCSeq: 1\r\nWWW-Authenticate: Digest realm=\"v\", "
                  b"stale=true, nonce=\"%s\"\r\n\r\n" % random.randbytes(8).hex().encode())
        return True

    def fault_reset(self):
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.request.detach())
        return False

    def fault_huge(self):
        self.send(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 4294967295\r\n\r\n")
        while True:
            self.send(bytes(65536))

    def fault_endless(self):
        self.send(b"RTSP/1.0 200 OK\r\n")
        while True:
            self.send(b"X-More: " + b"y" * 500 + b"\r\n")

    def redirect(self, kind):
        if kind == "circle":
            print("circle", flush=True)
        where = REDIRECTS[kind].format(port=self.server.server_address[1],
                                       number=random.randrange(1 << 30))
        self.send(f"RTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: rtsp://{where}\r\n\r\n".encode())
        return self.wait_for_end()

    def fault_drip(self):
        for byte in itertools.cycle(b"RTSP/1.0 200 OK\r\n" + b"X-More: y\r\n"):
            self.send(bytes([byte]))
            time.sleep(0.1)

    def packets(self, number, picture):
        parts = [part for unit in picture for part in payloads(unit)]
        for i, part in enumerate(parts):
            yield framed(rtp(96 | (i == len(parts) - 1) << 7, self.sequence, number * 6000, part))
            self.sequence += 1

    def play_hush(self):
        for number, picture in enumerate(pictures(sys.argv[1])[:PICTURES]):
            self.send(b"".join(self.packets(number, picture)))
        self.wait_for_end()

    def play_broken(self):
        self.play_loop(list, shown=pictures(sys.argv[1])[:PICTURES])
        self.fault_reset()

    def play_loop(self, damage, pause_s=1 / FPS, shown=None):
        """`damage` makes of a picture's packets those that are sent; `shown` None: the clip."""
        for number, picture in enumerate(shown or itertools.cycle(pictures(sys.argv[1]))):
            self.send(b"".join(damage(list(self.packets(number, picture)))))
            time.sleep(pause_s)

    def play_healthy(self):
        self.play_loop(list)

    play_sessionless = play_healthy

    def play_muxed(self):
        with open(sys.argv[1].replace(".h264", ".ts"), "rb") as clip:
            whole = clip.read()
        for number in itertools.count():
            at = number * MUXED % len(whole)
            self.send(framed(rtp(33, number, number, whole[at:at + MUXED])))
            time.sleep(1 / FPS / 2)

    def play_burst(self):
        self.play_loop(list, 0)

    def play_mural(self):
        self.play_loop(list, shown=itertools.repeat(grey(525, 282, 6)))

    def play_sizes(self):
        self.play_loop(list, shown=(grey(4 + number * 7 % 61, 4 + number * 5 % 47)
                                    for number in itertools.count()))

    def play_lossy(self):
        count = itertools.count()
        self.play_loop(lambda packets: [one for one in packets if next(count) % 9 != 8])

    def play_double(self):
        self.play_loop(lambda packets: [one for one in packets for _ in range(2)])

    def play_swapped(self):
        count, held = itertools.count(), []

        def swap(packets):
            if next(count) % 9 == 8:
                held.extend(packets)
                return []
            packets += held
            held.clear()
            return packets

        self.play_loop(swap)

    def play_leaps(self):
        dice = random.Random(11)

        def leap(packets):
            self.sequence += dice.choice((0, 0, 1, 1000, 40000))
            time_of = struct.pack(">I", dice.choice((0, 1, 1 << 31, (1 << 32) - 1)))
            return [one[:8] + time_of + one[12:] if dice.randrange(5) == 0 else one
                    for one in packets]

        self.play_loop(leap)

    def play_renamed(self):
        count = itertools.count(1)

        def rename(packets):
            source = struct.pack(">I", next(count))
            return [one[:12] + source + one[16:] for one in packets]

        self.play_loop(rename)

    def play_reports(self):
        dice = random.Random(12)

        def report(packets):
            parts = dice.randbytes(40), struct.pack(">BBHI", 0x81, 203, 1, 1)  # of it, a goodbye
            return packets + [framed(part, 1) for part in parts]

        self.play_loop(report)

    def play_zeros(self):
        while True:
            self.send(framed(b"") * 1000)

    def play_vast(self):
        for unit in (SPS, PPS):
            self.send(framed(rtp(96, 0, 0, unit)))
        for number in itertools.count(1):
            part = bytes([0x7c, 0x85 if number == 1 else 0x05]) + bytes(60000)
            self.send(framed(rtp(96, number, 6000, part)))

    def play_bare(self):
        while True:
            self.send(DICE.randbytes(65536))

    def play_midstall(self):
        self.send(framed(rtp(96, 0, 0, bytes(1000)))[:504])
        self.wait_for_end()

    def play_noise(self):
        dice = random.Random(8)
        for number in itertools.count():
            unit = bytes([dice.choice((1, 5, 6, 7, 8, 24, 28, 29))])
            part = unit + dice.randbytes(dice.randrange(1, 1300))
            self.send(framed(rtp(96 | number % 2 << 7, number, number * 6000, part)))

    def play_lengths(self):
        dice = random.Random(9)
        while True:
            self.send(framed(dice.randbytes(500), dice.randrange(4), dice.randrange(65536)))


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
