#!/usr/bin/python3
"""Owners in one to three processes of a group, and workers that are not ours, over real sockets.

usage: test_owners.py raft|redis HAND STAND_IN [unittest's words]
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "e2e"))
from harness import DEADLINE_S, free_ports, until  # noqa: E402

PROVIDER, HAND, STAND_IN = sys.argv[1:4]
SESSION, STAGE = "setSessionId", "setProgressionStage"
PONG_S = 10  # after a ping without an answer the owner ends the connection


class Lines:
    """A process that prints lines of JSON, all of which are kept."""

    def __init__(self, *words):
        self.lines, self.seen = [], threading.Condition()
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        universal_newlines=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.seen:
                self.lines.append(json.loads(line))
                self.seen.notify_all()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def mark(self):
        return len(self.lines)

    def find(self, event, since=0, **fields):
        return [line for line in self.lines[since:] if line["event"] == event and
                all(line.get(key) == value for key, value in fields.items())]

    def wait(self, event, since=0, count=1, **fields):
        """The last of the first so many."""
        with self.seen:
            if not self.seen.wait_for(lambda: len(self.find(event, since, **fields)) >= count,
                                      DEADLINE_S):
                raise AssertionError("no %d times %s %s in %s" % (
                    count, event, fields, json.dumps([
                        line for line in self.lines[since:]
                        if line["event"] != "detection"])[-4000:]))
            return self.find(event, since, **fields)[count - 1]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


class Worker(Lines):
    def __init__(self, *words):
        super().__init__("/usr/bin/python3", STAND_IN, *words)
        self.port = self.wait("ready")["port"]

    def find(self, event, since=0, **fields):
        """But for requestState, which a slow machine causes."""
        return [line for line in super().find(event, since, **fields)
                if line.get("message", {}).get("type") != "requestState"]

    def do(self, text):
        """Says it, and waits until it is done."""
        since = self.mark()
        self.say(text)
        self.wait("obeyed", since)

    def commands(self, since=0, kind=None):
        found = [line["message"] for line in self.find("command", since)]
        return [message for message in found if kind in (None, message["type"])]

    def wait_list(self, identifiers, since=0):
        def there():
            return [line for line in self.find("command", since)
                    if line["message"]["type"] == "setSubscriptionList" and
                    [one["subscriptionIdentifier"] for one in line["message"]["subscriptions"]] ==
                    identifiers]
        return until(there, lambda: "a list of %s: %s" % (identifiers, self.lines[since:]))[0]


class Owners(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="baton-owners-", dir="/tmp")
        self.hands, self.workers, self.redis = {}, [], None

    def tearDown(self):
        for one in [*self.hands.values(), *self.workers]:
            one.end()
        if self.redis:
            self.redis.kill()
            self.redis.wait()
        shutil.rmtree(self.folder)

    # ---- The world ------------------------------------------------------------------------------

    def begin(self, *names, silence_ms=10000):
        for name, url in zip(names, self.redis_urls() if PROVIDER == "redis" else
                             self.raft_urls(names)):
            self.hands[name] = Lines(HAND, url, name, str(silence_ms))
        for hand in self.hands.values():
            hand.wait("ready")

    def raft_urls(self, names):
        ports = free_ports(len(names))
        peers = ",".join("%s@127.0.0.1:%d" % pair for pair in zip(names, ports))
        for name, port in zip(names, ports):
            data = os.path.join(self.folder, name)
            os.mkdir(data, 0o700)
            yield ("raft://127.0.0.1:%d?group=fleet&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&guardian=no&data=%s&peers=%s" % (port, data, peers))

    def redis_urls(self):
        self.port = free_ports(1)[0]
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.folder], stdout=subprocess.DEVNULL)
        until(lambda: self.ask_redis("PING") == "+PONG", "a server")
        while True:
            yield ("redis://127.0.0.1:%d?lease=2s&max-lease=2s&check-interval=500ms"
                   "&guardian=no" % self.port)

    def ask_redis(self, command):
        try:
            with socket.create_connection(("127.0.0.1", self.port)) as server:
                server.sendall(command.encode() + b"\r\n")
                return server.makefile().readline().strip()
        except ConnectionRefusedError:
            return None

    def put(self, key, value, name=None):
        hand = self.hands[name] if name else next(iter(self.hands.values()))
        since = hand.mark()
        hand.say("delete " + key if value is None else "put %s %s" % (key, json.dumps(value)))
        done = hand.wait("put", since, key=key)
        self.assertEqual(done["code"], 0)
        return done["revision"]

    def declare(self, *identifiers):
        self.put("model/101", {"id": 101, "name": "cars", "url": "http://models/cars.mpta"})
        for identifier in identifiers:
            display, camera = identifier.split(";")
            self.put("camera/" + camera, {"id": camera, "rtspUrl": "rtsp://u:p@%s/1" % camera})
            self.put("display/" + display, {"id": display})
            self.put("subscription/" + identifier,
                     {"id": identifier, "display": display, "camera": camera, "model": 101,
                      "cropX1": 1, "cropY1": 2, "cropX2": 30, "cropY2": 40})

    def assign(self, identifiers, worker="w0", name=None):
        """As a master does, which keeps the owner's mark."""
        return self.put("assigned/" + worker, {"epoch": 1, "subscriptions": identifiers,
                                               "leaving": [], "online": True}, name)

    def wait_in_sync(self, hand, revision):
        """At this one or a later one, which the owner made by its mark."""
        until(lambda: any(line["revision"] >= revision
                          for line in hand.find("live", change="sync", inSync=True)), "in sync")

    def wait_left(self, worker):
        """After an empty list."""
        worker.wait("disconnected", worker.lines.index(worker.wait_list([])))
        self.assertEqual(worker.commands(0, "setSubscriptionList")[-1]["subscriptions"], [])

    def own(self, name=None, **workers):
        self.put("owners", {"epoch": 1, "workers": workers}, name)

    def worker(self, *words):
        worker = Worker("--reports-every", "0.5", *words)
        self.workers.append(worker)
        index = len(self.workers) - 1
        self.put("worker/w%d" % index,
                 {"url": "ws://127.0.0.1:%d/" % worker.port, "source": "static"})
        return worker

    def one_of_each(self, *words, silence_ms=10000):
        """A process that owns a worker with one subscription, in sync."""
        self.begin("a", silence_ms=silence_ms)
        self.declare("d;c")
        worker = self.worker(*words)
        revision = self.assign(["d;c"])
        self.own(w0=["a"])
        self.wait_in_sync(self.hands["a"], revision)
        return self.hands["a"], worker

    # ---- One process ----------------------------------------------------------------------------

    def test_a_worker_is_sent_list_session_and_stage_in_this_order(self):
        self.begin("a")
        self.declare("d;c", "e;c")
        self.put("data/d", {"sessionId": 7, "progressionStage": "welcome"})
        worker = self.worker()
        self.assign(["d;c", "e;c"])
        self.own(w0=["a"])
        worker.wait("command", count=5)
        first, *others = worker.commands()[:5]
        self.assertEqual(first.pop("epoch"), self.hands["a"].wait("worker-owned")["epoch"])
        camera = {"rtspUrl": "rtsp://u:p@c/1", "modelName": "cars", "modelId": 101,
                  "cropX1": 1, "cropY1": 2, "cropX2": 30, "cropY2": 40}
        urls = [one.pop("modelUrl") for one in first["subscriptions"]]
        self.assertEqual(first, {"type": "setSubscriptionList", "subscriptions": [
            {"subscriptionIdentifier": one, **camera} for one in ("d;c", "e;c")]})
        self.assertEqual(urls, ["http://models/cars.mpta?n=1", "http://models/cars.mpta?n=2"])
        self.assertEqual(others, [  # of e, which has no data, too
            {"type": kind, "payload": {"displayIdentifier": display, key: value}}
            for kind, key, values in ((SESSION, "sessionId", (7, None)),
                                      (STAGE, "progressionStage", ("welcome", None)))
            for display, value in zip("de", values)])

    def test_a_changed_session_and_stage_go_out_alone(self):
        _, worker = self.one_of_each()
        worker.wait("command", count=3)
        since = worker.mark()

        def sent():
            return [(one["type"], list(one["payload"].values())[1])
                    for one in worker.commands(since) if one["type"] != "setSubscriptionList"]
        expected = []
        for session, stage, changes in [(8, None, [(SESSION, 8)]),
                                        (8, "car_fueling", [(STAGE, "car_fueling")]),
                                        (None, "car_fueling", [(SESSION, None)])]:
            self.put("data/d", {"sessionId": session, "progressionStage": stage})
            expected += changes
            until(lambda: sent() == expected, lambda: "%s, not %s" % (expected, sent()))
        # Not one for each change: a list that a busy worker confirmed late is sent twice.
        self.assertLessEqual(len(worker.commands(since, "setSubscriptionList")), 1)

    def test_what_changes_in_the_list_is_sent_with_fresh_urls(self):
        hand, worker = self.one_of_each()
        since = worker.mark()
        self.put("camera/c", {"id": "c", "rtspUrl": "rtsp://other/2"})
        until(lambda: [one for one in worker.commands(since, "setSubscriptionList")
                       if one["subscriptions"][0]["rtspUrl"] == "rtsp://other/2"], "the other URL")
        only = worker.commands(since, "setSubscriptionList")[-1]["subscriptions"][0]
        self.assertNotEqual(only["modelUrl"], "http://models/cars.mpta?n=1")
        since = worker.mark()
        self.declare("e;c")
        revision = self.assign(["d;c", "e;c"])
        worker.wait_list(["d;c", "e;c"], since)
        hand.wait("live", change="sync", inSync=True, revision=revision)
        since = worker.mark()
        self.put("assigned/w0", {"epoch": 1, "subscriptions": ["d;c", "e;c"], "leaving": ["x;y"],
                                 "online": True})
        until(lambda: hand.find("live", change="sync", inSync=True)[-1]["revision"] > revision,
              "in sync at the next revision")
        self.assertEqual(worker.commands(since, "setSubscriptionList"), [])

    def test_after_a_reconnect_everything_is_sent_again_and_the_worker_stays_online(self):
        hand, worker = self.one_of_each()
        self.put("data/d", {"sessionId": 7, "progressionStage": "welcome"})
        worker.wait("command", count=5)
        for how in ("drop", "reset"):
            since = worker.mark()
            worker.do(how)
            since = worker.lines.index(worker.wait("connected", since))
            worker.wait("command", since, 3)
            kinds = [one["type"] for one in worker.commands(since)][:3]
            self.assertEqual(kinds, ["setSubscriptionList", SESSION, STAGE])
        self.assertEqual(hand.find("worker-offline"), [])
        self.assertEqual(len(hand.find("live", change="sync")), 1)  # in sync all the time

    def test_a_worker_that_goes_is_offline_after_the_grace_and_comes_back(self):
        hand, worker = self.one_of_each()
        since = hand.mark()
        worker.do("refuse")
        worker.do("reset")
        gone = hand.wait("worker-offline", since)
        self.assertIn("refused", gone["reason"])
        hand.wait("live", since, change="offline", worker="w0")
        worker.do("accept")
        hand.wait("live", since, change="sync", inSync=True)

    def test_a_worker_that_moves_is_followed(self):
        hand, _ = self.one_of_each()
        other, since = Worker("--reports-every", "0.5"), hand.mark()
        self.workers.append(other)
        self.put("worker/w0", {"url": "ws://127.0.0.1:%d/" % other.port, "source": "static"})
        other.wait_list(["d;c"])
        hand.wait("live", since, change="sync", inSync=True)

    def test_the_worker_at_the_address_before_gets_an_empty_list_and_is_left(self):
        _, worker = self.one_of_each()
        other = Worker("--reports-every", "0.5")
        self.workers.append(other)
        self.put("worker/w0", {"url": "ws://127.0.0.1:%d/" % other.port, "source": "static"})
        self.wait_left(worker)
        other.wait_list(["d;c"])

    def test_an_address_in_another_spelling_is_the_same_one(self):
        hand, worker = self.one_of_each()
        since = hand.mark()
        for end in "", "/":
            self.put("worker/w0", {"url": "ws://127.0.0.1:%d%s" % (worker.port, end),
                                   "source": "static"})
        self.assign([])
        worker.wait_list([])
        hand.wait("live", since, change="sync", inSync=True)
        self.assertEqual(worker.find("disconnected"), [])

    def test_a_worker_at_the_address_of_another_one_has_a_later_epoch_there(self):
        hand, first = self.one_of_each()
        other = self.worker()
        self.own(w0=["a"], w1=["a"])  # so the owner of w1 has the later epoch
        other.wait("command")
        self.put("worker/w1", None)
        other.wait("disconnected")
        since = hand.mark()
        self.put("worker/w0", {"url": "ws://127.0.0.1:%d/" % other.port, "source": "static"})
        other.wait_list(["d;c"])
        hand.wait("live", since, change="sync", inSync=True)
        self.assertEqual(other.find("fenced"), [])

    def test_a_worker_that_is_deleted_gets_an_empty_list_and_is_left(self):
        hand, worker = self.one_of_each()
        since = hand.mark()
        self.put("worker/w0", None)
        self.wait_left(worker)
        hand.wait("worker-owned", since)  # anew: at another address it may need a later epoch
        since = hand.mark()
        self.own()
        hand.wait("worker-released", since)

    def test_a_worker_that_is_deleted_is_left_only_when_its_key_is_gone(self):
        hand, worker = self.one_of_each()
        self.put("worker/w0", {"url": "ws://127.0.0.1:%d/" % worker.port, "source": "registered",
                               "deleted": True})
        since, times = hand.mark(), worker.mark()
        revision = self.assign([])
        worker.wait_list([], times)
        until(lambda: any(line["revision"] >= revision for line in
                          hand.find("live", since, change="sync", inSync=True)), "in sync")
        self.assertEqual(worker.find("disconnected"), [])
        self.put("worker/w0", None)
        worker.wait("disconnected")

    def test_the_next_owner_of_a_worker_that_is_deleted_tells_it_to_let_go(self):
        self.begin("a", "b", "c")
        self.declare("d;c")
        worker = self.worker()
        self.assign(["d;c"])
        self.own(w0=["a"])
        worker.wait_list(["d;c"])
        self.put("worker/w0", {"url": "ws://127.0.0.1:%d/" % worker.port, "deleted": True}, "b")
        since = self.hands["b"].mark()
        self.own("b", w0=["b"])
        self.hands["a"].end()
        self.hands["b"].wait("worker-owned", since)
        times = worker.mark()
        self.assign([], name="b")
        worker.wait_list([], times)

    def test_a_worker_that_comes_back_and_is_deleted_before_it_is_marked_gets_an_empty_list(self):
        hand, worker = self.one_of_each()
        since = hand.mark()
        worker.do("refuse")
        worker.do("reset")
        hand.wait("live", since, change="offline")
        hand.say("marks fail")
        times = worker.mark()
        worker.do("accept")
        worker.wait("connected", times)
        hand.wait("live", since, change="online")
        self.put("worker/w0", None)
        worker.wait("disconnected", times)
        self.assertEqual([one["subscriptions"]
                          for one in worker.commands(times, "setSubscriptionList")], [[]])

    def test_owners_end_although_a_mark_is_being_written(self):
        hand, worker = self.one_of_each()
        hand.say("marks hang")
        worker.do("refuse")
        worker.do("reset")
        hand.wait("hung")
        hand.say("close")
        hand.wait("closed")

    def test_a_patch_of_a_session_is_answered(self):
        _, worker = self.one_of_each()
        worker.do('patch 7 {"currentCar":{"carBrand":"Honda"}}')
        until(lambda: worker.commands(0, "patchSessionResult"), "an answer")
        self.assertEqual(worker.commands(0, "patchSessionResult")[0]["payload"],
                         {"sessionId": 7, "success": True, "message": "merged"})

    # ---- Workers that break the protocol --------------------------------------------------------

    def test_nonsense_costs_an_event_and_not_the_connection(self):
        hand, worker = self.one_of_each()
        for fault in ("garbage", "wrong-json", "binary"):
            since, times = hand.mark(), worker.mark()
            worker.do("fault " + fault)
            refused = hand.wait("message-refused", since)
            worker.do("heal")
            worker.do('detect d;c {"plate":"%s"}' % fault)
            hand.wait("detection", since)
            self.assertEqual(worker.find("disconnected", times), [], refused)

    def test_what_websocket_forbids_ends_the_connection_and_the_next_one_works(self):
        hand, worker = self.one_of_each()
        for fault in ("not-utf8", "giant"):
            since, times = hand.mark(), worker.mark()
            worker.do("fault " + fault)
            hand.wait("message-refused", since)
            worker.wait("disconnected", times)
            worker.do("heal")
            worker.wait("connected", times)
            since = hand.mark()
            worker.do('detect d;c {"plate":"%s"}' % fault)
            hand.wait("detection", since)

    def test_a_worker_that_keeps_a_subscription_is_not_in_sync_until_it_obeys(self):
        hand, worker = self.one_of_each()
        worker.do("fault no-removal")
        since, told = worker.mark(), hand.mark()
        revision = self.assign([])
        worker.wait("command", since, 2)
        self.assertEqual(hand.find("live", told, change="sync", inSync=True, revision=revision), [])
        worker.do("heal")
        hand.wait("live", told, change="sync", inSync=True, revision=revision)

    def test_a_silent_and_a_half_open_worker_are_offline(self):
        hand, worker = self.one_of_each(silence_ms=2000)
        for fault in ("silent", "half-open"):
            since = hand.mark()
            worker.do("fault " + fault)
            gone = hand.wait("worker-offline", since)
            self.assertIn("no stateReport for 2.0 s", gone["reason"])
            worker.do("heal")
            hand.wait("live", since, change="sync", inSync=True)

    def test_a_half_open_worker_is_noticed_by_a_ping_before_it_counts_as_silent(self):
        hand, worker = self.one_of_each(silence_ms=120000)
        since = hand.mark()
        worker.do("refuse")  # no new connection comes
        worker.do("fault half-open")
        gone = hand.wait("worker-offline", since)
        self.assertNotIn("stateReport", gone["reason"])
        worker.do("heal")
        worker.do("accept")
        hand.wait("live", since, change="sync", inSync=True)

    def test_a_worker_that_does_not_read_gets_the_newest_when_it_does(self):
        """Each list has a megabyte: the kernel keeps a few of them."""
        begun = time.monotonic()
        hand, worker = self.one_of_each()
        names = ["d;c%03d" % i for i in range(250)]
        self.declare(*names)
        self.put("model/101", {"id": 101, "name": "cars", "url": "http://models/" + "x" * 4000})
        self.wait_in_sync(hand, self.assign(names))
        since, told = worker.mark(), hand.mark()
        worker.do("fault slow")
        for i in range(40):
            self.put("camera/c000", {"id": "c000", "rtspUrl": "rtsp://h/%d" % i})
            time.sleep(0.02)  # each shall be a list of its own
        hand.wait("live", told, change="sync", inSync=False)  # it still reports
        worker.do("heal")

        def urls():
            return [one["subscriptions"][0]["rtspUrl"]
                    for one in worker.commands(since, "setSubscriptionList")]
        until(lambda: "rtsp://h/39" in urls(), "the newest list")
        self.assertLess(len(urls()), 40)
        until(lambda: hand.find("live", told, change="sync")[-1]["inSync"], "in sync")
        if time.monotonic() - begun < PONG_S:  # on a slow machine its pong may come too late
            self.assertEqual(worker.find("disconnected"), [], hand.find("worker-offline"))
            until(lambda: self.wait_in_sync(hand, self.assign(names)) or  # what a report has told
                  hand.find("live", change="sync")[-1]["stalls"] > 0, "a stall is counted")

    # ---- Several processes ----------------------------------------------------------------------

    def test_when_the_owner_is_killed_the_second_goes_on(self):
        self.begin("a", "b", "c")
        self.declare("d;c")
        self.put("data/d", {"sessionId": 7, "progressionStage": None})
        worker = self.worker("--detections-per-second", "50")
        self.assign(["d;c"])
        self.own(w0=["a", "b"])
        self.hands["a"].wait("live", inSync=True, process="a")
        until(lambda: len(self.hands["a"].find("detection")) > 10, "detections")
        self.wait_line("c")
        since = worker.mark()
        begun = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.hands["a"].process.kill()
        there = worker.wait_list(["d;c"], since)
        print("owner killed: the next list after %.0f ms" % (1000 * (there["at"] - begun)))
        self.hands["b"].wait("live", change="owner", process="b")
        self.hands["c"].wait("live", change="owner", process="b")
        self.assertEqual(self.hands["c"].find("live", change="offline"), [])
        self.nothing_is_lost(worker)

    def wait_line(self, name):
        """Until another process waits for the worker w0, as that process or the server knows."""
        def there():
            if PROVIDER == "redis":
                return self.ask_redis("HLEN worker:owners:w0:slaves") != ":0"
            since = self.hands[name].mark()
            self.hands[name].say("line")
            self.hands[name].wait("lines", since)  # they are none while nobody leads the group
            return any(line["waiting"] for line in
                       self.hands[name].find("line", since, name="worker:owners:w0"))
        until(there, "another in line")

    def nothing_is_lost(self, worker):
        """All that was detected so far comes to one of the processes."""
        worker.wait("detected", count=20)
        last = worker.find("detected")[-1]["n"]

        def missing():
            got = {line["n"] for hand in self.hands.values() for line in hand.find("detection")}
            return set(range(1, last + 1)) - got
        until(lambda: not missing(), lambda: "lost: %s of %d" % (sorted(missing()), last))

    def test_the_first_gets_the_worker_without_a_gap_when_it_joins(self):
        self.begin("a", "b", "c")
        self.declare("d;c")
        worker = self.worker("--detections-per-second", "50")
        self.assign(["d;c"])
        self.own(w0=["b", "a"])
        self.hands["b"].wait("live", inSync=True, process="b")
        until(lambda: len(self.hands["b"].find("detection")) > 10, "detections")
        since = worker.mark()
        self.own(w0=["c", "a"])  # b is named no more: it goes on until c is in line
        there = worker.wait_list(["d;c"], since)
        self.hands["a"].wait("live", change="owner", process="c")
        gone = worker.wait("disconnected", since)
        print("handed over: %.1f ms without a connection" % (1000 * (there["at"] - gone["at"])))
        self.assertEqual(self.hands["a"].find("live", change="offline"), [])
        self.nothing_is_lost(worker)

    def test_an_owner_that_ends_in_order_hands_over(self):
        self.begin("a", "b", "c")
        self.declare("d;c")
        worker = self.worker("--detections-per-second", "50")
        self.assign(["d;c"])
        self.own(w0=["a", "b"])
        self.hands["a"].wait("live", inSync=True, process="a")
        self.wait_line("c")
        since = worker.mark()
        self.hands["a"].say("close")
        there = worker.wait_list(["d;c"], since)
        gone = worker.wait("disconnected", since)
        self.assertEqual(gone["code"], 1001)
        print("owner ended: %.1f ms without a connection" % (1000 * (there["at"] - gone["at"])))
        self.hands["a"].wait("closed")
        self.assertEqual(self.hands["a"].process.wait(DEADLINE_S), 0)
        self.nothing_is_lost(worker)

    def wait_session(self, session, worker, since):
        until(lambda: session in [message["payload"]["sessionId"]
                                  for message in worker.commands(since, SESSION)],
              "session %d" % session)

    def test_an_owner_that_was_stopped_past_its_lease_sends_nothing(self):
        self.begin("a", "b", "c")
        self.declare("d;c")
        worker = self.worker()
        self.assign(["d;c"], name="c")
        self.own("c", w0=["a", "b"])
        self.hands["a"].wait("live", inSync=True, process="a")
        self.wait_line("c")
        worker.wait_list(["d;c"])  # the owner may be heard first
        since = worker.mark()
        stopped = max(one["epoch"] for one in worker.commands(0, "setSubscriptionList"))
        self.hands["a"].process.send_signal(signal.SIGSTOP)
        worker.wait_list(["d;c"], since)
        since = worker.mark()
        self.put("data/d", {"sessionId": 9, "progressionStage": None}, "c")
        self.wait_session(9, worker, since)
        self.hands["a"].process.send_signal(signal.SIGCONT)
        self.hands["a"].wait("worker-released")
        self.own("c", w0=["b", "c"])
        self.put("data/d", {"sessionId": 10, "progressionStage": None}, "c")
        self.wait_session(10, worker, since)
        self.assertEqual(worker.find("fenced"), [])
        self.assertEqual([one for one in worker.commands(since, "setSubscriptionList")
                          if one["epoch"] <= stopped], [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
