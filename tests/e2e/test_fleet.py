"""baton-fleet with real processes: each recovery of the worker protocol, and its example of a
conversation, step by step."""
import concurrent.futures
import itertools
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from fleets import FLEET, RAFT, FleetTest, Process, declaration, identifiers
from harness import BATON, DEADLINE_S, clean_environment, free_ports, main, until


class Recoveries:
    """Of all providers that several processes can share."""

    def start(self, cameras, count, *flags, displays=2):
        workers = self.stand_ins(count, *flags)
        self.start_fleet(config=declaration(cameras, workers.urls(), displays))
        self.wait_placed(workers, range(count), identifiers(cameras, displays))
        return workers

    def test_a_worker_that_crashes_loses_its_subscriptions_to_the_others(self):
        workers = self.start(6, 2)
        spare = self.stand_ins(1)
        self.ask("PUT", "/api/workers/" + spare.id(0), {"url": spare.urls()[0]})
        until(lambda: spare.commands(0, "setSubscriptionList"), self.logs)
        workers.close()
        self.wait_placed(spare, [0], identifiers(6))

    def test_a_worker_that_is_deleted_lets_go_before_another_one_gets_its_subscriptions(self):
        workers = self.stand_ins(1)
        self.start_fleet(config=declaration(1, [], 1))
        self.ask("PUT", "/api/workers/" + workers.id(0), {"url": workers.urls()[0]})
        self.wait_placed(workers, [0], identifiers(1, 1))
        spare = self.stand_ins(1)
        self.ask("PUT", "/api/workers/" + spare.id(0), {"url": spare.urls()[0]})
        until(lambda: spare.list_of(0) == [], self.logs)
        workers.tell("fault no-removal")
        self.ask("DELETE", "/api/workers/" + workers.id(0))
        reason = "leaves worker %s first" % workers.id(0)
        until(lambda: [one["reason"] for one in self.get("/api/unplaced")["items"]] == [reason],
              self.logs)
        self.assertEqual([one["id"] for one in self.get("/api/workers")["items"]], [spare.id(0)])
        workers.tell("heal")
        self.wait_placed(spare, [0], identifiers(1, 1))
        until(lambda: workers.of(0, "disconnected"), self.logs)
        self.assertEqual(workers.list_of(0), [])

    def test_a_connection_that_breaks_is_made_again_with_list_session_and_stage(self):
        workers = self.start(2, 1, displays=1)
        self.ask("PUT", "/api/displays/display-0/session", {"sessionId": 12345})
        self.ask("PUT", "/api/displays/display-0/stage", {"progressionStage": "welcome"})
        until(lambda: [m for m in workers.commands(0, "setProgressionStage")
                       if m["payload"]["progressionStage"] == "welcome"], self.logs)
        again = self.sent_again(workers, "reset")
        self.assertEqual(again[1]["payload"],
                         {"displayIdentifier": "display-0", "sessionId": 12345})

    def sent_again(self, workers, how):
        """The first messages of the connection after this one."""
        def sent():
            events = workers.of(0, "connected", "command")
            first = [i for i, event in enumerate(events) if event["event"] == "connected"][-1]
            return [event["message"] for event in events[first + 1:first + 4]]
        before = len(workers.of(0, "connected"))
        workers.tell(how)
        until(lambda: len(workers.of(0, "connected")) > before and len(sent()) == 3, self.logs)
        self.assertEqual([message["type"] for message in sent()],
                         ["setSubscriptionList", "setSessionId", "setProgressionStage"])
        return sent()

    def test_all_processes_restart_and_the_assignments_are_as_before(self):
        workers = self.start(6, 2)
        before = [workers.list_of(i) for i in range(2)]
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.start()
        until(lambda: all(self.is_ready(name) for name in self.processes), self.logs)
        until(lambda: all(len(workers.of(i, "connected")) > 1 and
                          workers.commands(i, "setSubscriptionList") for i in range(2)), self.logs)
        until(lambda: all(worker["inSync"] for worker in self.get("/api/workers")["items"]),
              self.logs)
        self.assertEqual([workers.list_of(i) for i in range(2)], before)

    def test_the_master_is_killed_and_another_one_places(self):
        workers = self.start(4, 2)
        first = self.wait_master()
        self.processes[first].kill()
        second = self.wait_master()
        self.assertNotEqual(first, second)
        # A new camera is placed by the new master, and what was placed is where it was.
        self.ask("PUT", "/api/cameras/cam-9", {"rtspUrl": "rtsp://127.0.0.1:9/9"})
        status, answer, _ = self.ask("PUT", "/api/subscriptions/display-0;cam-9",
                                     {"display": "display-0", "camera": "cam-9", "model": 101})
        self.assertIn(status, (200, 201), answer)
        self.wait_placed(workers, range(2), sorted(identifiers(4) + ["display-0;cam-9"]))

    def test_leadership_is_passed_to_a_process_that_is_named(self):
        self.start(2, 1)
        first = self.wait_master()
        second = next(name for name in self.processes if name != first)
        self.assertEqual(self.processes[second].ask("POST", "/api/leader/pass", {})[0], 409)
        until(lambda: self.processes[first].ask("POST", "/api/leader/pass", {"to": second})[0]
              == 204, self.logs)
        until(lambda: self.master() == second, self.logs)

    def test_an_owner_is_killed_and_another_one_connects(self):
        workers = self.start(4, 2)
        until(lambda: all(self.owners().values()), self.logs)
        worker, owner = next(iter(self.owners().items()))
        index = [workers.id(i) for i in range(2)].index(worker)
        before = len(workers.commands(index, "setSubscriptionList"))
        self.processes[owner].kill()
        until(lambda: len(workers.commands(index, "setSubscriptionList")) > before, self.logs)
        until(lambda: self.owners().get(worker) not in (None, "", owner), self.logs)
        self.assertEqual(self.placed(workers, range(2)), identifiers(4))

    def test_an_orderly_end_hands_the_workers_over_without_a_second_owner(self):
        workers = self.start(4, 2)
        until(lambda: all(self.owners().values()), self.logs)
        worker, owner = next(iter(self.owners().items()))
        index = [workers.id(i) for i in range(2)].index(worker)
        self.processes[owner].run.send_signal(signal.SIGTERM)
        until(lambda: self.owners().get(worker) not in (None, "", owner), self.logs)
        self.assertEqual(self.processes[owner].run.wait(DEADLINE_S), 0)
        # No connection is used before the one before has ended: a busy worker may accept it sooner.
        connected = 0
        for event in workers.of(index, "connected", "disconnected", "command"):
            connected += {"connected": 1, "disconnected": -1, "command": 0}[event["event"]]
            self.assertLessEqual(connected, 1 if event["event"] == "command" else 2)

    def test_a_stopped_owner_that_wakes_up_sends_nothing_more(self):
        workers = self.start(2, 1)
        until(lambda: all(self.owners().values()), self.logs)
        owner = self.owners()[workers.id(0)]
        epochs = [m["epoch"] for m in workers.commands(0, "setSubscriptionList")]
        self.processes[owner].run.send_signal(signal.SIGSTOP)
        try:
            until(lambda: [m for m in workers.commands(0, "setSubscriptionList")
                           if m["epoch"] > max(epochs)], self.logs)
        finally:
            self.processes[owner].run.send_signal(signal.SIGCONT)
        until(lambda: self.is_ready(owner), self.logs)
        taken = [m["epoch"] for m in workers.commands(0, "setSubscriptionList")]
        self.assertEqual(taken, sorted(taken))

    def test_sessions_stages_and_patches_reach_the_worker_from_any_process(self):
        workers = self.start(2, 1, displays=1)
        for number, process in enumerate(self.processes.values()):
            status, answer, _ = process.ask("PUT", "/api/displays/display-0/session",
                                            {"sessionId": 100 + number})
            self.assertIn(status, (200, 204), answer)
            until(lambda: [m for m in workers.commands(0, "setSessionId")
                           if m["payload"]["sessionId"] == 100 + number], self.logs)
        last = 100 + len(self.processes) - 1
        workers.tell("patch %d %s" % (last, json.dumps({"currentCar": {"carModel": "Civic"}})))
        until(lambda: workers.commands(0, "patchSessionResult"), self.logs)
        self.assertEqual(workers.commands(0, "patchSessionResult")[0]["payload"], {
            "sessionId": last, "success": True, "message": "Session updated successfully."})
        until(lambda: (self.get("/api/displays/display-0/data").get("currentCar") or {}).get(
            "carModel") == "Civic", self.logs)
        workers.tell("patch 999 {}")
        until(lambda: len(workers.commands(0, "patchSessionResult")) == 2, self.logs)
        self.assertFalse(workers.commands(0, "patchSessionResult")[1]["payload"]["success"])

    def test_a_detection_is_in_the_history_of_every_process_once(self):
        workers = self.start(2, 1, displays=1)
        workers.tell('detect display-0;cam-0 {"carBrand":"Honda"}')
        for process in self.processes.values():
            found = until(lambda: process.ask("GET", "/api/detections")[1].get("items"), self.logs)
            self.assertEqual([one["data"]["detection"]["carBrand"] for one in found], ["Honda"])

    def test_the_conversation_of_the_protocol(self):
        workers = self.stand_ins(1)
        self.start_fleet(3)
        # 1: connected, an empty list. 2, 3: a subscription, and the worker's agreement.
        self.ask("PUT", "/api/workers/" + workers.id(0), {"url": workers.urls()[0]})
        until(lambda: workers.list_of(0) == [], self.logs)
        for path, body in (
                ("models/201", {"name": "Vehicle Identification",
                                "url": "http://storage/models/vehicle-id.mpta"}),
                ("displays/display-001", {}),
                ("cameras/entry-cam-01", {"rtspUrl": "rtsp://192.168.1.100/stream1",
                                          "snapshotInterval": 5000,
                                          "snapshotUrl": "http://127.0.0.1:9/1"}),
                ("subscriptions/display-001;entry-cam-01", {
                    "display": "display-001", "camera": "entry-cam-01", "model": 201})):
            status, answer, _ = self.ask("PUT", "/api/" + path, body)
            self.assertIn(status, (200, 201), (path, answer))
        until(lambda: workers.list_of(0) == ["display-001;entry-cam-01"], self.logs)
        sent = workers.commands(0, "setSubscriptionList")[-1]["subscriptions"][0]
        self.assertEqual(sent["modelName"], "Vehicle Identification")
        self.assertEqual((sent["modelId"], sent["snapshotInterval"]), (201, 5000))
        until(lambda: self.get("/api/workers")["items"][0]["inSync"], self.logs)
        # 4, 5: session and stage. 6: a detection in that session. 7: the next stage.
        self.ask("PUT", "/api/displays/display-001/session", {"sessionId": 12345})
        self.ask("PUT", "/api/displays/display-001/stage", {"progressionStage": "welcome"})
        until(lambda: [m for m in workers.commands(0, "setProgressionStage")
                       if m["payload"]["progressionStage"] == "welcome"], self.logs)
        workers.tell('detect display-001;entry-cam-01 {"carBrand":"Honda","carModel":"CR-V"}')
        found = until(lambda: self.get("/api/detections")["items"], self.logs)
        self.assertEqual(found[0]["sessionId"], 12345)
        until(lambda: (self.get("/api/displays/display-001/data").get("currentCar") or {}).get(
            "carModel") == "CR-V", self.logs)
        self.ask("PUT", "/api/displays/display-001/stage", {"progressionStage": "car_fueling"})
        until(lambda: workers.commands(0, "setProgressionStage")[-1]["payload"] == {
            "displayIdentifier": "display-001", "progressionStage": "car_fueling"}, self.logs)
        # 8: a new connection gets all of that again. 9, 10: the list becomes empty.
        again = self.sent_again(workers, "drop")
        self.assertEqual(again[2]["payload"]["progressionStage"], "car_fueling")
        status, answer, _ = self.ask("DELETE", "/api/subscriptions/display-001;entry-cam-01")
        self.assertIn(status, (200, 204), answer)
        until(lambda: workers.list_of(0) == [], self.logs)
        until(lambda: self.get("/api/workers")["items"][0]["inSync"], self.logs)


