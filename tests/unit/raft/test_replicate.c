/* The log: replication, conflicts, commit, flow control, snapshots. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

static void all_nodes_apply_the_same_entries_in_the_same_order(void **state)
{
    struct cluster *cluster = cluster_new(3);
    static const char *const words[] = {"a", "b", "c", "d"};
    raft_id leader;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(node_propose(cluster, leader, words[i]), 0);
    }
    cluster_run(cluster, 50);
    for (raft_id id = 1; id <= 3; id++) {
        struct node *node = node_of(cluster, id);
        assert_int_equal(node->applied_count, 4);
        for (int i = 0; i < 4; i++) {
            assert_string_equal(node->applied[i], words[i]);
        }
    }
    cluster_free(cluster);
}

static void only_the_leader_takes_proposals(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;
    cluster_start(cluster);
    leader = cluster_elect(cluster);
    assert_int_equal(node_propose(cluster, cluster_follower(leader), "x"), BATON_ENOTLEADER);
    cluster_free(cluster);
}

static void a_proposal_larger_than_a_message_is_refused(void **state)
{
    struct cluster *cluster = cluster_new(1);
    cluster->settings.message_bytes_max = 4;
    cluster->settings.log_bytes_max = 8;
    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_int_equal(node_propose(cluster, 1, "12345"), BATON_ETOOBIG);
    assert_int_equal(node_propose(cluster, 1, "1234"), 0);
    cluster_free(cluster);
}

static void what_is_not_committed_yet_is_bounded(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    cluster->settings.message_bytes_max = 4;
    cluster->settings.log_bytes_max = 8;
    cluster_start(cluster);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 20);
    node_of(cluster, leader)->is_slow = true;
    node_of(cluster, leader)->is_cut = true;
    assert_int_equal(node_propose(cluster, leader, "1234"), 0);
    assert_int_equal(node_propose(cluster, leader, "5678"), 0);
    assert_int_equal(node_propose(cluster, leader, "9"), BATON_EBUSY);
    cluster_free(cluster);
}

static void an_entry_counts_for_its_leader_only_when_stored(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, other;
    raft_index last;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    cluster_run(cluster, 20);
    other = leader == 3 ? 2 : 3;
    node_crash(cluster, other); /* the leader and one follower are left */
    node_of(cluster, leader)->is_slow = true;
    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    cluster_deliver(cluster);
    last = node_status(cluster, leader).last_index;
    assert_int_equal(node_status(cluster, leader).commit_index, last - 1);
    node_store(cluster, leader);
    assert_int_equal(node_status(cluster, leader).commit_index, last);
    cluster_free(cluster);
}

static void a_follower_acknowledges_only_what_it_stored(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_entry entry = {.term = 1, .kind = RAFT_ENTRY_DATA, .data = "x", .bytes = 1};
    struct raft_message append = {
        .type = RAFT_MSG_APPEND, .from = 2, .to = 1, .incarnation = 1, .term = 1};
    size_t before;

    node_start(cluster, 1);
    node_of(cluster, 1)->is_slow = true;
    append.append.entries = &entry;
    append.append.entry_count = 1;
    append.append.commit = 1;
    before = cluster->queue_tail;
    node_message(cluster, &append);
    assert_int_equal(cluster->queue_tail, before);
    assert_int_equal(node_of(cluster, 1)->applied_count, 0); /* committed, not yet stored here */
    node_store(cluster, 1);
    assert_int_equal(node_of(cluster, 1)->applied_count, 1);
    cluster_free(cluster);
}

static void entries_that_conflict_are_replaced(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id old, now;

    old = cluster_settle(cluster);
    node_of(cluster, old)->is_cut = true;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(node_propose(cluster, old, "lost"), 0);
    }
    cluster_run(cluster, 500);
    now = cluster_elect(cluster);
    assert_int_equal(node_propose(cluster, now, "kept"), 0);
    cluster_run(cluster, 50);
    node_of(cluster, old)->is_cut = false;
    cluster_run(cluster, 500);
    assert_int_equal(node_of(cluster, old)->applied_count, 1);
    assert_string_equal(node_of(cluster, old)->applied[0], "kept");
    assert_int_equal(node_status(cluster, old).last_index, node_status(cluster, now).last_index);
    cluster_free(cluster);
}

