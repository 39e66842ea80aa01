/* Elections as the seed tells them: roles, trigger, process, split votes, scenarios. */
#include "cluster.h"

static void one_of_three_is_elected_and_the_others_follow(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    (void)state;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 50);
    for (raft_id id = 1; id <= 3; id++) {
        struct raft_status status = node_status(cluster, id);
        assert_int_equal(status.leader, leader);
        assert_int_equal(status.role, id == leader ? RAFT_LEADER : RAFT_FOLLOWER);
        assert_int_equal(status.commit_index, 1);
    }
    cluster_run(cluster, 5000);
    assert_int_equal(cluster_leader(cluster), leader);
    assert_int_equal(node_status(cluster, leader).term, 1);
    cluster_free(cluster);
}

static void a_crashed_leader_is_replaced_with_a_higher_epoch(void **state)
{
    struct cluster *cluster = cluster_new(5);
    raft_id first, second;
    (void)state;

    cluster_start(cluster);
    first = cluster_elect(cluster);
    cluster_run(cluster, 100);
    node_crash(cluster, first);
    second = cluster_elect(cluster);
    assert_int_not_equal(first, second);
    assert_true(node_of(cluster, second)->lease.epoch > 1);
    cluster_free(cluster);
}

static void a_node_alone_leads_at_once(void **state)
{
    struct cluster *cluster = cluster_new(1);
    instant before = cluster->now;
    (void)state;

    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_true(node_is_leader(cluster, 1));
    assert_true(cluster->now.ns == before.ns);
    assert_true(node_of(cluster, 1)->deadline.ns == INT64_MAX);
    assert_int_equal(node_propose(cluster, 1, "x"), 0);
    assert_int_equal(node_of(cluster, 1)->applied_count, 1);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_three_is_elected_and_the_others_follow),
        cmocka_unit_test(a_crashed_leader_is_replaced_with_a_higher_epoch),
        cmocka_unit_test(a_node_alone_leads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
