"""The HTTP API of a process of the fleet, over real sockets."""
import http.client
import json
import os
import re
import select
import socket
import tempfile
import threading
import unittest
import urllib.parse

from fleet_api import CHANGER, READER, YAML, Fleet, Worker
from harness import DEADLINE_S, until

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
CANARY = "canary-4711"
MODEL = {"name": "LPR", "url": "http://models/lpr.mpta?signature=" + CANARY}
CAMERA = {"rtspUrl": "rtsp://user:%s@10.0.0.1/stream" % CANARY,
          "snapshotUrl": "http://user:%s@10.0.0.1/shot" % CANARY}


def declare(fleet):
    """A subscription, and what it refers to."""
    for path, body in (("models/101", MODEL), ("cameras/c1", CAMERA), ("displays/d1", {}),
                       ("subscriptions/d1;c1", {"model": 101})):
        answer = fleet.ask("PUT", "/api/" + path, body)
        assert answer.status == 201, (path, answer.body)


class OneProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        declare(cls.fleet)

    @classmethod
    def tearDownClass(cls):
        cls.fleet.close()

    def expect(self, status, method, path, body=None, **more):
        answer = self.fleet.ask(method, path, body, **more)
        self.assertEqual(answer.status, status, (method, path, answer.body))
        return answer

    def test_an_object_lives_from_put_to_delete(self):
        made = self.expect(201, "PUT", "/api/cameras/life", {"rtspUrl": "rtsp://h/1"})
        got = self.expect(200, "GET", "/api/cameras/life")
        self.assertEqual((got.json, got.etag), (made.json, made.etag))
        self.expect(304, "GET", "/api/cameras/life", if_none_match=got.etag)
        again = self.expect(200, "PUT", "/api/cameras/life", {"rtspUrl": "rtsp://h/2"})
        self.assertNotEqual(again.etag, made.etag)
        patched = self.expect(200, "PATCH", "/api/cameras/life", {"snapshotInterval": 500,
                                                                  "snapshotUrl": "http://h/s"})
        self.assertEqual(patched.json["snapshotInterval"], 500)
        self.expect(204, "DELETE", "/api/cameras/life")
        self.expect(404, "GET", "/api/cameras/life")
        self.expect(404, "DELETE", "/api/cameras/life")

    def test_a_condition_that_does_not_hold_changes_nothing(self):
        old = self.expect(201, "PUT", "/api/displays/when", {"name": "a"}, if_none_match="*").etag
        self.expect(412, "PUT", "/api/displays/when", {"name": "b"}, if_none_match="*")
        new = self.expect(200, "PUT", "/api/displays/when", {"name": "c"}, if_match=old).etag
        for method, body in ("PUT", {"name": "d"}), ("PATCH", {"name": "d"}), ("DELETE", None):
            self.expect(412, method, "/api/displays/when", body, if_match=old)
        self.expect(412, "PUT", "/api/displays/not-there", {}, if_match="*")
        for wrong in "garbage", '"18446744073709551615"', '"99999999999999999999"':
            self.expect(400, "PUT", "/api/displays/when", {}, if_match=wrong)
        self.assertEqual(self.expect(200, "GET", "/api/displays/when").json["name"], "c")
        self.expect(204, "DELETE", "/api/displays/when", if_match=new)

    def test_what_is_referred_to_stays_and_must_be_there(self):
        for path in "models/101", "cameras/c1", "displays/d1":
            answer = self.expect(409, "DELETE", "/api/" + path)
            self.assertIn("d1;c1", answer.json["error"])
        answer = self.expect(409, "PUT", "/api/subscriptions/d1;not-there", {"model": 101})
        self.assertEqual(answer.json["field"], "camera")

    def test_a_refusal_names_the_field(self):
        for status, method, path, body, field in (
                (422, "PUT", "/api/cameras/x", {"rtspUrl": "ftp://h/1"}, "rtspUrl"),
                (422, "PUT", "/api/cameras/x", {"rtspUrl": "rtsp://h", "colour": 1}, "colour"),
                (422, "PATCH", "/api/subscriptions/d1;c1", {"priority": "high"}, "priority"),
                (422, "PUT", "/api/cameras/c1", {"rtspUrl": "rtsp://user:***@h/1"}, "rtspUrl"),
                (422, "PUT", "/api/workers/x", {"url": "http://h:1"}, "url"),
                (422, "PUT", "/api/workers/x", {"url": "ws://h:1", "max": 1}, "max"),
                (422, "PUT", "/api/workers/a%3Bb", {"url": "ws://h:1"}, "id"),
                (422, "PUT", "/api/displays/d1/session", {"sessionId": "x"}, "sessionId"),
                (422, "PUT", "/api/displays/d1/session", {"sessionId": -1}, "sessionId"),
                (422, "PUT", "/api/displays/d1/stage", {"progressionStage": "away"},
                 "progressionStage"),
                (422, "PATCH", "/api/displays/d1/data", {"fuel": 1}, None),
                (400, "GET", "/api/cameras?limit=0", None, "limit"),
                (400, "GET", "/api/cameras?limit=1001", None, "limit"),
                (400, "POST", "/api/apply?prune=perhaps", {}, "prune")):
            answer = self.expect(status, method, path, body)
            self.assertEqual(answer.json.get("field"), field, answer.json)

    def test_a_body_that_cannot_be_read_is_refused(self):
        path = "/api/displays/body"
        self.expect(400, "PUT", path, b"{")
        self.expect(400, "PUT", path, b"[]")
        self.expect(400, "PUT", path, b'{"name":"a","name":"b"}')
        self.expect(400, "PUT", path, b'{"name":' + b"[" * 30000)
        self.expect(400, "PUT", path, b"\xff")
        self.expect(415, "PUT", path, {}, kind="text/plain")
        self.expect(415, "POST", "/api/apply", b"x", kind="text/plain")
        self.expect(413, "PUT", path, b" " * 70000)
        self.fleet.connection = None
        self.expect(404, "GET", path)

    def test_a_path_or_method_that_is_not_there_is_refused(self):
        self.expect(404, "GET", "/api/nothing")
        self.expect(404, "GET", "/api/cameras/")
        answer = self.expect(405, "POST", "/api/cameras/c1", {})
        self.assertEqual(answer.headers["allow"], "GET, HEAD, PUT, PATCH, DELETE")
        for path in "/api/cameras/%zz", "/api/cameras/%ff", "/api/../etc/passwd", \
                "/api/cameras/%2e%2e", "/a%00":
            self.expect(400, "GET", path)
            self.fleet.connection = None

    def test_a_refusal_that_is_too_long_is_cut_between_characters(self):
        for name in "\u00e9" * 250, "x" + "\u00e9" * 250:
            answer = self.expect(404, "GET", "/api/cameras/" + urllib.parse.quote(name))
            self.assertIn(name[:200], answer.json["error"])

    def test_an_id_may_have_a_slash(self):
        path = "/api/displays/site%2Fpump%204"
        self.expect(201, "PUT", path, {})
        self.assertEqual(self.expect(200, "GET", path).json["id"], "site/pump 4")
        self.expect(200, "GET", path + "/data")
        self.expect(204, "DELETE", path)

    def test_a_head_has_the_headers_alone(self):
        answer = self.expect(200, "HEAD", "/api/cameras/c1")
        self.assertEqual(answer.body, b"")
        self.assertEqual(answer.etag, self.expect(200, "GET", "/api/cameras/c1").etag)

    def test_a_list_comes_in_pages(self):
        ids = ["page-%02d" % number for number in range(25)]
        for name in ids + ["page-end"]:
            self.expect(201, "PUT", "/api/displays/" + name, {})
        found, path = [], "/api/displays?limit=7&after=page-"
        while path:
            page = self.expect(200, "GET", path).json
            found += [item["id"] for item in page["items"]]
            self.assertLessEqual(len(page["items"]), 7)
            if len(found) == 14:  # the page's last one goes, and the next page begins behind it
                self.expect(204, "DELETE", "/api/displays/" + found[-1])
            path = page.get("next") and "/api/displays?limit=7&after=" + page["next"]
        self.assertEqual(found[:26], ids + ["page-end"])
        for name in ids + ["page-end"]:
            self.fleet.ask("DELETE", "/api/displays/" + name)

    def test_a_list_has_not_changed_until_it_has(self):
        tag = self.expect(200, "GET", "/api/displays").etag
        self.expect(304, "GET", "/api/displays", if_none_match=tag)
        self.expect(200, "PUT", "/api/cameras/c1", CAMERA)
        self.expect(304, "GET", "/api/displays", if_none_match=tag)
        self.expect(201, "PUT", "/api/displays/tag", {})
        self.expect(200, "GET", "/api/displays", if_none_match=tag)
        self.expect(204, "DELETE", "/api/displays/tag")

    def test_a_worker_is_registered_cordoned_drained_and_deleted(self):
        path = "/api/workers/registered"
        made = self.expect(201, "PUT", path, {"url": "ws://127.0.0.1:1", "labels": "gpu zone=a"})
        self.assertEqual(made.json["source"], "registered")
        self.expect(412, "PUT", path, {"url": "ws://127.0.0.1:2"}, if_none_match="*")
        for action, field, value in (("cordon", "cordoned", True), ("drain", "draining", True),
                                     ("undrain", "draining", False)):
            self.assertIs(self.expect(200, "POST", path + "/" + action).json[field], value)
        again = self.expect(200, "PUT", path, {"url": "ws://127.0.0.1:2"}).json
        self.assertTrue(again["cordoned"])
        for url in "ws://127.0.0.1:2", "ws://127.0.0.1:2/":  # two backends would fight for it
            refused = self.expect(409, "PUT", "/api/workers/again", {"url": url}).json
            self.assertEqual(refused["field"], "url")
            self.assertIn('"registered"', refused["error"])
        self.assertEqual(self.expect(200, "POST", "/api/apply", b"workers: [ws://127.0.0.1:2/]",
                                     kind=YAML).json["workers"], 0)
        patched = self.expect(200, "PATCH", path, {"labels": None, "maxSubscriptions": 3}).json
        self.assertEqual((patched["labels"], patched["maxSubscriptions"]), (None, 3))
        got = self.expect(200, "GET", path)
        self.assertEqual(got.json["assigned"], [])
        # What it reports changes without a new revision.
        self.expect(200, "GET", path, if_none_match=got.etag)
        self.expect(200, "PATCH", path, {"maxSubscriptions": 3}, if_match=got.etag)
        listed = self.expect(200, "GET", "/api/workers").json["items"]
        self.assertIn("registered", [worker["id"] for worker in listed])
        self.expect(404, "POST", path + "/move", {"subscription": "no;such"})
        refused = self.expect(409, "POST", path + "/move", {"subscription": "d1;c1"}).json
        self.assertIn("offline", refused["error"])
        self.expect(204, "DELETE", path)
        self.expect(404, "POST", path + "/cordon")
        self.expect(404, "GET", path)
        self.expect(404, "PATCH", path, {})
        self.expect(404, "DELETE", path)
        self.expect(404, "POST", path + "/move", {"subscription": "d1;c1"})
        # It may be there again at once, whether the master has taken it out or not.
        for _ in range(10):
            self.expect(201, "PUT", path, {"url": "ws://127.0.0.1:2"}, if_none_match="*")
            self.assertEqual(self.expect(200, "GET", path).json["cordoned"], False)
            self.expect(204, "DELETE", path)

    def test_a_displays_session_stage_and_data(self):
        self.expect(201, "PUT", "/api/displays/screen", {})
        self.expect(204, "PUT", "/api/displays/screen/session", {"sessionId": 4711})
        self.expect(204, "PUT", "/api/displays/screen/stage", {"progressionStage": "welcome"})
        self.expect(204, "PATCH", "/api/displays/screen/data", {"currentCar": {"carYear": 2023}})
        data = self.expect(200, "GET", "/api/displays/screen/data").json
        self.assertEqual((data["sessionId"], data["progressionStage"], data["currentCar"]),
                         (4711, "welcome", {"carYear": 2023}))
        listed = self.expect(200, "GET", "/api/displays?live=1&after=scree").json["items"][0]
        self.assertEqual((listed["id"], listed["sessionId"], listed["progressionStage"]),
                         ("screen", 4711, "welcome"))
        self.expect(204, "PUT", "/api/displays/screen/session", {"sessionId": None})
        self.expect(404, "PUT", "/api/displays/no-such/session", {"sessionId": 1})

    def test_a_condition_that_would_not_be_looked_at_is_refused(self):
        self.expect(201, "PUT", "/api/displays/other", {})
        self.expect(201, "PUT", "/api/workers/w7", {"url": "ws://127.0.0.1:7"})
        for method, path, body in (("PATCH", "/api/displays/other/data", {"qrCode": "x"}),
                                   ("PUT", "/api/displays/other/session", {"sessionId": 1}),
                                   ("PUT", "/api/displays/other/stage",
                                    {"progressionStage": None}),
                                   ("POST", "/api/workers/w7/drain", {}),
                                   ("POST", "/api/workers/w7/move", {"subscription": "d;c"}),
                                   ("POST", "/api/leader/pass", {}),
                                   ("POST", "/api/apply", b"displays: []\n")):
            kind = YAML if path == "/api/apply" else "application/json"
            self.expect(400, method, path, body, kind=kind, if_match='"7"')
            self.expect(400, method, path, body, kind=kind, if_none_match="*")
        self.assertEqual(self.expect(200, "GET", "/api/displays/other/data").json, {})
        self.assertFalse(self.expect(200, "GET", "/api/workers/w7").json["draining"])
        self.expect(204, "DELETE", "/api/workers/w7")
        self.expect(204, "DELETE", "/api/displays/other")

    def test_a_file_is_counted_applied_and_found_the_same(self):
        text = b"displays: [{id: from-file}, {id: d1}]\n"
        first = self.expect(200, "POST", "/api/apply?dry-run=1", text, kind=YAML).json
        self.assertEqual((first["created"], first["deleted"], first["dryRun"]), (1, 0, True))
        self.expect(404, "GET", "/api/displays/from-file")
        self.assertEqual(self.expect(200, "POST", "/api/apply", text, kind=YAML).json["created"], 1)
        again = self.expect(200, "POST", "/api/apply", text, kind=YAML).json
        self.assertEqual((again["created"], again["changed"], again["same"]), (0, 0, 2))
        answer = self.expect(422, "POST", "/api/apply", b"displays:\n- {nam: x}\n", kind=YAML)
        self.assertIn("body:2: displays[0].nam", answer.json["error"])
        lines = self.fleet.ask("POST", "/api/apply", b"displays: [{id: from-file, name: new}]\n",
                               kind=YAML, accept="application/x-ndjson").body.splitlines()
        self.assertEqual(json.loads(lines[-1])["changed"], 1)
        self.expect(204, "DELETE", "/api/displays/from-file")

    def test_a_file_registers_workers_and_gives_them_another_scheme(self):
        for text, count in ((b"workers: [ws://127.0.0.1:7]", 1),
                            (b"workers: [WS://127.0.0.1:7/]", 0),
                            (b"workers: [wss://127.0.0.1:7]", 1)):
            for how in "?dry-run=1", "":
                done = self.expect(200, "POST", "/api/apply" + how, text, kind=YAML).json
                self.assertEqual(done["workers"], count, (text, how))
        self.assertEqual(self.expect(200, "GET", "/api/workers/127.0.0.1-7").json["url"],
                         "wss://127.0.0.1:7")
        self.expect(409, "PUT", "/api/workers/twice", {"url": "wss://127.0.0.1:7/"})
        self.expect(204, "DELETE", "/api/workers/127.0.0.1-7")

    def test_all_that_have_no_worker_are_counted_although_the_list_is_cut(self):
        fleet = Fleet()
        self.addCleanup(fleet.close)
        many = {"models": [{"id": 1, "name": "m", "url": "http://m/1"}],
                "cameras": [{"id": "c", "rtspUrl": "rtsp://h/1"}],
                "displays": [{"id": "display-%05d" % i} for i in range(3000)],
                "subscriptions": [{"display": "display-%05d" % i, "camera": "c", "model": 1}
                                  for i in range(3000)]}
        self.assertEqual(fleet.ask("POST", "/api/apply", many).status, 200)
        until(lambda: fleet.ask("GET", "/status").json["unplaced"] == 3000, fleet.log)
        self.assertEqual(fleet.ask("GET", "/api/unplaced").json["count"], 3000)
        self.assertIn("\nbaton_fleet_unplaced 3000\n",
                      fleet.ask("GET", "/metrics").body.decode())

    def test_events_are_followed_and_gone_on_with(self):
        misspelt = self.expect(400, "GET", "/events?only=detection,object").json
        self.assertIn("'object'", misspelt["error"])
        follower = self.fleet.follow("/events?only=object-changed")
        self.expect(201, "PUT", "/api/displays/event-1", {})
        number, _, data = follower.next()
        self.assertEqual(data, {"kind": "display", "id": "event-1"})
        follower.close()
        self.expect(204, "DELETE", "/api/displays/event-1")
        later = self.fleet.follow("/events?only=object-changed", last_event_id=number)
        self.assertEqual(later.next()[2], data)
        later.close()
        stranger = self.fleet.follow(last_event_id="00000000-1")
        self.assertEqual(stranger.next()[1], "missed")
        stranger.close()

    def test_no_answer_shows_what_is_secret(self):
        follower = self.fleet.follow()
        self.expect(200, "PUT", "/api/cameras/c1", CAMERA)
        self.expect(422, "PATCH", "/api/cameras/c1", {"rtspUrl": "ftp://u:%s@h" % CANARY})
        self.expect(422, "PATCH", "/api/cameras/c1", {"rtspUrl": CANARY})
        self.expect(422, "PUT", "/api/workers/w", {"url": "ws://u:%s@h:1" % CANARY})
        said = [json.dumps(follower.next("object-changed"))]
        follower.close()
        for path in ("/status", "/metrics", "/events", "/api/models", "/api/models/101",
                     "/api/cameras", "/api/cameras/c1", "/api/subscriptions?live=1",
                     "/api/workers", "/api/assignments", "/api/unplaced", "/api/detections"):
            if not path.startswith("/events"):
                said.append(self.expect(200, "GET", path).body.decode())
        said.append(self.fleet.ask("PATCH", "/api/cameras/c1",
                                   {"rtspUrl": "x" + CANARY}).body.decode())
        said += self.fleet.log
        self.assertNotIn(CANARY, "".join(said))
        self.assertIn("***", "".join(said))

    def test_metrics_follow_the_conventions(self):
        families, seen = {}, set()
        for line in self.expect(200, "GET", "/metrics").body.decode().splitlines():
            words = line.split(" ")
            if words[0] == "#":
                self.assertTrue(words[2].startswith("baton_fleet_"), line)
                families.setdefault(words[2], {})[words[1]] = words[3]
                continue
            name = words[0].split("{")[0]
            base = name.rsplit("_", 1)[0] if name.endswith(("_bucket", "_sum", "_count")) else name
            family = families.get(name) or families[base]
            self.assertEqual(set(family), {"HELP", "TYPE"}, line)
            self.assertEqual(family["TYPE"] == "counter", name.endswith("_total"), line)
            self.assertNotIn(words[0], seen)
            seen.add(words[0])
            float(words[1])
        with open(os.path.join(DOCS, "fleet-api.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| (`.*?) \|", file.read().split("## Metrics")[1], re.M)
        named = {name.split("{")[0] for row in rows for name in re.findall("`([^`]+)`", row)}
        parts = re.compile("^(state|master|displays|detections|commands|outlets)_.*_total$")
        found = {parts.sub(r"\1_…_total", name[len("baton_fleet_"):]) for name in families}
        self.assertEqual(named, found)
        self.assertIn("baton_fleet_is_leader", seen)
        self.assertIn("baton_fleet_processes", seen)

    def test_the_probes_and_the_page_answer(self):
        self.expect(200, "GET", "/healthz")
        self.expect(200, "GET", "/readyz")
        until(lambda: self.fleet.ask("GET", "/leader").status == 200, "it leads")
        self.assertEqual(self.expect(200, "GET", "/status").json["leader"]["leader"], "p1")
        processes = self.expect(200, "GET", "/api/processes").json["items"]
        self.assertEqual([one["name"] for one in processes], ["p1"])
        page = self.expect(200, "GET", "/")
        self.assertEqual(page.kind, "text/html")
        self.assertIn("default-src 'self'", page.headers["content-security-policy"])
        self.expect(304, "GET", "/", if_none_match=page.etag)
        self.expect(200, "GET", "/page/main.js")
        self.expect(404, "GET", "/page/nothing.js")

    def test_a_picture_needs_a_worker(self):
        self.expect(404, "GET", "/api/cameras/no%3Bsuch/image")

    def test_a_page_of_another_site_is_refused(self):
        self.expect(403, "GET", "/status", host="rebound.example.net")
        self.expect(403, "PUT", "/api/displays/d1", {}, origin="http://evil.example.net")
        self.expect(200, "GET", "/status", origin="http://127.0.0.1:%d" % self.fleet.port)


class WithWorker(unittest.TestCase):
    """A worker that stands in for a detector has the camera."""

    @classmethod
    def setUpClass(cls):
        cls.worker = Worker()
        cls.fleet = Fleet("--worker", "ws://127.0.0.1:%d" % cls.worker.port)
        declare(cls.fleet)
        cls.id = "127.0.0.1-%d" % cls.worker.port

        until(cls.has_camera, "the camera is online")

    @classmethod
    def has_camera(cls):
        items = cls.fleet.ask("GET", "/api/subscriptions?live=1").json["items"]
        return len(items) == 1 and items[0]["worker"] == cls.id and items[0]["online"]

    @classmethod
    def tearDownClass(cls):
        cls.fleet.close()
        cls.worker.close()

    def figure(self, name):
        for line in self.fleet.ask("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return self.fail(name)

    def test_a_worker_shows_what_it_has(self):
        until(lambda: self.fleet.ask("GET", "/api/workers/" + self.id).json["inSync"], "in sync")
        worker = self.fleet.ask("GET", "/api/workers/" + self.id).json
        self.assertEqual((worker["online"], worker["owner"], worker["source"]),
                         (True, "p1", "static"))
        self.assertEqual(worker["assigned"], ["d1;c1"])
        self.assertEqual(worker["cameras"][0]["subscriptionIdentifier"], "d1;c1")
        assigned = self.fleet.ask("GET", "/api/assignments").json["items"]
        self.assertEqual(assigned[0]["subscriptions"], ["d1;c1"])
        self.assertEqual(self.fleet.ask("DELETE", "/api/workers/" + self.id).status, 409)
        self.assertIn("online", self.fleet.command("cameras").stdout)

    def test_a_camera_is_moved_to_a_worker_that_takes_it_only(self):
        moved = self.fleet.command("move", "d1;c1", self.id)
        self.assertEqual(moved.returncode, 0, moved.stderr)
        for action, back, state in (("cordon", "uncordon", "cordoned"),
                                    ("drain", "undrain", "draining")):
            self.fleet.command(action, self.id)
            refused = self.fleet.command("move", "d1;c1", self.id)
            self.assertEqual(refused.returncode, 1)
            self.assertIn("is %s" % state, refused.stderr)
            self.fleet.command(back, self.id)

    def test_a_move_without_effect_is_refused_with_the_reason(self):
        def refused(reason):
            answer = self.fleet.ask("POST", "/api/workers/small/move", {"subscription": "d1;c1"})
            self.assertEqual(answer.status, 409, answer.body)
            self.assertIn(reason, answer.json["error"])

        def ask(method, path, body=None):
            answer = self.fleet.ask(method, "/api/" + path, body)
            self.assertIn(answer.status, (200, 201, 204), answer.body)

        small = Worker()
        self.addCleanup(small.close)
        ask("PUT", "workers/small", {"url": "ws://127.0.0.1:%d" % small.port,
                                     "maxSubscriptions": 1})
        until(lambda: self.fleet.ask("GET", "/api/workers/small").json["online"], "small is online")
        ask("PUT", "displays/d2", {})
        ask("PUT", "subscriptions/d2;c1", {"model": 101})
        refused("has 0 of at most 1 subscriptions, and no room for the 2 of this camera")
        ask("PATCH", "subscriptions/d2;c1", {"needs": "gpu"})
        refused("has not all labels that \"d2;c1\" needs (gpu)")
        ask("PATCH", "subscriptions/d2;c1", {"paused": True})
        ask("PATCH", "subscriptions/d1;c1", {"paused": True})
        refused("\"d1;c1\" is paused")
        ask("PATCH", "subscriptions/d1;c1", {"paused": False})
        self.assertEqual(self.fleet.ask("POST", "/api/workers/small/move",
                                        {"subscription": "d1;c1"}).status, 202)
        until(lambda: self.fleet.ask("GET", "/api/workers/small").json["assigned"] == ["d1;c1"],
              "the camera has moved")
        for path in "subscriptions/d2;c1", "displays/d2", "workers/small":
            ask("DELETE", path)
        until(self.has_camera, "the camera is back")

    def test_of_moves_one_after_the_other_one_may_take_the_room_that_another_leaves(self):
        def ask(method, path, body=None):
            answer = self.fleet.ask(method, "/api/" + path, body)
            self.assertIn(answer.status, (200, 201, 202, 204), answer.body)
            return answer.json

        def move(subscription, worker):
            ask("POST", "workers/%s/move" % worker, {"subscription": subscription})

        def has(worker, subscription):
            return ask("GET", "workers/" + worker)["assigned"] == [subscription]

        ids = ["left", "right"]
        for name in ids:
            worker = Worker()
            self.addCleanup(worker.close)
            ask("PUT", "workers/" + name, {"url": "ws://127.0.0.1:%d" % worker.port,
                                           "maxSubscriptions": 1})
        until(lambda: all(ask("GET", "workers/" + name)["online"] for name in ids), "both online")
        ask("PUT", "cameras/c2", {"rtspUrl": "rtsp://h/2"})
        ask("PUT", "subscriptions/d1;c2", {"model": 101})
        move("d1;c2", "left")
        until(lambda: has("left", "d1;c2"), "it has moved")
        for _ in range(4):
            move("d1;c2", ids[1])
            move("d1;c1", ids[0])
            until(lambda: has(ids[1], "d1;c2") and has(ids[0], "d1;c1"), "both have moved")
            move("d1;c1", self.id)
            until(lambda: has(self.id, "d1;c1"), "it has moved away")
            ids.reverse()
        for path in "subscriptions/d1;c2", "cameras/c2", "workers/left", "workers/right":
            ask("DELETE", path)
        until(self.has_camera, "the camera is back")

    def test_many_who_look_cost_the_worker_one_request(self):
        before = self.figure("baton_fleet_images_total")
        for _ in range(50):
            answer = self.fleet.ask("GET", "/api/cameras/d1%3Bc1/image")
            self.assertEqual((answer.status, answer.kind), (200, "image/jpeg"), answer.body)
            self.assertEqual(answer.body[:2], b"\xff\xd8")
        self.assertLess(self.figure("baton_fleet_images_total") - before, 50)
        self.assertGreater(self.figure("baton_fleet_images_cached_total"), 0)

    def test_a_detection_is_listed_and_followed(self):
        follower = self.fleet.follow("/events?only=detection")
        self.worker.tell('detect d1;c1 {"licensePlateText": "ABCD1234"}')
        seen = follower.next("detection")[2]
        follower.close()
        self.assertIn("ABCD1234", json.dumps(seen))
        listed = self.fleet.ask("GET", "/api/detections?display=d1&camera=c1&limit=1").json
        self.assertIn("ABCD1234", json.dumps(listed["items"]))
        until(lambda: self.figure("baton_fleet_worker_detections_total{worker=\"%s\"}" % self.id),
              "the worker's detections are counted")
        self.assertEqual(self.fleet.ask("GET", "/api/detections?display=d2").json["items"], [])


class WorkerThatLeft(unittest.TestCase):
    def test_pictures_that_are_asked_for_behind_one_another_are_all_refused(self):
        worker = Worker()
        fleet = Fleet("--worker", "ws://127.0.0.1:%d" % worker.port)
        declare(fleet)
        until(lambda: any(item["subscriptions"] for item in
                          fleet.ask("GET", "/api/assignments").json["items"]), "it has the camera")
        worker.close()
        one = b"GET /api/cameras/d1%3Bc1/image HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", fleet.port), DEADLINE_S) as client:
                client.sendall((one + b"\r\n") * 3 + one + b"Connection: close\r\n\r\n")
                heard = b"".join(iter(lambda: client.recv(65536), b""))
            self.assertEqual(heard.count(b"HTTP/1.1 502 "), 4, heard)
        fleet.close()


