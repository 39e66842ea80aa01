/* Votes that are on disk before a candidate asks for them: when a pledge replaces a stored vote,
 * and which votes it forbids.
 *
 * Node 1 of a group of three is tested with messages made by hand: node 2 leads term 5 and names
 * node 3, which will campaign in term 6 or 7. A slow disk holds back the messages that wait for a
 * write. */
#include "cluster.h"

static void heartbeat(struct cluster *cluster, raft_id heir, raft_term heir_term)
{
    struct raft_message message = {
        .type = RAFT_MSG_HEARTBEAT, .from = 2, .to = 1, .incarnation = 4, .term = 5};
    message.heartbeat.lease = cluster->settings.lease;
    message.heartbeat.sent = cluster->now;
    message.heartbeat.heir = heir;
    message.heartbeat.heir_term = heir_term;
    node_message(cluster, &message);
}

/* Node 1 follows node 2 and has promised it a vote in nobody else's favour for a while. */
static struct cluster *one_that_follows(void)
{
    struct cluster *cluster = cluster_new(3);
    node_start(cluster, 1);
    heartbeat(cluster, RAFT_NOBODY, 0);
    return cluster;
}

static void certify(struct cluster *cluster)
{
    struct raft_proof death = {.node = 2, .incarnation = 4, .through_term = RAFT_TERM_FOREVER};
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, death, RAFT_NOBODY);
}

enum answer { NO_ANSWER, REFUSED, GRANTED };

static enum answer ask(struct cluster *cluster, enum raft_message_type type, raft_id from,
                       raft_term term)
{
    struct raft_message message = {
        .type = type, .from = from, .to = 1, .incarnation = from == 2 ? 4 : 1, .term = term};
    size_t before = cluster->queue_tail;

    message.vote.last_index = 100;
    message.vote.last_term = 5;
    node_message(cluster, &message);
    if (cluster->queue_tail == before) {
        return NO_ANSWER;
    }
    return cluster->queue[before % QUEUE_MAX].message.vote_reply.granted ? GRANTED : REFUSED;
}

static void pass_promise(struct cluster *cluster)
{
    cluster->now = instant_add(cluster->now, cluster->settings.heartbeat_timeout);
}

static void a_pledged_vote_waits_for_no_disk(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 3, 6);
    assert_int_equal(node_of(cluster, 1)->hard.pledged_term, 6);
    assert_int_equal(node_of(cluster, 1)->hard.pledged_to, 3);
    node_of(cluster, 1)->is_slow = true;
    certify(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 6), GRANTED);
    assert_int_equal(node_status(cluster, 1).term, 6);
    assert_int_equal(node_of(cluster, 1)->hard.term, 5);
    cluster_free(cluster);
}

static void what_was_pledged_is_stored_before_long(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 3, 6);
    certify(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 6), GRANTED);
    cluster->now = instant_add(cluster->now, cluster->settings.election_timeout_min);
    node_step(cluster, 1, &(struct raft_input){.type = RAFT_IN_TICK});
    assert_int_equal(node_of(cluster, 1)->hard.term, 6);
    assert_int_equal(node_of(cluster, 1)->hard.vote, 3);
    cluster_free(cluster);
}

static void a_pledge_that_is_not_stored_yet_stands_for_nothing(void **state)
{
    struct cluster *cluster = one_that_follows();

    node_of(cluster, 1)->is_slow = true;
    heartbeat(cluster, 3, 6);
    certify(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 6), NO_ANSWER);
    cluster_free(cluster);
}

static void without_proof_a_pledged_vote_is_stored_like_any_other(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 3, 6);
    node_of(cluster, 1)->is_slow = true;
    pass_promise(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 6), NO_ANSWER);
    cluster_free(cluster);
}

static void proof_of_another_life_of_the_leader_does_not_cover(void **state)
{
    struct cluster *cluster = one_that_follows();
    struct raft_proof earlier = {.node = 2, .incarnation = 3, .through_term = RAFT_TERM_FOREVER};

    heartbeat(cluster, 3, 6);
    node_of(cluster, 1)->is_slow = true;
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN, earlier, 3);
    pass_promise(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 6), NO_ANSWER);
    cluster_free(cluster);
}

