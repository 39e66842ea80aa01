/* Who holds what: grants, lines, ends, requests of others, snapshots. Session N was opened by entry
 * N of the log. */
#include "cmocka_all.h"
#include "story.h"

static void the_first_in_line_holds_until_it_withdraws(void **state)
{
    struct story s;

    story_begin(&s);
    assert_string_equal(OPEN(&s), "1 opened");
    assert_string_equal(OPEN(&s), "2 opened");
    assert_string_equal(ENTER(&s, 1, "report"), "1 entered report, 1 holds report in 3");
    assert_string_equal(ENTER(&s, 2, "report"), "2 entered report");
    assert_string_equal(WITHDRAW(&s, 1, "report", 3), "1 left report, 2 holds report in 5");
    assert_string_equal(WITHDRAW(&s, 2, "report", 5), "2 left report, 2 freed report");
    assert_null(sessions_election(s.sessions, "report"));
    story_end(&s);
}

static void the_end_of_a_session_hands_over_all_that_it_held_in_one_entry(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    (void)ENTER(&s, 1, "b");
    (void)ENTER(&s, 2, "a");
    (void)ENTER(&s, 2, "c");
    (void)ENTER(&s, 1, "c");
    assert_string_equal(END(&s, 1),
                        "1 left a, 2 holds a in 8, 1 left b, 1 freed b, 1 left c, 1 ended");
    assert_null(sessions_find(s.sessions, 1));
    assert_string_equal(END(&s, 1), "");
    assert_int_equal(s.code, BATON_ENOENT);
    assert_string_equal(ENTER(&s, 1, "a"), "");
    assert_int_equal(s.code, BATON_ENOENT);
    story_end(&s);
}

static void priority_comes_before_the_time_of_waiting(void **state)
{
    struct story s;

    story_begin(&s);
    for (int i = 0; i < 4; i++) {
        (void)OPEN(&s);
    }
    (void)ENTER(&s, 1, "a");
    (void)ENTER(&s, 2, "a");
    (void)ENTER_AS(&s, 3, "a", 5, true);
    (void)ENTER_AS(&s, 4, "a", 5, true);
    assert_string_equal(WITHDRAW(&s, 1, "a", 5), "1 left a, 3 holds a in 9");
    assert_string_equal(WITHDRAW(&s, 3, "a", 9), "3 left a, 4 holds a in 10");
    assert_string_equal(WITHDRAW(&s, 4, "a", 10), "4 left a, 2 holds a in 11");
    story_end(&s);
}

static void resigning_goes_to_the_one_named_or_to_the_next(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    (void)ENTER(&s, 2, "a");
    (void)ENTER(&s, 3, "a");
    assert_string_equal(RESIGN(&s, 1, "a", 4, 3), "3 holds a in 7");
    assert_string_equal(RESIGN(&s, 3, "a", 7, 0), "2 holds a in 8"); /* 1 went to the end */
    assert_string_equal(RESIGN(&s, 2, "a", 8, 99), "1 holds a in 9");
    (void)WITHDRAW(&s, 2, "a", 0);
    (void)WITHDRAW(&s, 3, "a", 0);
    assert_string_equal(RESIGN(&s, 1, "a", 9, 0), "1 holds a in 12"); /* no other: a new epoch */
    story_end(&s);
}

static void only_the_holder_in_its_epoch_can_resign(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    (void)ENTER(&s, 2, "a");
    assert_string_equal(RESIGN(&s, 2, "a", 3, 0), "");
    assert_int_equal(s.code, BATON_ECONFLICT);
    assert_string_equal(RESIGN(&s, 1, "a", 2, 0), "");
    assert_int_equal(s.code, BATON_ECONFLICT);
    (void)RESIGN(&s, 1, "a", 3, 0);
    assert_string_equal(RESIGN(&s, 1, "a", 3, 0), ""); /* the same order again, late */
    assert_int_equal(s.code, BATON_ECONFLICT);
    assert_int_equal(sessions_election(s.sessions, "a")->holder->session->id, 2);
    story_end(&s);
}

static void a_withdrawal_that_comes_late_takes_no_later_grant(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    assert_string_equal(WITHDRAW(&s, 1, "a", 2), "1 left a, 1 freed a");
    (void)ENTER(&s, 1, "a");
    assert_string_equal(WITHDRAW(&s, 1, "a", 2), ""); /* the same order again */
    assert_int_equal(s.code, BATON_ECONFLICT);
    assert_string_equal(WITHDRAW(&s, 1, "a", 0), ""); /* sent before it knew of the grant */
    assert_int_equal(s.code, BATON_ECONFLICT);
    assert_int_equal(sessions_election(s.sessions, "a")->epoch, 4);
    story_end(&s);
}