static bool lose_every_third(struct cluster *cluster, const struct raft_message *message)
{
    static int count;
    return ++count % 3 != 0;
}

static void losses_are_made_good(void **state)
{
    struct cluster *cluster = cluster_new(3);
    size_t done = 0;

    cluster->settings.inflight_max = 2;
    cluster->settings.message_bytes_max = 64;
    cluster_start(cluster);
    cluster->filter = lose_every_third;
    for (int i = 0; i < 3000 && done < 40; i++) {
        raft_id leader = cluster_leader(cluster);
        if (leader != RAFT_NOBODY && node_propose(cluster, leader, "word") == 0) {
            done++;
        }
        cluster_run(cluster, 5);
    }
    assert_int_equal(done, 40);
    cluster->filter = NULL;
    cluster_run(cluster, 1000);
    assert_int_equal(node_of(cluster, 1)->applied_count, node_of(cluster, 2)->applied_count);
    assert_int_equal(node_of(cluster, 1)->applied_count, node_of(cluster, 3)->applied_count);
    cluster_free(cluster);
}

static void an_entry_of_an_earlier_term_is_not_committed_by_counting(void **state)
{
    /* Figure 8 of the Raft paper: on a majority, and still not safe */
    struct cluster *cluster = cluster_new(3);
    struct raft_entry entry = {.term = 1, .data = "old", .bytes = 3};
    struct raft_input tick = {.type = RAFT_IN_TICK};
    struct raft_message append = {
        .type = RAFT_MSG_APPEND, .from = 3, .to = 1, .incarnation = 1, .term = 1};
    struct raft_message reply = {.type = RAFT_MSG_PRE_VOTE_REPLY,
                                 .from = 2,
                                 .to = 1,
                                 .incarnation = 1,
                                 .term = 2,
                                 .vote_reply = {.granted = true}};

    node_start(cluster, 1);
    append.append.entries = &entry;
    append.append.entry_count = 1;
    node_message(cluster, &append);
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    node_message(cluster, &reply);
    reply.type = RAFT_MSG_VOTE_REPLY;
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    cluster->now = instant_add(cluster->now, cluster->settings.heartbeat_interval);
    node_step(cluster, 1, &tick); /* now its own term's first entry is there, too */
    reply.type = RAFT_MSG_APPEND_REPLY;
    reply.append_reply.rejected = false;
    reply.append_reply.index = 1;
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).commit_index, 0);
    reply.append_reply.index = 2; /* the entry of this term: now both */
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).commit_index, 2);
    cluster_free(cluster);
}

static void compact(struct cluster *cluster, raft_id id, const char *text)
{
    struct raft_input input = {.type = RAFT_IN_COMPACT,
                               .compact = {.index = node_status(cluster, id).applied_index,
                                           .data = text,
                                           .bytes = strlen(text)}};
    assert_int_equal(node_step(cluster, id, &input), 0);
}

static void a_follower_too_far_behind_gets_a_snapshot_in_chunks(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, behind;
    char text[3001];

    memset(text, 'S', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    cluster->settings.message_bytes_max = 64; /* a snapshot's chunk is at least 1 KiB */
    leader = cluster_settle(cluster);
    behind = leader == 3 ? 2 : 3;
    node_crash(cluster, behind);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(node_propose(cluster, leader, "word"), 0);
        cluster_run(cluster, 1);
    }
    compact(cluster, leader, text);
    assert_int_equal(node_status(cluster, leader).first_index,
                     node_status(cluster, leader).applied_index + 1);
    assert_int_equal(node_propose(cluster, leader, "after"), 0);
    node_start(cluster, behind);
    cluster_run(cluster, 300);
    assert_true(cluster->sent[RAFT_MSG_SNAPSHOT] >= 3);
    assert_int_equal(node_of(cluster, behind)->snapshot.bytes, 3000);
    assert_string_equal(node_of(cluster, behind)->applied[1], "after");
    /* and it starts again from what it stored */
    node_crash(cluster, behind);
    node_start(cluster, behind);
    cluster_run(cluster, 300);
    assert_int_equal(node_status(cluster, behind).commit_index,
                     node_status(cluster, leader).commit_index);
    cluster_free(cluster);
}

