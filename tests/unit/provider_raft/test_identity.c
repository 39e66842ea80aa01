/* Which greetings are accepted and which are refused: the rules, without a network. */
#include "cmocka_all.h"
#include "provider/raft/identity.h"
#include "provider/raft/options.h"

#include <stdlib.h>
#include <string.h>

static struct raft_member members[3];
static struct raft_configuration configuration;
static struct greeting ours;
static struct greeting theirs; /* of c, a founder */
static struct storage_peer known;
static struct identity_view view;
static char why[IDENTITY_WHY_MAX];

static int set_up(void **state)
{
    memset(members, 0, sizeof(members));
    for (size_t i = 0; i < 3; i++) {
        members[i].name[0] = (char)('a' + i);
        members[i].id = raft_id_of(members[i].name);
        members[i].weight = 1;
        members[i].birth = 100 + i;
    }
    configuration = (struct raft_configuration){.group = 9, .members = members, .count = 3};
    assert_int_equal(raft_configuration_normalise(&configuration, NULL), 0);
    ours = (struct greeting){
        .cluster = "jobs", .name = "a", .birth = 100, .group = 9, .founders = 8, .incarnation = 4};
    theirs = (struct greeting){.cluster = "jobs",
                               .name = "c",
                               .id = raft_id_of("c"),
                               .birth = 102,
                               .group = 9,
                               .founders = 8,
                               .incarnation = 50,
                               .term = 7,
                               .last_index = 30};
    known = (struct storage_peer){
        .id = theirs.id, .birth = 102, .incarnation = 50, .term = 7, .index = 30};
    view = (struct identity_view){.ours = &ours, .members = &configuration, .known = &known};
    return 0;
}

static enum refusal check(void)
{
    why[0] = '\0';
    return identity_check(&view, &theirs, why);
}

static void a_founder_has_the_id_of_its_name_and_one_that_joins_that_of_its_birth(void **state)
{
    struct storage_birth founder = identity_born("c", &configuration);
    struct storage_birth first = identity_born("c", NULL);
    struct storage_birth second = identity_born("c", NULL);

    assert_true(founder.id == raft_id_of("c") && founder.founders != 0 && founder.birth != 0);
    assert_true(first.founders == 0 && first.id != founder.id);
    assert_true(first.birth != second.birth && first.id != second.id);
    assert_true(second.incarnation >
                UINT64_C(1500000000000)); /* above all of earlier directories */
}

static void an_id_that_does_not_fit_name_and_birth_is_unsound(void **state)
{
    struct storage_birth born = identity_born("c", NULL);

    assert_true(identity_is_sound(&theirs));
    theirs.id++;
    assert_false(identity_is_sound(&theirs));
    theirs.id = born.id;
    theirs.birth = born.birth;
    assert_true(identity_is_sound(&theirs));
    theirs.birth++;
    assert_false(identity_is_sound(&theirs));
}

static void founders_are_told_apart_by_who_votes_and_not_by_addresses(void **state)
{
    uint64_t before = identity_born("a", &configuration).founders;

    strcpy(members[1].address, "10.0.0.2:7400");
    assert_true(identity_born("b", &configuration).founders == before);
    members[1].weight = 2;
    assert_true(identity_born("a", &configuration).founders != before);
    members[1].weight = 1;
    configuration.count = 2;
    assert_true(identity_born("a", &configuration).founders != before);
}

static void a_member_is_recognised_in_this_life_and_in_later_ones(void **state)
{
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.incarnation++;
    theirs.term++;
    theirs.last_index++;
    assert_int_equal(check(), REFUSAL_NONE);
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_NONE);
}

static void another_group_is_refused_by_name(void **state)
{
    theirs.group = 10;
    assert_int_equal(check(), REFUSAL_FORMED);
    assert_non_null(strstr(why, "c and a belong to two groups of the name jobs"));
    theirs.group = 0; /* not formed yet: then the founders count */
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.founders = 7;
    assert_int_equal(check(), REFUSAL_FORMED);
    ours.group = 0; /* nor is ours */
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_GROUP);
    theirs.founders = 0; /* it joins */
    assert_int_equal(check(), REFUSAL_NONE);
}

