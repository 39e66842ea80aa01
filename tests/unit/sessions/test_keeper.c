/* Lifetimes as the leader of the log measures them. Session N was opened by entry N. */
#include "cmocka_all.h"
#include "sessions/keeper.h"
#include "story.h"

static instant at(int64_t s)
{
    return instant_add((instant){0}, SPAN_S(s));
}

/* Two sessions of 30 s, kept from second 0 on. */
static void begin(struct story *s, struct keeper *keeper)
{
    story_begin(s);
    (void)OPEN(s);
    (void)OPEN(s);
    keeper_begin(keeper, s->sessions, at(0));
}

static enum session_end why;

static uint64_t overdue(struct keeper *keeper, instant now)
{
    struct session_order order;

    if (!keeper_overdue(keeper, now, &order)) {
        return 0;
    }
    why = order.end;
    return order.session;
}

static void a_session_that_is_not_renewed_is_overdue_after_its_lifetime(void **state)
{
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    assert_true(keeper_renew(&keeper, 1, at(29)));
    assert_int_equal(overdue(&keeper, at(29)), 0);
    assert_int_equal(overdue(&keeper, at(30)), 2);
    assert_int_equal(overdue(&keeper, at(30)), 0);
    assert_int_equal(overdue(&keeper, at(59)), 2); /* its end was lost: once more */
    assert_int_equal(overdue(&keeper, at(59)), 1);
    story_end(&s);
}

static void ends_that_the_log_refused_are_ordered_again_sooner(void **state)
{
    struct keeper keeper = {0};
    struct story s;
    instant soon = instant_add(at(30), SPAN_MS(20));

    keeper_refused(&keeper, at(0)); /* a node that never led the log is refused as well */
    assert_int_equal(overdue(&keeper, at(0)), 0);

    begin(&s, &keeper);
    (void)OPEN(&s);
    keeper_opened(&keeper, 3, at(10));
    assert_int_equal(overdue(&keeper, at(30)) + overdue(&keeper, at(30)), 1 + 2);
    assert_int_equal(overdue(&keeper, soon), 0);
    keeper_refused(&keeper, soon);
    assert_int_equal(overdue(&keeper, soon) + overdue(&keeper, soon), 1 + 2);
    assert_int_equal(overdue(&keeper, soon), 0); /* the third one's lifetime goes on */
    keeper_refused(&keeper, at(50));
    keeper_stop(&keeper);
    assert_int_equal(overdue(&keeper, at(51)), 0); /* the log's next leader orders them */
    story_end(&s);
}

static void a_session_whose_end_was_ordered_is_not_renewed(void **state)
{
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    assert_int_equal(overdue(&keeper, at(31)), 1);
    assert_false(keeper_renew(&keeper, 1, at(31)));
    assert_true(keeper_renew(&keeper, 2, at(31))); /* overdue, but its end is not ordered yet */
    assert_int_equal(overdue(&keeper, at(31)), 0);
    story_end(&s);
}

static void a_new_leader_gives_every_session_its_whole_lifetime(void **state)
{
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    assert_int_equal(overdue(&keeper, at(30)), 1);
    keeper_stop(&keeper);
    assert_false(keeper_renew(&keeper, 2, at(30)));
    assert_int_equal(overdue(&keeper, at(99)), 0);
    assert_int_equal(keeper_deadline(&keeper).ns, INSTANT_NEVER.ns);
    keeper_begin(&keeper, s.sessions, at(100));
    assert_int_equal(keeper_deadline(&keeper).ns, at(130).ns);
    assert_int_equal(overdue(&keeper, at(129)), 0);
    assert_true(keeper_renew(&keeper, 1, at(129)));
    assert_int_equal(overdue(&keeper, at(130)), 2);
    story_end(&s);
}

static void a_session_opened_meanwhile_is_kept(void **state)
{
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    (void)END(&s, 1);
    (void)END(&s, 2);
    assert_int_equal(overdue(&keeper, at(50)), 0);
    assert_int_equal(keeper_deadline(&keeper).ns, INSTANT_NEVER.ns);
    (void)OPEN(&s);
    keeper_opened(&keeper, 5, at(60)); /* entries 3 and 4 were the ends */
    assert_int_equal(keeper_deadline(&keeper).ns, at(90).ns);
    assert_int_equal(overdue(&keeper, at(90)), 5);
    keeper_stop(&keeper);
    (void)OPEN(&s);
    keeper_opened(&keeper, 6, at(100)); /* nothing is kept here */
    assert_int_equal(keeper_deadline(&keeper).ns, INSTANT_NEVER.ns);
    story_end(&s);
}

