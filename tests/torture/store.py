#!/usr/bin/python3
"""A store that refuses late writers by their epoch, and sees where an update was lost all the same.

    store.py SOCKET LOG

It keeps one value for each election, of which only the version counts. A writer registers its
epoch, reads the version, and writes upon the version that it has read. A write upon another version
than the present one was made without knowing the latest update: that update is lost. The store
accepts such a write, as most stores would, and writes a line of JSON about it into LOG.
"""
import collections
import json
import os
import selectors
import socket
import struct
import sys

REQUEST = struct.Struct("<c15sQQQ")  # struct request of actor.c
REPLY = struct.Struct("<QQ")


class Register:
    """The store without its socket: `violation` is called with what must never happen."""

    def __init__(self, violation):
        self.violation = violation
        self.epoch, self.node = 0, None
        self.version, self.writer = 0, None
        self.refused = 0

    def ask(self, verb, node, epoch, version, life):
        """(whether it is granted, the version)"""
        if epoch < self.epoch:
            self.refused += 1
            return False, self.version
        return getattr(self, verb)(node, epoch, version, life), self.version

    def register(self, node, epoch, _, life):
        if epoch == self.epoch and node != self.node:
            self.violation(what="epoch of two nodes", epoch=epoch, node=node, other=self.node,
                           life=life)
        self.epoch, self.node = epoch, node
        return True

    def read(self, *_):
        return True

    def write(self, node, epoch, version, life):
        if version != self.version:
            self.violation(what="lost update", epoch=epoch, node=node, other=self.writer, life=life)
        self.version, self.writer = self.version + 1, node
        return True


VERBS = {b"r": "register", b"g": "read", b"p": "write"}


def serve(path, registers):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path + ".new")
    listener.listen(64)
    os.rename(path + ".new", path)  # who sees it can connect to it
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            elif not answer(key.fileobj, registers):
                selector.unregister(key.fileobj)
                key.fileobj.close()


def answer(client, registers):
    try:
        data = client.recv(REQUEST.size)
        if len(data) != REQUEST.size:
            return False
        verb, node, epoch, version, life = REQUEST.unpack(data)
        node = node.rstrip(b"\0").decode()
        register = registers[node.rpartition(":")[0]]  # by election
        granted, version = register.ask(VERBS[verb], node, epoch, version, life)
        client.send(REPLY.pack(granted, version))
    except OSError:
        return False
    return True


def main():
    with open(sys.argv[2], "a", encoding="utf-8") as log:
        def violation(**fields):
            log.write(json.dumps(fields) + "\n")
            log.flush()
        serve(sys.argv[1], collections.defaultdict(lambda: Register(violation)))


if __name__ == "__main__":
    main()
