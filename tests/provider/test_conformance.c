/* The rules that every provider must keep, tested through <baton.h>: `test_conformance NAME` for
 * each provider of the table in providers.c. */
#include "provider/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const struct tested_provider *tested;

int conformance_set_up(void **state)
{
    struct group *group = calloc(1, sizeof(*group));

    assert_non_null(group);
    group->provider = tested;
    group->own = tested->begin();
    *state = group;
    return 0;
}

int conformance_tear_down(void **state)
{
    struct group *group = *state;

    for (int i = 0; i < GROUP_NODES; i++) {
        group_close(group, i);
    }
    group->provider->end(group->own);
    free(group);
    return 0;
}

/* ---- Electing -------------------------------------------------------------------------------- */

/* Looked at as a whole: on a busy machine the leader may have changed between two looks. */
static bool all_know_the_leader(struct group *group)
{
    int leader = group_leader(group);

    for (int i = 0; i < GROUP_NODES; i++) {
        struct baton_election *election = group->members[i].election;
        struct baton_member known = {0};
        uint64_t epoch = 0;
        if (baton_leader(election, &known, &epoch, NULL) != BATON_OK ||
            strcmp(known.name, group->members[leader].node) != 0 ||
            epoch != baton_epoch(group->members[leader].election) ||
            known.is_self != (i == leader) ||
            (baton_role(election) == BATON_ROLE_LEADER) != (i == leader) ||
            (baton_lease_remaining(election) > 0) != (i == leader)) {
            return false;
        }
    }
    return true;
}

static void one_leads_and_all_know_it(void **state)
{
    struct group *group = *state;

    group_open_all(group);
    GROUP_AWAIT(all_know_the_leader(group));
    for (int i = 0; i < GROUP_NODES; i++) {
        assert_string_equal(baton_election_name(group->members[i].election), "race");
        assert_ptr_equal(baton_of(group->members[i].election), group->members[i].baton);
    }
    assert_true(baton_epoch(group->members[group_leader(group)].election) > 0);
}

static void resigning_hands_over_with_a_greater_epoch(void **state)
{
    struct group *group = *state;
    int first;
    int second;

    group_open_all(group);
    first = group_leader(group);
    ASSERT_OK(baton_resign(group->members[first].election, BATON_TIMEOUT_DEFAULT, failure));
    second = group_leader_but(group, first);
    assert_true(baton_epoch(group->members[second].election) >
                baton_epoch(group->members[first].election));
    assert_int_equal(baton_resign(group->members[first].election, 0, NULL), BATON_ENOTLEADER);
}

static void passing_goes_to_the_one_that_is_named(void **state)
{
    struct group *group = *state;
    int leader;
    int heir;

    group_open_all(group);
    leader = group_leader(group);
    heir = (leader + 2) % GROUP_NODES;
    ASSERT_OK(baton_wait(group->members[heir].election, BATON_TIMEOUT_DEFAULT, failure));
    /* A follower that only just joined may not have caught up: then it is tried again. */
    GROUP_AWAIT(baton_pass(group->members[leader].election, group->members[heir].node,
                           BATON_TIMEOUT_DEFAULT, NULL) == BATON_OK);
    assert_int_equal(group_leader(group), heir);
}

static void passing_to_nobody_is_refused_and_nothing_changes(void **state)
{
    struct group *group = *state;
    struct baton_error error;
    int leader;

    group_open_all(group);
    leader = group_leader(group);
    assert_int_equal(baton_pass(group->members[leader].election, "stranger", 1000, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "stranger"));
    assert_true(baton_is_leader(group->members[leader].election));
}

static void stopping_the_leader_elects_another(void **state)
{
    struct group *group = *state;
    int first;
    uint64_t epoch;

    group_open_all(group);
    first = group_leader(group);
    epoch = baton_epoch(group->members[first].election);
    baton_stop(group->members[first].baton);
    baton_stop(group->members[first].baton); /* idempotent */
    assert_false(baton_is_leader(group->members[first].election));
    assert_int_equal(baton_role(group->members[first].election), BATON_ROLE_FOLLOWER);
    assert_int_equal(baton_resign(group->members[first].election, 0, NULL), BATON_ECLOSED);
    assert_int_equal(baton_wait_leadership(group->members[first].election, 1000, NULL),
                     BATON_ECLOSED);
    assert_true(baton_epoch(group->members[group_leader_but(group, first)].election) > epoch);
}

static void leaving_the_election_hands_over(void **state)
{
    struct group *group = *state;
    int first;

    group_open_all(group);
    first = group_leader(group);
    ASSERT_OK(baton_leave(group->members[first].election, failure));
    group->members[first].election = NULL;
    (void)group_leader(group);
}