/* Sessions 3 and 4 are those of node 5's own process, in two incarnations; 5 is another's there. */
static void a_proof_of_death_ends_the_sessions_of_that_incarnation_at_once(void **state)
{
    struct session_order order = {.type = SESSION_OPEN, .lifetime = SPAN_S(30), .node = 5};
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    for (uint64_t incarnation = 1; incarnation <= 3; incarnation++) {
        order.incarnation = incarnation % 3;
        (void)tell(&s, order, "p");
        keeper_opened(&keeper, s.index, at(1));
    }
    keeper_prove(&keeper, 5, 1, at(10));
    assert_int_equal(keeper_deadline(&keeper).ns, at(10).ns);
    assert_false(keeper_renew(&keeper, 3, at(10)));
    assert_int_equal(overdue(&keeper, at(10)), 3);
    assert_int_equal(why, SESSION_END_CERTIFIED);
    assert_int_equal(overdue(&keeper, at(10)), 0);
    assert_int_equal(overdue(&keeper, at(11)), 3); /* the end was lost: once more */
    assert_int_equal(why, SESSION_END_CERTIFIED);
    assert_true(keeper_renew(&keeper, 4, at(20)));
    assert_true(keeper_renew(&keeper, 5, at(20)));
    story_end(&s);
}

/* Sessions 3 and 4 are of node 5's own process and of another one there, 5 is of another node, and
 * 6 was opened after the fence had begun. */
static void a_fence_ends_the_sessions_of_all_processes_that_were_on_the_host(void **state)
{
    struct session_order order = {.type = SESSION_OPEN, .lifetime = SPAN_S(30), .node = 5};
    struct keeper keeper;
    struct story s;

    begin(&s, &keeper);
    for (uint64_t i = 0; i < 4; i++) {
        order.incarnation = i == 0;
        order.node = i == 2 ? 6 : 5;
        (void)tell(&s, order, "p");
        keeper_opened(&keeper, s.index, at(1));
    }
    keeper_prove_host(&keeper, 5, 5, at(10));
    assert_int_equal(overdue(&keeper, at(10)) + overdue(&keeper, at(10)), 3 + 4);
    assert_int_equal(why, SESSION_END_CERTIFIED);
    assert_int_equal(overdue(&keeper, at(10)), 0);
    assert_false(keeper_renew(&keeper, 4, at(10)));
    assert_true(keeper_renew(&keeper, 5, at(20)));
    assert_true(keeper_renew(&keeper, 6, at(20)));
    story_end(&s);
}

/* Each in a time that hardly depends on their number: else the test does not end in its time. */
static void very_many_sessions_that_end_together_are_each_overdue_once(void **state)
{
    enum { MANY = 200000 };
    struct keeper keeper;
    struct story s;
    uint64_t sum = 0;

    story_begin(&s);
    for (int i = 0; i < MANY; i++) {
        (void)OPEN(&s);
    }
    keeper_begin(&keeper, s.sessions, at(0));
    for (uint64_t i = 0; i < MANY; i++) {
        sum += overdue(&keeper, at(30));
    }
    assert_int_equal(sum, (uint64_t)MANY * (MANY + 1) / 2);
    assert_int_equal(overdue(&keeper, at(30)), 0);
    assert_int_equal(keeper_deadline(&keeper).ns, at(31).ns);
    story_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_that_is_not_renewed_is_overdue_after_its_lifetime),
        cmocka_unit_test(ends_that_the_log_refused_are_ordered_again_sooner),
        cmocka_unit_test(a_session_whose_end_was_ordered_is_not_renewed),
        cmocka_unit_test(a_new_leader_gives_every_session_its_whole_lifetime),
        cmocka_unit_test(a_session_opened_meanwhile_is_kept),
        cmocka_unit_test(a_proof_of_death_ends_the_sessions_of_that_incarnation_at_once),
        cmocka_unit_test(a_fence_ends_the_sessions_of_all_processes_that_were_on_the_host),
        cmocka_unit_test(very_many_sessions_that_end_together_are_each_overdue_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
