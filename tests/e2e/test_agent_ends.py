"""Agents that end by themselves: what they vote by is lost."""
import json
import os
import resource
import secrets
import shutil

from agents import AgentTest
from harness import DEADLINE_S, baton, free_ports, main, until


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


if __name__ == "__main__":
    main()
