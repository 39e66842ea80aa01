"""Nodes of the embedded provider: killed, stopped and parted at random, over lines that lose.

As test_redis_chaos.py, on a network of its own whose cuts overlap, go one way, or leave a bridge.
"""
import random

from chaos import SECONDS, SEED, Chaos
from faults import QUICK, FaultTest, main
from namespaces import NetworkedCluster

NODES = 5


class RaftChaos(Chaos):
    kinds = {"kill": 6, "stop": 5, "cut_off": 3, "deafen": 2, "mute": 2, "part": 2, "lose": 2}

    def others(self, *names):
        return [name for name in self.cluster.names if name not in names]

    def cut(self, what, some, others, both):
        network = self.cluster.network
        cuts = network.part(some, others) if both else [network.deafen(some, others)]
        self.happened[what] += 1
        return lambda: network.mend(*cuts)

    def cut_off(self, name, _):
        return self.cut("cut off", [name], self.others(name), True)

    def deafen(self, name, _):
        return self.cut("deaf", [name], self.others(name), False)

    def mute(self, name, _):
        return self.cut("mute", self.others(name), [name], False)

    def part(self, name, plan):
        """It and one more, from the others, or only from one of these: a bridge."""
        beside, *far = self.others(name)
        return self.cut("parted", [name, beside], far if plan.at < 0.5 else far[:1], True)

    def lose(self, name, plan):
        self.cluster.network.lose(name, 10 + int(plan.at * 40))
        self.happened["lossy lines"] += 1
        return lambda: self.cluster.network.lose(name, 0)


class Storm(FaultTest):
    def test_zero_instants_of_two_leaders_in_a_group(self):
        print("\nBATON_SEED=%d" % SEED, flush=True)
        cluster = NetworkedCluster(NODES, *QUICK)
        self.addCleanup(cluster.close)
        cluster.start_all()
        cluster.wait_leader()
        chaos = RaftChaos(cluster)
        chaos.play(SECONDS, random.Random("raft %d" % SEED))
        chaos.judge(self, "raft", SECONDS)
        for name in cluster.names:
            self.assertLess(cluster.term(name), 1000, "terms run away")


if __name__ == "__main__":
    main()