static void who_is_cordoned_does_not_lead(void **state)
{
    struct group *group = *state;
    int first;
    int second;

    group_open_all(group);
    first = group_leader(group);
    ASSERT_OK(baton_cordon(group->members[first].election, failure));
    second = group_leader_but(group, first);
    ASSERT_OK(baton_resign(group->members[second].election, BATON_TIMEOUT_DEFAULT, failure));
    assert_int_not_equal(group_leader_but(group, second), first);
    ASSERT_OK(baton_uncordon(group->members[first].election, failure));
}

static void an_observer_knows_the_leader_and_never_is(void **state)
{
    struct group *group = *state;
    struct baton_member leader;

    group_open(group, 0, true, true);
    group_open(group, 1, true, false);
    group_open(group, 2, true, false);
    ASSERT_OK(baton_wait(group->members[0].election, BATON_TIMEOUT_DEFAULT, failure));
    ASSERT_OK(baton_leader(group->members[0].election, &leader, NULL, failure));
    assert_string_not_equal(leader.name, "n0");
    assert_int_equal(baton_epoch(group->members[0].election), 0);
}

static void epochs_grow_when_all_begin_anew(void **state)
{
    struct group *group = *state;
    uint64_t epoch = 0;

    for (int round = 0; round < 3; round++) {
        int leader;
        group_open_all(group);
        leader = group_leader(group);
        assert_true(baton_epoch(group->members[leader].election) > epoch);
        epoch = baton_epoch(group->members[leader].election);
        for (int i = 0; i < GROUP_NODES; i++) {
            group_close(group, i);
        }
    }
}

static void waiting_ends_with_the_timeout(void **state)
{
    struct group *group = *state;
    struct baton_error error;

    group_open(group, 0, true, true); /* nobody who may lead */
    assert_int_equal(baton_wait_leadership(group->members[0].election, 10, &error),
                     BATON_ETIMEDOUT);
    assert_non_null(strstr(error.message, "race"));
    assert_int_equal(baton_wait_leadership(group->members[0].election, 0, NULL), BATON_ETIMEDOUT);
}

static void leaderships_never_overlap_while_they_are_passed_around(void **state)
{
    struct group *group = *state;
    uint64_t epoch = 0;
    bool has_resigned = true;
    int resignations = 0;

    group_open_all(group);
    for (int round = 0; round < 20; round++) {
        struct baton_election *election = group->members[group_leader(group)].election;
        uint64_t now;
        if (baton_leadership(election, &now)) {
            assert_true(now >= epoch + has_resigned);
            epoch = now;
        }
        has_resigned = baton_resign(election, BATON_TIMEOUT_DEFAULT, NULL) == BATON_OK;
        resignations += has_resigned;
        group_check_one(group);
    }
    assert_true(resignations > 0);
}

/* ---- Metadata -------------------------------------------------------------------------------- */

/* What member `asking` sees of member `number`; NULL: nothing. */
static bool sees(struct group *group, int asking, int number, const char *metadata)
{
    struct baton_member *members;
    size_t count;
    bool found = false;

    ASSERT_OK(baton_members(group->members[asking].election, &members, &count, failure));
    for (size_t i = 0; i < count; i++) {
        const char *seen = members[i].metadata ? members[i].metadata : "";
        if (strcmp(members[i].name, group->members[number].node) == 0) {
            found = metadata ? strstr(seen, metadata) != NULL : !strchr(seen, '"');
        }
    }
    baton_members_free(members);
    return found;
}

static void what_a_member_says_of_itself_can_change(void **state)
{
    struct group *group = *state;
    struct baton_error error;

    group_open_all(group);
    ASSERT_OK(baton_set_metadata(group->members[1].election, "{\"load\":80}", failure));
    GROUP_AWAIT(sees(group, 0, 1, "\"load\":80"));
    assert_int_equal(baton_set_metadata(group->members[1].election, "80", &error), BATON_EINVAL);
    assert_true(sees(group, 0, 1, "\"load\":80"));
    ASSERT_OK(baton_set_metadata(group->members[1].election, NULL, failure));
    GROUP_AWAIT(sees(group, 0, 1, NULL));
}

/* ---- Refusing -------------------------------------------------------------------------------- */

static void wrong_calls_are_refused_with_the_value_that_is_wrong(void **state)
{
    struct group *group = *state;
    struct baton_campaign_options wrong = {.size = sizeof(wrong), .metadata = "[1]"};
    struct baton_election *election = NULL;
    struct baton_member leader;
    struct baton_error error;
    char name[BATON_NAME_MAX + 8];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    group_open(group, 0, false, false);
    assert_int_equal(baton_campaign(&election, group->members[0].baton, "", NULL, &error),
                     BATON_EINVAL);
    assert_int_equal(baton_campaign(&election, group->members[0].baton, name, NULL, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "xxxx"));
    assert_int_equal(baton_campaign(&election, group->members[0].baton, "race", &wrong, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "[1]"));
    assert_null(election);
    wrong = (struct baton_campaign_options){.size = sizeof(wrong), .observes = true};
    ASSERT_OK(baton_campaign(&election, group->members[0].baton, "race", &wrong, failure));
    assert_int_equal(baton_leader(election, &leader, NULL, &error), BATON_ENOENT);
    assert_int_equal(baton_resign(election, 0, &error), BATON_ENOTLEADER);
    assert_int_equal(baton_on(NULL, election, 0, BATON_ON_LOOP, NULL, NULL, &error), BATON_EINVAL);
    assert_int_equal(
        baton_campaign(&group->members[0].election, group->members[0].baton, "race", NULL, &error),
        BATON_EEXIST);
}

