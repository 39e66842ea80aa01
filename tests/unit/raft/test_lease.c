/* The leader's lease: from the sending, shortened, by quorum of weight, over when it is over. */
#include "cluster.h"

#include <string.h>

/* Node 1 of `count`, made leader of term 1 by hand; the others are only spoken for. */
static struct cluster *leading(size_t count)
{
    struct cluster *cluster = cluster_new(count);
    struct raft_input tick = {.type = RAFT_IN_TICK};

    node_start(cluster, 1);
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    for (raft_id id = 2; id <= count; id++) {
        struct raft_message reply = {.type = RAFT_MSG_PRE_VOTE_REPLY,
                                     .from = id,
                                     .to = 1,
                                     .incarnation = 1,
                                     .term = 1,
                                     .vote_reply = {.granted = true}};
        node_message(cluster, &reply);
        reply.type = RAFT_MSG_VOTE_REPLY;
        node_message(cluster, &reply);
    }
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    return cluster;
}

static void answer_from(struct cluster *cluster, raft_id from, instant sent, span granted)
{
    struct raft_message reply = {.type = RAFT_MSG_HEARTBEAT_REPLY,
                                 .from = from,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = node_status(cluster, 1).term};
    reply.heartbeat_reply.sent = sent;
    reply.heartbeat_reply.granted = granted;
    reply.heartbeat_reply.may_lead = true;
    node_message(cluster, &reply);
}

static void a_new_leader_is_none_before_its_first_round(void **state)
{
    struct cluster *cluster = leading(3);
    assert_false(node_is_leader(cluster, 1));
    answer_from(cluster, 2, cluster->now, SPAN_MS(75));
    assert_true(node_is_leader(cluster, 1));
    assert_int_equal(node_last(cluster, 1, RAFT_EV_ACQUIRED)->term, 1);
    cluster_free(cluster);
}

/* Node 1 of three is a candidate, and gets a vote 10 ms after it asked. Returns when it asked. */
static instant elect(struct cluster *cluster, span promised, uint64_t promised_to)
{
    struct raft_input tick = {.type = RAFT_IN_TICK};
    struct raft_message reply = {.type = RAFT_MSG_PRE_VOTE_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = 1,
                                 .vote_reply = {.granted = true}};
    instant asked;

    node_start(cluster, 1);
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    node_message(cluster, &reply);
    asked = cluster->now;
    cluster->now = instant_add(asked, SPAN_MS(10));
    reply.type = RAFT_MSG_VOTE_REPLY;
    reply.vote_reply.promised = promised;
    reply.vote_reply.promised_to = promised_to;
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    return asked;
}

static void the_first_lease_comes_with_the_vote_that_decides(void **state)
{
    struct cluster *cluster = cluster_new(3);
    instant asked = elect(cluster, SPAN_MS(75), 1);

    assert_true(node_is_leader(cluster, 1));
    assert_int_equal(node_last(cluster, 1, RAFT_EV_ACQUIRED)->term, 1);
    assert_true(node_of(cluster, 1)->lease.end.ns ==
                instant_add(asked, raft_settings_shorten(&cluster->settings, SPAN_MS(75))).ns);
    cluster_free(cluster);
}

static void a_vote_that_promises_more_than_the_lease_counts_as_the_lease(void **state)
{
    struct cluster *cluster = cluster_new(3);
    instant asked;

    cluster->settings.lease = SPAN_MS(40);
    asked = elect(cluster, SPAN_MS(75), 1);
    assert_true(node_of(cluster, 1)->lease.end.ns ==
                instant_add(asked, raft_settings_shorten(&cluster->settings, SPAN_MS(40))).ns);
    cluster_free(cluster);
}

/* It began before this life asked. */
static void a_promise_to_an_earlier_life_is_not_counted(void **state)
{
    struct cluster *cluster = cluster_new(3);

    node_start(cluster, 1);
    node_crash(cluster, 1);
    (void)elect(cluster, SPAN_MS(75), 1); /* this life is the second one */
    assert_false(node_is_leader(cluster, 1));
    cluster_free(cluster);
}

