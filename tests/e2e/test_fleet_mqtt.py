"""Events that leave the fleet for an MQTT broker, with a real one: mosquitto on its own port."""
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

from fleet_api import Fleet
from fleets import certify
from harness import DEADLINE_S, free_ports, main, until

BROKER = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
PASSWORD = "canary-4711"


class Broker:
    def __init__(self, tls=False):
        self.folder = tempfile.TemporaryDirectory()
        self.port, self.process = free_ports(1)[0], None
        self.path = os.path.join(self.folder.name, "mosquitto.conf")
        passwords = os.path.join(self.folder.name, "passwords")
        subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "fleet", PASSWORD], check=True,
                       stderr=subprocess.DEVNULL)
        words = ["listener %d 127.0.0.1" % self.port, "user root", "allow_anonymous false",
                 "password_file " + passwords]
        if tls:
            self.certificate, key = certify(self.folder.name, "broker", "DNS:localhost")
            words += ["certfile " + self.certificate, "keyfile " + key]
        with open(self.path, "w", encoding="ascii") as file:
            file.write("\n".join(words) + "\n")
        self.start()

    def url(self, password=PASSWORD, scheme="mqtt", host="localhost"):
        return "%s://fleet:%s@%s:%d" % (scheme, password, host, self.port)

    def start(self):
        self.process = subprocess.Popen([BROKER, "-c", self.path], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        until(self.answers, "the broker listens")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), DEADLINE_S).close()
        except OSError:
            return False
        return True

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()

    def close(self):
        self.stop()
        self.folder.cleanup()


def text_of(value):
    return struct.pack(">H", len(value)) + value.encode()


class Subscriber:
    """To all topics, in MQTT 3.1.1; QoS 0 is enough for one that is never disconnected."""

    def __init__(self, broker):
        self.messages = []  # (topic, payload, is retained)
        self.socket = socket.create_connection(("127.0.0.1", broker.port), DEADLINE_S)
        self.file = self.socket.makefile("rb")
        self.send(0x10, text_of("MQTT") + b"\4\xc2\0\0" + text_of("test") + text_of("fleet") +
                  text_of(PASSWORD))
        kind, body = self.packet()
        assert (kind, body[1]) == (0x20, 0), (kind, body)
        self.send(0x82, b"\0\1" + text_of("#") + b"\0")
        assert self.packet()[0] == 0x90
        self.socket.settimeout(None)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def send(self, kind, body):
        self.socket.sendall(bytes([kind, len(body)]) + body)  # none is longer than 127 bytes

    def packet(self):
        kind, size, shift = self.file.read(1), 0, 0
        while kind:
            byte = self.file.read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind[0], self.file.read(size)
        return None, b""

    def read(self):
        try:
            kind, body = self.packet()
            while kind is not None:
                size = struct.unpack(">H", body[:2])[0]
                self.messages.append((body[2:2 + size].decode(), body[2 + size:].decode(),
                                      kind & 1 == 1))
                kind, body = self.packet()
        except (OSError, ValueError, IndexError):
            pass  # the broker has ended

    def of(self, topic):
        return [payload for name, payload, _ in self.messages if name == topic]

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the broker has ended
        self.thread.join()
        self.file.close()
        self.socket.close()


