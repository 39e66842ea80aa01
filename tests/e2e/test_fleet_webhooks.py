"""Events that leave the fleet, with real receivers: each event once for the whole fleet, in order,
signed, repeated where that may help, and nothing secret in any log."""
import collections
import hashlib
import hmac
import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

from fleet_api import PROGRAM, Fleet
from fleets import FleetTest, declaration, identifiers
from harness import DEADLINE_S, clean_environment, main, until

SECRET, CANARY = "webhook-secret-of-this-test", "canary-4711"

Post = collections.namedtuple("Post", "path headers body event")


class Receiver:
    """An HTTP server of the simplest kind. `answers` are statuses, one for each request, or an
    Event that the request waits for; after them, all are 200."""

    def __init__(self, *answers, certificate=None):
        self.answers, self.posts = list(answers), []
        self.lock, self.busy, self.most = threading.Lock(), 0, 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                receiver.take(self)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if certificate:  # and its key
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.port = self.server.server_address[1]
        self.url = "%s://127.0.0.1:%d/hook/%s?token=%s" % (
            "https" if certificate else "http", self.port, CANARY, CANARY)

    def take(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            self.busy += 1
            self.most = max(self.most, self.busy)
            self.posts.append(Post(handler.path, dict(handler.headers), body, json.loads(body)))
            answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, threading.Event):
            answer.wait(DEADLINE_S)
            answer = 200
        with self.lock:
            self.busy -= 1
        try:
            handler.send_response(answer)
            handler.send_header("Location", "http://127.0.0.1:%d/elsewhere" % self.port)
            handler.end_headers()
            handler.wfile.write(b"a body without a length")
        except OSError:
            pass  # it was given up

    def events(self, name=None):
        with self.lock:
            return [post.event for post in self.posts if name in (None, post.event["event"])]

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def counter(fleet, name):
    fleet.connection.close()  # it may have been idle for longer than the server waits
    fleet.connection = None
    for line in fleet.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith("baton_fleet_outlets_%s_total " % name):
            return int(line.split()[1])
    raise AssertionError("no such counter: " + name)


class OfOneProcess(unittest.TestCase):
    """The events are changes of a display's session."""

    def start(self, *answers):
        self.receiver = Receiver(*answers)
        self.addCleanup(self.receiver.close)
        self.fleet = Fleet("--webhook", self.receiver.url, "--webhook-events", "session-changed")
        self.addCleanup(self.fleet.close)
        self.fleet.ask("PUT", "/api/displays/d1", {})
        until(lambda: self.fleet.ask("GET", "/leader").status == 200, "it leads")

    def change(self, *sessions):
        for session in sessions:
            status = self.fleet.ask("PUT", "/api/displays/d1/session",
                                    {"sessionId": session}).status
            self.assertEqual(status, 204)

    def sessions(self):
        return [event["sessionId"] for event in self.receiver.events()]

    def expect(self, *sessions):
        until(lambda: len(self.sessions()) >= len(sessions), lambda: self.receiver.events())
        self.assertEqual(self.sessions(), list(sessions))

    def test_a_request_that_fails_is_repeated_and_the_order_stays(self):
        self.start(503, 429)
        self.change(1, 2)
        self.expect(1, 1, 1, 2)
        until(lambda: counter(self.fleet, "webhook_sent") == 2, "both are sent")
        self.assertEqual(len({event["id"] for event in self.receiver.events()}), 2)
        self.assertEqual(counter(self.fleet, "webhook_retries"), 2)
        self.assertEqual(counter(self.fleet, "webhook_failed"), 0)

    def test_a_refusal_is_not_repeated_and_no_redirect_followed(self):
        self.start(404, 302, 200)
        self.change(1, 2, 3)
        self.expect(1, 2, 3)
        until(lambda: counter(self.fleet, "webhook_sent") == 1, "the third is sent")
        self.assertEqual(counter(self.fleet, "webhook_failed"), 2)
        self.assertEqual(counter(self.fleet, "webhook_retries"), 0)
        self.assertFalse([post for post in self.receiver.posts if "elsewhere" in post.path])

    def test_a_slow_receiver_gets_one_request_at_a_time_and_holds_up_nothing(self):
        slow = threading.Event()
        self.addCleanup(slow.set)
        self.start(slow)
        self.change(1, 2, 3)
        self.expect(1)
        self.assertEqual(self.fleet.ask("GET", "/healthz").status, 200)
        self.assertEqual(self.receiver.most, 1)
        slow.set()
        self.expect(1, 2, 3)
        self.assertEqual(self.receiver.most, 1)

    def test_a_receiver_that_does_not_answer_in_time_is_asked_again(self):
        silent = threading.Event()
        self.addCleanup(silent.set)
        self.start(silent)
        self.change(1)
        self.expect(1, 1)
        self.assertEqual(counter(self.fleet, "webhook_retries"), 1)

    def test_no_log_and_no_list_of_processes_shows_the_token(self):
        self.start(500)
        self.change(1)
        self.expect(1, 1)
        with open("/proc/%d/cmdline" % self.fleet.process.pid, encoding="utf-8") as file:
            shown = file.read() + "".join(self.fleet.log)
        self.assertIn("outlet-failed", shown)
        self.assertIn("http://127.0.0.1:%d/***" % self.receiver.port, shown)
        self.assertNotIn(CANARY, shown)

    def test_a_wrong_option_is_named_without_what_is_secret(self):
        for words in (["--webhook", "ftp://h/" + CANARY], ["--webhook", "http://u:%s@h/" % CANARY],
                      ["--webhook", CANARY], ["--webhook-events", "camera-of"]):
            done = subprocess.run([PROGRAM, "--provider", "memory:", "--http", "127.0.0.1:0",
                                   *words], stderr=subprocess.PIPE, universal_newlines=True,
                                  env=clean_environment(), timeout=DEADLINE_S, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words[0], done.stderr)
            self.assertNotIn(CANARY, done.stderr)


