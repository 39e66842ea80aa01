/* Elections as the seed describes them: roles, trigger, process, split votes, scenarios. */
#include "cluster.h"

static void one_of_three_is_elected_and_the_others_follow(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id leader;

    leader = cluster_settle(cluster);
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

    first = cluster_settle(cluster);
    node_crash(cluster, first);
    second = cluster_elect(cluster);
    assert_int_not_equal(first, second);
    assert_true(node_of(cluster, second)->lease.epoch > 1);
    cluster_free(cluster);
}

static void a_hang_is_noticed_within_the_bound(void **state)
{
    /* virtual time, so the bound may be asserted */
    struct cluster *cluster = cluster_new(3);
    struct raft_bounds bounds = raft_settings_bounds(&cluster->settings);
    raft_id first;
    instant stopped;

    first = cluster_settle(cluster);
    stopped = cluster->now;
    node_of(cluster, first)->is_cut = true;
    while (cluster_leader(cluster) == first || cluster_leader(cluster) == RAFT_NOBODY) {
        cluster_run(cluster, 1);
    }
    assert_true(instant_since(cluster->now, stopped).ns <= bounds.hang.ns + SPAN_MS(2).ns);
    cluster_free(cluster);
}

static void a_node_alone_leads_at_once(void **state)
{
    struct cluster *cluster = cluster_new(1);
    instant before = cluster->now;

    cluster_start(cluster);
    cluster_deliver(cluster);
    assert_true(node_is_leader(cluster, 1));
    assert_true(cluster->now.ns == before.ns);
    cluster_run(cluster, 0); /* the first entry of the term comes after the leadership */
    assert_true(node_of(cluster, 1)->deadline.ns == INT64_MAX);
    assert_int_equal(node_propose(cluster, 1, "x"), 0);
    assert_int_equal(node_of(cluster, 1)->applied_count, 1);
    node_crash(cluster, 1); /* and again after a restart: nobody else could have been promised */
    node_start(cluster, 1);
    assert_true(node_is_leader(cluster, 1));
    assert_int_equal(node_status(cluster, 1).term, 2);
    cluster_free(cluster);
}

static void a_minority_elects_nobody_and_loses_its_leader(void **state)
{
    struct cluster *cluster = cluster_new(5);
    raft_id old, now;
    raft_term term;

    old = cluster_settle(cluster);
    node_of(cluster, old)->is_cut = true; /* seed: the partition of scenario 2 */
    cluster_run(cluster, 1000);
    now = cluster_leader(cluster);
    assert_int_not_equal(now, old);
    assert_int_not_equal(now, RAFT_NOBODY);
    assert_true(node_saw(cluster, old, RAFT_EV_LOST));
    term = node_status(cluster, old).term;
    assert_int_equal(term, 1); /* pre-votes: an island's term does not run away */

    node_of(cluster, old)->is_cut = false; /* healed: the old leader follows */
    cluster_run(cluster, 500);
    assert_int_equal(cluster_leader(cluster), now);
    assert_int_equal(node_status(cluster, old).leader, now);
    cluster_free(cluster);
}

static void cascading_failures_are_handled_one_after_another(void **state)
{
    struct cluster *cluster = cluster_new(5);
    raft_term epoch = 0;

    cluster_start(cluster);
    for (int i = 0; i < 3; i++) {
        raft_id leader = cluster_elect(cluster);
        assert_true(node_of(cluster, leader)->lease.epoch > epoch);
        epoch = node_of(cluster, leader)->lease.epoch;
        cluster_run(cluster, 100);
        if (i < 2) {
            node_crash(cluster, leader);
        }
    }
    cluster_free(cluster);
}

static bool only_pre_votes_and_first_votes(struct cluster *cluster, const struct raft_message *m)
{
    /* node 1 and 2 reach nobody but one voter each: 3 votes for 1, 4 votes for 2 */
    if (m->type != RAFT_MSG_VOTE || m->term > 1) {
        return true;
    }
    return (m->from == 1 && m->to == 3) || (m->from == 2 && m->to == 4);
}

