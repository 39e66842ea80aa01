"""Agents that end by themselves: what they vote by is lost."""
import json
import os
import resource
import secrets
import shutil
import socketserver
import subprocess
import tempfile
import threading

from agents import AgentTest
from harness import BATON, DEADLINE_S, baton, clean_environment, free_ports, main, until


class Ends(AgentTest):
    def test_an_agent_whose_disk_fails_ends_and_the_next_one_has_its_leaders(self):
        agent = self.member(free_ports(1)[0])
        secret = secrets.token_hex(32)
        leader = self.client(agent, secret=secret)
        session, epoch = leader.event("session")["session"], leader.lead()
        resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        leader.ask("put", key="k", text="v")
        self.assertEqual(agent.process.wait(DEADLINE_S), 74)
        self.assertRegex(agent.log(), "baton agent: .*/raft.db: writing: .*")
        agent.start()
        again = self.client(agent, secret=secret, session=session)
        again.ask("campaign", election="e", known_epoch=epoch, acts=True)
        self.assertEqual(again.event("leadership-acquired")["epoch"], epoch)

    def test_an_agent_whose_data_directory_the_group_refuses_ends(self):
        agents = self.group(3)
        until(lambda: all(self.knows_its_group(one) for one in agents), agents[0].log)
        lost = agents[0]
        lost.kill()
        shutil.rmtree(os.path.join(lost.folder, "data"))
        lost.start()
        self.assertEqual(lost.process.wait(DEADLINE_S), 78, lost.log())
        self.assertRegex(lost.log(), "baton agent: data directory .* m0 has another data directory")

    def knows_its_group(self, agent):
        status = json.loads(baton("status", "--json", "--socket", agent.path).stdout)["raft"]
        return status["group"] and all(peer["connected"] for peer in status["peers"])

    def test_a_client_for_which_the_agent_had_no_memory_asks_again(self):
        with tempfile.TemporaryDirectory(prefix="baton-", dir="/tmp") as folder:
            agent = Short(os.path.join(folder, "s"))
            self.addCleanup(agent.server_close)
            threading.Thread(target=agent.serve_forever, daemon=True).start()
            self.addCleanup(agent.shutdown)
            client = subprocess.Popen(
                [BATON, "run", "--provider", "agent:" + agent.server_address, "--", "true"],
                stderr=subprocess.PIPE, env=clean_environment())
            self.addCleanup(client.communicate)
            self.addCleanup(client.kill)
            until(lambda: agent.campaigns >= 2, "it asks again")


class Short(socketserver.ThreadingUnixStreamServer):
    """A stand-in for an agent that lacks memory."""
    daemon_threads = True

    def __init__(self, path):
        super().__init__(path, Answers)
        self.campaigns = 0


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            asked = json.loads(line)
            answer = {"id": asked["id"], "ok": asked["do"] != "campaign", "lifetime_ms": 60000,
                      "renew_ms": 10000, "left_ms": 60000, "version": 1, "name": "c"}
            if asked["do"] == "campaign":
                self.server.campaigns += 1
                answer |= {"code": "ENOMEM", "error": "out of memory"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")
            if asked["do"] == "hello":
                self.wfile.write(b'{"event":"session","session":"1"}\n')


if __name__ == "__main__":
    main()
