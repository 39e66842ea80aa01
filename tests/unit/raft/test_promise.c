/* Promises, silence and proofs: one test for each rule without which there is a second leader.
 *
 * Node 1 of a group of three is tested with messages made by hand. */
#include "cluster.h"

#include <stdlib.h>

static struct cluster *alone_of_three(void)
{
    struct cluster *cluster = cluster_new(3);
    node_start(cluster, 1);
    return cluster;
}

static void heartbeat(struct cluster *cluster, raft_id from, uint64_t incarnation, raft_term term)
{
    struct raft_message message = {.type = RAFT_MSG_HEARTBEAT,
                                   .from = from,
                                   .to = 1,
                                   .incarnation = incarnation,
                                   .term = term};
    message.heartbeat.lease = cluster->settings.lease;
    message.heartbeat.sent = cluster->now;
    message.heartbeat.heir = 3;
    node_message(cluster, &message);
}

static struct raft_message vote_request(enum raft_message_type type, raft_id from, raft_term term)
{
    struct raft_message message = {
        .type = type, .from = from, .to = 1, .incarnation = 1, .term = term};
    message.vote.last_index = term > 1 ? 100 : 0;
    message.vote.last_term = term - 1;
    return message;
}

static const struct raft_message *last_sent(struct cluster *cluster)
{
    assert_true(cluster->queue_tail > 0);
    return &cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message;
}

static bool votes_for(struct cluster *cluster, raft_id from, raft_term term)
{
    struct raft_message message = vote_request(RAFT_MSG_VOTE, from, term);
    node_message(cluster, &message);
    assert_int_equal(last_sent(cluster)->type, RAFT_MSG_VOTE_REPLY);
    return last_sent(cluster)->vote_reply.granted;
}

static bool pre_votes_for(struct cluster *cluster, raft_id from, raft_term term)
{
    struct raft_message message = vote_request(RAFT_MSG_PRE_VOTE, from, term);
    node_message(cluster, &message);
    assert_int_equal(last_sent(cluster)->type, RAFT_MSG_PRE_VOTE_REPLY);
    return last_sent(cluster)->vote_reply.granted;
}

static struct raft_proof death(raft_id node, uint64_t incarnation)
{
    return (struct raft_proof){
        .node = node, .incarnation = incarnation, .through_term = RAFT_TERM_FOREVER};
}

static void pass(struct cluster *cluster, int64_t ms)
{
    cluster->now = instant_add(cluster->now, SPAN_MS(ms));
}

