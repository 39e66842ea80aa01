/* The operator's commands: hand over, change the members, read. */
#include "cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void leadership_is_passed_to_the_named_node_without_a_wait(void **state)
{
    struct cluster *cluster = cluster_new(5);
    raft_id leader, to;
    instant asked;

    leader = cluster_settle(cluster);
    to = leader == 5 ? 1 : 5;
    asked = cluster->now;
    assert_int_equal(node_transfer(cluster, leader, to, false), 0);
    assert_false(node_is_leader(cluster, leader)); /* void first */
    assert_true(cluster->queue_tail > cluster->queue_head);
    cluster_deliver(cluster);
    assert_true(cluster->now.ns == asked.ns);
    assert_int_equal(cluster_leader(cluster), to);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_LOST)->loss, RAFT_LOSS_RESIGNED);
    cluster_free(cluster);
}

static void leadership_is_passed_to_the_best_node_if_none_is_named(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, heir;

    leader = cluster_settle(cluster);
    heir = node_of(cluster, leader)->heir;
    assert_int_not_equal(heir, RAFT_NOBODY);
    for (raft_id id = 1; id <= 3; id++) { /* everybody knows whom */
        assert_int_equal(node_status(cluster, id).heir, heir);
    }
    assert_int_equal(node_transfer(cluster, leader, RAFT_NOBODY, false), 0);
    cluster_deliver(cluster);
    assert_int_equal(cluster_leader(cluster), heir);
    cluster_free(cluster);
}

/* And not to the one that has died a moment ago, which nobody has missed yet. */
static void leadership_is_passed_to_another_node_if_the_heir_is_proved_dead(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, heir, other;
    instant asked;

    leader = cluster_settle(cluster);
    heir = node_of(cluster, leader)->heir;
    other = 6 - leader - heir;
    node_crash(cluster, heir);
    node_proof(cluster, leader, RAFT_PROOF_GUARDIAN,
               (struct raft_proof){.node = heir,
                                   .incarnation = node_of(cluster, heir)->incarnation,
                                   .through_term = RAFT_TERM_FOREVER},
               RAFT_NOBODY);
    cluster_deliver(cluster);
    assert_int_equal(node_status(cluster, other).heir, other);
    asked = cluster->now;
    assert_int_equal(node_transfer(cluster, leader, RAFT_NOBODY, false), 0);
    cluster_deliver(cluster);
    assert_true(cluster->now.ns == asked.ns);
    assert_int_equal(cluster_leader(cluster), other);
    cluster_free(cluster);
}

static void a_transfer_to_a_node_that_cannot_lead_is_refused(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    cluster->first.members[0].kind = RAFT_WITNESS;
    leader = cluster_settle(cluster);
    assert_int_equal(node_transfer(cluster, leader, 1, false), BATON_EINVAL);
    assert_int_equal(node_transfer(cluster, leader, leader, false), BATON_EINVAL);
    assert_int_equal(node_transfer(cluster, leader, 77, false), BATON_EINVAL);
    assert_int_equal(node_transfer(cluster, 1, leader, false), BATON_ENOTLEADER);
    cluster_free(cluster);
}

static void a_transfer_waits_for_its_target_and_then_goes_elsewhere_or_stays(void **state)
{
    for (int or_stay = 0; or_stay < 2; or_stay++) {
        struct cluster *cluster = cluster_new(3);
        raft_id leader, gone;
        leader = cluster_settle(cluster);
        gone = cluster_follower(leader);
        node_of(cluster, gone)->is_cut = true;
        assert_int_equal(node_propose(cluster, leader, "x"), 0);
        assert_int_equal(node_transfer(cluster, leader, gone, or_stay), 0);
        assert_int_equal(node_propose(cluster, leader, "y"), BATON_EBUSY);
        if (!or_stay) {
            assert_int_equal(node_transfer(cluster, leader, 6 - leader - gone, false), BATON_EBUSY);
        }
        cluster_run(cluster, 300);
        assert_int_equal(cluster_leader(cluster), leader);
        cluster_run(cluster, 500);
        if (or_stay) {
            assert_int_equal(cluster_leader(cluster), leader);
            assert_int_equal(node_last(cluster, leader, RAFT_EV_TRANSFER_FAILED)->node, gone);
            assert_int_equal(node_propose(cluster, leader, "y"), 0);
        } else {
            assert_int_equal(cluster_elect(cluster), 6 - leader - gone);
        }
        cluster_free(cluster);
    }
}