static int drift(struct cluster *cluster, uint32_t drift_ppm)
{
    struct raft_input input = {.type = RAFT_IN_DRIFT, .drift_ppm = drift_ppm};
    return node_step(cluster, 1, &input);
}

static void grants_are_shortened_by_the_widest_bound_of_all_members(void **state)
{
    struct cluster *cluster = leading(3);
    struct raft_settings wider = cluster->settings;
    instant sent = cluster->now;

    wider.clock_drift_ppm = 5 * cluster->settings.clock_drift_ppm;
    assert_int_equal(drift(cluster, wider.clock_drift_ppm), 0);
    assert_int_equal(drift(cluster, 1), 0); /* another one's is narrower: nothing changes */
    answer_from(cluster, 2, sent, SPAN_MS(75));
    assert_true(node_of(cluster, 1)->lease.end.ns ==
                instant_add(sent, raft_settings_shorten(&wider, SPAN_MS(75))).ns);
    cluster_free(cluster);
}

static void a_bound_that_leaves_no_lease_is_refused(void **state)
{
    struct cluster *cluster = leading(3);
    instant sent = cluster->now;

    assert_int_equal(drift(cluster, 1000000), BATON_EUNSAFE);
    assert_int_equal(drift(cluster, 900000), BATON_EINVAL);
    answer_from(cluster, 2, sent, SPAN_MS(75));
    assert_true(node_of(cluster, 1)->lease.end.ns ==
                instant_add(sent, raft_settings_shorten(&cluster->settings, SPAN_MS(75))).ns);
    cluster_free(cluster);
}

static void the_lease_counts_from_the_sending_and_is_shortened(void **state)
{
    struct cluster *cluster = leading(3);
    instant sent = cluster->now;

    cluster->now = instant_add(cluster->now, SPAN_MS(10)); /* the answer takes its time */
    answer_from(cluster, 2, sent, SPAN_MS(75));
    assert_true(node_of(cluster, 1)->lease.end.ns ==
                instant_add(sent, raft_settings_shorten(&cluster->settings, SPAN_MS(75))).ns);
    cluster_free(cluster);
}

static void a_shorter_grant_is_what_counts(void **state)
{
    struct cluster *cluster = leading(3);
    answer_from(cluster, 2, cluster->now, SPAN_MS(20));
    assert_true(node_of(cluster, 1)->lease.end.ns <= instant_add(cluster->now, SPAN_MS(20)).ns);
    cluster_free(cluster);
}

static void answers_that_no_honest_voter_sends_do_not_count(void **state)
{
    struct cluster *cluster = leading(3);
    answer_from(cluster, 2, instant_add(cluster->now, SPAN_MS(1)), SPAN_MS(75)); /* the future */
    answer_from(cluster, 2, (instant){0}, SPAN_MS(75)); /* before this leadership */
    answer_from(cluster, 2, cluster->now, SPAN_S(60));  /* more than was asked for */
    answer_from(cluster, 9, cluster->now, SPAN_MS(75)); /* a stranger */
    assert_false(node_is_leader(cluster, 1));
    cluster_free(cluster);
}

static void when_the_lease_ends_the_leader_is_a_follower_whatever_reply_comes_later(void **state)
{
    struct cluster *cluster = leading(3);
    instant sent = cluster->now;

    answer_from(cluster, 2, sent, SPAN_MS(75));
    cluster->now = node_of(cluster, 1)->lease.end;
    assert_false(node_is_leader(cluster, 1)); /* by the clock alone, before any step */
    answer_from(cluster, 3, cluster->now, SPAN_MS(75));
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    assert_false(node_of(cluster, 1)->lease.held);
    assert_int_equal(node_last(cluster, 1, RAFT_EV_LOST)->loss, RAFT_LOSS_EXPIRED);
    cluster_free(cluster);
}