static void a_promise_holds_back_votes_and_pre_votes_until_its_end(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 1, 5);
    assert_int_equal(node_status(cluster, 1).promised_to, 2);
    pass(cluster, 74);
    assert_false(votes_for(cluster, 3, 6));
    assert_int_equal(node_status(cluster, 1).term, 5); /* not even the term is adopted */
    assert_false(pre_votes_for(cluster, 3, 6));
    pass(cluster, 1);
    assert_true(pre_votes_for(cluster, 3, 6));
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void a_vote_that_decides_brings_a_promise_along(void **state)
{
    struct cluster *cluster = alone_of_three();

    assert_true(votes_for(cluster, 2, 5));
    assert_int_equal(last_sent(cluster)->vote_reply.promised.ns, SPAN_MS(75).ns);
    assert_int_equal(last_sent(cluster)->vote_reply.promised_to, 1);
    assert_int_equal(node_status(cluster, 1).promised_to, 2);
    assert_true(node_of(cluster, 1)->hard.promised_max.ns >= SPAN_MS(75).ns);
    pass(cluster, 74);
    assert_false(votes_for(cluster, 3, 6));
    assert_int_equal(last_sent(cluster)->vote_reply.promised.ns, 0);
    pass(cluster, 1);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void a_vote_that_does_not_decide_promises_nothing(void **state)
{
    struct cluster *cluster = cluster_new(5);

    node_start(cluster, 1);
    assert_true(votes_for(cluster, 2, 5));
    assert_int_equal(last_sent(cluster)->vote_reply.promised.ns, 0);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

/* It would doubt that leader as soon as a round of votes can end. */
static void a_late_copy_of_a_request_does_not_unsettle_who_follows_its_sender(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message copy = vote_request(RAFT_MSG_VOTE, 2, 5);
    size_t sent;

    assert_true(votes_for(cluster, 2, 5));
    heartbeat(cluster, 2, 1, 5);
    sent = cluster->queue_tail;
    node_message(cluster, &copy);
    assert_int_equal(cluster->queue_tail, sent);
    pass(cluster, 74);
    node_step(cluster, 1, &(struct raft_input){.type = RAFT_IN_TICK});
    assert_int_equal(node_status(cluster, 1).leader, 2);
    cluster_free(cluster);
}

/* The request was delayed: its sender won the term, and is gone. */
static void a_vote_for_a_node_that_is_gone_promises_nothing(void **state)
{
    struct cluster *cluster = alone_of_three();

    assert_true(votes_for(cluster, 2, 5));
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 1), RAFT_NOBODY);
    assert_int_equal(node_status(cluster, 1).promised_to, RAFT_NOBODY);
    assert_true(votes_for(cluster, 2, 5));
    assert_int_equal(last_sent(cluster)->vote_reply.promised.ns, 0);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void a_promise_holds_back_the_own_candidacy(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_input tick = {.type = RAFT_IN_TICK};

    heartbeat(cluster, 2, 1, 5);
    pass(cluster, 74);
    node_step(cluster, 1, &tick);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    /* a resignation of another node, which promised nothing, does not free it either */
    node_proof(cluster, 1, RAFT_PROOF_RESIGNATION, death(3, 1), 1);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    assert_int_equal(node_status(cluster, 1).role, RAFT_PRE_CANDIDATE);
    cluster_free(cluster);
}

static void the_promised_node_itself_may_be_voted_for(void **state)
{
    struct cluster *cluster = alone_of_three();
    heartbeat(cluster, 2, 1, 5);
    assert_true(votes_for(cluster, 2, 6));
    cluster_free(cluster);
}

static void the_reply_says_how_long_the_promise_is(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message message = {
        .type = RAFT_MSG_HEARTBEAT, .from = 2, .to = 1, .incarnation = 1, .term = 1};

    message.heartbeat.lease = SPAN_S(60); /* more than this node may promise */
    node_message(cluster, &message);
    assert_int_equal(last_sent(cluster)->heartbeat_reply.granted.ns, SPAN_MS(75).ns);
    message.heartbeat.lease = SPAN_MS(10);
    node_message(cluster, &message);
    assert_int_equal(last_sent(cluster)->heartbeat_reply.granted.ns, SPAN_MS(10).ns);
    message.heartbeat.lease = SPAN_MS(-10);
    node_message(cluster, &message);
    assert_int_equal(last_sent(cluster)->heartbeat_reply.granted.ns, 0);
    /* a shorter one never shortens what was promised before */
    assert_true(node_status(cluster, 1).promised_until.ns ==
                instant_add(cluster->now, SPAN_MS(75)).ns);
    cluster_free(cluster);
}

static void a_voter_is_silent_after_a_restart(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 1, 5);
    node_crash(cluster, 1);
    node_start(cluster, 1);
    pass(cluster, 74);
    assert_false(pre_votes_for(cluster, 3, 6));
    assert_false(votes_for(cluster, 3, 6));
    pass(cluster, 1);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void silence_lasts_as_long_as_the_longest_promise_ever_given(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 1, 5);
    node_crash(cluster, 1);
    cluster->settings.heartbeat_timeout = cluster->settings.lease = SPAN_MS(40); /* reconfigured */
    node_start(cluster, 1);
    pass(cluster, 74);
    assert_false(votes_for(cluster, 3, 6));
    pass(cluster, 1);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void a_voter_that_never_promised_need_not_be_silent(void **state)
{
    struct cluster *cluster = alone_of_three();
    assert_true(votes_for(cluster, 3, 1));
    cluster_free(cluster);
}

static void a_certificate_that_does_not_fit_changes_nothing(void **state)
{
    static const struct raft_proof wrong[] = {
        {.node = 2, .incarnation = 3, .through_term = RAFT_TERM_FOREVER}, /* an earlier life */
        {.node = 3, .incarnation = 9, .through_term = RAFT_TERM_FOREVER}, /* somebody else */
        {.node = 1, .incarnation = 9, .through_term = RAFT_TERM_FOREVER}, /* this very process */
        {.node = 0, .incarnation = 9, .through_term = RAFT_TERM_FOREVER},
        {.node = 2, .incarnation = 4, .through_term = 4}, /* resigned in an earlier term */
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct cluster *cluster = alone_of_three();
        heartbeat(cluster, 2, 4, 5);
        node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, wrong[i], 1);
        assert_int_equal(node_status(cluster, 1).leader, 2);
        assert_false(votes_for(cluster, 3, 6));
        assert_false(node_saw(cluster, 1, RAFT_EV_PROOF_ACCEPTED));
        cluster_free(cluster);
    }
}

