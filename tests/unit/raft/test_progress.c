/* Every entry that was sent arrives, even if replies are repeated, reordered or late, and no entry
 * is requested twice; the followers that have it learn at once that it is committed. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

/* A leader, 1, of two; the test plays the other. */
static struct cluster *lead_alone(void)
{
    struct cluster *cluster = cluster_new(2);
    struct raft_input tick = {.type = RAFT_IN_TICK};
    struct raft_message reply = {.type = RAFT_MSG_PRE_VOTE_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = 1,
                                 .vote_reply = {.granted = true}};

    node_start(cluster, 1);
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    node_message(cluster, &reply);
    reply.type = RAFT_MSG_VOTE_REPLY;
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    return cluster;
}

static void answer(struct cluster *cluster, raft_index index, bool rejected)
{
    struct raft_message reply = {.type = RAFT_MSG_APPEND_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = 1,
                                 .append_reply = {.index = index, .rejected = rejected}};
    node_message(cluster, &reply);
}

/* Both have the first entry of the term, and it is committed. */
static struct cluster *lead_with_first_entry(void)
{
    struct cluster *cluster = lead_alone();
    struct raft_input tick = {.type = RAFT_IN_TICK};

    cluster->now = instant_add(cluster->now, cluster->settings.heartbeat_interval);
    node_step(cluster, 1, &tick);
    answer(cluster, 0, false);
    answer(cluster, 1, false);
    assert_int_equal(node_status(cluster, 1).commit_index, 1);
    return cluster;
}

static bool carries(const struct raft_message *message, raft_index index)
{
    return message->type == RAFT_MSG_APPEND && message->append.prev_index < index &&
           message->append.prev_index + message->append.entry_count >= index;
}

/* Whether the entry is sent once more while time passes, no append is answered, and nothing new is
 * proposed. */
static bool is_sent_again(struct cluster *cluster, raft_index index)
{
    struct raft_input tick = {.type = RAFT_IN_TICK};
    struct raft_message alive = {.type = RAFT_MSG_HEARTBEAT_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = 1,
                                 .heartbeat_reply = {.granted = cluster->settings.lease}};
    size_t from = cluster->queue_tail;

    for (int i = 0; i < 20; i++) {
        cluster->now = instant_add(cluster->now, cluster->settings.heartbeat_interval);
        node_step(cluster, 1, &tick);
        alive.heartbeat_reply.sent = cluster->now;
        node_message(cluster, &alive);
    }
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    for (size_t i = from; i < cluster->queue_tail; i++) {
        if (carries(&cluster->queue[i % QUEUE_MAX].message, index)) {
            return true;
        }
    }
    return false;
}

static void an_append_lost_after_a_repeated_answer_is_sent_again(void **state)
{
    struct cluster *cluster = lead_with_first_entry();

    assert_int_equal(node_propose(cluster, 1, "lost"), 0); /* entry 2 */
    answer(cluster, 1, false);
    assert_true(is_sent_again(cluster, 2));
    cluster_free(cluster);
}

static void an_append_that_was_overtaken_is_sent_again(void **state)
{
    struct cluster *cluster = lead_with_first_entry();

    assert_int_equal(node_propose(cluster, 1, "late"), 0);  /* entry 2 */
    assert_int_equal(node_propose(cluster, 1, "early"), 0); /* entry 3 comes first: refused */
    answer(cluster, 2, false);
    answer(cluster, 2, true);
    assert_true(is_sent_again(cluster, 3));
    cluster_free(cluster);
}

static void an_append_lost_after_a_slow_answer_is_sent_again(void **state)
{
    struct cluster *cluster = lead_with_first_entry();

    assert_int_equal(node_propose(cluster, 1, "slow"), 0); /* entry 2 */
    assert_true(is_sent_again(cluster, 2));
    answer(cluster, 2, false); /* to the first one */
    assert_int_equal(node_propose(cluster, 1, "lost"), 0);
    answer(cluster, 2, false); /* to the repeated one */
    assert_true(is_sent_again(cluster, 3));
    cluster_free(cluster);
}

static void nothing_is_sent_again_once_it_is_acknowledged(void **state)
{
    struct cluster *cluster = lead_with_first_entry();

    for (raft_index i = 2; i < 6; i++) {
        assert_int_equal(node_propose(cluster, 1, "x"), 0);
    }
    answer(cluster, 5, false); /* the answers before it were lost */
    assert_int_equal(node_status(cluster, 1).commit_index, 5);
    assert_false(is_sent_again(cluster, 5));
    cluster_free(cluster);
}

static void followers_learn_at_once_what_is_committed(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);

    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    cluster_deliver(cluster); /* no time passes */
    for (raft_id id = 1; id <= 3; id++) {
        assert_int_equal(node_of(cluster, id)->applied_count, 1);
    }
    cluster_free(cluster);
}

/* One after the other, within the time in which commits are announced once. */
static void a_member_that_waits_for_a_commit_hears_of_it_at_once(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, asker;

    cluster->settings.heartbeat_interval = SPAN_MS(30);
    leader = cluster_settle(cluster);
    asker = cluster_follower(leader);
    for (int i = 0; i < 8; i++) {
        const struct raft_proposal item = {.data = "x", .bytes = 1, .asker = asker};
        struct raft_input input = {.type = RAFT_IN_PROPOSE,
                                   .propose = {.items = &item, .count = 1}};
        assert_int_equal(node_step(cluster, leader, &input), 0);
        cluster_deliver(cluster);
        assert_int_equal(node_status(cluster, asker).commit_index,
                         node_status(cluster, leader).last_index);
    }
    cluster_free(cluster);
}