static void a_snapshot_s_lost_and_strange_chunks_are_survived(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message chunk = {
        .type = RAFT_MSG_SNAPSHOT, .from = 2, .to = 1, .incarnation = 1, .term = 5};
    const struct raft_message *answer;

    node_start(cluster, 1);
    chunk.snapshot.index = 10;
    chunk.snapshot.snapshot_term = 4;
    chunk.snapshot.total_bytes = 6;
    chunk.snapshot.configuration = &cluster->first;
    chunk.snapshot.data = "abc";
    chunk.snapshot.bytes = 3;
    node_message(cluster, &chunk);
    answer = &cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message;
    assert_int_equal(answer->snapshot_reply.next_offset, 3);

    chunk.snapshot.configuration = NULL;
    chunk.snapshot.offset = 5; /* one between was lost */
    chunk.snapshot.bytes = 1;
    node_message(cluster, &chunk);
    answer = &cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message;
    assert_int_equal(answer->snapshot_reply.next_offset, 3);

    chunk.snapshot.index = 11; /* the middle of another one */
    node_message(cluster, &chunk);
    answer = &cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message;
    assert_int_equal(answer->snapshot_reply.next_offset, 0);

    chunk.snapshot.index = 10;
    chunk.snapshot.bytes = 9; /* more than it said */
    node_message(cluster, &chunk);
    chunk.snapshot.bytes = 3;
    chunk.snapshot.offset = 7;
    node_message(cluster, &chunk);
    chunk.snapshot.offset = 0; /* a first one without its configuration */
    node_message(cluster, &chunk);
    chunk.snapshot.total_bytes = UINT64_MAX;
    node_message(cluster, &chunk);
    chunk.snapshot.total_bytes = 6;

    chunk.snapshot.offset = 3;
    chunk.snapshot.data = "def";
    node_message(cluster, &chunk);
    assert_string_equal(node_of(cluster, 1)->applied[0], "abcdef");
    assert_int_equal(node_status(cluster, 1).commit_index, 10);
    node_message(cluster, &chunk); /* repeated: it is all there */
    answer = &cluster->queue[(cluster->queue_tail - 1) % QUEUE_MAX].message;
    assert_int_equal(answer->snapshot_reply.next_offset, 6);
    cluster_free(cluster);
}

static void compaction_takes_only_what_was_applied(void **state)
{
    struct cluster *cluster = cluster_new(1);
    struct raft_input input = {.type = RAFT_IN_COMPACT, .compact = {.index = 9}};

    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_int_equal(node_propose(cluster, 1, "x"), 0);
    assert_int_equal(node_step(cluster, 1, &input), BATON_EINVAL);
    assert_int_equal(node_status(cluster, 1).first_index, 1);
    assert_int_equal(node_status(cluster, 1).last_index, 2);
    compact(cluster, 1, "");
    assert_int_equal(node_status(cluster, 1).first_index, 3);
    input.compact.index = 1;
    assert_int_equal(node_step(cluster, 1, &input), BATON_EINVAL);
    cluster_free(cluster);
}