static void the_end_of_a_connection_proves_nothing(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_input down = {.type = RAFT_IN_CONNECTION, .connection = {.peer = 2}};

    heartbeat(cluster, 2, 4, 5);
    node_step(cluster, 1, &down);
    node_proof(cluster, 1, RAFT_PROOF_EOF_ONLY, death(2, 4), 1);
    assert_true(node_saw(cluster, 1, RAFT_EV_PROOF_IGNORED));
    assert_int_equal(node_status(cluster, 1).leader, 2);
    assert_false(votes_for(cluster, 3, 6));
    down.connection.peer = 77;
    node_step(cluster, 1, &down);
    cluster_free(cluster);
}

static void the_heir_campaigns_at_once_and_carries_the_proof(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 4, 5);
    node_proof(cluster, 1, RAFT_PROOF_PIDFD, death(2, 4), 1);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    assert_int_equal(node_status(cluster, 1).term, 6);
    assert_int_equal(last_sent(cluster)->type, RAFT_MSG_VOTE);
    assert_int_equal(last_sent(cluster)->vote.proof.node, 2);
    assert_int_equal(last_sent(cluster)->vote.proof.incarnation, 4);
    cluster_free(cluster);
}

static void a_node_that_is_not_the_heir_waits_a_round(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 4, 5); /* names node 3 */
    node_proof(cluster, 1, RAFT_PROOF_PIDFD, death(2, 4), RAFT_NOBODY);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    assert_true(node_of(cluster, 1)->deadline.ns >= instant_add(cluster->now, SPAN_MS(75)).ns);
    cluster_free(cluster);
}

static void a_candidate_may_bring_the_proof_along(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message request = vote_request(RAFT_MSG_VOTE, 3, 6);

    heartbeat(cluster, 2, 4, 5);
    request.vote.proof = death(2, 3); /* of another incarnation */
    node_message(cluster, &request);
    assert_false(last_sent(cluster)->vote_reply.granted);
    request.vote.proof = death(2, 4);
    node_message(cluster, &request);
    assert_true(last_sent(cluster)->vote_reply.granted);
    cluster_free(cluster);
}

static void what_was_long_on_its_way_does_not_undo_a_proof(void **state)
{
    struct cluster *cluster = alone_of_three();

    heartbeat(cluster, 2, 4, 5);
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 4), 3);
    heartbeat(cluster, 2, 4, 5);
    assert_int_equal(node_status(cluster, 1).promised_to, RAFT_NOBODY);
    assert_int_equal(node_status(cluster, 1).leader, RAFT_NOBODY);
    heartbeat(cluster, 2, 5, 5); /* but its next life is heard */
    assert_int_equal(node_status(cluster, 1).promised_to, 2);
    cluster_free(cluster);
}

static struct raft_message resignation(enum raft_message_type type, raft_term term)
{
    return (struct raft_message){
        .type = type, .from = 2, .to = 1, .incarnation = 4, .term = term, .resign = {.heir = 3}};
}

static void a_resignation_ends_the_promises_of_its_term_and_before(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message message = resignation(RAFT_MSG_RESIGN, 5);

    heartbeat(cluster, 2, 4, 5);
    node_message(cluster, &message);
    assert_true(votes_for(cluster, 3, 6));
    heartbeat(cluster, 2, 4, 7); /* the same process leads again, later */
    node_message(cluster, &message);
    assert_int_equal(node_status(cluster, 1).promised_to, 2);
    assert_false(votes_for(cluster, 3, 8));
    cluster_free(cluster);
}