static size_t awaited_appends;

static bool counts_awaited(struct cluster *cluster, const struct raft_message *message)
{
    awaited_appends += (message->type == RAFT_MSG_APPEND && message->append.is_awaited) ||
                       (message->type == RAFT_MSG_APPEND_REPLY && message->append_reply.is_awaited);
    return true;
}

static void propose_for(struct cluster *cluster, raft_id leader, raft_id asker)
{
    const struct raft_proposal item = {.data = "x", .bytes = 1, .asker = asker};
    struct raft_input input = {.type = RAFT_IN_PROPOSE, .propose = {.items = &item, .count = 1}};

    assert_int_equal(node_step(cluster, leader, &input), 0);
    cluster_run(cluster, 20);
}

/* The driver sends such an append on both connections. */
static void an_append_with_what_all_wait_for_says_so(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);

    cluster->filter = counts_awaited;
    awaited_appends = 0;
    propose_for(cluster, leader, cluster_follower(leader));
    assert_int_equal(awaited_appends, 0);
    propose_for(cluster, leader, RAFT_EVERYBODY);
    assert_int_equal(awaited_appends, 8); /* the entry, its commit, and the answers of two */
    propose_for(cluster, leader, cluster_follower(leader));
    assert_int_equal(awaited_appends, 8);
    cluster_free(cluster);
}

static void many_commits_are_announced_in_few_messages(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);
    size_t before = cluster->sent[RAFT_MSG_APPEND];
    size_t told;

    for (int i = 0; i < 100; i++) { /* each is committed before the next one is asked for */
        assert_int_equal(node_propose(cluster, leader, "x"), 0);
        cluster_deliver(cluster);
    }
    told = cluster->sent[RAFT_MSG_APPEND] - before - 200;
    assert_true(told <= 2);
    cluster_run(cluster, 2); /* less than a heartbeat's interval: the last one is told apart */
    for (raft_id id = 1; id <= 3; id++) {
        assert_int_equal(node_of(cluster, id)->applied_count, 100);
    }
    cluster_free(cluster);
}

/* How many are appended. */
static size_t propose_three(struct cluster *cluster, raft_id id, size_t bytes_of_second, int code)
{
    static const char data[64];
    const struct raft_proposal items[] = {{.data = data, .bytes = 1},
                                          {.data = data, .bytes = bytes_of_second},
                                          {.data = data, .bytes = 1}};
    size_t taken = 0;
    struct raft_input input = {.type = RAFT_IN_PROPOSE,
                               .propose = {.items = items, .count = 3, .ret_taken = &taken}};

    assert_int_equal(node_step(cluster, id, &input), code);
    return taken;
}

static void proposals_of_one_input_leave_in_one_message(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);
    raft_index last = node_status(cluster, leader).last_index;
    size_t before = cluster->sent[RAFT_MSG_APPEND];

    assert_int_equal(propose_three(cluster, leader, 1, BATON_OK), 3);
    assert_int_equal(cluster->sent[RAFT_MSG_APPEND] - before, 2); /* one to each follower */
    cluster_deliver(cluster);
    assert_int_equal(node_status(cluster, leader).commit_index, last + 3);
    cluster_free(cluster);
}

/* Else a program that writes twice could see the second write alone. */
static void what_follows_a_refused_proposal_is_refused(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    raft_index last;

    cluster->settings.message_bytes_max = 32;
    leader = cluster_settle(cluster);
    last = node_status(cluster, leader).last_index;
    assert_int_equal(propose_three(cluster, leader, 33, BATON_ETOOBIG), 1);
    assert_int_equal(node_status(cluster, leader).last_index, last + 1);
    assert_int_equal(propose_three(cluster, cluster_follower(leader), 1, BATON_ENOTLEADER), 0);
    cluster_free(cluster);
}

static void a_group_at_rest_sends_heartbeats_only(void **state)
{
    struct cluster *cluster = cluster_new(3);
    size_t before;

    (void)cluster_settle(cluster);
    before = cluster->sent[RAFT_MSG_APPEND];
    cluster_run(cluster, 1000);
    assert_int_equal(cluster->sent[RAFT_MSG_APPEND], before);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_lost_after_a_repeated_answer_is_sent_again),
        cmocka_unit_test(an_append_that_was_overtaken_is_sent_again),
        cmocka_unit_test(an_append_lost_after_a_slow_answer_is_sent_again),
        cmocka_unit_test(nothing_is_sent_again_once_it_is_acknowledged),
        cmocka_unit_test(followers_learn_at_once_what_is_committed),
        cmocka_unit_test(a_member_that_waits_for_a_commit_hears_of_it_at_once),
        cmocka_unit_test(an_append_with_what_all_wait_for_says_so),
        cmocka_unit_test(many_commits_are_announced_in_few_messages),
        cmocka_unit_test(proposals_of_one_input_leave_in_one_message),
        cmocka_unit_test(what_follows_a_refused_proposal_is_refused),
        cmocka_unit_test(a_group_at_rest_sends_heartbeats_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