static void a_member_that_has_just_started_gets_leadership_when_it_votes(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_progress progress;
    raft_id leader, to;

    leader = cluster_settle(cluster);
    to = cluster_follower(leader);
    node_crash(cluster, to);
    node_start(cluster, to);
    cluster_run(cluster, 30);
    assert_true(raft_get_progress(node_of(cluster, leader)->raft, to, &progress));
    assert_true(progress.is_active && progress.silence.ns > 0);
    assert_int_not_equal(node_status(cluster, leader).heir, to);
    assert_int_equal(node_transfer(cluster, leader, to, true), 0);
    cluster_run(cluster, progress.silence.ns / 1000000 - 10);
    assert_int_equal(cluster_leader(cluster), leader);
    cluster_run(cluster, 100);
    assert_int_equal(cluster_leader(cluster), to);
    cluster_free(cluster);
}

static void a_node_alone_may_resign_and_is_elected_again(void **state)
{
    struct cluster *cluster = cluster_new(1);
    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_int_equal(node_transfer(cluster, 1, RAFT_NOBODY, false), 0);
    assert_false(node_is_leader(cluster, 1));
    cluster_run(cluster, 400);
    assert_true(node_is_leader(cluster, 1));
    assert_int_equal(node_of(cluster, 1)->lease.epoch, 2);
    cluster_free(cluster);
}

static int reconfigure(struct cluster *cluster, raft_id leader, const struct raft_member *members,
                       size_t count)
{
    struct raft_configuration wanted = {.members = (struct raft_member *)members, .count = count};
    struct raft_input input = {
        .type = RAFT_IN_RECONFIGURE, .configuration = &wanted, .is_forced = true};
    return node_step(cluster, leader, &input);
}

/* What acted under the lease has stopped. */
static void drained(struct cluster *cluster, raft_id id)
{
    struct raft_input input = {.type = RAFT_IN_DRAINED};
    assert_int_equal(node_step(cluster, id, &input), 0);
}

static void a_change_that_touches_no_vote_is_one_entry(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_member members[3];
    struct raft_configuration wanted = {.group = 9, .members = members, .count = 3};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};
    raft_id leader;
    raft_index before;

    leader = cluster_settle(cluster);
    memcpy(members, cluster->first.members, sizeof(members));
    members[1].birth = 77;
    before = node_status(cluster, leader).last_index;
    assert_int_equal(node_step(cluster, leader, &input), 0);
    assert_false(raft_get_configuration(node_of(cluster, leader)->raft)->is_joint);
    cluster_run(cluster, 200);
    for (raft_id id = 1; id <= 3; id++) {
        const struct raft_configuration *now = raft_get_configuration(node_of(cluster, id)->raft);
        assert_true(now->group == 9 && now->members[1].birth == 77);
        assert_int_equal(node_status(cluster, id).last_index, before + 1);
    }
    cluster_free(cluster);
}

static void while_it_is_joint_both_halves_must_agree(void **state)
{
    struct cluster *cluster = cluster_new(6);
    struct raft_member *members = cluster->first.members;
    raft_id leader;

    cluster->first.count = 3;
    node_start(cluster, 1);
    node_start(cluster, 2);
    node_start(cluster, 3);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 100);
    /* the new half is 4, 5, 6, who are not there: nothing is committed, and the lease ends */
    assert_int_equal(reconfigure(cluster, leader, members + 3, 3), 0);
    cluster_run(cluster, 1000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY);
    node_start(cluster, 4);
    node_start(cluster, 5);
    (void)cluster_elect(cluster);
    cluster_run(cluster, 1000);
    leader = cluster_elect(cluster);
    assert_true(leader >= 4); /* the old half is gone, its leader with it */
    assert_false(raft_get_configuration(node_of(cluster, leader)->raft)->is_joint);
    assert_int_equal(raft_get_configuration(node_of(cluster, leader)->raft)->count, 3);
    cluster_free(cluster);
}

static void weights_change_like_members(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_member members[3];
    raft_id leader, other;

    leader = cluster_settle(cluster);
    memcpy(members, cluster->first.members, sizeof(members));
    members[leader - 1].weight = 5;
    assert_int_equal(reconfigure(cluster, leader, members, 3), 0);
    cluster_run(cluster, 100);
    other = cluster_follower(leader);
    node_crash(cluster, other);
    node_crash(cluster, 6 - leader - other);
    cluster_run(cluster, 1000);
    assert_int_equal(cluster_leader(cluster), leader); /* 5 of 7, alone */
    cluster_free(cluster);
}

static void a_change_that_makes_no_group_is_refused(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_member nobody = {.id = 1, .kind = RAFT_LEARNER};
    struct raft_configuration joint = {.members = &nobody, .count = 1, .is_joint = true};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &joint};
    raft_id leader;

    leader = cluster_settle(cluster);
    assert_int_equal(reconfigure(cluster, leader, &nobody, 1), BATON_EINVAL);
    assert_int_equal(node_step(cluster, leader, &input), BATON_EINVAL);
    assert_int_equal(reconfigure(cluster, cluster_follower(leader), &nobody, 1), BATON_ENOTLEADER);
    cluster_free(cluster);
}