static void a_replayed_resignation_in_a_vote_request_ends_no_later_promise(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message request = vote_request(RAFT_MSG_VOTE, 3, 8);

    heartbeat(cluster, 2, 4, 7);
    request.vote.proof = (struct raft_proof){.node = 2, .incarnation = 4, .through_term = 5};
    node_message(cluster, &request);
    assert_false(last_sent(cluster)->vote_reply.granted);
    cluster_free(cluster);
}

static void a_node_that_is_asked_to_campaign_skips_the_pre_votes(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message message = resignation(RAFT_MSG_TIMEOUT_NOW, 5);

    heartbeat(cluster, 2, 4, 5);
    node_message(cluster, &message);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    node_message(cluster, &message); /* repeated: nothing new */
    assert_int_equal(node_status(cluster, 1).term, 6);
    cluster_free(cluster);
}

static void a_resignation_of_a_higher_term_is_believed_too(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message message = resignation(RAFT_MSG_TIMEOUT_NOW, 9);
    node_message(cluster, &message);
    assert_int_equal(node_status(cluster, 1).term, 10);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    cluster_free(cluster);
}

static void a_higher_incarnation_proves_the_earlier_one_dead(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message reborn = {
        .type = RAFT_MSG_PRE_VOTE_REPLY, .from = 2, .to = 1, .incarnation = 5, .term = 1};

    heartbeat(cluster, 2, 4, 5);
    node_message(cluster, &reborn);
    assert_int_equal(node_status(cluster, 1).leader, RAFT_NOBODY);
    assert_int_equal(node_last(cluster, 1, RAFT_EV_PROOF_ACCEPTED)->proof_kind,
                     RAFT_PROOF_GREETING);
    assert_true(votes_for(cluster, 3, 6));
    heartbeat(cluster, 2, 4, 6); /* a message of the earlier life */
    assert_int_equal(node_status(cluster, 1).leader, RAFT_NOBODY);
    cluster_free(cluster);
}

/* To node 2 in its incarnation 4, whose program may outlive it. */
static void promise_to_outlived(struct cluster *cluster)
{
    struct raft_message lived = {.type = RAFT_MSG_PRE_VOTE_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 4,
                                 .is_outlived = true,
                                 .term = 1};

    node_message(cluster, &lived);
    heartbeat(cluster, 2, 4, 5);
}

static void
a_higher_incarnation_proves_nothing_where_a_program_may_have_outlived_the_earlier_one(void **state)
{
    struct cluster *cluster = alone_of_three();
    struct raft_message reborn = vote_request(RAFT_MSG_VOTE, 2, 6);

    promise_to_outlived(cluster);
    reborn.incarnation = 5;
    node_message(cluster, &reborn);
    assert_false(last_sent(cluster)->vote_reply.granted); /* the promise is not to this life */
    assert_null(node_last(cluster, 1, RAFT_EV_PROOF_ACCEPTED));
    assert_false(votes_for(cluster, 3, 6));
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 4), RAFT_NOBODY);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void
a_proof_of_a_later_incarnation_proves_nothing_where_a_program_may_outlive_it(void **state)
{
    struct cluster *cluster = alone_of_three();

    promise_to_outlived(cluster);
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 5), RAFT_NOBODY);
    assert_null(node_last(cluster, 1, RAFT_EV_PROOF_ACCEPTED));
    assert_false(votes_for(cluster, 3, 6));
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 4), RAFT_NOBODY);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

/* An entry of node 2, the leader of term 5, after which it is a member no more. */
static void remove_the_leader(struct cluster *cluster)
{
    struct raft_member members[] = {cluster->first.members[0], cluster->first.members[2]};
    const struct raft_configuration without = {.members = members, .count = 2};
    struct raft_entry entry = {.term = 5, .kind = RAFT_ENTRY_CONFIGURATION};
    const struct raft_message append = {.type = RAFT_MSG_APPEND,
                                        .from = 2,
                                        .to = 1,
                                        .incarnation = 4,
                                        .is_outlived = true,
                                        .term = 5,
                                        .append = {.entries = &entry, .entry_count = 1}};
    void *data;

    assert_int_equal(raft_configuration_encode(&without, &data, &entry.bytes), 0);
    entry.data = data;
    node_message(cluster, &append);
    free(data);
    assert_int_equal(raft_get_configuration(node_of(cluster, 1)->raft)->count, 2);
}