static void a_silent_group_and_a_loop_that_slept_are_different_losses(void **state)
{
    struct cluster *cluster = leading(3);
    answer_from(cluster, 2, cluster->now, SPAN_MS(75));
    cluster_run(cluster, 80); /* the loop runs, nobody answers */
    assert_int_equal(node_last(cluster, 1, RAFT_EV_LOST)->loss, RAFT_LOSS_LOST_QUORUM);
    cluster_free(cluster);
}

static void a_winner_that_never_gets_a_lease_steps_down_without_having_led(void **state)
{
    struct cluster *cluster = leading(3);
    cluster_run(cluster, 80);
    assert_int_not_equal(node_status(cluster, 1).role, RAFT_LEADER);
    assert_false(node_saw(cluster, 1, RAFT_EV_ACQUIRED));
    assert_false(node_saw(cluster, 1, RAFT_EV_LOST));
    assert_true(node_saw(cluster, 1, RAFT_EV_ELECTION_FAILED));
    cluster_free(cluster);
}

static void jeopardy_is_reported_once_before_the_end(void **state)
{
    struct cluster *cluster = leading(3);
    const struct raft_event *event;

    answer_from(cluster, 2, cluster->now, SPAN_MS(75));
    cluster_run(cluster, 45);
    event = node_last(cluster, 1, RAFT_EV_JEOPARDY);
    assert_non_null(event);
    assert_true(event->left.ns > SPAN_MS(30).ns && event->left.ns <= SPAN_MS(37).ns);
    assert_true(node_is_leader(cluster, 1));
    answer_from(cluster, 2, cluster->now, SPAN_MS(75)); /* saved */
    cluster_run(cluster, 20);
    assert_true(node_is_leader(cluster, 1));
    cluster_free(cluster);
}

/* Node 3 asks node 1, in a higher term and with a longer log. */
static void ask_for_vote(struct cluster *cluster)
{
    const struct raft_message request = {.type = RAFT_MSG_VOTE,
                                         .from = 3,
                                         .to = 1,
                                         .incarnation = 1,
                                         .term = 9,
                                         .vote = {.last_index = 50, .last_term = 8}};

    node_message(cluster, &request);
}

static void a_leader_votes_for_no_one_under_its_lease(void **state)
{
    struct cluster *cluster = leading(3);

    answer_from(cluster, 2, cluster->now, SPAN_MS(75));
    ask_for_vote(cluster);
    assert_true(node_is_leader(cluster, 1));
    assert_int_equal(node_status(cluster, 1).term, 1);
    cluster_free(cluster);
}

static void a_leader_without_a_lease_yet_gives_way_to_a_higher_term(void **state)
{
    struct cluster *cluster = leading(3);

    ask_for_vote(cluster);
    assert_int_equal(node_status(cluster, 1).vote, 3);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    cluster_free(cluster);
}

static void answers_of_a_higher_term_end_the_leadership(void **state)
{
    static const enum raft_message_type types[] = {RAFT_MSG_HEARTBEAT_REPLY, RAFT_MSG_APPEND_REPLY,
                                                   RAFT_MSG_SNAPSHOT_REPLY, RAFT_MSG_VOTE_REPLY,
                                                   RAFT_MSG_PRE_VOTE_REPLY};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct cluster *cluster = leading(3);
        struct raft_message reply = {
            .type = types[i], .from = 2, .to = 1, .incarnation = 1, .term = 4};
        answer_from(cluster, 2, cluster->now, SPAN_MS(75));
        node_message(cluster, &reply);
        assert_int_equal(node_last(cluster, 1, RAFT_EV_LOST)->loss, RAFT_LOSS_SUPERSEDED);
        assert_int_equal(node_status(cluster, 1).term, 4);
        assert_false(node_is_leader(cluster, 1));
        cluster_free(cluster);
    }
}