static void
a_group_stands_against_its_members_and_a_quorum_by_itself_against_everybody(void **state)
{
    theirs.group = 10;
    strcpy(theirs.name, "d");
    theirs.id = raft_id_of("d");
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_GROUP); /* no member of ours */
    configuration.count = 1;
    ours.id = members[0].id;
    assert_int_equal(check(), REFUSAL_FORMED);
    view.is_candidate = true;
    assert_int_equal(check(), REFUSAL_GROUP);
}

static void an_emptied_directory_is_refused_with_the_way_out(void **state)
{
    theirs.birth = 103;
    theirs.incarnation = UINT32_MAX;
    assert_int_equal(check(), REFUSAL_BIRTH);
    assert_non_null(strstr(why, "`baton leave c`"));
    assert_non_null(strstr(why, "`baton join c=HOST:PORT`"));
}

static void before_the_births_are_written_down_the_first_one_seen_counts(void **state)
{
    members[0].birth = members[1].birth = members[2].birth = 0;
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.birth = 103;
    assert_int_equal(check(), REFUSAL_BIRTH);
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_NONE);
}

static void one_that_joined_anew_is_another_member(void **state)
{
    struct storage_birth born = identity_born("c", NULL);

    theirs.id = born.id;
    theirs.birth = born.birth;
    theirs.founders = 0;
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_BIRTH); /* the one before has not left */
    theirs.commit_index = 20;
    assert_int_equal(check(), REFUSAL_NONE); /* it has, and we have yet to hear of it */
    ours.group = 0;
    assert_int_equal(check(), REFUSAL_NONE); /* a founder that comes late knows its own file only */
    ours.group = 9;
    view.commit = 20;
    assert_int_equal(check(), REFUSAL_BIRTH);
    view.commit = 0;
    theirs.group = 0;
    assert_int_equal(check(), REFUSAL_BIRTH); /* it knows no group, so it knows no more than we */
    theirs.group = 9;
    theirs.commit_index = 0;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(members[i].name, "c") == 0) {
            members[i].id = born.id;
            members[i].birth = born.birth;
        }
    }
    assert_int_equal(check(), REFUSAL_NONE);
}

static void a_restored_directory_is_refused_by_any_sign_of_its_age(void **state)
{
    theirs.incarnation = 49;
    assert_int_equal(check(), REFUSAL_OLDER);
    assert_non_null(strstr(why, "older copy"));
    theirs.incarnation = 51;
    theirs.term = 6;
    assert_int_equal(check(), REFUSAL_OLDER);
    theirs.term = 7;
    theirs.last_index = 29;
    assert_int_equal(check(), REFUSAL_OLDER);
}

static void greetings_of_one_life_may_overtake_each_other(void **state)
{
    view.commitment = theirs.commitment; /* it has greeted already */
    theirs.term = 6;
    theirs.last_index = 29;
    assert_int_equal(check(), REFUSAL_NONE);
}

/* The start that it repeats is known from the disk, and so is what that one had stored. */
static void a_start_that_is_repeated_from_an_older_directory_is_refused_after_our_own(void **state)
{
    theirs.term = 6;
    assert_int_equal(check(), REFUSAL_OLDER);
    theirs.term = 7;
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.last_index = 29;
    assert_int_equal(check(), REFUSAL_OLDER);
}

static void a_member_that_founded_a_group_anew_is_told_that_it_lost_its_directory(void **state)
{
    theirs.group = 10;
    theirs.birth = 103;
    assert_int_equal(check(), REFUSAL_LOST);
    assert_non_null(strstr(why, "c belongs to another group of this name"));
    assert_non_null(strstr(why, "`baton leave c`"));
    for (size_t i = 0; i < 3; i++) {
        members[i].birth = 0; /* never met */
    }
    view.known = NULL;
    assert_int_equal(check(), REFUSAL_FORMED);
}

static void the_same_incarnation_with_another_secret_is_refused(void **state)
{
    static const uint8_t commitment[32] = {1};

    view.commitment = commitment;
    theirs.commitment[0] = 1;
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.commitment[0] = 2;
    assert_int_equal(check(), REFUSAL_TWIN);
    theirs.incarnation++;
    assert_int_equal(check(), REFUSAL_NONE);
}