static void
a_later_proof_proves_nothing_of_a_leader_that_was_removed_before_its_program_ended(void **state)
{
    struct cluster *cluster = alone_of_three();

    promise_to_outlived(cluster);
    remove_the_leader(cluster);
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 5), RAFT_NOBODY);
    assert_null(node_last(cluster, 1, RAFT_EV_PROOF_ACCEPTED));
    assert_false(votes_for(cluster, 3, 6));
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death(2, 4), RAFT_NOBODY);
    assert_true(votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

static void a_leader_whose_program_may_outlive_it_is_silent_after_a_restart(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    cluster->is_outlived = true;
    cluster_start(cluster);
    leader = cluster_elect(cluster); /* it has promised nobody anything yet */
    node_crash(cluster, leader);
    node_start(cluster, leader);
    assert_int_equal(instant_since(node_status(cluster, leader).silent_until, cluster->now).ns,
                     cluster->settings.heartbeat_timeout.ns);
    cluster_free(cluster);
}

static void a_follower_sticks_to_a_leader_that_it_heard_lately(void **state)
{
    struct cluster *cluster = alone_of_three();

    cluster->settings.lease = SPAN_MS(30); /* shorter than the heartbeat timeout of 75 ms */
    heartbeat(cluster, 2, 1, 5);
    pass(cluster, 50);
    assert_false(pre_votes_for(cluster, 3, 6)); /* promised no longer, but it does lead */
    pass(cluster, 25);
    assert_true(pre_votes_for(cluster, 3, 6));
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_promise_holds_back_votes_and_pre_votes_until_its_end),
        cmocka_unit_test(a_vote_that_decides_brings_a_promise_along),
        cmocka_unit_test(a_vote_that_does_not_decide_promises_nothing),
        cmocka_unit_test(a_late_copy_of_a_request_does_not_unsettle_who_follows_its_sender),
        cmocka_unit_test(a_vote_for_a_node_that_is_gone_promises_nothing),
        cmocka_unit_test(a_promise_holds_back_the_own_candidacy),
        cmocka_unit_test(the_promised_node_itself_may_be_voted_for),
        cmocka_unit_test(the_reply_says_how_long_the_promise_is),
        cmocka_unit_test(a_voter_is_silent_after_a_restart),
        cmocka_unit_test(silence_lasts_as_long_as_the_longest_promise_ever_given),
        cmocka_unit_test(a_voter_that_never_promised_need_not_be_silent),
        cmocka_unit_test(a_certificate_that_does_not_fit_changes_nothing),
        cmocka_unit_test(the_end_of_a_connection_proves_nothing),
        cmocka_unit_test(the_heir_campaigns_at_once_and_carries_the_proof),
        cmocka_unit_test(a_node_that_is_not_the_heir_waits_a_round),
        cmocka_unit_test(a_candidate_may_bring_the_proof_along),
        cmocka_unit_test(what_was_long_on_its_way_does_not_undo_a_proof),
        cmocka_unit_test(a_resignation_ends_the_promises_of_its_term_and_before),
        cmocka_unit_test(a_replayed_resignation_in_a_vote_request_ends_no_later_promise),
        cmocka_unit_test(a_node_that_is_asked_to_campaign_skips_the_pre_votes),
        cmocka_unit_test(a_resignation_of_a_higher_term_is_believed_too),
        cmocka_unit_test(a_higher_incarnation_proves_the_earlier_one_dead),
        cmocka_unit_test(
            a_higher_incarnation_proves_nothing_where_a_program_may_have_outlived_the_earlier_one),
        cmocka_unit_test(
            a_proof_of_a_later_incarnation_proves_nothing_where_a_program_may_outlive_it),
        cmocka_unit_test(
            a_later_proof_proves_nothing_of_a_leader_that_was_removed_before_its_program_ended),
        cmocka_unit_test(a_leader_whose_program_may_outlive_it_is_silent_after_a_restart),
        cmocka_unit_test(a_follower_sticks_to_a_leader_that_it_heard_lately),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
