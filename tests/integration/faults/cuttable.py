"""A TCP link that a test can stall or cut: it listens on a free port and forwards to a target.

    link = Link(target_port)    link.port is where to connect to
    link.stall("there")         bytes of that way wait, and go on their way at heal()
    link.cut()                  every connection is reset, and each new one as well
    link.heal()
"""
import socket
import struct
import threading

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST
WAYS = ("there", "back")


class Link:
    def __init__(self, target_port):
        self.target = ("127.0.0.1", target_port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.open = {way: threading.Event() for way in WAYS}
        self.is_cut = self.is_closed = False
        self.lock = threading.Lock()
        self.sockets = set()
        self.heal()
        threading.Thread(target=self.accept, daemon=True).start()

    def stall(self, *ways):
        for way in ways or WAYS:
            self.open[way].clear()

    def cut(self):
        self.is_cut = True
        self.end_all()

    def heal(self):
        self.is_cut = False
        for way in WAYS:
            self.open[way].set()

    def close(self):
        self.is_closed = True
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self.cut()
        self.heal()

    def end_all(self):
        with self.lock:
            for one in self.sockets:
                try:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    one.shutdown(socket.SHUT_RDWR)  # wakes its pump, which closes
                except OSError:
                    pass  # it has ended by itself

    def accept(self):
        while not self.is_closed:
            try:
                near, _ = self.listener.accept()
            except OSError:
                break
            far = None if self.is_cut or self.is_closed else self.dial()
            if not far:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                near.close()
                continue
            pair = Pair(self, near, far)
            for way, source, sink in (("there", near, far), ("back", far, near)):
                threading.Thread(target=pair.pump, args=(way, source, sink), daemon=True).start()
        self.listener.close()

    def dial(self):
        try:
            return socket.create_connection(self.target, timeout=1)
        except OSError:
            return None


class Pair:
    """A connection and its continuation; they end together."""

    def __init__(self, link, near, far):
        self.link, self.ends, self.pumps = link, (near, far), 2
        for one in self.ends:
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with link.lock:
            link.sockets.update(self.ends)

    def pump(self, way, source, sink):
        try:
            while data := source.recv(65536):
                self.link.open[way].wait()
                sink.sendall(data)
            self.link.open[way].wait()
        except OSError:
            pass  # reset: the other end shall know
        self.finish()

    def finish(self):
        with self.link.lock:
            self.pumps -= 1
            for one in self.ends:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                if self.pumps == 0:
                    one.close()
                    self.link.sockets.discard(one)