class OnRaft(Recoveries, FleetTest):
    provider = "raft"

    def test_the_file_is_applied_when_it_changes_and_refused_whole_when_it_is_bad(self):
        workers = self.start(2, 1)
        self.declare(declaration(3, workers.urls()))
        self.wait_placed(workers, [0], identifiers(3))
        bad = declaration(4, workers.urls())
        bad["cameras"][0]["rtspUrl"] = "telnet://x"
        self.declare(bad)
        until(lambda: all("declared-refused" in p.log() for p in self.processes.values()),
              self.logs)
        self.assertEqual(self.placed(workers, [0]), identifiers(3))
        for process in self.processes.values():
            before = process.log().count("declared-refused")
            process.run.send_signal(signal.SIGHUP)
            until(lambda process=process, before=before: process.log().count(
                "declared-refused") > before, "it reads the file again on SIGHUP")
        self.declare(declaration(1, workers.urls()))
        self.wait_placed(workers, [0], identifiers(1))
        self.assertNotIn("canary", self.logs())


class OnRedis(Recoveries, FleetTest):
    provider = "redis"

    def test_a_file_that_changes_while_redis_is_away_is_applied_when_it_is_back(self):
        workers = self.start(2, 1)
        self.server.kill()
        self.server.wait()
        self.declare(declaration(3, workers.urls()))
        until(lambda: all("declared-not-applied" in p.log() for p in self.processes.values()),
              self.logs)
        self.begin_redis()
        self.wait_placed(workers, [0], identifiers(3))

    def test_a_redis_that_lost_its_data_gets_the_file_again(self):
        workers = self.start(2, 1)
        subprocess.run(["redis-cli", "-p", str(self.redis_port), "FLUSHALL"], check=True,
                       stdout=subprocess.DEVNULL)
        until(lambda: any(not one["subscriptions"]
                          for one in workers.commands(0, "setSubscriptionList")), self.logs)
        self.wait_placed(workers, [0], identifiers(2))

    def test_tail_goes_on_when_its_process_is_back_and_has_its_state_again(self):
        self.start(2, 1, displays=1)
        process = next(iter(self.processes.values()))
        tail = subprocess.Popen([BATON, "fleet", "--fleet", process.url(""), "tail", "--json",
                                 "--only", "session-changed"], stdout=subprocess.PIPE,
                                universal_newlines=True, env=clean_environment())
        self.addCleanup(lambda: (tail.kill(), tail.wait(), tail.stdout.close()))
        lines = []
        threading.Thread(target=lambda: lines.extend(tail.stdout), daemon=True).start()

        numbers = itertools.count(1)  # what does not change is no event

        def shows_a_session():
            self.ask("PUT", "/api/displays/display-0/session", {"sessionId": next(numbers)})
            return [line for line in lines if json.loads(line)["event"] == "session-changed"]
        until(shows_a_session, self.logs)
        self.server.kill()
        self.server.wait()
        process.kill()
        process.start()
        until(lambda: process.ask("GET", "/events")[0] == 503, self.logs)
        lines.clear()
        self.begin_redis()
        until(lambda: self.is_ready(process.name), self.logs)
        until(lambda: shows_a_session() and
              "missed" in [json.loads(line)["event"] for line in lines], self.logs)

    def test_redis_is_away_for_longer_than_the_leases_and_then_all_is_as_before(self):
        workers = self.start(4, 2)
        before = [workers.list_of(i) for i in range(2)]
        self.server.kill()
        self.server.wait()
        until(lambda: all(workers.of(i, "disconnected") for i in range(2)),
              "nobody is connected without a lease")
        self.begin_redis()
        until(lambda: all(len(workers.of(i, "connected")) > 1 for i in range(2)), self.logs)
        until(lambda: all(worker["inSync"] for worker in self.get("/api/workers")["items"]),
              self.logs)
        self.assertEqual([workers.list_of(i) for i in range(2)], before)

    def test_redis_fails_and_the_connections_go_on_until_it_is_back(self):
        workers = self.start(2, 1)
        before, begun = len(workers.of(0, "disconnected")), time.monotonic()
        self.server.send_signal(signal.SIGSTOP)
        try:
            time.sleep(1)
            workers.tell('detect display-0;cam-0 {"carBrand":"Honda"}')
        finally:
            self.server.send_signal(signal.SIGCONT)
        was_brief = time.monotonic() < begun + 2  # less than what is left of a lease
        until(lambda: self.get("/api/detections")["items"], self.logs)
        if was_brief:
            self.assertEqual(len(workers.of(0, "disconnected")), before)
        self.assertEqual(self.placed(workers, [0]), identifiers(2))