static void a_split_vote_is_resolved_by_random_waits(void **state)
{
    struct cluster *cluster = cluster_new(4);
    struct raft_input tick = {.type = RAFT_IN_TICK};

    cluster_start(cluster);
    cluster->filter = only_pre_votes_and_first_votes;
    cluster->now = instant_add(cluster->now, SPAN_MS(400));
    node_step(cluster, 1, &tick); /* both doubt in the same instant */
    node_step(cluster, 2, &tick);
    cluster_deliver(cluster);
    assert_int_equal(node_status(cluster, 3).vote, 1);
    assert_int_equal(node_status(cluster, 4).vote, 2);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    assert_int_equal(node_status(cluster, 2).role, RAFT_CANDIDATE);
    (void)cluster_elect(cluster);
    cluster_free(cluster);
}

/* All four that are left must vote for one, and votes take as long as the spread of the rounds:
 * each round is likely to be split. */
static void the_spread_gets_wider_until_votes_are_split_no_more(void **state)
{
    enum { PLAYS = 50, TERMS_MEAN_MAX = 8 };
    raft_term terms = 0;

    for (uint64_t i = 0; i < PLAYS; i++) {
        struct cluster *cluster = cluster_new(6);
        cluster->seed = i;
        cluster->settings.heartbeat_timeout = cluster->settings.lease = SPAN_MS(200);
        cluster->settings.election_timeout_min = SPAN_MS(100);
        cluster->settings.election_timeout_max = SPAN_MS(125);
        cluster->delay = SPAN_MS(20);
        cluster_start(cluster);
        node_crash(cluster, 5);
        node_crash(cluster, 6);
        terms += node_status(cluster, cluster_elect(cluster)).term;
        cluster_free(cluster);
    }
    assert_in_range(terms, PLAYS, PLAYS * TERMS_MEAN_MAX);
}

static void the_highest_priority_leads_when_it_is_healthy(void **state)
{
    for (uint64_t round = 0; round < 20; round++) {
        struct cluster *cluster = cluster_new(5);
        cluster->now.ns += (int64_t)round * 1000003;
        cluster->first.members[3].priority = 10;
        cluster->first.members[1].priority = 5;
        cluster_start(cluster);
        assert_int_equal(cluster_elect(cluster), 4);
        cluster_run(cluster, 200);
        node_crash(cluster, 4);
        assert_int_equal(cluster_elect(cluster), 2);
        cluster_free(cluster);
    }
}

static void a_preferred_node_takes_over_only_after_it_was_stable(void **state)
{
    struct cluster *cluster = cluster_new(3);
    raft_id first;

    cluster->first.members[2].priority = 1;
    cluster->settings.preferred_stable = SPAN_MS(1000);
    node_start(cluster, 1);
    node_start(cluster, 2);
    first = cluster_elect(cluster);
    node_start(cluster, 3);
    cluster_run(cluster, 900);
    assert_int_equal(cluster_leader(cluster), first);
    cluster_run(cluster, 300);
    assert_int_equal(cluster_leader(cluster), 3);
    assert_int_equal(node_last(cluster, first, RAFT_EV_LOST)->loss, RAFT_LOSS_RESIGNED);
    cluster_run(cluster, 3000);
    assert_int_equal(cluster_leader(cluster), 3);
    cluster_free(cluster);
}

static void a_witness_votes_but_never_leads(void **state)
{
    struct cluster *cluster = cluster_new(3);

    cluster->first.members[0].kind = RAFT_WITNESS;
    cluster->first.members[1].kind = RAFT_WITNESS;
    cluster_start(cluster);
    assert_int_equal(cluster_elect(cluster), 3);
    node_crash(cluster, 3);
    cluster_run(cluster, 2000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY);
    cluster_free(cluster);
}

static void a_cordoned_node_votes_but_does_not_run(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_input cordon = {.type = RAFT_IN_ELIGIBLE, .eligible = false};
    raft_id leader;

    leader = cluster_settle(cluster);
    node_step(cluster, leader, &cordon); /* a leader that is cordoned hands over */
    cluster_run(cluster, 10);
    assert_int_not_equal(cluster_elect(cluster), leader);
    for (raft_id id = 1; id <= 3; id++) {
        node_step(cluster, id, &cordon);
    }
    cluster_run(cluster, 2000);
    assert_int_equal(cluster_leader(cluster), RAFT_NOBODY);
    cordon.eligible = true;
    node_step(cluster, leader, &cordon);
    assert_int_equal(cluster_elect(cluster), leader);
    cluster_free(cluster);
}

