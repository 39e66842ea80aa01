/* Messages that no honest peer of this group sends: they end no process and leave nothing in the
 * log that the next start refuses, and a node that is no member changes nothing under a leader. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

enum { STRANGER = 9 };

static struct raft_message from(raft_id id, raft_id to, enum raft_message_type type, raft_term term)
{
    return (struct raft_message){
        .type = type, .from = id, .to = to, .incarnation = 1, .term = term};
}

/* A follower, 1, with one committed entry of each of the terms 2 and 3, from leader 2. */
static struct cluster *follower_of_two(void)
{
    struct cluster *cluster = cluster_new(3);
    static const struct raft_entry entries[] = {{.term = 2, .data = "a", .bytes = 1},
                                                {.term = 3, .data = "b", .bytes = 1}};
    struct raft_message append = from(2, 1, RAFT_MSG_APPEND, 3);

    node_start(cluster, 1);
    append.append.entries = entries;
    append.append.entry_count = 2;
    append.append.commit = 2;
    node_message(cluster, &append);
    assert_int_equal(node_status(cluster, 1).commit_index, 2);
    return cluster;
}

/* What is stored starts again. */
static void assert_starts_again(struct cluster *cluster)
{
    node_crash(cluster, 1);
    node_start(cluster, 1);
    cluster_free(cluster);
}

static void assert_unchanged(struct cluster *cluster)
{
    assert_int_equal(node_status(cluster, 1).term, 3);
    assert_int_equal(node_status(cluster, 1).last_index, 2);
    assert_int_equal(node_status(cluster, 1).commit_index, 2);
    assert_starts_again(cluster);
}

static void an_append_that_contradicts_committed_entries_is_refused_and_reported(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_entry entry = {.term = 4, .data = "x", .bytes = 1};
    struct raft_message append = from(3, 1, RAFT_MSG_APPEND, 5);
    size_t events;

    append.append.entries = &entry;
    append.append.entry_count = 1;
    node_message(cluster, &append); /* another entry 1 */
    assert_true(node_saw(cluster, 1, RAFT_EV_CONTRADICTED));
    assert_int_equal(node_last(cluster, 1, RAFT_EV_CONTRADICTED)->node, 3);
    events = node_of(cluster, 1)->event_count;
    append.append.prev_index = 1;
    append.append.prev_term = 4; /* another entry before entry 2 */
    node_message(cluster, &append);
    assert_int_equal(node_of(cluster, 1)->event_count, events); /* told once */
    assert_unchanged(cluster);
}

static void a_snapshot_that_contradicts_committed_entries_is_refused_and_reported(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_message snapshot = from(3, 1, RAFT_MSG_SNAPSHOT, 5);

    snapshot.snapshot.configuration = &cluster->first;
    snapshot.snapshot.index = 2;
    snapshot.snapshot.snapshot_term = 4;
    node_message(cluster, &snapshot);
    assert_true(node_saw(cluster, 1, RAFT_EV_CONTRADICTED));
    snapshot.snapshot.index = 9; /* beyond, and of a term before the last committed one */
    snapshot.snapshot.snapshot_term = 2;
    node_message(cluster, &snapshot);
    assert_unchanged(cluster);
}

static void an_entry_above_its_leader_s_term_is_not_taken(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_entry entry = {.term = 9, .data = "x", .bytes = 1};
    struct raft_message append = from(2, 1, RAFT_MSG_APPEND, 3);

    append.append.prev_index = 2;
    append.append.prev_term = 3;
    append.append.entries = &entry;
    append.append.entry_count = 1;
    node_message(cluster, &append);
    assert_unchanged(cluster);
}

static void entries_whose_terms_fall_or_are_0_are_not_taken(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_entry entries[] = {{.term = 3, .data = "x", .bytes = 1},
                                   {.term = 2, .data = "y", .bytes = 1}};
    struct raft_message append = from(2, 1, RAFT_MSG_APPEND, 3);

    append.append.prev_index = 2;
    append.append.prev_term = 3;
    append.append.entries = entries;
    append.append.entry_count = 2;
    node_message(cluster, &append);
    entries[0].term = entries[1].term = 0;
    append.append.prev_term = 0; /* an index with term 0 */
    append.append.prev_index = 7;
    node_message(cluster, &append);
    assert_unchanged(cluster);
}

static void an_entry_that_holds_no_configuration_is_not_taken_for_one(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_entry entries[] = {
        {.term = 3, .kind = RAFT_ENTRY_CONFIGURATION, .data = "junk", .bytes = 4},
        {.term = 3, .data = "after it", .bytes = 8}};
    struct raft_message append = from(2, 1, RAFT_MSG_APPEND, 3);

    append.append.prev_index = 2;
    append.append.prev_term = 3;
    append.append.entries = entries;
    append.append.entry_count = 2;
    node_message(cluster, &append);
    entries[0].kind = (enum raft_entry_kind)77;
    node_message(cluster, &append);
    assert_unchanged(cluster);
}