static void no_other_session_takes_an_election_from_its_holder(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    (void)ENTER_AS(&s, 2, "a", 9, true);
    assert_string_equal(PASS(&s, "a", 2), "1 asked a");
    assert_int_equal(sessions_election(s.sessions, "a")->wanted, 2);
    assert_string_equal(ELIGIBLE(&s, 1, "a", false), "1 asked a");
    assert_int_equal(sessions_election(s.sessions, "a")->holder->session->id, 1);
    assert_string_equal(RESIGN(&s, 1, "a", 3, 2), "2 holds a in 7");
    assert_int_equal(sessions_election(s.sessions, "a")->wanted, 0);
    story_end(&s);
}

/* Sessions 1, 2 and 3 stand in line; 3 is wanted. */
static void the_one_that_a_pass_named_follows_a_holder_that_names_none_or_dies(void **state)
{
    struct story s;

    story_begin(&s);
    for (int i = 0; i < 3; i++) {
        (void)OPEN(&s);
    }
    for (uint64_t session = 1; session <= 3; session++) {
        (void)ENTER(&s, session, "a");
    }
    assert_string_equal(PASS(&s, "a", 3), "1 asked a");
    assert_string_equal(RESIGN(&s, 1, "a", 4, 0), "3 holds a in 8");
    assert_string_equal(PASS(&s, "a", 1), "3 asked a");
    assert_string_equal(END(&s, 3), "3 left a, 1 holds a in 10, 3 ended");
    story_end(&s);
}

static void a_pass_names_a_contender_that_may_lead(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    assert_string_equal(PASS(&s, "a", 1), "");
    assert_int_equal(s.code, BATON_ENOENT);
    (void)ENTER(&s, 1, "a");
    assert_string_equal(PASS(&s, "a", 1), "");
    assert_int_equal(s.code, BATON_EINVAL);
    assert_string_equal(PASS(&s, "a", 2), "");
    assert_int_equal(s.code, BATON_ENOENT);
    (void)OBSERVE(&s, 2, "a");
    assert_string_equal(PASS(&s, "a", 2), "");
    assert_int_equal(s.code, BATON_EINVAL);
    (void)ELIGIBLE(&s, 2, "a", true);
    (void)PASS(&s, "a", 2);
    (void)ELIGIBLE(&s, 2, "a", false); /* it may not lead any more: nobody is wanted */
    assert_int_equal(sessions_election(s.sessions, "a")->wanted, 0);
    (void)ELIGIBLE(&s, 2, "a", true);
    (void)PASS(&s, "a", 2);
    (void)WITHDRAW(&s, 2, "a", 0);
    assert_int_equal(sessions_election(s.sessions, "a")->wanted, 0);
    story_end(&s);
}

static void an_observer_never_holds(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OPEN(&s);
    assert_string_equal(OBSERVE(&s, 1, "a"), "1 entered a");
    assert_string_equal(ENTER(&s, 2, "a"), "2 entered a, 2 holds a in 4");
    assert_string_equal(END(&s, 2), "2 left a, 2 freed a, 2 ended");
    assert_string_equal(ELIGIBLE(&s, 1, "a", true), "1 holds a in 6");
    story_end(&s);
}

static void a_second_entry_changes_the_first(void **state)
{
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)OBSERVE(&s, 1, "a");
    assert_string_equal(ENTER_AS(&s, 1, "a", 7, true), "1 holds a in 3");
    assert_int_equal(sessions_election(s.sessions, "a")->count, 1);
    assert_int_equal(sessions_election(s.sessions, "a")->first->priority, 7);
    story_end(&s);
}

/* ---- Snapshots ------------------------------------------------------------------------------- */

static struct sessions *copy_of(const struct sessions *sessions)
{
    struct sessions *copy = NULL;
    struct buffer bytes;

    buffer_init(&bytes, 1 << 20);
    sessions_snapshot(sessions, &bytes);
    assert_false(bytes.failed);
    assert_int_equal(sessions_restore(&copy, bytes.data, bytes.bytes), BATON_OK);
    buffer_fini(&bytes);
    return copy;
}

static void a_snapshot_that_is_installed_reports_what_differs(void **state)
{
    struct story ahead, behind;

    story_begin(&ahead);
    story_begin(&behind);
    (void)OPEN(&ahead);
    (void)ENTER(&ahead, 1, "a");
    sessions_install(behind.sessions, copy_of(ahead.sessions));
    assert_string_equal(behind.changes, "1 opened, 1 entered a, 1 holds a in 2");

    (void)OPEN(&ahead);
    (void)ENTER(&ahead, 3, "b");
    (void)ENTER(&ahead, 3, "a");
    (void)END(&ahead, 1);
    behind.changes[0] = '\0';
    sessions_install(behind.sessions, copy_of(ahead.sessions));
    assert_string_equal(behind.changes,
                        "3 opened, 1 left a, 3 entered a, 3 holds a in 6, 3 entered b, "
                        "3 holds b in 4, 1 ended");
    story_end(&ahead);
    story_end(&behind);
}

