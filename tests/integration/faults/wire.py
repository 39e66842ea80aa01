"""A peer that speaks the protocol of docs/protocol.md, as honestly or dishonestly as it is told."""
import hashlib
import socket
import struct

VERSION = 7
GREETING, CERTIFICATE, PIN, PINNED, REQUEST, REPLY = 1, 2, 3, 4, 5, 6
BIRTH, FOUNDERS, LEASE_NS, HEARTBEAT_NS, DRIFT_PPM = 1, 1, 5 * 10**9, 10**9, 10000
PRE_VOTE, PRE_VOTE_REPLY, VOTE, VOTE_REPLY, HEARTBEAT, HEARTBEAT_REPLY = 17, 18, 19, 20, 21, 22


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def cluster_of(name):
    return struct.unpack("<I", hashlib.sha256(name.encode()).digest()[:4])[0]


def id_of(name):
    return struct.unpack("<Q", hashlib.sha256(name.encode()).digest()[:8])[0]


def frame(kind, payload=b"", cluster="default", version=VERSION, length=None, crc=None):
    size = 14 + len(payload) if length is None else length
    head = struct.pack("<IBBI", size, version, kind, cluster_of(cluster))
    return head + payload + struct.pack("<I", crc32c(head + payload) if crc is None else crc)


def greeting(name, expected, incarnation=1, cluster="default", secret=b""):
    def text(word):
        return bytes([len(word)]) + word.encode()
    return frame(GREETING, text(cluster) + text(name) + text(expected) + struct.pack(
        "<10QII", id_of(name), BIRTH, 0, FOUNDERS, incarnation, 0, 0, 0, LEASE_NS, HEARTBEAT_NS,
        DRIFT_PPM, 1) + struct.pack("<Q16s32sB", 1, b"", hashlib.sha256(secret).digest(), 0),
        cluster)


def certificate(name, incarnation, secret, heir=0, cluster="default"):
    return frame(CERTIFICATE, struct.pack("<QQQ32sQ", id_of(name), incarnation, heir, secret, 0),
                 cluster)


def vote(term, last_index=0, last_term=0, kind=VOTE):
    return frame(kind, struct.pack("<QQQQQQ", term, last_index, last_term, 0, 0, 0))


class Peer:
    """A connection to a node's peer port."""

    def __init__(self, port, patience=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=patience)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the node had enough of it: is_closed() tells

    def end(self):
        """Nothing more is to come."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is closed already

    def is_closed(self):
        """Waits for the node to end it; what it says before is not looked at."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True