static void a_configuration_that_is_truncated_is_taken_back(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    node_of(cluster, leader)->is_cut = true;
    assert_int_equal(reconfigure(cluster, leader, cluster->first.members, 2), 0);
    assert_true(raft_get_configuration(node_of(cluster, leader)->raft)->is_joint);
    cluster_run(cluster, 1000);
    node_of(cluster, leader)->is_cut = false;
    cluster_run(cluster, 500);
    assert_false(raft_get_configuration(node_of(cluster, leader)->raft)->is_joint);
    assert_int_equal(raft_get_configuration(node_of(cluster, leader)->raft)->count, 3);
    cluster_free(cluster);
}

/* ---- What acts under the lease stops first --------------------------------------------------- */

/* Node 3 is preferred, and has been back for as long as it takes; returns who leads till then. */
static raft_id lead_till_the_preferred_is_back(struct cluster *cluster)
{
    raft_id leader;

    cluster->first.members[2].priority = 1;
    cluster->settings.preferred_stable = SPAN_MS(1000);
    node_start(cluster, 1);
    node_start(cluster, 2);
    leader = cluster_elect(cluster);
    node_start(cluster, 3);
    for (int i = 0; i < 2000 && !node_saw(cluster, leader, RAFT_EV_DRAIN); i++) {
        cluster_run(cluster, 1);
    }
    assert_int_equal(node_last(cluster, leader, RAFT_EV_DRAIN)->node, 3);
    return leader;
}

static void the_preferred_node_waits_for_the_end_of_the_drain_and_no_longer(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    instant before;

    leader = lead_till_the_preferred_is_back(cluster);
    cluster_run(cluster, 20);
    assert_int_equal(cluster_leader(cluster), leader);
    assert_int_equal(node_propose(cluster, leader, "the last of the work"), 0);
    cluster_deliver(cluster);
    before = cluster->now;
    drained(cluster, leader);
    assert_false(node_is_leader(cluster, leader));
    cluster_deliver(cluster);
    assert_int_equal(cluster_leader(cluster), 3);
    assert_true(cluster->now.ns == before.ns);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_LOST)->loss, RAFT_LOSS_RESIGNED);
    cluster_free(cluster);
}

static void a_drain_that_does_not_end_is_waited_for_as_long_as_was_announced(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    span left;

    leader = lead_till_the_preferred_is_back(cluster);
    left = node_last(cluster, leader, RAFT_EV_DRAIN)->left;
    assert_true(left.ns > 0 && left.ns <= cluster->settings.lease.ns);
    cluster_run(cluster, left.ns / 1000000 - 2);
    assert_int_equal(cluster_leader(cluster), leader);
    cluster_run(cluster, 4);
    assert_int_equal(cluster_leader(cluster), 3);
    cluster_free(cluster);
}

static void a_target_that_dies_during_the_drain_leaves_the_leader_in_office(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = lead_till_the_preferred_is_back(cluster);
    node_crash(cluster, 3);
    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    drained(cluster, leader);
    cluster_run(cluster, 1000);
    assert_int_equal(cluster_leader(cluster), leader);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_TRANSFER_FAILED)->node, 3);
    cluster_free(cluster);
}

static void a_target_that_is_removed_during_the_drain_leaves_the_leader_in_office(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = lead_till_the_preferred_is_back(cluster);
    assert_int_equal(reconfigure(cluster, leader, cluster->first.members, 2), 0);
    cluster_deliver(cluster);
    drained(cluster, leader);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_TRANSFER_FAILED)->node, 3);
    cluster_run(cluster, 300);
    assert_int_equal(cluster_leader(cluster), leader);
    cluster_free(cluster);
}

static void a_leader_that_becomes_a_witness_is_drained_too(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    cluster->first.members[leader - 1].kind = RAFT_WITNESS;
    assert_int_equal(reconfigure(cluster, leader, cluster->first.members, 3), 0);
    cluster_deliver(cluster);
    assert_true(node_saw(cluster, leader, RAFT_EV_DRAIN));
    assert_int_equal(cluster_leader(cluster), leader);
    drained(cluster, leader);
    cluster_deliver(cluster);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_LOST)->loss, RAFT_LOSS_REMOVED);
    assert_int_not_equal(cluster_elect(cluster), leader);
    cluster_free(cluster);
}