static void a_candidate_that_is_cordoned_gives_up(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_input cordon = {.type = RAFT_IN_ELIGIBLE, .eligible = false};

    node_start(cluster, 1);
    cluster_run(cluster, 300);
    assert_int_equal(node_status(cluster, 1).role, RAFT_PRE_CANDIDATE);
    node_step(cluster, 1, &cordon);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    cluster_run(cluster, 1000);
    assert_int_equal(node_status(cluster, 1).role, RAFT_FOLLOWER);
    cluster_free(cluster);
}

static bool loses_grants(struct cluster *cluster, const struct raft_message *message)
{
    return message->type != RAFT_MSG_HEARTBEAT_REPLY;
}

/* Of five: no vote alone decides, so none brings the lease along. */
static void a_winner_that_is_cordoned_before_its_lease_never_leads(void **state)
{
    struct cluster *cluster = cluster_new(5);
    struct raft_input cordon = {.type = RAFT_IN_ELIGIBLE, .eligible = false};
    raft_id winner = RAFT_NOBODY;

    cluster->filter = loses_grants;
    cluster_start(cluster);
    for (int ms = 0; ms < 3000 && winner == RAFT_NOBODY; ms++) {
        cluster_run(cluster, 1);
        for (raft_id id = 1; id <= 5; id++) {
            winner = node_status(cluster, id).role == RAFT_LEADER ? id : winner;
        }
    }
    node_step(cluster, winner, &cordon);
    cluster->filter = NULL;
    cluster_run(cluster, 3000);
    assert_false(node_saw(cluster, winner, RAFT_EV_ACQUIRED));
    assert_int_not_equal(cluster_leader(cluster), RAFT_NOBODY);
    cluster_free(cluster);
}

static void too_many_elections_are_reported_once(void **state)
{
    struct cluster *cluster = cluster_new(3);
    size_t told = 0;
    struct node *watcher;

    cluster_start(cluster);
    for (int i = 0; i < 14; i++) {
        raft_id leader = cluster_elect(cluster);
        cluster_run(cluster, 50);
        assert_int_equal(node_transfer(cluster, leader, RAFT_NOBODY, false), 0);
        cluster_run(cluster, 5);
    }
    watcher = node_of(cluster, 1);
    for (size_t i = 0; i < watcher->event_count; i++) {
        told += watcher->events[i].type == RAFT_EV_TOO_MANY_ELECTIONS;
    }
    assert_int_equal(told, 1);
    assert_int_equal(node_last(cluster, 1, RAFT_EV_TOO_MANY_ELECTIONS)->count, 11);
    assert_true(node_status(cluster, 1).elections_last_hour > 10);
    cluster_run(cluster, 3600 * 1000);
    assert_int_equal(node_status(cluster, 1).elections_last_hour, 0);
    cluster_free(cluster);
}

/* A provider refuses a higher limit, since a node remembers 256 elections. */
static void the_highest_limit_of_elections_that_a_provider_takes_is_reported(void **state)
{
    enum { LIMIT_MAX = 255 };
    struct cluster *cluster = cluster_new(3);
    struct node *watcher = node_of(cluster, 1);
    size_t elections = 0;

    cluster->settings.elections_per_hour_max = LIMIT_MAX;
    cluster_start(cluster);
    while (!node_saw(cluster, 1, RAFT_EV_TOO_MANY_ELECTIONS)) {
        raft_id leader = cluster_elect(cluster);
        assert_true(elections++ <= LIMIT_MAX);
        watcher->event_count = 0;
        cluster_run(cluster, 50);
        assert_int_equal(node_transfer(cluster, leader, RAFT_NOBODY, false), 0);
        cluster_run(cluster, 5);
    }
    assert_int_equal(node_last(cluster, 1, RAFT_EV_TOO_MANY_ELECTIONS)->count, LIMIT_MAX + 1);
    cluster_free(cluster);
}