static void a_connection_that_comes_back_is_used_at_once(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader, other;
    struct raft_input up = {.type = RAFT_IN_CONNECTION, .connection = {.is_up = true}};
    instant healed;

    cluster_start(cluster);
    leader = cluster_elect(cluster);
    other = cluster_follower(leader);
    cluster_run(cluster, 50);
    node_of(cluster, other)->is_cut = true;
    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    cluster_run(cluster, 2);
    node_of(cluster, other)->is_cut = false;
    healed = cluster->now;
    up.connection.peer = other;
    node_step(cluster, leader, &up);
    cluster_deliver(cluster);
    assert_true(cluster->now.ns == healed.ns);
    assert_int_equal(node_status(cluster, other).last_index,
                     node_status(cluster, leader).last_index);
    up.connection.peer = 99;
    node_step(cluster, leader, &up);
    cluster_free(cluster);
}

static void messages_that_no_peer_sends_change_nothing(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message message = {
        .type = RAFT_MSG_HEARTBEAT, .from = 2, .to = 1, .incarnation = 1, .term = UINT64_MAX};

    node_start(cluster, 1);
    node_message(cluster, &message); /* a term out of this world */
    message.term = 3;
    message.from = 1;
    node_message(cluster, &message); /* from itself */
    message.from = RAFT_NOBODY;
    node_message(cluster, &message);
    message.from = 2;
    message.incarnation = 0;
    node_message(cluster, &message);
    message.incarnation = 1;
    message.type = (enum raft_message_type)99;
    node_message(cluster, &message);
    message.type = RAFT_MSG_APPEND;
    message.append.prev_index = UINT64_MAX;
    node_message(cluster, &message);
    message.type = RAFT_MSG_SNAPSHOT;
    message.snapshot.index = UINT64_MAX;
    node_message(cluster, &message);
    message.type = RAFT_MSG_APPEND_REPLY;
    message.append_reply.hint = UINT64_MAX;
    node_message(cluster, &message);
    message.type = RAFT_MSG_VOTE;
    message.vote.last_index = UINT64_MAX;
    node_message(cluster, &message);
    assert_int_equal(node_status(cluster, 1).term, 0);
    assert_int_equal(node_status(cluster, 1).leader, RAFT_NOBODY);
    cluster_free(cluster);
}

static void an_unknown_input_is_refused(void **state)
{
    struct cluster *cluster = cluster_new(1);
    struct raft_input input = {.type = (enum raft_input_type)99};
    node_start(cluster, 1);
    assert_int_equal(node_step(cluster, 1, &input), BATON_EINVAL);
    cluster_free(cluster);
}

static void time_never_goes_back_inside(void **state)
{
    struct cluster *cluster = cluster_new(1);
    const struct raft_update *update;
    struct raft_input tick = {.type = RAFT_IN_TICK};
    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_int_equal(raft_step(node_of(cluster, 1)->raft, &tick, INSTANT_PAST, &update), 0);
    assert_true(update->lease.held);
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nodes_apply_the_same_entries_in_the_same_order),
        cmocka_unit_test(only_the_leader_takes_proposals),
        cmocka_unit_test(a_proposal_larger_than_a_message_is_refused),
        cmocka_unit_test(what_is_not_committed_yet_is_bounded),
        cmocka_unit_test(an_entry_counts_for_its_leader_only_when_stored),
        cmocka_unit_test(a_follower_acknowledges_only_what_it_stored),
        cmocka_unit_test(entries_that_conflict_are_replaced),
        cmocka_unit_test(losses_are_made_good),
        cmocka_unit_test(an_entry_of_an_earlier_term_is_not_committed_by_counting),
        cmocka_unit_test(a_follower_too_far_behind_gets_a_snapshot_in_chunks),
        cmocka_unit_test(a_snapshot_s_lost_and_strange_chunks_are_survived),
        cmocka_unit_test(compaction_takes_only_what_was_applied),
        cmocka_unit_test(a_connection_that_comes_back_is_used_at_once),
        cmocka_unit_test(messages_that_no_peer_sends_change_nothing),
        cmocka_unit_test(an_unknown_input_is_refused),
        cmocka_unit_test(time_never_goes_back_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