static void a_candidate_is_one_that_was_started_to_join_or_was_here_before(void **state)
{
    struct storage_birth born = identity_born("c", NULL);

    view.is_candidate = true;
    view.known = NULL;
    configuration.count = 2;                 /* c has left, whichever is last in the order of ids */
    assert_int_equal(check(), REFUSAL_NONE); /* it comes back with all that it knew */
    theirs.group = 0;
    assert_int_equal(check(), REFUSAL_BIRTH); /* an emptied founder, started as one */
    theirs.founders = 0;
    assert_int_equal(check(), REFUSAL_BIRTH); /* its id says so too */
    theirs.id = born.id;
    theirs.birth = born.birth;
    assert_int_equal(check(), REFUSAL_NONE);
    theirs.group = 11;
    assert_int_equal(check(), REFUSAL_GROUP);
}

static void a_peer_that_lags_behind_casts_nobody_out(void **state)
{
    assert_true(identity_is_final(REFUSAL_BIRTH, 0, 0)); /* an emptied founder knows nothing */
    assert_true(identity_is_final(REFUSAL_BIRTH, 7, 7));
    assert_false(identity_is_final(REFUSAL_BIRTH, 7, 6)); /* it has yet to hear that we joined */
    assert_true(identity_is_final(REFUSAL_OLDER, 7, 0));
    assert_true(identity_is_final(REFUSAL_TWIN, 7, 0));
    assert_true(identity_is_final(REFUSAL_LOST, 7, 0));
    assert_false(identity_is_final(REFUSAL_GROUP, 0, 9));
    assert_false(identity_is_final((enum refusal)77, 0, 9));
}

static void settings_that_do_not_go_together_are_named(void **state)
{
    struct raft_settings settings;

    assert_int_equal(raft_settings_preset(&settings, "default", NULL), 0);
    theirs.lease = settings.lease;
    theirs.heartbeat_timeout = settings.heartbeat_timeout;
    theirs.clock_drift_ppm = settings.clock_drift_ppm;
    identity_compare(&settings, &theirs, why);
    assert_string_equal(why, "");
    theirs.clock_drift_ppm++;
    identity_compare(&settings, &theirs, why);
    assert_non_null(strstr(why, "clock-drift-ppm here: 10000; of c: 10001"));
    theirs.heartbeat_timeout = SPAN_S(2);
    identity_compare(&settings, &theirs, why);
    assert_non_null(strstr(why, "lease here: 5000 ms; heartbeat-timeout of c: 2000 ms"));
    theirs.heartbeat_timeout = SPAN_MS(75);
    identity_compare(&settings, &theirs, why);
    assert_non_null(strstr(why, "heartbeat-interval here: 1000 ms; heartbeat-timeout of c: 75 ms"));
}

#define RULE(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE(a_founder_has_the_id_of_its_name_and_one_that_joins_that_of_its_birth),
        RULE(an_id_that_does_not_fit_name_and_birth_is_unsound),
        RULE(founders_are_told_apart_by_who_votes_and_not_by_addresses),
        RULE(a_member_is_recognised_in_this_life_and_in_later_ones),
        RULE(another_group_is_refused_by_name),
        RULE(a_group_stands_against_its_members_and_a_quorum_by_itself_against_everybody),
        RULE(an_emptied_directory_is_refused_with_the_way_out),
        RULE(before_the_births_are_written_down_the_first_one_seen_counts),
        RULE(one_that_joined_anew_is_another_member),
        RULE(a_restored_directory_is_refused_by_any_sign_of_its_age),
        RULE(greetings_of_one_life_may_overtake_each_other),
        RULE(a_start_that_is_repeated_from_an_older_directory_is_refused_after_our_own),
        RULE(a_member_that_founded_a_group_anew_is_told_that_it_lost_its_directory),
        RULE(the_same_incarnation_with_another_secret_is_refused),
        RULE(a_candidate_is_one_that_was_started_to_join_or_was_here_before),
        RULE(a_peer_that_lags_behind_casts_nobody_out),
        RULE(settings_that_do_not_go_together_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