static void a_snapshot_above_its_leader_s_term_or_without_one_is_not_taken(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_message snapshot = from(2, 1, RAFT_MSG_SNAPSHOT, 3);
    struct raft_configuration nobody = {0};

    snapshot.snapshot.configuration = &cluster->first;
    snapshot.snapshot.index = 9;
    snapshot.snapshot.snapshot_term = 4;
    node_message(cluster, &snapshot);
    snapshot.snapshot.snapshot_term = 0;
    node_message(cluster, &snapshot);
    snapshot.snapshot.snapshot_term = 3;
    snapshot.snapshot.configuration = &nobody; /* in which nobody could lead */
    node_message(cluster, &snapshot);
    assert_unchanged(cluster);
}

static void a_term_out_of_reach_is_not_adopted(void **state)
{
    struct cluster *cluster = follower_of_two();
    struct raft_message message = from(2, 1, RAFT_MSG_HEARTBEAT, ((raft_term)1 << 56) - 1);

    node_message(cluster, &message); /* the next one would be refused by everybody */
    message.type = RAFT_MSG_HEARTBEAT_REPLY;
    node_message(cluster, &message);
    message = from(2, 1, RAFT_MSG_HEARTBEAT, 3);
    message.heartbeat.lease = cluster->settings.lease;
    message.heartbeat.heir = 3;
    message.heartbeat.heir_term = ((raft_term)1 << 56) - 1;
    node_message(cluster, &message);
    assert_int_equal(node_status(cluster, 1).pledged_term, 0);
    assert_unchanged(cluster);
}

static void a_hint_beyond_the_log_is_cut(void **state)
{
    struct cluster *cluster = cluster_new(2);
    struct raft_message reply;
    raft_id leader;

    leader = cluster_settle(cluster);
    assert_int_equal(node_propose(cluster, leader, "x"), 0);
    reply = from(3 - leader, leader, RAFT_MSG_APPEND_REPLY, node_status(cluster, leader).term);
    reply.append_reply.rejected = true;
    reply.append_reply.index = node_status(cluster, leader).last_index;
    reply.append_reply.hint = 1000000;
    reply.append_reply.hint_term = 1000000;
    node_message(cluster, &reply);
    cluster_run(cluster, 100);
    assert_int_equal(node_of(cluster, 3 - leader)->applied_count, 1);
    cluster_free(cluster);
}

static void what_is_stored_is_checked(void **state)
{
    struct cluster *cluster = cluster_new(1);
    struct raft_entry entry = {
        .term = 1, .kind = RAFT_ENTRY_CONFIGURATION, .data = "junk", .bytes = 4};
    struct raft_start start = {.id = 1,
                               .incarnation = 1,
                               .settings = cluster->settings,
                               .hard = {.term = 1},
                               .snapshot = {.configuration = cluster->first},
                               .entries = &entry,
                               .entry_count = 1};
    struct raft *raft = NULL;

    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    entry.kind = (enum raft_entry_kind)9;
    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    entry.kind = RAFT_ENTRY_DATA;
    entry.term = 0;
    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    entry.term = 1;
    start.hard.term = UINT64_MAX;
    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    start.hard.term = 1;
    start.hard.promised_max = SPAN_NS(-1);
    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    start.hard.promised_max = SPAN_NS(0);
    start.snapshot.index = 5; /* of term 0 */
    assert_int_equal(raft_new(&raft, &start, cluster->now, NULL), BATON_ECORRUPT);
    cluster_free(cluster);
}

/* ---- Strangers ------------------------------------------------------------------------------- */

static void a_stranger_s_term_deposes_no_leader(void **state)
{
    static const enum raft_message_type types[] = {
        RAFT_MSG_PRE_VOTE,  RAFT_MSG_PRE_VOTE_REPLY,  RAFT_MSG_VOTE,        RAFT_MSG_VOTE_REPLY,
        RAFT_MSG_HEARTBEAT, RAFT_MSG_HEARTBEAT_REPLY, RAFT_MSG_APPEND,      RAFT_MSG_APPEND_REPLY,
        RAFT_MSG_SNAPSHOT,  RAFT_MSG_SNAPSHOT_REPLY,  RAFT_MSG_TIMEOUT_NOW, RAFT_MSG_RESIGN,
    };
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);
    raft_term epoch = node_of(cluster, leader)->lease.epoch;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (raft_id id = 1; id <= 3; id++) {
            struct raft_message message = from(STRANGER, id, types[i], 1002);
            if (types[i] == RAFT_MSG_SNAPSHOT) {
                message.snapshot.index = 50;
                message.snapshot.snapshot_term = 1001;
                message.snapshot.configuration = &cluster->first;
            }
            if (types[i] == RAFT_MSG_VOTE || types[i] == RAFT_MSG_PRE_VOTE) {
                message.vote.last_index = 50;
                message.vote.last_term = 1001;
            }
            node_message(cluster, &message);
        }
        cluster_run(cluster, 100);
    }
    assert_true(node_is_leader(cluster, leader));
    assert_int_equal(node_of(cluster, leader)->lease.epoch, epoch);
    cluster_free(cluster);
}