class OfAFleet(FleetTest):
    def start(self, *events):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.close)
        path = os.path.join(self.folder, "secret")
        with open(path, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(SECRET + "\n")
        workers = self.stand_ins(1)
        self.start_fleet(3, "--webhook", self.receiver.url, "--webhook-secret-file", path, *events,
                         config=declaration(1, workers.urls(), displays=1))
        self.wait_placed(workers, [0], identifiers(1, 1))
        return workers

    def await_event(self, name):
        until(lambda: self.receiver.events(name), self.logs)

    def test_three_processes_post_each_event_once_and_signed(self):
        workers = self.start()
        self.await_event("worker-online")
        workers.tell("refuse")
        workers.tell("drop")
        self.await_event("worker-offline")
        self.await_event("not-placed")
        workers.tell("accept")
        until(lambda: len(self.receiver.events("worker-online")) >= 2, self.logs)
        offline = self.receiver.events("worker-offline")
        self.assertEqual(len(offline), 1, offline)
        self.assertEqual((offline[0]["worker"], offline[0]["fleet"]), (workers.id(0), "fleet"))
        self.assertIn(offline[0]["process"], self.processes)
        self.assertEqual(len(self.receiver.events("worker-online")), 2)
        ids = [event["id"] for event in self.receiver.events()]
        self.assertEqual(len(ids), len(set(ids)))
        for post in self.receiver.posts:
            self.check_signature(post)
        self.assertNotIn(CANARY, self.logs())
        self.assertNotIn(SECRET, self.logs())

    def check_signature(self, post):
        stamp = post.headers["baton-timestamp"]
        digest = hmac.new(SECRET.encode(), stamp.encode() + b"." + post.body, hashlib.sha256)
        self.assertEqual(post.headers["baton-signature"], "sha256=" + digest.hexdigest())
        self.assertLess(abs(int(stamp) - time.time()), DEADLINE_S)

    def test_three_processes_post_a_detection_once_if_detections_are_named(self):
        workers = self.start("--webhook-events", "detection,leader-changed")
        for number in range(20):
            workers.tell('detect display-0;cam-0 {"number":%d}' % number)
        until(lambda: len(self.receiver.events("detection")) >= 20, self.logs)
        keys = {event["key"] for event in self.receiver.events("detection")}
        self.assertEqual((len(keys), len(self.receiver.events("detection"))), (20, 20))
        leaders = collections.Counter((event["leader"], event["epoch"], event["process"])
                                      for event in self.receiver.events("leader-changed"))
        self.assertEqual(set(leaders.values()), {1}, leaders)
        self.assertTrue(all(leader == process for leader, _, process in leaders), leaders)


class WithoutAMaster(FleetTest):
    provider = "redis"

    def start_redis(self):
        """It may have forgotten a lease of an hour, so it grants none."""
        return super().start_redis().replace("max-lease=3s", "max-lease=1h")

    def test_each_process_posts_that_none_can_be_elected(self):
        receiver = Receiver()
        self.addCleanup(receiver.close)
        self.start_fleet(2, "--webhook", receiver.url, "--webhook-events", "election-failed")
        until(lambda: {event["process"] for event in receiver.events()} == {"a", "b"}, self.logs)
        self.assertIn("may have forgotten a lease", receiver.events()[0]["error"])


if __name__ == "__main__":
    main()