static void a_grant_that_a_snapshot_skipped_over_is_reported_in_its_new_epoch(void **state)
{
    struct story ahead, behind;

    story_begin(&ahead);
    story_begin(&behind);
    (void)OPEN(&ahead);
    (void)ENTER(&ahead, 1, "a");
    sessions_install(behind.sessions, copy_of(ahead.sessions));
    (void)RESIGN(&ahead, 1, "a", 2, 0);
    behind.changes[0] = '\0';
    sessions_install(behind.sessions, copy_of(ahead.sessions));
    assert_string_equal(behind.changes, "1 holds a in 3");
    story_end(&ahead);
    story_end(&behind);
}

static void a_damaged_snapshot_is_refused_whole(void **state)
{
    struct sessions *ret = NULL;
    struct buffer bytes;
    struct story s;

    story_begin(&s);
    (void)OPEN(&s);
    (void)ENTER(&s, 1, "a");
    buffer_init(&bytes, 1 << 20);
    sessions_snapshot(s.sessions, &bytes);
    for (size_t i = 0; i < bytes.bytes; i++) {
        assert_int_equal(sessions_restore(&ret, bytes.data, i), BATON_ECORRUPT);
    }
    buffer_put_u8(&bytes, 0);
    assert_int_equal(sessions_restore(&ret, bytes.data, bytes.bytes), BATON_ECORRUPT);
    bytes.data[0] = SESSIONS_FORMAT + 1;
    assert_int_equal(sessions_restore(&ret, bytes.data, bytes.bytes), BATON_ENOTSUP);
    buffer_fini(&bytes);
    story_end(&s);
}

static const char *resume_by(struct story *story, uint64_t node, uint64_t session, uint8_t secret)
{
    return tell(story,
                (struct session_order){
                    .type = SESSION_RESUME, .node = node, .session = session, .secret = {secret}},
                "");
}

/* Session 1, of node 5, with the secret 7; it holds "a" in epoch 2, and session 3 waits. */
static void begin_with_a_secret(struct story *s)
{
    story_begin(s);
    (void)tell(s,
               (struct session_order){
                   .type = SESSION_OPEN, .node = 5, .secret = {7}, .lifetime = SPAN_S(30)},
               "p");
    (void)tell(
        s,
        (struct session_order){.type = SESSION_ENTER, .node = 5, .session = 1, .is_eligible = true},
        "a");
    (void)OPEN(s);
    (void)ENTER(s, 3, "a");
}

static void a_session_is_resumed_by_its_secret_only(void **state)
{
    struct story s;

    begin_with_a_secret(&s);
    assert_string_equal(resume_by(&s, 6, 1, 8), "");
    assert_int_equal(s.code, BATON_EAUTH);
    assert_int_equal(sessions_find(s.sessions, 1)->node, 5);
    assert_string_equal(resume_by(&s, 6, 1, 7), "");
    assert_int_equal(s.code, BATON_OK);
    assert_int_equal(sessions_find(s.sessions, 1)->node, 6);
    assert_int_equal(sessions_find(s.sessions, 1)->attached, s.index);
    (void)resume_by(&s, 6, 9, 7);
    assert_int_equal(s.code, BATON_ENOENT);
    story_end(&s);
}

static void a_node_s_own_session_is_never_resumed(void **state)
{
    struct story s;

    story_begin(&s);
    (void)tell(&s,
               (struct session_order){
                   .type = SESSION_OPEN, .node = 5, .incarnation = 2, .lifetime = SPAN_S(30)},
               "p");
    (void)resume_by(&s, 5, 1, 0);
    assert_int_equal(s.code, BATON_EAUTH);
    story_end(&s);
}

static void an_end_that_was_ordered_before_a_resumption_is_void(void **state)
{
    struct story s;

    begin_with_a_secret(&s);
    (void)resume_by(&s, 5, 1, 7);
    assert_string_equal(END(&s, 1), "");
    assert_int_equal(s.code, BATON_ECONFLICT);
    assert_string_equal(
        tell(&s,
             (struct session_order){
                 .type = SESSION_END, .session = 1, .epoch = 5, .end = SESSION_END_EXPIRED},
             ""),
        "1 left a, 3 holds a in 7, 1 ended");
    story_end(&s);
}