class Commands(unittest.TestCase):
    """`baton fleet …`"""

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet()
        declare(cls.fleet)
        cls.fleet.ask("PUT", "/api/workers/w1", {"url": "ws://127.0.0.1:1"})

    @classmethod
    def tearDownClass(cls):
        cls.fleet.close()

    def run_well(self, *words, **more):
        done = self.fleet.command(*words, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_shows_tables_for_people_and_json_for_programs(self):
        self.assertIn("leader", self.run_well("status"))
        self.assertEqual(json.loads(self.run_well("status", "--json"))["fleet"], "fleet")
        self.assertIn("w1", self.run_well("workers"))
        self.assertEqual(self.run_well("cameras").split("\n")[0].split(),
                         ["CAMERA", "DISPLAY", "MODEL", "WORKER", "STATE"])
        self.assertEqual(json.loads(self.run_well("displays", "--json"))[0]["id"], "d1")
        self.assertNotIn(CANARY, self.run_well("cameras", "--json"))

    def test_changes_workers_and_displays(self):
        self.run_well("cordon", "w1")
        self.run_well("drain", "w1")
        self.assertIn("offline, draining, cordoned", self.run_well("workers"))
        self.run_well("undrain", "w1")
        self.run_well("uncordon", "w1")
        self.run_well("session", "d1", "12")
        self.run_well("stage", "d1", "car_fueling")
        self.assertIn("car_fueling", self.run_well("displays"))
        self.run_well("session", "d1", "none")

    def test_applies_a_file(self):
        text = "displays: [{id: d2}]\n"
        self.assertEqual(self.run_well("apply", "-", "--dry-run", text=text),
                         "would be: 1 created, 0 changed, 0 deleted, 0 unchanged\n")
        self.run_well("apply", "-", text=text)
        done = json.loads(self.run_well("apply", "-", "--json", text=text))
        self.assertEqual(done["same"], 1)

    def test_warns_of_a_file_with_passwords_that_everybody_may_read(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            for url, mode, warns in (("rtsp://u:secret@h/1", 0o644, True),
                                     ("rtsp://u:secret@h/1", 0o640, False),
                                     ("rtsp://h:554/a@b", 0o644, False)):
                file.seek(0)
                print("cameras: [{id: warned, rtspUrl: '%s'}]" % url, file=file, flush=True)
                file.truncate()
                os.chmod(file.name, mode)
                done = self.fleet.command("apply", "--dry-run", file.name)
                self.assertEqual((done.returncode, "chmod o-r" in done.stderr), (0, warns),
                                 done.stderr)
                self.assertNotIn("secret", done.stderr)

    def test_says_what_is_wrong_with_an_exit_code(self):
        wrong = tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8")
        self.addCleanup(wrong.close)
        print("cameras: [{id: x}]", file=wrong, flush=True)
        for code, words, text in (
                (1, ["cordon", "no-such"], "no-such"), (64, ["nonsense"], "must be status"),
                (64, ["move", "d1;c1"], "SUBSCRIPTION WORKER"),
                (1, ["move", "d1;c1", "no-such"], "no-such"),
                (1, ["move", "d1;c1", "w1"], "offline"),
                (64, ["session", "d1", "x"], "none"),
                (64, ["session", "d1", "9007199254740993"], "0 to 9007199254740992"),
                (1, ["stage", "d1", "away"], "car_fueling"), (1, ["apply", "-"], "body:1"),
                (1, ["apply", wrong.name], wrong.name + ":1: cameras[0]"),
                (64, ["apply", "/no/such/file"], "/no/such/file"),
                (64, ["--token-file", "/no/such/file", "status"], "--token-file"),
                (64, ["--timeout", "0", "status"], "--timeout 0"),
                (69, ["--fleet", "http://127.0.0.1:1", "status"], "`baton-fleet --http`"),
                (64, ["--fleet", "h:8090", "status"], "--fleet h:8090: must begin with http://"),
                (77, ["--fleet", "https://127.0.0.1:%d" % self.fleet.port, "status"], "no TLS")):
            done = self.fleet.command(*words, text="displays: [{nam: 1}]\n")
            self.assertEqual((done.returncode, done.stdout), (code, ""), words)
            self.assertIn(text, done.stderr)


class Rights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(has_tokens=True)

    @classmethod
    def tearDownClass(cls):
        cls.fleet.close()

    def status(self, method, path, token=None, body=None):
        more = {"authorization": "Bearer " + token} if token else {}
        return self.fleet.ask(method, path, body, **more).status

    def test_each_token_has_its_right(self):
        self.assertEqual(self.status("GET", "/healthz"), 200)
        self.assertEqual(self.status("GET", "/"), 200)
        for path in "/status", "/metrics", "/events", "/api/cameras", "/leader":
            self.assertEqual(self.status("GET", path), 401)
            self.assertEqual(self.status("GET", path, "wrong-token-of-this-test"), 401)
        self.assertEqual(self.status("GET", "/api/cameras", READER), 200)
        self.assertEqual(self.status("GET", "/api/cameras", CHANGER), 200)
        self.assertEqual(self.status("PUT", "/api/displays/d", READER, {}), 403)
        self.assertEqual(self.status("PUT", "/api/displays/d", CHANGER, {}), 201)

    def test_a_stranger_cannot_send_what_only_a_file_may_be(self):
        with socket.create_connection(("127.0.0.1", self.fleet.port)) as stranger:
            stranger.sendall(b"POST /api/apply HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                             b"Content-Type: application/yaml\r\nContent-Length: 1000000\r\n\r\n")
            self.assertIn(b" 413 ", stranger.recv(4096))


class End(unittest.TestCase):
    """A process that is told to end while it is busy ends in order, at whatever point."""

    FILE = "models: [{id: 1, name: m, url: 'http://h/m'}]\ncameras:\n" + "".join(
        "- {id: c%d, rtspUrl: 'rtsp://h/%d'}\n" % (number, number) for number in range(3000))

    @staticmethod
    def apply(port, accept):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        try:
            connection.request("POST", "/api/apply", End.FILE.encode(),
                               {"content-type": YAML, "accept": accept})
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            pass  # it has ended
        finally:
            connection.close()

    def test_it_ends_in_order_while_files_are_applied_and_events_are_followed(self):
        for pause_s in 0, 0.02, 0.1, 0.3:
            worker = Worker()
            fleet = Fleet("--worker", "ws://127.0.0.1:%d" % worker.port)
            declare(fleet)
            followers = [fleet.follow(), fleet.follow("/events?only=worker-online")]
            busy = [threading.Thread(target=self.apply, args=(fleet.port, accept))
                    for accept in ("application/json", "application/x-ndjson")]
            for thread in busy:
                thread.start()
            busy[0].join(pause_s)  # the moment of the end is any
            fleet.ask("GET", "/api/cameras/d1%3Bc1/image")
            fleet.close()
            for thread in busy:
                thread.join()
            for follower in followers:
                follower.close()
            worker.close()


class Limits(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet()

    def tearDown(self):
        self.fleet.close()

    def test_an_address_that_asks_too_often_is_told_to_wait(self):
        one = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
        with socket.create_connection(("127.0.0.1", self.fleet.port)) as client:
            client.sendall((one + b"\r\n") * 2000 + one + b"Connection: close\r\n\r\n")
            heard = b"".join(iter(lambda: client.recv(65536), b""))
        self.assertTrue(heard.startswith(b"HTTP/1.1 200 "))
        self.assertIn(b"HTTP/1.1 429 ", heard)

    def test_large_bodies_under_way_have_a_limit_together(self):
        clients = []
        for mib in 30, 30, 5:
            body = b"#" * (mib << 20)
            clients.append(socket.create_connection(("127.0.0.1", self.fleet.port), DEADLINE_S))
            clients[-1].sendall(b"POST /api/apply HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n"
                                % (YAML.encode(), len(body)) + body[1:])
        refused = select.select(clients, [], [], DEADLINE_S)[0]
        self.assertEqual(len(refused), 1)
        heard = b"".join(iter(lambda: refused[0].recv(65536), b""))
        self.assertTrue(heard.startswith(b"HTTP/1.1 503 "), heard)
        self.assertIn(b"retry-after: 1", heard)
        for client in clients:
            if client is not refused[0]:
                client.sendall(b"#")
                self.assertIn(b" 422 ", client.recv(13))  # read: it says nothing
            client.close()

    def test_a_follower_that_does_not_read_is_cut_off(self):
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", self.fleet.port))
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        self.assertTrue(slow.recv(15).startswith(b"HTTP/1.1 200"))
        reader = self.fleet.follow("/events?only=object-changed")
        # In turns each object has another name, or none.
        lines = ["{id: 'display-%0200d'%s}" % (number, "%s") for number in range(1500)]

        def was_cut():
            for name in ", name: a", "":
                text = "displays: [%s]" % ", ".join(line % name for line in lines)
                answer = self.fleet.ask("POST", "/api/apply", text.encode(), kind=YAML)
                self.assertEqual(answer.status, 200, answer.body)
            metrics = self.fleet.ask("GET", "/metrics").body
            return b"\nbaton_fleet_followers_cut_total 0\n" not in metrics  # the reader may be, too
        until(was_cut, "the slow follower is cut off")
        self.assertEqual(reader.next()[1], "object-changed")
        slow.close()
        reader.close()


if __name__ == "__main__":
    unittest.main()
