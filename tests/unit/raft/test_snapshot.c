/* A snapshot that a follower cannot take in: of a newer version, or when its memory is short. */
#include "cluster.h"

#include <string.h>

static void compact(struct cluster *cluster, raft_id id, raft_index index, const char *text)
{
    struct raft_input input = {.type = RAFT_IN_COMPACT,
                               .compact = {.index = index, .data = text, .bytes = strlen(text)}};
    assert_int_equal(node_step(cluster, id, &input), 0);
}

/* The leader's log is behind a snapshot that `*ret_behind` needs, and refuses. */
static struct cluster *refuse_a_snapshot(raft_id *ret_leader, raft_id *ret_behind)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);
    raft_id behind = leader == 3 ? 2 : 3;

    node_crash(cluster, behind);
    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    cluster_run(cluster, 50);
    compact(cluster, leader, node_status(cluster, leader).applied_index, "new form");
    node_start(cluster, behind);
    node_of(cluster, behind)->refuses_snapshots = true;
    cluster_run(cluster, 300);
    assert_true(node_of(cluster, behind)->refused_snapshots > 0);
    *ret_leader = leader;
    *ret_behind = behind;
    return cluster;
}

static void a_refused_snapshot_is_not_stored(void **state)
{
    raft_id leader, behind;
    struct cluster *cluster = refuse_a_snapshot(&leader, &behind);

    assert_int_equal(node_of(cluster, behind)->snapshot.index, 0);
    assert_int_equal(node_of(cluster, behind)->applied_count, 0);
    node_crash(cluster, behind);
    node_of(cluster, behind)->refuses_snapshots = false;
    node_start(cluster, behind); /* what is stored is what was stored before */
    cluster_run(cluster, 300);
    assert_string_equal(node_of(cluster, behind)->applied[0], "new form");
    cluster_free(cluster);
}

static void the_leader_learns_of_a_refused_snapshot_and_sends_it_again_later(void **state)
{
    raft_id leader, behind;
    struct cluster *cluster = refuse_a_snapshot(&leader, &behind);
    const struct raft_event *event = node_last(cluster, leader, RAFT_EV_SNAPSHOT_REFUSED);
    size_t before = node_of(cluster, behind)->refused_snapshots;

    assert_non_null(event);
    assert_int_equal(event->node, behind);
    assert_int_equal(event->count, 7);
    assert_true(before <= 4); /* of 300 ms, one in each heartbeat timeout of 75 ms */
    node_of(cluster, behind)->refuses_snapshots = false; /* memory is there again */
    cluster_run(cluster, 200);
    assert_string_equal(node_of(cluster, behind)->applied[0], "new form");
    assert_int_equal(node_status(cluster, behind).commit_index,
                     node_status(cluster, leader).commit_index);
    cluster_free(cluster);
}

static void an_older_form_of_the_same_snapshot_is_sent_at_once(void **state)
{
    raft_id leader, behind;
    struct cluster *cluster = refuse_a_snapshot(&leader, &behind);

    node_of(cluster, behind)->refuses_snapshots = false;
    compact(cluster, leader, node_of(cluster, leader)->snapshot.index, "old form");
    cluster_deliver(cluster); /* no time passes */
    assert_string_equal(node_of(cluster, behind)->applied[0], "old form");
    assert_string_equal(node_of(cluster, leader)->applied[0], "x");
    cluster_free(cluster);
}

static void an_answer_to_what_is_not_on_offer_changes_nothing(void **state)
{
    struct cluster *cluster = cluster_new(1);
    struct raft_input input = {.type = RAFT_IN_SNAPSHOT, .snapshot = {.is_taken = true}};

    cluster_start(cluster);
    assert_int_equal(node_step(cluster, 1, &input), BATON_EINVAL);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_snapshot_is_not_stored),
        cmocka_unit_test(the_leader_learns_of_a_refused_snapshot_and_sends_it_again_later),
        cmocka_unit_test(an_older_form_of_the_same_snapshot_is_sent_at_once),
        cmocka_unit_test(an_answer_to_what_is_not_on_offer_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