static void a_node_that_knows_of_no_leader_votes_for_a_newcomer_with_a_longer_log(void **state)
{
    /* The newcomer's configuration is committed, and has not come to this node yet. */
    struct cluster *cluster = cluster_new(3);
    struct raft_message vote = from(STRANGER, 1, RAFT_MSG_VOTE, 5);
    struct raft_message append = from(STRANGER, 1, RAFT_MSG_APPEND, 5);

    node_start(cluster, 1);
    node_message(cluster, &vote); /* its log is no longer than this one's */
    assert_int_equal(node_status(cluster, 1).term, 0);
    vote.vote.last_index = 4;
    vote.vote.last_term = 4;
    node_message(cluster, &vote);
    assert_int_equal(node_status(cluster, 1).vote, STRANGER);
    node_message(cluster, &append);
    assert_int_equal(node_status(cluster, 1).leader, STRANGER);
    cluster_free(cluster);
}

static void a_stranger_that_was_followed_is_not_heard_once_a_vote_has_a_promise(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message append = from(STRANGER, 1, RAFT_MSG_APPEND, 5);
    struct raft_message vote = from(2, 1, RAFT_MSG_VOTE, 5);
    struct raft_message reply = from(STRANGER, 1, RAFT_MSG_APPEND_REPLY, 6);

    node_start(cluster, 1);
    node_message(cluster, &append);
    assert_int_equal(node_status(cluster, 1).leader, STRANGER);
    vote.vote.last_term = 5;
    vote.vote.last_index = 5;
    node_message(cluster, &vote);
    assert_int_equal(node_status(cluster, 1).promised_to, 2);
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).term, 5);
    cluster_free(cluster);
}

static int ask(struct cluster *cluster, raft_id leader, size_t without)
{
    struct raft_member members[CLUSTER_MAX];
    struct raft_configuration wanted = {.members = members};
    struct raft_input input = {.type = RAFT_IN_RECONFIGURE, .configuration = &wanted};

    for (size_t i = 0; i < cluster->count; i++) {
        if (i + 1 != without) {
            members[wanted.count++] = cluster->first.members[i];
        }
    }
    return node_step(cluster, leader, &input);
}

static bool knows_that_it_left(struct cluster *cluster, raft_id id)
{
    const struct raft_configuration *own = raft_get_configuration(node_of(cluster, id)->raft);
    return !own->is_joint && !raft_configuration_find(own, id) &&
           !node_status(cluster, id).is_changing;
}

static void a_removed_member_gets_the_change_at_once(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader = cluster_settle(cluster);
    raft_id left = cluster_follower(leader);

    assert_int_equal(ask(cluster, leader, left), 0);
    cluster_run(cluster, 30); /* the lease must be covered by the new half: two heartbeats */
    assert_true(knows_that_it_left(cluster, left));
    cluster_free(cluster);
}

static raft_id deaf;

static bool lose_appends_to_the_deaf(struct cluster *cluster, const struct raft_message *message)
{
    return message->to != deaf || message->type != RAFT_MSG_APPEND;
}

static void a_removed_member_that_missed_the_change_gets_it_when_it_asks_for_votes(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    cluster->settings.message_bytes_max = 64; /* an entry or two in a message */
    leader = cluster_settle(cluster);
    deaf = cluster_follower(leader);
    cluster->filter = lose_appends_to_the_deaf;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(node_propose(cluster, leader, "x"), 0);
    }
    cluster_deliver(cluster);
    assert_int_equal(ask(cluster, leader, deaf), 0);
    cluster_run(cluster, 200);
    assert_false(knows_that_it_left(cluster, deaf));
    cluster->filter = NULL;
    cluster_run(cluster, 500);
    assert_true(knows_that_it_left(cluster, deaf));
    assert_true(node_is_leader(cluster, leader));
    cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_that_contradicts_committed_entries_is_refused_and_reported),
        cmocka_unit_test(a_snapshot_that_contradicts_committed_entries_is_refused_and_reported),
        cmocka_unit_test(an_entry_above_its_leader_s_term_is_not_taken),
        cmocka_unit_test(entries_whose_terms_fall_or_are_0_are_not_taken),
        cmocka_unit_test(an_entry_that_holds_no_configuration_is_not_taken_for_one),
        cmocka_unit_test(a_snapshot_above_its_leader_s_term_or_without_one_is_not_taken),
        cmocka_unit_test(a_term_out_of_reach_is_not_adopted),
        cmocka_unit_test(a_hint_beyond_the_log_is_cut),
        cmocka_unit_test(what_is_stored_is_checked),
        cmocka_unit_test(a_stranger_s_term_deposes_no_leader),
        cmocka_unit_test(a_node_that_knows_of_no_leader_votes_for_a_newcomer_with_a_longer_log),
        cmocka_unit_test(a_stranger_that_was_followed_is_not_heard_once_a_vote_has_a_promise),
        cmocka_unit_test(a_removed_member_gets_the_change_at_once),
        cmocka_unit_test(a_removed_member_that_missed_the_change_gets_it_when_it_asks_for_votes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
