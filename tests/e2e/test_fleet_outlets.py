"""baton-fleet beside programs of others on one Redis: what they publish, and what they read."""
import json
import signal
import subprocess
import time
import urllib.request

from fleets import FleetTest, declaration, identifiers
from harness import DEADLINE_S, main, until


class Outlets(FleetTest):
    provider = "redis"

    def redis(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.redis_port), *words], check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()

    def start(self):
        workers = self.stand_ins(2)
        self.start_fleet(2, config=declaration(4, workers.urls()))
        self.wait_placed(workers, range(2), identifiers(4))
        return workers

    def test_a_session_and_a_stage_that_another_program_publishes_reach_the_workers(self):
        workers = self.start()
        for message in (
                {"type": "setSessionId",
                 "payload": {"displayIdentifier": "display-0", "sessionId": 12345}},
                {"type": "setProgressionStage",
                 "payload": {"displayIdentifier": "display-0", "progressionStage": "car_fueling"}}):
            # Again and again: what processes that stood still hear late is left out.
            until(lambda m=message: self.redis("PUBLISH", "worker:commands", json.dumps(m)) and
                  any(m in workers.commands(i) for i in range(2)), self.logs)
        until(lambda: self.get("/api/displays/display-0/data").get("sessionId") == 12345, self.logs)

    def counter(self, process, name):
        with urllib.request.urlopen(process.url("/metrics"), timeout=DEADLINE_S) as answer:
            lines = answer.read().decode().splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith(name + " ")]

    def test_a_process_that_was_stopped_leaves_the_commands_of_that_time_to_the_others(self):
        self.start()
        master = self.processes[self.wait_master()]
        other = next(one for one in self.processes.values() if one is not master)
        other.run.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        command = json.dumps({"type": "setSessionId", "payload": {"displayIdentifier": "display-0",
                                                                  "sessionId": 5}})
        data = "/api/displays/display-0/data"
        until(lambda: self.redis("PUBLISH", "worker:commands", command) and
              (master.ask("GET", data)[1] or {}).get("sessionId") == 5, self.logs)
        status = master.ask("PUT", "/api/displays/display-0/session", {"sessionId": 7})[0]
        self.assertEqual(status, 204)
        until(lambda: time.monotonic() > begin + 2, "longer than a busy machine may take")
        other.run.send_signal(signal.SIGCONT)
        until(lambda: self.counter(other, "baton_fleet_commands_late_total") > [0] or
              master.ask("GET", data)[1]["sessionId"] == 5, self.logs)
        self.assertEqual(master.ask("GET", data)[1]["sessionId"], 7)

    def test_other_programs_read_states_assignments_and_owners(self):
        workers = self.start()
        names = [workers.id(i) for i in range(2)]
        until(lambda: sorted(self.redis("HKEYS", "worker:assignments").split()) ==
              identifiers(4), self.logs)
        for i, name in enumerate(names):
            for one in workers.list_of(i):
                self.assertEqual(self.redis("HGET", "worker:assignments", one), name)
            until(lambda n=name: self.redis("GET", "worker:owners:" + n) == self.owners()[n],
                  self.logs)
            until(lambda n=name: json.loads(self.redis("HGET", "worker:states", n))["online"],
                  self.logs)

    def test_a_new_master_goes_on_writing(self):
        workers = self.start()
        until(lambda: self.redis("HLEN", "worker:states") == "2", self.logs)
        first = self.wait_master()
        self.redis("DEL", "worker:states", "worker:assignments")  # the next one may be at once
        self.processes[first].kill()
        self.assertNotEqual(self.wait_master(), first)
        until(lambda: self.redis("HLEN", "worker:states") == "2" and
              self.redis("HLEN", "worker:assignments") == "4", self.logs)
        until(lambda: all(self.redis("GET", "worker:owners:" + workers.id(i)) not in ("", first)
                          for i in range(2)), self.logs)


if __name__ == "__main__":
    main()