static void the_end_of_a_drain_that_was_not_announced_changes_nothing(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    for (raft_id id = 1; id <= 3; id++) {
        drained(cluster, id);
    }
    cluster_run(cluster, 300);
    assert_int_equal(cluster_leader(cluster), leader);
    cluster_free(cluster);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int ask(struct cluster *cluster, raft_id id, uint64_t context, bool by_lease)
{
    struct raft_input input = {.type = RAFT_IN_READ,
                               .read = {.context = context, .by_lease = by_lease}};
    return node_step(cluster, id, &input);
}

/* The only answer that it has had. */
static const struct raft_read *answer_at(struct cluster *cluster, raft_id id)
{
    assert_int_equal(node_of(cluster, id)->read_count, 1);
    return &node_of(cluster, id)->reads[0];
}

static void a_read_by_lease_is_answered_at_once(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    assert_int_equal(ask(cluster, leader, 7, true), 0);
    assert_int_equal(answer_at(cluster, leader)->context, 7);
    assert_int_equal(answer_at(cluster, leader)->index, node_status(cluster, leader).commit_index);
    cluster_free(cluster);
}

static void a_read_by_quorum_waits_for_a_round(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    assert_int_equal(ask(cluster, leader, 8, false), 0);
    assert_int_equal(node_of(cluster, leader)->read_count, 0);
    cluster_deliver(cluster);
    assert_true(answer_at(cluster, leader)->index > 0);
    cluster_free(cluster);
}

static void a_follower_asks_its_leader(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, other;

    leader = cluster_settle(cluster);
    other = cluster_follower(leader);
    assert_int_equal(ask(cluster, other, 9, true), 0);
    cluster_deliver(cluster);
    assert_int_equal(answer_at(cluster, other)->context, 9);
    assert_true(answer_at(cluster, other)->index > 0);
    cluster_free(cluster);
}

static void reads_that_cannot_be_served_are_refused(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message read = {
        .type = RAFT_MSG_READ, .from = 2, .to = 1, .incarnation = 1, .read = {.context = 4}};
    raft_id leader;

    node_start(cluster, 1);
    assert_int_equal(ask(cluster, 1, 1, true), 0); /* no leader to ask */
    assert_int_equal(answer_at(cluster, 1)->index, 0);
    node_message(cluster, &read);
    assert_int_equal(cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message.read.index, 0);

    node_start(cluster, 2);
    node_start(cluster, 3);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 100);
    node_of(cluster, leader)->read_count = 0;
    node_of(cluster, leader)->is_cut = true;
    assert_int_equal(ask(cluster, leader, 2, false), 0);
    cluster_run(cluster, 200); /* it loses its lease before a quorum answers */
    assert_int_equal(answer_at(cluster, leader)->index, 0);
    cluster_free(cluster);
}

static void too_many_reads_at_once_are_refused(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
    node_of(cluster, leader)->is_cut = true;
    for (uint64_t i = 0; i < 1025; i++) {
        assert_int_equal(ask(cluster, leader, i, false), 0);
    }
    assert_int_equal(answer_at(cluster, leader)->context, 1024);
    assert_int_equal(answer_at(cluster, leader)->index, 0);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leadership_is_passed_to_the_named_node_without_a_wait),
        cmocka_unit_test(leadership_is_passed_to_the_best_node_if_none_is_named),
        cmocka_unit_test(leadership_is_passed_to_another_node_if_the_heir_is_proved_dead),
        cmocka_unit_test(a_transfer_to_a_node_that_cannot_lead_is_refused),
        cmocka_unit_test(a_transfer_waits_for_its_target_and_then_goes_elsewhere_or_stays),
        cmocka_unit_test(a_member_that_has_just_started_gets_leadership_when_it_votes),
        cmocka_unit_test(a_node_alone_may_resign_and_is_elected_again),
        cmocka_unit_test(a_change_that_touches_no_vote_is_one_entry),
        cmocka_unit_test(while_it_is_joint_both_halves_must_agree),
        cmocka_unit_test(weights_change_like_members),
        cmocka_unit_test(a_change_that_makes_no_group_is_refused),
        cmocka_unit_test(a_configuration_that_is_truncated_is_taken_back),
        cmocka_unit_test(the_preferred_node_waits_for_the_end_of_the_drain_and_no_longer),
        cmocka_unit_test(a_drain_that_does_not_end_is_waited_for_as_long_as_was_announced),
        cmocka_unit_test(a_target_that_dies_during_the_drain_leaves_the_leader_in_office),
        cmocka_unit_test(a_target_that_is_removed_during_the_drain_leaves_the_leader_in_office),
        cmocka_unit_test(a_leader_that_becomes_a_witness_is_drained_too),
        cmocka_unit_test(the_end_of_a_drain_that_was_not_announced_changes_nothing),
        cmocka_unit_test(a_read_by_lease_is_answered_at_once),
        cmocka_unit_test(a_read_by_quorum_waits_for_a_round),
        cmocka_unit_test(a_follower_asks_its_leader),
        cmocka_unit_test(reads_that_cannot_be_served_are_refused),
        cmocka_unit_test(too_many_reads_at_once_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
