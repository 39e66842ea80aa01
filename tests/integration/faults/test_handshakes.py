"""Foreign hosts begin TLS handshakes: each costs the node a signature, and the host nothing."""
import collections
import os
import socket
import ssl
import subprocess
import time
import unittest

from faults import DEADLINE_S, FaultTest, main, until

SLOW = "rsa:4096"  # a key whose signatures take some 4 ms each
QUICK = "ec:params"  # and one whose take a tenth of one
EVERY_S = 0.002  # between the beginnings of two handshakes


def make_certificates(folder, names, key):
    """An authority and a certificate for each name, all with one key; returns their flags."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    openssl("ecparam", "-name", "prime256v1", "-out", "params")
    openssl("req", "-x509", "-newkey", key, "-nodes", "-keyout", "key", "-out", "ca.pem", "-subj",
            "/CN=authority", "-days", "2")
    flags = {}
    for name in names:
        with open(os.path.join(folder, "names"), "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:" + name)
        openssl("req", "-new", "-key", "key", "-subj", "/CN=" + name, "-out", "csr")
        openssl("x509", "-req", "-in", "csr", "-CA", "ca.pem", "-CAkey", "key", "-CAcreateserial",
                "-extfile", "names", "-days", "2", "-out", name + ".pem")
        path = [os.path.join(folder, file) for file in (name + ".pem", "key", "ca.pem")]
        flags[name] = ("--tls-cert", path[0], "--tls-key", path[1], "--tls-ca", path[2])
    return flags


def client_hello():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    sent = ssl.MemoryBIO()
    session = context.wrap_bio(ssl.MemoryBIO(), sent)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return sent.read()


class Handshakes(FaultTest):
    def begin(self, key):
        self.three = self.watched(3, "--heartbeat-timeout", "3s", "--lease", "3s")
        flags = make_certificates(self.three.dir, self.three.names, key)
        for name in self.three.names:
            self.three.start(name, *flags[name])
        self.leader = self.three.wait_leader()
        self.three.follow(self.leader, self.three.names)
        self.epoch = self.three.status(self.leader)["epoch"]

    def dial(self):
        return socket.create_connection(("127.0.0.1", self.three.ports[self.leader]),
                                        timeout=DEADLINE_S)

    def knock(self, count, data):
        """So many connections, each of which sends this; the newest 300 stay open."""
        opened = collections.deque()
        for _ in range(count):
            try:
                opened.append(self.dial())
                opened[-1].sendall(data)
            except ConnectionError:
                continue  # it was turned out already
            if len(opened) > 300:
                opened.popleft().close()
        for one in opened:
            one.close()

    def test_hellos_that_come_together_are_answered_one_after_another(self):
        """So what has greeted is served in between. A slow machine only makes it later."""
        self.begin(QUICK)
        hello, opened = client_hello(), [self.dial() for _ in range(50)]
        begin = time.monotonic()
        for one in opened:
            one.sendall(hello)
        for one in opened:
            self.assertEqual(one.recv(1), b"\x16")
        last = time.monotonic()
        for one in opened:
            one.close()
        self.assertGreaterEqual(last - begin, (len(opened) - 1) * EVERY_S - 0.001)

    def test_a_flood_of_hellos_costs_no_leadership(self):
        self.begin(SLOW)
        self.knock(2000, client_hello())
        status = until(lambda: self.three.status(self.leader), "it answers")
        self.assertEqual((status["is_leader"], status["epoch"]), (True, self.epoch),
                         self.three.logs())
        for name in self.three.names:
            self.assertNotIn("leadership-lost", self.three.log(name))

    def test_failed_handshakes_are_logged_now_and_then(self):
        """One that breaks off with an alert: its line names the address, and is one of few."""
        self.begin(SLOW)
        broken = client_hello() + b"\x15\x03\x03\x00\x02\x02\x28"
        self.knock(1000, broken)
        log = until(lambda: "peer-not-authenticated" in self.three.log(self.leader) and
                    self.three.log(self.leader), "it is logged")
        lines = [line for line in log.splitlines() if "peer-not-authenticated" in line]
        self.assertIn("address=127.0.0.1:", lines[0])
        self.assertLess(len(lines), 100)


if __name__ == "__main__":
    main()
