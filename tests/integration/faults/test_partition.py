"""Partitions: the majority goes on, terms stay low, and there are never two leaders.

Real nodes in namespaces of their own; what is cut is cut in silence, and connections hang.
"""
from faults import FaultTest, main, until
from namespaces import NetworkedCluster

ELECTIONS_UNDER_LOSS = 3
MANY_FRAMES = 300  # to a leader: some dozen heartbeats, and several election timeouts


class Partition(FaultTest):
    def on_a_network(self, size, *flags):
        cluster = NetworkedCluster(size, "--heartbeat-timeout", "3s", "--lease", "3s", *flags)
        self.addCleanup(cluster.close)
        cluster.start_all()
        leader = cluster.wait_leader()
        cluster.follow(leader, cluster.names)
        return cluster, leader

    def rest(self, cluster, *names):
        return [name for name in cluster.names if name not in names]

    def time_passes(self, cluster, leader):
        """Long enough for all that would be done about a silence to be done."""
        heard = cluster.counters(leader)["frames_received"]
        until(lambda: cluster.counters(leader)["frames_received"] > heard + MANY_FRAMES,
              "heartbeats go on\n" + cluster.logs())

    def steps_down(self, cluster, leader):
        until(lambda: not cluster.status(leader)["is_leader"], "it has stepped down")

    def heals(self, cluster, leader):
        """All follow that leader, whose epoch outlives the healing."""
        epoch = cluster.status(leader)["epoch"]
        cluster.network.heal()
        cluster.follow(leader, cluster.names)
        self.time_passes(cluster, leader)
        cluster.follow(leader, cluster.names)
        self.assertEqual(cluster.status(leader)["epoch"], epoch, cluster.logs())
        for name in cluster.names:
            self.assertEqual(cluster.term(name), epoch)
        return self.assert_one_at_a_time(cluster)

    def test_a_leader_that_is_cut_off_steps_down_before_another_leads(self):
        five, old = self.on_a_network(5)
        five.network.part([old], self.rest(five, old))
        new = five.wait_leader(self.rest(five, old))
        self.steps_down(five, old)
        # Expired: it stood still until its lease was over, and finds that first.
        self.assertRegex(five.log(old), "leadership-lost .*loss=(lost-quorum|expired)")
        self.assertEqual(self.heals(five, new)[-1].who.split(".")[0], new)

    def test_a_minority_with_the_leader_elects_nobody(self):
        five, old = self.on_a_network(5)
        beside = self.rest(five, old)[0]
        five.network.part([old, beside], self.rest(five, old, beside))
        new = five.wait_leader(self.rest(five, old, beside))
        self.time_passes(five, new)
        self.assertIsNone(five.leader([old, beside]))
        self.heals(five, new)

    def test_a_minority_without_the_leader_disturbs_nobody(self):
        five, leader = self.on_a_network(5)
        epoch = five.status(leader)["epoch"]
        minority = self.rest(five, leader)[:2]
        five.network.part(minority, self.rest(five, *minority))
        self.time_passes(five, leader)
        for name in minority:  # they ask for votes beforehand, and get none
            self.assertEqual(five.term(name), epoch, five.logs())
        self.assertEqual(five.leader(), leader)
        self.heals(five, leader)

    def test_a_leader_that_hears_nobody_steps_down(self):
        """One way: its heartbeats arrive, and no answer does."""
        five, old = self.on_a_network(5)
        five.network.deafen([old], self.rest(five, old))
        self.steps_down(five, old)
        new = five.wait_leader(self.rest(five, old))
        self.heals(five, new)

    def test_a_leader_whom_nobody_hears_is_replaced(self):
        """The other way: it hears all, and says nothing that arrives."""
        five, old = self.on_a_network(5)
        five.network.deafen(self.rest(five, old), [old])
        new = five.wait_leader(self.rest(five, old))
        self.steps_down(five, old)
        self.heals(five, new)

    def test_a_follower_that_hears_nobody_deposes_nobody(self):
        five, leader = self.on_a_network(5)
        epoch = five.status(leader)["epoch"]
        deaf = self.rest(five, leader)[0]
        five.network.deafen([deaf], self.rest(five, deaf))
        self.time_passes(five, leader)
        self.assertEqual(five.leader(), leader)
        self.assertEqual(five.status(leader)["epoch"], epoch)
        self.heals(five, leader)

    def test_two_who_see_each_other_only_through_a_third(self):
        """The leader and a follower do not meet, and the third hears both: it decides, once."""
        three, leader = self.on_a_network(3)
        epoch = three.status(leader)["epoch"]
        far, middle = self.rest(three, leader)
        three.network.part([leader], [far])
        self.time_passes(three, leader)
        self.assertEqual(three.leader([leader, middle]), leader, three.logs())
        self.assertEqual(three.status(leader)["epoch"], epoch)
        self.heals(three, leader)

    def test_lines_that_lose_a_third_elect_all_the_same(self):
        """A leader is cut off from two who need each other, and lose packets between them: what
        TCP has yet to send again must not keep back the votes of later rounds."""
        three, leader = self.on_a_network(3)
        for name in three.names:
            three.network.lose(name, 30)
        for _ in range(ELECTIONS_UNDER_LOSS):
            cuts = three.network.part([leader], self.rest(three, leader))
            new = three.wait_leader(self.rest(three, leader))
            three.network.mend(*cuts)
            leader = new
        three.kill(leader)
        three.wait_leader(self.rest(three, leader))
        three.network.heal()
        three.start(leader)
        self.heals(three, three.wait_leader())

    def test_nobody_sees_anybody(self):
        three, old = self.on_a_network(3)
        for name in three.names:
            three.network.deafen([name], three.names)
        self.steps_down(three, old)
        self.assertIsNone(three.leader())
        three.network.heal()
        self.heals(three, three.wait_leader())


if __name__ == "__main__":
    main()