class OnAgent(Recoveries, FleetTest):
    provider = "agent"


class Beginnings(FleetTest):
    """Of one process whose provider or whose word is wrong."""

    def begin(self, url, *flags):
        process = Process(self.folder, "a", url, *flags)
        self.addCleanup(process.end)
        return process

    def test_a_provider_that_is_not_there_is_named_in_the_log_and_can_be_left(self):
        process = self.begin("redis://127.0.0.1:%d" % free_ports(1)[0])
        until(lambda: "provider-silent" in process.log(), process.log)
        self.assertRegex(process.log(), "redis-away .*connection refused")
        process.run.send_signal(signal.SIGTERM)
        self.assertEqual(process.run.wait(DEADLINE_S), 0)

    def test_a_server_that_may_have_forgotten_a_lease_is_waited_for_aloud(self):
        url = self.start_redis().split("?")[0] + "?lease=30s&max-lease=600s"
        process = self.begin(url)
        until(lambda: re.search("election-failed .*may have forgotten a lease", process.log()),
              process.log)

    def test_probes_are_answered_while_the_provider_is_away(self):
        url = self.start_redis()
        self.server.kill()
        self.server.wait()
        process = self.begin(url)
        until(lambda: process.ask("GET", "/healthz")[0] == 200, process.log)
        self.assertEqual(process.ask("GET", "/readyz")[:2], (503, {"ready": False}))
        for path in "/status", "/leader", "/metrics", "/events", "/api/cameras":
            self.assertEqual(process.ask("GET", path)[:2], (
                503, {"error": "the state of the fleet is being loaded"}), path)
        self.begin_redis()
        until(lambda: process.ask("GET", "/readyz")[0] == 200, process.log)
        self.assertEqual(process.ask("GET", "/api/cameras")[0], 200)

    def test_a_process_whose_disk_fails_ends_so_that_it_is_started_again(self):
        process = self.begin("raft://127.0.0.1:%d?group=fleet&data=%s/a&%s" % (
            free_ports(1)[0], self.folder, RAFT))
        until(lambda: process.ask("GET", "/leader")[0] == 200, process.log)
        resource.prlimit(process.run.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        process.ask("PUT", "/api/displays/d", {})
        self.assertEqual(process.run.wait(DEADLINE_S), 74)
        self.assertIn("storage-failed", process.log())

    def test_of_two_that_register_a_worker_at_once_one_is_refused(self):
        process = self.begin("raft://127.0.0.1:%d?group=fleet&data=%s/a&%s" % (
            free_ports(1)[0], self.folder, RAFT))
        until(lambda: process.ask("GET", "/leader")[0] == 200, process.log)
        with concurrent.futures.ThreadPoolExecutor(2) as two:
            for port in range(1, 11):
                done = list(two.map(lambda name: process.ask(
                    "PUT", "/api/workers/%s-%d" % (name, port),
                    {"url": "ws://127.0.0.1:%d" % port}), "xy"))
                self.assertEqual(sorted(status for status, _, _ in done), [201, 409], done)
        self.assertEqual(process.ask("GET", "/api/workers")[1]["count"], 10)

    def test_it_runs_without_descriptors_and_where_its_parent_has_blocked_signals(self):
        port = free_ports(1)[0]
        run = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", FLEET, "--provider",
                                "memory:", "--http", "127.0.0.1:%d" % port],
                               env=clean_environment(), preexec_fn=lambda: signal.pthread_sigmask(
                                   signal.SIG_BLOCK, {signal.SIGTERM}))
        self.addCleanup(lambda: (run.kill(), run.wait()))

        def is_up():
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/readyz" % port) as answer:
                    return answer.status == 200
            except OSError:
                return run.poll() is not None
        until(is_up, "it answers, or has ended")
        run.terminate()
        self.assertEqual(run.wait(DEADLINE_S), 0)

    def test_it_ends_with_the_exit_codes_of_baton(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            data = self.folder + "/data"
            for code, url, *flags in (
                    (74, "memory:", "--http", address),
                    (74, "raft://%s?group=fleet&data=%s" % (address, data)),
                    (77, "memory:", "--worker-token-file", "/etc/passwd"),
                    (64, "memory:", "--worker-token-file", "/nonexistent"),
                    (64, "memory:", "--s3-endpoint", "https://s3.example", "--s3-credentials",
                     "/nonexistent"),
                    (64, "memory:", "--config", "/nonexistent")):
                process = self.begin(url, *flags)
                self.assertEqual(process.run.wait(DEADLINE_S), code, process.log())

    def test_a_wrong_password_of_redis_ends_it_with_77_at_its_start(self):
        url = self.start_redis()
        subprocess.run(["redis-cli", "-p", str(self.redis_port), "CONFIG", "SET", "requirepass",
                        "right"], check=True, stdout=subprocess.DEVNULL)
        process = self.begin(url.replace("://", "://:wrong@"))
        self.assertEqual(process.run.wait(DEADLINE_S), 77, process.log())
        self.assertIn("user or password is wrong", process.log())

    def test_a_name_of_several_workers_is_refused_in_the_file(self):
        self.declare({"workers": ["ws://127.0.0.1:9", "dns+ws://localhost:9"]})
        process = self.begin("memory:", "--config", self.folder + "/fleet.yaml")
        self.assertEqual(process.run.wait(DEADLINE_S), 64)
        self.assertIn("workers[1]: dns+ws://localhost:9 stands for several workers: give it as "
                      "--worker", process.log())

    def test_a_worker_that_is_registered_is_not_declared_a_second_time(self):
        self.declare({"displays": [{"id": "d"}]})
        process = self.begin("memory:", "--config", self.folder + "/fleet.yaml")
        until(lambda: process.ask("GET", "/api/displays/d")[0] == 200, process.log)
        process.ask("PUT", "/api/workers/mine", {"url": "ws://127.0.0.1:9"})
        self.declare({"workers": ["ws://127.0.0.1:9/", "ws://127.0.0.1:10"]})
        until(lambda: process.ask("GET", "/api/workers/127.0.0.1-10")[0] == 200, process.log)
        self.assertEqual([one["id"] for one in process.ask("GET", "/api/workers")[1]["items"]],
                         ["127.0.0.1-10", "mine"])

    def test_a_worker_that_the_api_made_stays_when_the_file_has_it_no_more(self):
        self.declare({"displays": [{"id": "d"}]})
        process = self.begin("memory:", "--config", self.folder + "/fleet.yaml")
        until(lambda: process.ask("GET", "/api/displays/d")[0] == 200, process.log)
        process.ask("PUT", "/api/workers/127.0.0.1-9", {"url": "ws://127.0.0.1:9"})
        self.declare({"workers": ["ws://127.0.0.1:9", "ws://127.0.0.1:10"]})
        until(lambda: process.ask("GET", "/api/workers/127.0.0.1-10")[0] == 200, process.log)
        self.declare({"workers": []})
        until(lambda: process.ask("GET", "/api/workers/127.0.0.1-10")[0] == 404, process.log)
        self.assertEqual(process.ask("GET", "/api/workers/127.0.0.1-9")[0], 200)

    def test_a_declared_worker_gets_the_scheme_that_the_file_has_now(self):
        self.declare({"workers": ["ws://127.0.0.1:9"]})
        process = self.begin("memory:", "--config", self.folder + "/fleet.yaml")
        worker = "/api/workers/127.0.0.1-9"
        until(lambda: process.ask("POST", worker + "/cordon")[0] == 200, process.log)
        self.declare({"workers": ["wss://127.0.0.1:9"]})
        until(lambda: process.ask("GET", worker)[1]["url"] == "wss://127.0.0.1:9", process.log)
        self.assertTrue(process.ask("GET", worker)[1]["cordoned"])

    def test_of_many_that_a_file_has_no_longer_none_stays(self):
        count = 6000
        self.declare({"displays": [{"id": "d%d" % i} for i in range(count)]})
        process = self.begin("raft://127.0.0.1:%d?group=fleet&data=%s/a&%s" % (
            free_ports(1)[0], self.folder, RAFT), "--config", self.folder + "/fleet.yaml")
        until(lambda: "declared " in process.log(), process.log)
        self.declare({"displays": [{"id": "d0"}]})
        until(lambda: process.log().count("declared ") == 2, process.log)
        self.assertEqual(process.ask("GET", "/api/displays?limit=1")[1]["count"], 1)
        self.assertRegex(process.log(), r" leader-changed leader=a epoch=\d+\n")

    def check_file_that_grows(self, seldom):
        """With `seldom` the process runs for three writes of twenty only: what it has to do at
        different times, it does at once."""
        self.declare({"displays": [{"id": "before"}]})
        process = self.begin("memory:", "--config", self.folder + "/fleet.yaml")
        until(lambda: process.ask("GET", "/api/displays/before")[0] == 200, process.log)
        seen, latest, longest = set(), time.monotonic(), 0
        with open(self.folder + "/fleet.yaml", "w", encoding="utf-8") as file:  # as scp does
            file.write("displays:\n")
            for i in range(100 if seldom else 30):
                file.write("- id: d%d\n" % i)
                file.flush()
                longest = max(longest, time.monotonic() - latest)
                latest = time.monotonic()
                if seldom and i % 20 == 3:
                    process.run.send_signal(signal.SIGSTOP)
                if seldom and i % 20 == 0:
                    process.run.send_signal(signal.SIGCONT)
                time.sleep(0.1)
                if not seldom or i % 20 < 3:
                    seen.add(process.ask("GET", "/api/displays/before")[0])
            process.run.send_signal(signal.SIGCONT)
            file.write("- id: before\n")
        until(lambda: process.ask("GET", "/api/displays/d29")[0] == 200, process.log)
        self.assertEqual(process.ask("GET", "/api/displays/before")[0], 200)
        if longest < 0.8:  # else the writer itself has paused for long
            self.assertEqual(seen, {200})

    def test_a_file_that_grows_is_read_once_it_is_whole(self):
        self.check_file_that_grows(seldom=False)

    def test_a_file_that_grows_is_read_once_it_is_whole_by_who_seldom_runs(self):
        self.check_file_that_grows(seldom=True)

    def test_off_loopback_it_needs_a_token_or_that_everybody_may(self):
        for flags in (), ("--read-token-file", self.token()):
            process = self.begin("memory:", "--http", "0.0.0.0:0", *flags)
            self.assertEqual(process.run.wait(DEADLINE_S), 64)
            self.assertIn("--change-token-file", process.log())
            os.unlink(process.path)
        for flags in ("--insecure",), ("--change-token-file", self.token()):
            process = self.begin("memory:", "--http", "0.0.0.0:0", *flags)
            until(lambda process=process: " ready " in process.log(), process.log)
            process.end()
            os.unlink(process.path)

    def token(self):
        path = os.path.join(self.folder, "token")
        with open(path, "w", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write("a-token-of-this-test\n")
        return path

    def test_the_guide_names_each_event_that_leaves(self):
        process = self.begin("memory:", "--webhook", "http://127.0.0.1:9/", "--webhook-events", "x")
        self.assertEqual(process.run.wait(DEADLINE_S), 64)
        events = process.log().splitlines()[0].split("there are: ")[1].split(", ")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs",
                               "fleet.md"), encoding="utf-8") as file:
            guide = file.read().split("- `--webhook-events` names them")[1].split("\n- ")[0]
        self.assertEqual(sorted(re.findall("`([a-z-]+)`", guide)), sorted(events))

    def test_a_wrong_option_is_the_only_thing_that_is_said(self):
        self.declare({"displays": [{"nam": "d"}]})
        for flags, said in (
                (("--s3-endpoint", "s3.example"), "the S3 endpoint (--s3-endpoint)"),
                (("--worker", "ws://h:1", "--worker", "http://h"), "--worker: http://h: "),
                (("--worker", "ws://u:canary@h:1"), "--worker: ws://***@h:1: "),
                (("--grace", "0s"), "--grace: '0s': must be at least 100ms"),
                (("--node", b"\xff"), "--node ?: must be UTF-8"),
                (("--tls-cert", self.token(), "--tls-key", self.token()), "--tls-cert "),
                (("--config", self.folder + "/fleet.yaml"), "--config: ")):
            process = self.begin("memory:", *flags)
            self.assertEqual(process.run.wait(DEADLINE_S), 64, flags)
            self.assertTrue(process.log().startswith("baton-fleet: " + said), process.log())
            os.unlink(process.path)



if __name__ == "__main__":
    main()