static void a_proof_of_death_ends_a_session_however_often_it_was_resumed(void **state)
{
    struct story s;

    begin_with_a_secret(&s);
    (void)resume_by(&s, 5, 1, 7);
    (void)tell(
        &s, (struct session_order){.type = SESSION_END, .session = 1, .end = SESSION_END_CERTIFIED},
        "");
    assert_null(sessions_find(s.sessions, 1));
    story_end(&s);
}

static const char *withdraw_by(struct story *story, uint64_t node)
{
    return tell(
        story,
        (struct session_order){.type = SESSION_WITHDRAW, .node = node, .session = 1, .epoch = 2},
        "a");
}

static void a_session_obeys_only_the_node_that_has_resumed_it(void **state)
{
    struct story s;

    begin_with_a_secret(&s);
    (void)resume_by(&s, 6, 1, 7);
    assert_string_equal(withdraw_by(&s, 5), "");
    assert_int_equal(s.code, BATON_ENOENT);
    assert_string_equal(withdraw_by(&s, 6), "1 left a, 3 holds a in 7");
    story_end(&s);
}

static void a_snapshot_knows_where_a_session_was_resumed(void **state)
{
    struct sessions *ret = NULL;
    struct buffer bytes;
    struct story s;

    begin_with_a_secret(&s);
    (void)resume_by(&s, 6, 1, 7);
    buffer_init(&bytes, 4096);
    sessions_snapshot(s.sessions, &bytes);
    assert_int_equal(sessions_restore(&ret, bytes.data, bytes.bytes), BATON_OK);
    assert_int_equal(sessions_find(ret, 1)->attached, 5);
    assert_int_equal(sessions_find(ret, 1)->node, 6);
    assert_int_equal(sessions_find(ret, 1)->secret[0], 7);
    sessions_free(ret);
    buffer_fini(&bytes);
    story_end(&s);
}

static void what_is_full_takes_no_more_and_gives_room_back(void **state)
{
    static char metadata[SESSION_METADATA_MAX];
    struct story s;
    uint64_t opened = 0;

    story_begin(&s);
    memset(metadata, ' ', sizeof(metadata));
    do {
        (void)tell(&s,
                   (struct session_order){.type = SESSION_OPEN,
                                          .lifetime = SPAN_S(30),
                                          .metadata = metadata,
                                          .metadata_bytes = sizeof(metadata)},
                   "p");
        opened += s.code == BATON_OK;
    } while (s.code == BATON_OK);
    assert_int_equal(s.code, BATON_EFULL);
    assert_in_range(opened, 10000, 17000);
    (void)END(&s, 1);
    (void)tell(&s,
               (struct session_order){.type = SESSION_OPEN,
                                      .lifetime = SPAN_S(30),
                                      .metadata = metadata,
                                      .metadata_bytes = sizeof(metadata)},
               "p");
    assert_int_equal(s.code, BATON_OK);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_in_line_holds_until_it_withdraws),
        cmocka_unit_test(the_end_of_a_session_hands_over_all_that_it_held_in_one_entry),
        cmocka_unit_test(priority_comes_before_the_time_of_waiting),
        cmocka_unit_test(resigning_goes_to_the_one_named_or_to_the_next),
        cmocka_unit_test(only_the_holder_in_its_epoch_can_resign),
        cmocka_unit_test(a_withdrawal_that_comes_late_takes_no_later_grant),
        cmocka_unit_test(no_other_session_takes_an_election_from_its_holder),
        cmocka_unit_test(the_one_that_a_pass_named_follows_a_holder_that_names_none_or_dies),
        cmocka_unit_test(a_pass_names_a_contender_that_may_lead),
        cmocka_unit_test(an_observer_never_holds),
        cmocka_unit_test(a_second_entry_changes_the_first),
        cmocka_unit_test(a_snapshot_that_is_installed_reports_what_differs),
        cmocka_unit_test(a_grant_that_a_snapshot_skipped_over_is_reported_in_its_new_epoch),
        cmocka_unit_test(a_damaged_snapshot_is_refused_whole),
        cmocka_unit_test(a_session_is_resumed_by_its_secret_only),
        cmocka_unit_test(a_node_s_own_session_is_never_resumed),
        cmocka_unit_test(an_end_that_was_ordered_before_a_resumption_is_void),
        cmocka_unit_test(a_proof_of_death_ends_a_session_however_often_it_was_resumed),
        cmocka_unit_test(a_session_obeys_only_the_node_that_has_resumed_it),
        cmocka_unit_test(a_snapshot_knows_where_a_session_was_resumed),
        cmocka_unit_test(what_is_full_takes_no_more_and_gives_room_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