static void a_quorum_is_more_than_half_of_the_weight(void **state)
{
    struct cluster *cluster = cluster_new(4);

    /* 5 of 8 is a quorum, 4 of 8 is none: one heavy node and any other, never the three light */
    cluster->first.members[0].weight = 4;
    cluster->first.members[1].weight = 1;
    cluster->first.members[2].weight = 1;
    cluster->first.members[3].weight = 2;
    node_start(cluster, 2);
    node_start(cluster, 3);
    node_start(cluster, 4);
    cluster_run(cluster, 2000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY);
    node_start(cluster, 1);
    (void)cluster_elect(cluster);
    node_crash(cluster, 3);
    node_crash(cluster, 4);
    cluster_run(cluster, 3000);
    assert_int_not_equal(cluster_leader(cluster), RAFT_NOBODY);
    assert_int_equal(node_status(cluster, cluster_leader(cluster)).commit_index,
                     node_status(cluster, cluster_leader(cluster)).last_index);
    node_crash(cluster, 2);
    cluster_run(cluster, 3000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY); /* 4 of 8 */
    cluster_free(cluster);
}

static void a_learner_and_a_voter_of_weight_0_cover_nothing(void **state)
{
    struct cluster *cluster = cluster_new(3);

    cluster->first.members[1].kind = RAFT_LEARNER;
    cluster->first.members[1].weight = 0;
    cluster->first.members[2].weight = 0;
    cluster_start(cluster);
    assert_int_equal(cluster_elect(cluster), 1);
    cluster_run(cluster, 500);
    assert_int_equal(node_status(cluster, 2).leader, 1); /* but they follow */
    assert_int_equal(node_status(cluster, 3).commit_index, 1);
    node_crash(cluster, 1);
    cluster_run(cluster, 1000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY);
    assert_int_equal(node_status(cluster, 2).leader, RAFT_NOBODY);
    cluster_free(cluster);
}

static void peers_that_fall_silent_are_reported(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    raft_id other;
    struct raft_progress progress;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    other = cluster_follower(leader);
    cluster_run(cluster, 100);
    assert_true(raft_get_progress(node_of(cluster, leader)->raft, other, &progress));
    assert_true(progress.is_active);
    assert_false(raft_get_progress(node_of(cluster, leader)->raft, 77, &progress));
    assert_false(raft_get_progress(node_of(cluster, other)->raft, leader, &progress));
    assert_true(raft_get_progress(node_of(cluster, leader)->raft, leader, &progress));
    assert_true(progress.is_active);
    node_crash(cluster, other);
    cluster_run(cluster, 200);
    assert_false(node_last(cluster, leader, RAFT_EV_PEER)->is_active);
    assert_int_equal(node_last(cluster, leader, RAFT_EV_PEER)->node, other);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_leader_is_none_before_its_first_round),
        cmocka_unit_test(the_first_lease_comes_with_the_vote_that_decides),
        cmocka_unit_test(a_vote_that_promises_more_than_the_lease_counts_as_the_lease),
        cmocka_unit_test(a_promise_to_an_earlier_life_is_not_counted),
        cmocka_unit_test(the_lease_counts_from_the_sending_and_is_shortened),
        cmocka_unit_test(grants_are_shortened_by_the_widest_bound_of_all_members),
        cmocka_unit_test(a_bound_that_leaves_no_lease_is_refused),
        cmocka_unit_test(a_shorter_grant_is_what_counts),
        cmocka_unit_test(answers_that_no_honest_voter_sends_do_not_count),
        cmocka_unit_test(when_the_lease_ends_the_leader_is_a_follower_whatever_reply_comes_later),
        cmocka_unit_test(a_silent_group_and_a_loop_that_slept_are_different_losses),
        cmocka_unit_test(a_winner_that_never_gets_a_lease_steps_down_without_having_led),
        cmocka_unit_test(jeopardy_is_reported_once_before_the_end),
        cmocka_unit_test(a_leader_votes_for_no_one_under_its_lease),
        cmocka_unit_test(a_leader_without_a_lease_yet_gives_way_to_a_higher_term),
        cmocka_unit_test(answers_of_a_higher_term_end_the_leadership),
        cmocka_unit_test(a_quorum_is_more_than_half_of_the_weight),
        cmocka_unit_test(a_learner_and_a_voter_of_weight_0_cover_nothing),
        cmocka_unit_test(peers_that_fall_silent_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
