/* Changes of members that would stop the group, and how a voter joins without that danger. */
#include "cluster.h"

#include <string.h>

/* The first `count` of the nodes are the group, the others are there to join. */
static struct cluster *group_of(size_t count, size_t all, raft_id *ret_leader)
{
    struct cluster *cluster = cluster_new(all);

    cluster->first.count = count;
    for (size_t id = 1; id <= count; id++) {
        node_start(cluster, id);
    }
    *ret_leader = cluster_elect(cluster);
    cluster_run(cluster, 200);
    cluster->first.count = all;
    return cluster;
}

static int ask(struct cluster *cluster, raft_id leader, const struct raft_member *members,
               size_t count)
{
    struct raft_configuration wanted = {.members = (struct raft_member *)members, .count = count};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};
    return node_step(cluster, leader, &input);
}

static int check(struct cluster *cluster, raft_id leader, const struct raft_member *members,
                 size_t count, struct baton_error *error)
{
    struct raft_configuration wanted = {.members = (struct raft_member *)members, .count = count};
    return raft_check_change(node_of(cluster, leader)->raft, &wanted, error);
}

static void a_voter_where_nothing_answers_is_refused_while_another_is_dead(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(3, 4, &leader);
    struct baton_error error = {0};

    node_crash(cluster, leader == 3 ? 2 : 3);
    cluster_run(cluster, 200);
    assert_int_equal(ask(cluster, leader, cluster->first.members, 4), BATON_EUNSAFE);
    assert_int_equal(check(cluster, leader, cluster->first.members, 4, &error), BATON_EUNSAFE);
    assert_non_null(strstr(error.message, leader == 3 ? "\"n2\", \"n4\"" : "\"n3\", \"n4\""));
    cluster_run(cluster, 1000);
    assert_true(node_is_leader(cluster, leader));
    cluster_free(cluster);
}

static void it_may_be_forced(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(1, 2, &leader);
    struct raft_configuration wanted = {.members = cluster->first.members, .count = 2};
    struct raft_input input = {
        .type = RAFT_IN_RECONFIGURE, .configuration = &wanted, .is_forced = true};

    assert_int_equal(ask(cluster, 1, cluster->first.members, 2), BATON_EUNSAFE);
    assert_int_equal(node_step(cluster, 1, &input), 0);
    cluster_free(cluster);
}

static void removing_the_living_beside_the_dead_is_refused(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(3, 3, &leader);
    struct raft_member left[2];
    raft_id dead = leader == 3 ? 2 : 3;

    node_crash(cluster, dead);
    cluster_run(cluster, 200);
    left[0] = cluster->first.members[leader - 1];
    left[1] = cluster->first.members[dead - 1];
    assert_int_equal(ask(cluster, leader, left, 2), BATON_EUNSAFE);
    left[1] = cluster->first.members[6 - leader - dead - 1];
    assert_int_equal(ask(cluster, leader, left, 2), 0); /* the dead one instead */
    cluster_free(cluster);
}

static void a_witness_alone_is_no_quorum_that_could_have_a_leader(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(3, 4, &leader);
    struct raft_member left[2];

    left[0] = cluster->first.members[cluster_follower(leader) - 1];
    left[0].kind = RAFT_WITNESS;
    left[0].weight = 4;
    left[1] = cluster->first.members[3]; /* the only one who may lead, and nothing answers there */
    assert_int_equal(ask(cluster, leader, left, 2), BATON_EUNSAFE);
    cluster_free(cluster);
}

/* The way that is safe at each step: learner, caught up, voter. */
static void a_voter_joins_as_a_learner_that_catches_up(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(1, 2, &leader);
    struct raft_member *members = cluster->first.members;
    struct raft_progress progress;

    members[1].kind = RAFT_LEARNER;
    members[1].weight = 0;
    assert_int_equal(ask(cluster, 1, members, 2), 0);
    cluster_run(cluster, 100);
    assert_true(raft_get_progress(node_of(cluster, 1)->raft, 2, &progress));
    assert_false(progress.is_caught_up); /* it is not there yet */
    members[1].kind = RAFT_VOTER;
    members[1].weight = 1;
    assert_int_equal(ask(cluster, 1, members, 2), BATON_EUNSAFE);

    node_start(cluster, 2);
    cluster_run(cluster, 100);
    assert_true(raft_get_progress(node_of(cluster, 1)->raft, 2, &progress));
    assert_true(progress.is_caught_up);
    assert_int_equal(ask(cluster, 1, members, 2), 0);
    cluster_run(cluster, 100);
    assert_false(node_status(cluster, 1).is_changing);
    cluster_free(cluster);
}

static void a_learner_that_never_comes_is_taken_out_again(void **state)
{
    raft_id leader;
    struct cluster *cluster = group_of(2, 3, &leader);
    struct raft_member *members = cluster->first.members;

    members[2].kind = RAFT_LEARNER;
    members[2].weight = 0;
    assert_int_equal(ask(cluster, leader, members, 3), 0);
    cluster_run(cluster, 1000);
    assert_int_equal(ask(cluster, leader, members, 2), 0);
    cluster_run(cluster, 200);
    assert_false(node_status(cluster, leader).is_changing);
    assert_int_equal(raft_get_configuration(node_of(cluster, leader)->raft)->count, 2);
    assert_true(node_is_leader(cluster, leader));
    cluster_free(cluster);
}

static void a_leader_that_is_new_asks_for_time(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    node_start(cluster, 1);
    node_start(cluster, 2);
    leader = cluster_elect(cluster);
    assert_int_equal(check(cluster, leader, cluster->first.members + 2, 1, NULL), BATON_EBUSY);
    cluster_run(cluster, 200);
    assert_int_equal(check(cluster, leader, cluster->first.members + 2, 1, NULL), BATON_EUNSAFE);
    assert_int_equal(check(cluster, cluster_follower(leader), cluster->first.members + 2, 1, NULL),
                     BATON_ENOTLEADER);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_voter_where_nothing_answers_is_refused_while_another_is_dead),
        cmocka_unit_test(it_may_be_forced),
        cmocka_unit_test(removing_the_living_beside_the_dead_is_refused),
        cmocka_unit_test(a_witness_alone_is_no_quorum_that_could_have_a_leader),
        cmocka_unit_test(a_voter_joins_as_a_learner_that_catches_up),
        cmocka_unit_test(a_learner_that_never_comes_is_taken_out_again),
        cmocka_unit_test(a_leader_that_is_new_asks_for_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