static void a_pledge_outlives_a_crash_and_binds(void **state)
{
    for (raft_term term = 6; term <= 8; term++) {
        struct cluster *cluster = one_that_follows();
        heartbeat(cluster, 3, 7);
        certify(cluster);
        node_crash(cluster, 1);
        node_start(cluster, 1);
        pass_promise(cluster); /* the silence after the start */
        assert_int_equal(node_status(cluster, 1).term, 5);
        assert_int_equal(ask(cluster, RAFT_MSG_PRE_VOTE, 2, term), term > 7 ? GRANTED : REFUSED);
        assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 2, term), term > 7 ? GRANTED : REFUSED);
        cluster_free(cluster);
    }
}

static void the_pledged_candidate_may_ask_again_after_a_crash(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 3, 7);
    node_crash(cluster, 1);
    node_start(cluster, 1);
    pass_promise(cluster);
    assert_int_equal(ask(cluster, RAFT_MSG_VOTE, 3, 7), GRANTED);
    cluster_free(cluster);
}

/* It would never get the vote: it is told from where on it would. */
static void a_candidate_below_a_pledge_learns_the_pledged_term(void **state)
{
    struct cluster *cluster = one_that_follows();
    size_t before;

    heartbeat(cluster, 3, 7);
    pass_promise(cluster);
    before = cluster->queue_tail;
    assert_int_equal(ask(cluster, RAFT_MSG_PRE_VOTE, 2, 6), REFUSED);
    assert_int_equal(cluster->queue[before % QUEUE_MAX].message.term, 7);
    assert_int_equal(node_status(cluster, 1).term, 5);
    cluster_free(cluster);
}

static void a_later_pledge_replaces_an_earlier_one_and_never_the_other_way_round(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 3, 7);
    heartbeat(cluster, 2, 6); /* was long on its way */
    heartbeat(cluster, 2, 7);
    heartbeat(cluster, 2, 5); /* no term to come */
    assert_int_equal(node_status(cluster, 1).pledged_to, 3);
    heartbeat(cluster, 2, 8);
    assert_int_equal(node_status(cluster, 1).pledged_to, 2);
    assert_int_equal(node_of(cluster, 1)->hard.pledged_term, 8);
    cluster_free(cluster);
}

static void the_heir_runs_in_the_pledged_term_in_one_life_only(void **state)
{
    struct cluster *cluster = one_that_follows();

    heartbeat(cluster, 1, 7);
    node_crash(cluster, 1);
    node_start(cluster, 1);
    pass_promise(cluster);
    heartbeat(cluster, 1, 7); /* from before the crash */
    node_proof(cluster, 1, RAFT_PROOF_GUARDIAN,
               (struct raft_proof){.node = 2, .incarnation = 4, .through_term = RAFT_TERM_FOREVER},
               1);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    assert_int_equal(node_status(cluster, 1).term, 8);
    cluster_free(cluster);
}

/* The whole of it: a leader dies, and the next one leads before anybody has stored a thing. */
static void an_heir_leads_while_every_disk_stands_still(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id old, heir;

    old = cluster_settle(cluster);
    heir = node_of(cluster, old)->heir;
    assert_int_not_equal(heir, RAFT_NOBODY);
    for (raft_id id = 1; id <= 3; id++) {
        node_of(cluster, id)->is_slow = true;
    }
    node_crash(cluster, old);
    for (raft_id id = 1; id <= 3; id++) {
        if (id != old) {
            node_proof(cluster, id, RAFT_PROOF_GUARDIAN,
                       (struct raft_proof){
                           .node = old, .incarnation = 1, .through_term = RAFT_TERM_FOREVER},
                       heir);
        }
    }
    cluster_deliver(cluster);
    assert_true(node_is_leader(cluster, heir));
    assert_true(node_of(cluster, heir)->hard.term < node_status(cluster, heir).term);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pledged_vote_waits_for_no_disk),
        cmocka_unit_test(what_was_pledged_is_stored_before_long),
        cmocka_unit_test(a_pledge_that_is_not_stored_yet_stands_for_nothing),
        cmocka_unit_test(without_proof_a_pledged_vote_is_stored_like_any_other),
        cmocka_unit_test(proof_of_another_life_of_the_leader_does_not_cover),
        cmocka_unit_test(a_pledge_outlives_a_crash_and_binds),
        cmocka_unit_test(the_pledged_candidate_may_ask_again_after_a_crash),
        cmocka_unit_test(a_candidate_below_a_pledge_learns_the_pledged_term),
        cmocka_unit_test(a_later_pledge_replaces_an_earlier_one_and_never_the_other_way_round),
        cmocka_unit_test(the_heir_runs_in_the_pledged_term_in_one_life_only),
        cmocka_unit_test(an_heir_leads_while_every_disk_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