static void a_vote_waits_for_the_disk(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message request = {
        .type = RAFT_MSG_VOTE, .from = 2, .to = 1, .incarnation = 1, .term = 3};
    size_t before;

    node_start(cluster, 1);
    node_of(cluster, 1)->is_slow = true;
    before = cluster->queue_tail;
    node_message(cluster, &request);
    assert_true(node_of(cluster, 1)->pending_write > 0);
    assert_int_equal(cluster->queue_tail, before); /* nothing left the node */
    cluster_free(cluster);
}

static void a_candidate_counts_its_own_vote_only_when_stored(void **state)
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
    node_of(cluster, 1)->is_slow = true;
    cluster->now = node_of(cluster, 1)->deadline;
    node_step(cluster, 1, &tick);
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    reply.type = RAFT_MSG_VOTE_REPLY;
    node_message(cluster, &reply);
    assert_int_equal(node_status(cluster, 1).role, RAFT_CANDIDATE);
    node_store(cluster, 1);
    assert_int_equal(node_status(cluster, 1).role, RAFT_LEADER);
    cluster_free(cluster);
}

static void one_vote_a_term_and_only_for_a_log_as_long(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_message request = {
        .type = RAFT_MSG_VOTE, .from = 2, .to = 1, .incarnation = 1, .term = 3};
    struct raft_message append = {
        .type = RAFT_MSG_APPEND, .from = 2, .to = 1, .incarnation = 1, .term = 2};
    struct raft_entry entries[2] = {{.term = 1}, {.term = 2}};

    node_start(cluster, 1);
    append.append.entries = entries;
    append.append.entry_count = 2;
    node_message(cluster, &append);
    cluster->now = instant_add(cluster->now, SPAN_MS(80));

    request.vote.last_index = 1;
    request.vote.last_term = 2;
    node_message(cluster, &request); /* shorter */
    assert_int_equal(node_status(cluster, 1).vote, RAFT_NOBODY);
    assert_int_equal(node_status(cluster, 1).term, 3); /* though the term is news */
    request.vote.last_index = 9;
    request.vote.last_term = 1;
    node_message(cluster, &request); /* longer, but older */
    assert_int_equal(node_status(cluster, 1).vote, RAFT_NOBODY);
    request.vote.last_index = 2;
    request.vote.last_term = 2;
    node_message(cluster, &request);
    assert_int_equal(node_status(cluster, 1).vote, 2);
    request.from = 3;
    node_message(cluster, &request); /* a second candidate of the term */
    assert_int_equal(node_status(cluster, 1).vote, 2);
    request.term = 2;
    node_message(cluster, &request); /* a term that is over */
    assert_int_equal(node_status(cluster, 1).vote, 2);
    cluster_free(cluster);
}

static void a_node_whose_disk_failed_neither_leads_nor_votes(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_input failed = {.type = RAFT_IN_STORAGE_FAILED};
    struct raft_message request = {.type = RAFT_MSG_VOTE, .to = 0, .incarnation = 1, .term = 99};
    raft_id leader;

    leader = cluster_settle(cluster);
    node_step(cluster, leader, &failed);
    assert_false(node_is_leader(cluster, leader));
    assert_int_equal(node_last(cluster, leader, RAFT_EV_LOST)->loss, RAFT_LOSS_STORAGE);
    assert_int_not_equal(cluster_elect(cluster), leader); /* and the others are told at once */
    node_step(cluster, leader, &failed);
    request.from = cluster_follower(leader);
    request.to = leader;
    request.vote.last_index = 1000;
    request.vote.last_term = 98;
    node_message(cluster, &request);
    assert_true(node_status(cluster, leader).storage_failed);
    assert_true(node_status(cluster, leader).term < 99);
    cluster_run(cluster, 2000);
    assert_int_equal(node_status(cluster, leader).role, RAFT_FOLLOWER);
    cluster_free(cluster);
}

static void a_network_slower_than_a_round_of_votes_still_elects(void **state)
{
    struct cluster *cluster = cluster_new(3);

    assert_int_equal(raft_settings_preset(&cluster->settings, "default", NULL), 0);
    cluster->delay = SPAN_NS(2 * cluster->settings.election_timeout_max.ns);
    (void)cluster_settle(cluster);
    cluster_free(cluster);
}