@unittest.skipUnless(BROKER, "mosquitto is not installed")
class Mqtt(unittest.TestCase):
    """The events are changes of a display's session."""

    def setUp(self):
        self.fleet = None
        self.addCleanup(self.end)

    def end(self):
        if self.fleet is not None:
            self.fleet.close()
            self.fleet = None

    def broker(self, **words):
        broker = Broker(**words)
        self.addCleanup(broker.close)
        return broker

    def subscriber(self, broker):
        subscriber = Subscriber(broker)
        self.addCleanup(subscriber.close)
        return subscriber

    def start(self, url, *words):
        self.end()
        self.fleet = Fleet("--mqtt", url, "--mqtt-events", "session-changed", *words)
        self.ask("PUT", "/api/displays/d1", {})
        until(lambda: self.ask("GET", "/leader").status == 200, "it leads")

    def ask(self, *words):
        if self.fleet.connection is not None:
            self.fleet.connection.close()  # it may have been idle for longer than the server waits
            self.fleet.connection = None
        return self.fleet.ask(*words)

    def counter(self, name):
        for line in self.ask("GET", "/metrics").body.decode().splitlines():
            if line.startswith("baton_fleet_outlets_mqtt_%s_total " % name):
                return int(line.split()[1])
        return None

    def change(self, *sessions):
        for session in sessions:
            status = self.ask("PUT", "/api/displays/d1/session", {"sessionId": session}).status
            self.assertEqual(status, 204)

    def failed(self):
        return [line for line in self.fleet.log if "outlet-failed" in line]

    def test_events_come_and_the_process_is_online_until_it_is_not(self):
        broker = self.broker()
        subscriber = self.subscriber(broker)
        self.start(broker.url(), "--mqtt-topic", "site/1")
        until(lambda: subscriber.of("site/1/process/p1") == ["online"], "it says that it is online")
        self.change(1, 2)
        until(lambda: self.counter("sent") == 2, "both are confirmed")
        until(lambda: len(subscriber.of("site/1/session-changed")) == 2, "both have come")
        events = subscriber.of("site/1/session-changed")
        self.assertEqual([('"sessionId":%d' % n) in event for n, event in zip((1, 2), events)],
                         [True, True], events)
        self.end()
        until(lambda: subscriber.of("site/1/process/p1") == ["online", "offline"], "the last will")
        late = self.subscriber(broker)
        until(lambda: ("site/1/process/p1", "offline", True) in late.messages, "it is retained")

    def test_a_broker_that_comes_late_and_back_gets_what_waited(self):
        broker = self.broker()
        broker.stop()
        self.start(broker.url())
        self.change(1)
        until(self.failed, "it says that the broker is away")
        broker.start()
        until(lambda: self.counter("sent") == 1, "it is confirmed")
        broker.stop()
        self.change(2, 3)
        broker.start()
        subscriber = self.subscriber(broker)
        until(lambda: len(subscriber.of("baton/fleet/session-changed")) >= 2, subscriber.messages)
        found = [event.split('"sessionId":')[1][0]
                 for event in subscriber.of("baton/fleet/session-changed")]
        self.assertEqual(sorted(set(found)), ["2", "3"])
        until(lambda: self.counter("connections") == 2, "it is connected again")

    def test_a_broker_that_hangs_holds_up_nothing(self):
        broker = self.broker()
        broker.process.send_signal(signal.SIGSTOP)
        self.start(broker.url())
        self.change(1)
        self.assertEqual(self.ask("GET", "/healthz").status, 200)
        until(self.failed, "it says that the broker does not answer")
        broker.process.send_signal(signal.SIGCONT)
        until(lambda: self.counter("sent") == 1, "it is confirmed")

    def test_a_wrong_password_is_reported_and_never_shown(self):
        broker = self.broker()
        self.start(broker.url("wrong-" + PASSWORD))
        until(self.failed, "it says that it is refused")
        with open("/proc/%d/cmdline" % self.fleet.process.pid, encoding="utf-8") as file:
            shown = file.read() + "".join(self.fleet.log)
        self.assertIn("mqtt://localhost:%d" % broker.port, shown)
        self.assertIn("not authorised", shown)
        self.assertNotIn(PASSWORD, shown)

    def test_a_broker_with_tls_must_have_the_name_of_the_url(self):
        broker = self.broker(tls=True)
        os.environ["SSL_CERT_FILE"] = broker.certificate
        self.addCleanup(os.environ.pop, "SSL_CERT_FILE")
        self.start(broker.url(scheme="mqtts"))
        self.change(1)
        until(lambda: self.counter("sent") == 1, lambda: self.fleet.log)
        self.start(broker.url(scheme="mqtts", host="127.0.0.1"))
        until(self.failed, "it says that this is another server")
        self.assertEqual(self.counter("connections"), 0)


if __name__ == "__main__":
    main()
