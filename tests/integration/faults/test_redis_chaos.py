"""Everything at once: contenders killed, stopped and cut off, and Redis stopped and restarted.

For BATON_CHAOS_SECONDS (`make chaos`: two minutes) faults begin and end at random instants and
overlap. At no instant may two have led, by the eyewitnesses' records; epochs only grow; and when
all is healed somebody leads.
"""
import os
import random
import signal

from chaos import SECONDS, SEED, Chaos
from cuttable import Link
from faults import RECORD, FaultTest, WatchedCluster, main, until
from redis_ground import RedisServer, WatchedRedis

NODES = 5
SERVER = "Redis"
OPTIONS = ("lease=1s&max-lease=1s&heartbeat-interval=300ms&check-interval=300ms"
           "&answer-timeout=500ms&layout=")


class RedisChaos(Chaos):
    kinds = {"kill": 6, "stop": 5, "stall": 4, "cut": 4, "stop_server": 2, "restart_server": 2}

    def __init__(self, server, cluster, links):
        super().__init__(cluster)
        self.server, self.links = server, links

    def victim(self, plan):
        if plan.kind.endswith("server"):
            return None if SERVER in self.busy else SERVER
        return super().victim(plan)

    def begin(self, plan):
        if plan.copies and SERVER not in self.busy:
            self.server.keep_copy()
        super().begin(plan)

    def stall(self, name, plan):
        self.links[name].stall(*plan.ways)
        self.happened["stalled links"] += 1
        return self.links[name].heal

    def cut(self, name, _):
        self.links[name].cut()
        self.happened["cut links"] += 1
        return self.links[name].heal

    def stop_server(self, *_):
        self.server.process.send_signal(signal.SIGSTOP)
        self.happened["stops of Redis"] += 1
        return lambda: self.server.process.send_signal(signal.SIGCONT)

    def restart_server(self, _, plan):
        self.server.restart(plan.data)
        self.happened["restarts of Redis with " + plan.data] += 1


class Storm(FaultTest):
    def storm(self, layout, seconds):
        print("\nBATON_SEED=%d" % SEED, flush=True)
        server = RedisServer("--appendonly", "yes")
        self.addCleanup(server.close)
        cluster = WatchedRedis(NODES, server.port, OPTIONS + layout)
        self.addCleanup(cluster.close)
        links = {name: Link(server.port) for name in cluster.names}
        for name, link in links.items():
            self.addCleanup(link.close)
            cluster.reached[name] = link.port
        cluster.start_all()
        cluster.wait_leader()
        chaos = RedisChaos(server, cluster, links)
        chaos.play(seconds, random.Random("%s %d" % (layout, SEED)))
        chaos.judge(self, layout, seconds)

    def test_zero_instants_of_two_leaders(self):
        for layout in ("master-election", "sovereign"):
            self.storm(layout, SECONDS / 2)


class TheCheck(FaultTest):
    """The check is no comfort unless it can fail."""

    def test_records_that_overlap_are_found(self):
        cluster = WatchedCluster(2)
        self.addCleanup(cluster.close)
        for number, (name, records) in enumerate([("a", [(5, 100, 200), (7, 400, 500)]),
                                                  ("b", [(6, 200, 300)])]):
            path = os.path.join(cluster.dir, "%s.%d.seen" % (name, number))
            cluster.lives.append((name, path))
            with open(path, "wb") as file:
                file.write(b"".join(RECORD.pack(*one) for one in records) + bytes(RECORD.size))
        with self.assertRaisesRegex(AssertionError, "two leaders"):
            self.assert_one_at_a_time(cluster)

    def test_eyewitnesses_see_two_leaders_where_there_are_two(self):
        """The same nodes, each with a server of its own: nothing keeps them apart."""
        first, second = RedisServer(), RedisServer()
        for server in (first, second):
            self.addCleanup(server.close)
        cluster = WatchedRedis(2, first.port, OPTIONS + "master-election")
        self.addCleanup(cluster.close)
        cluster.reached["b"] = second.port
        cluster.start_all()
        until(lambda: len({one.who for one in cluster.leaderships()}) == 2, "both lead")
        shared = max(one.first_ns for one in cluster.leaderships())
        until(lambda: all(one.last_ns > shared for one in cluster.leaderships()), "and go on")
        with self.assertRaisesRegex(AssertionError, "two leaders"):
            self.assert_one_at_a_time(cluster)


if __name__ == "__main__":
    main()