static void rounds_have_their_usual_length_again_once_there_was_a_lease(void **state)
{
    struct cluster *cluster = cluster_new(3);
    struct raft_bounds bounds;
    instant stopped;
    raft_id first;

    assert_int_equal(raft_settings_preset(&cluster->settings, "default", NULL), 0);
    bounds = raft_settings_bounds(&cluster->settings);
    cluster->delay = SPAN_NS(2 * cluster->settings.election_timeout_max.ns);
    first = cluster_settle(cluster);
    cluster->delay = SPAN_NS(0);
    cluster_run(cluster, 5000);
    assert_int_equal(cluster_leader(cluster), first);
    node_of(cluster, first)->is_cut = true;
    stopped = cluster->now;
    while (cluster_leader(cluster) == first || cluster_leader(cluster) == RAFT_NOBODY) {
        cluster_run(cluster, 1);
    }
    assert_true(instant_since(cluster->now, stopped).ns <= bounds.hang.ns + SPAN_MS(2).ns);
    cluster_free(cluster);
}

static void stored_state_that_contradicts_itself_is_refused(void **state)
{
    struct raft_entry entries[2] = {{.term = 2}, {.term = 1}};
    struct raft_member member = {.id = 1, .weight = 1};
    struct raft_start start = {
        .id = 1, .incarnation = 1, .entries = entries, .entry_count = 2, .hard = {.term = 2}};
    struct baton_error error;
    struct raft *raft;

    start.snapshot.configuration = (struct raft_configuration){.members = &member, .count = 1};
    assert_int_equal(raft_settings_preset(&start.settings, "fast", NULL), 0);
    assert_int_equal(raft_new(&raft, &start, (instant){0}, &error), BATON_ECORRUPT);
    entries[1].term = 3;
    assert_int_equal(raft_new(&raft, &start, (instant){0}, &error), BATON_ECORRUPT);
    entries[1].term = 2;
    entries[1].kind = RAFT_ENTRY_CONFIGURATION; /* of no bytes */
    assert_int_equal(raft_new(&raft, &start, (instant){0}, &error), BATON_ECORRUPT);
    start.incarnation = 0;
    assert_int_equal(raft_new(&raft, &start, (instant){0}, &error), BATON_EINVAL);
    start.incarnation = 1;
    start.settings.lease = SPAN_S(7);
    entries[1].kind = RAFT_ENTRY_NOOP;
    assert_int_equal(raft_new(&raft, &start, (instant){0}, &error), BATON_EUNSAFE);
    raft_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_three_is_elected_and_the_others_follow),
        cmocka_unit_test(a_crashed_leader_is_replaced_with_a_higher_epoch),
        cmocka_unit_test(a_hang_is_noticed_within_the_bound),
        cmocka_unit_test(a_node_alone_leads_at_once),
        cmocka_unit_test(a_minority_elects_nobody_and_loses_its_leader),
        cmocka_unit_test(cascading_failures_are_handled_one_after_another),
        cmocka_unit_test(a_split_vote_is_resolved_by_random_waits),
        cmocka_unit_test(the_spread_gets_wider_until_votes_are_split_no_more),
        cmocka_unit_test(the_highest_priority_leads_when_it_is_healthy),
        cmocka_unit_test(a_preferred_node_takes_over_only_after_it_was_stable),
        cmocka_unit_test(a_witness_votes_but_never_leads),
        cmocka_unit_test(a_cordoned_node_votes_but_does_not_run),
        cmocka_unit_test(a_candidate_that_is_cordoned_gives_up),
        cmocka_unit_test(a_winner_that_is_cordoned_before_its_lease_never_leads),
        cmocka_unit_test(too_many_elections_are_reported_once),
        cmocka_unit_test(the_highest_limit_of_elections_that_a_provider_takes_is_reported),
        cmocka_unit_test(a_vote_waits_for_the_disk),
        cmocka_unit_test(a_candidate_counts_its_own_vote_only_when_stored),
        cmocka_unit_test(one_vote_a_term_and_only_for_a_log_as_long),
        cmocka_unit_test(a_node_whose_disk_failed_neither_leads_nor_votes),
        cmocka_unit_test(a_network_slower_than_a_round_of_votes_still_elects),
        cmocka_unit_test(rounds_have_their_usual_length_again_once_there_was_a_lease),
        cmocka_unit_test(stored_state_that_contradicts_itself_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