/* ---- Members --------------------------------------------------------------------------------- */

static void the_list_of_members_has_all_of_them(void **state)
{
    struct group *group = *state;
    struct baton_member *members;
    size_t count = 0;
    size_t leaders = 0;
    size_t selves = 0;

    group_open_all(group);
    (void)group_leader(group);
    ASSERT_OK(baton_members(group->members[1].election, &members, &count, failure));
    for (size_t i = 0; i < count; i++) {
        leaders += members[i].role == BATON_ROLE_LEADER;
        selves += members[i].is_self && strcmp(members[i].name, "n1") == 0;
    }
    baton_members_free(members);
    assert_int_equal(count, GROUP_NODES);
    assert_int_equal(leaders, 1);
    assert_int_equal(selves, 1);
}

/* ---- Forking --------------------------------------------------------------------------------- */

static void a_forked_child_is_no_leader(void **state)
{
    struct group *group = *state;
    int leader;
    int status = 0;
    pid_t child;

    group_open_all(group);
    leader = group_leader(group);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct member *member = &group->members[leader];
        int wrong = baton_is_leader(member->election);
        wrong += baton_role(member->election) != BATON_ROLE_FOLLOWER;
        wrong += baton_resign(member->election, 0, NULL) != BATON_ECLOSED;
        wrong += baton_wait(member->election, 0, NULL) != BATON_ECLOSED;
        wrong += baton_dispatch(member->baton) != BATON_ECLOSED;
        baton_close(member->baton);
        _exit(wrong);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_true(baton_is_leader(group->members[leader].election));
}

/* ---- Many ------------------------------------------------------------------------------------ */

static void many_elections_are_independent(void **state)
{
    struct group *group = *state;
    struct baton_election *elections[2][50];

    if (!tested->has_many_elections) {
        skip();
    }
    for (int node = 0; node < 2; node++) {
        group_open(group, node, false, false);
        for (int i = 0; i < 50; i++) {
            char name[32];
            snprintf(name, sizeof(name), "race-%d", i);
            ASSERT_OK(baton_campaign(&elections[node][i], group->members[node].baton, name, NULL,
                                     failure));
        }
    }
    for (int i = 0; i < 50; i++) {
        /* One may know that the other has it before that one does. */
        ASSERT_OK(baton_wait(elections[0][i], BATON_TIMEOUT_DEFAULT, failure));
        ASSERT_OK(baton_wait(elections[1][i], BATON_TIMEOUT_DEFAULT, failure));
        assert_true(baton_is_leader(elections[0][i]) != baton_is_leader(elections[1][i]));
        if (i % 2) {
            int leader = baton_is_leader(elections[1][i]);
            /* Refused until the other has been heard of; done when that one leads. */
            GROUP_AWAIT(baton_pass(elections[leader][i], group->members[!leader].node,
                                   BATON_TIMEOUT_DEFAULT, NULL) == BATON_OK);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(one_leads_and_all_know_it),
        CASE(resigning_hands_over_with_a_greater_epoch),
        CASE(passing_goes_to_the_one_that_is_named),
        CASE(passing_to_nobody_is_refused_and_nothing_changes),
        CASE(stopping_the_leader_elects_another),
        CASE(leaving_the_election_hands_over),
        CASE(who_is_cordoned_does_not_lead),
        CASE(an_observer_knows_the_leader_and_never_is),
        CASE(epochs_grow_when_all_begin_anew),
        CASE(waiting_ends_with_the_timeout),
        CASE(leaderships_never_overlap_while_they_are_passed_around),
        CASE(wrong_calls_are_refused_with_the_value_that_is_wrong),
        CASE(the_list_of_members_has_all_of_them),
        CASE(what_a_member_says_of_itself_can_change),
        CASE(a_forked_child_is_no_leader),
        CASE(many_elections_are_independent),
    };

    for (tested = tested_providers; tested->name; tested++) {
        if (argc == 2 && strcmp(argv[1], tested->name) == 0) {
            int failed = cmocka_run_group_tests_name(tested->name, tests, NULL, NULL);
            failed += conformance_listening() + conformance_state() + conformance_revisions() +
                      conformance_stopping() + conformance_work();
            return failed > 0;
        }
    }
    fprintf(stderr, "usage: %s PROVIDER, one of the table in providers.c\n", argv[0]);
    return 2;
}
