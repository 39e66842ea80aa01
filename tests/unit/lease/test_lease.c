/* The lease core, rule by rule. */
#include "cmocka_all.h"
#include "lease/lease.h"

#include <stdlib.h>
#include <string.h>

static struct lease_settings settings;
static struct lease lease;
static struct lease_update update;
static instant now;

static int set_up(void **state)
{
    lease_settings_default(&settings);
    lease_init(&lease, true, 0);
    now = (instant){SPAN_S(100).ns};
    return 0;
}

static void step(struct lease_input input)
{
    lease_step(&lease, &settings, &input, now, 0, &update);
}

static void pass(span time)
{
    now = instant_add(now, time);
}

static void tick_after(span time)
{
    pass(time);
    step((struct lease_input){.type = LEASE_IN_TICK});
}

static void reply(enum lease_outcome outcome, uint64_t epoch, span left)
{
    step((struct lease_input){
        .type = LEASE_IN_REPLY,
        .reply = {
            .request = lease.asked_request, .outcome = outcome, .epoch = epoch, .left = left}});
}

static void sends(enum lease_command_type type)
{
    assert_int_equal(update.command_count, 1);
    assert_int_equal(update.commands[0].type, type);
}

static const struct lease_event *told(enum lease_event_type type)
{
    for (uint32_t i = 0; i < update.event_count; i++) {
        if (update.events[i].type == type) {
            return &update.events[i];
        }
    }
    return NULL;
}

static void lead(uint64_t epoch)
{
    step((struct lease_input){.type = LEASE_IN_UP});
    sends(LEASE_TAKE);
    reply(LEASE_GRANTED, epoch, SPAN_NS(0));
    assert_true(update.held);
}

static void the_lease_is_counted_from_the_request_and_shortened(void **state)
{
    instant sent = now;

    settings.clock_drift_ppm = 250000; /* (3/4) / (5/4) = 3/5 of 30 s */
    settings.renew_interval = SPAN_S(5);
    step((struct lease_input){.type = LEASE_IN_UP});
    pass(SPAN_S(4));
    reply(LEASE_GRANTED, 7, SPAN_NS(0));
    assert_true(update.held);
    assert_int_equal(update.epoch, 7);
    assert_int_equal(instant_since(update.end, sent).ns, SPAN_S(18).ns);
    assert_int_equal(told(LEASE_EV_ACQUIRED)->epoch, 7);
}

static void a_grant_that_comes_too_late_is_given_back(void **state)
{
    settings.answer_timeout = SPAN_S(60);
    step((struct lease_input){.type = LEASE_IN_UP});
    pass(SPAN_S(30));
    reply(LEASE_GRANTED, 7, SPAN_NS(0));
    assert_false(update.held);
    sends(LEASE_RELEASE);
    assert_int_equal(update.commands[0].epoch, 7);
    assert_null(told(LEASE_EV_ACQUIRED));
}

static void errors_never_demote_but_the_clock_does(void **state)
{
    instant end;

    lead(7);
    end = update.end;
    tick_after(SPAN_S(10));
    sends(LEASE_RENEW);
    while (instant_before(now, end)) {
        assert_true(update.held);
        if (lease.is_waiting) {
            reply(LEASE_NO_ANSWER, 0, SPAN_NS(0));
        } else {
            now = instant_max(update.deadline, instant_add(now, SPAN_NS(1)));
            step((struct lease_input){.type = LEASE_IN_TICK});
        }
    }
    assert_false(update.held);
    assert_int_equal(told(LEASE_EV_LOST)->loss, LEASE_LOSS_EXPIRED);
    assert_int_equal(now.ns, end.ns);
}

static void jeopardy_is_reported_before_the_end(void **state)
{
    const struct lease_event *event;

    lead(7);
    step((struct lease_input){.type = LEASE_IN_DOWN});
    while (!told(LEASE_EV_JEOPARDY)) {
        assert_true(update.held);
        now = update.deadline;
        step((struct lease_input){.type = LEASE_IN_TICK});
    }
    event = told(LEASE_EV_JEOPARDY);
    assert_int_equal(event->left.ns, instant_since(update.end, now).ns);
    assert_true(event->left.ns > SPAN_S(5).ns);
    now = update.deadline;
    step((struct lease_input){.type = LEASE_IN_TICK});
    assert_false(update.held);
}

static void a_renewal_that_is_refused_demotes_at_once(void **state)
{
    lead(7);
    tick_after(SPAN_S(10));
    reply(LEASE_HELD, 9, SPAN_S(3));
    assert_false(update.held);
    assert_int_equal(told(LEASE_EV_LOST)->loss, LEASE_LOSS_SUPERSEDED);
    assert_int_equal(told(LEASE_EV_HOLDER)->epoch, 9);
}

/* The most that one step has to tell. */
static void a_late_answer_of_a_new_lock_tells_all_that_happened(void **state)
{
    static const enum lease_event_type expected[] = {LEASE_EV_LOST, LEASE_EV_ACQUIRED,
                                                     LEASE_EV_HOLDER, LEASE_EV_JEOPARDY};

    settings.answer_timeout = SPAN_S(60);
    lead(7);
    tick_after(SPAN_S(10));
    sends(LEASE_RENEW);
    pass(SPAN_MS(19700)); /* into the last third */
    reply(LEASE_GRANTED, 8, SPAN_NS(0));
    assert_true(update.held);
    assert_int_equal(update.event_count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(update.events[i].type, expected[i]);
    }
}

static void a_follower_asks_in_the_moment_the_lock_ends(void **state)
{
    step((struct lease_input){.type = LEASE_IN_UP});
    reply(LEASE_HELD, 9, SPAN_MS(1234));
    assert_false(update.held);
    assert_int_equal(instant_since(update.deadline, now).ns, SPAN_MS(1234).ns);
    tick_after(SPAN_MS(1234));
    sends(LEASE_TAKE);
    assert_int_equal(update.commands[0].epoch, 9); /* only above what was seen */
    reply(LEASE_HELD, 9, SPAN_S(30));
    assert_int_equal(instant_since(update.deadline, now).ns, settings.check_interval.ns);
}

static void a_lock_without_a_lifetime_is_asked_for_ever_more_seldom(void **state)
{
    int64_t waited_ms = 0;
    int looks = 0;

    step((struct lease_input){.type = LEASE_IN_UP});
    while (waited_ms < 60000) {
        instant asked = now;
        sends(LEASE_TAKE);
        reply(LEASE_HELD, 0, SPAN_NS(0));
        assert_int_equal(update.command_count, 0);
        now = update.deadline;
        waited_ms += instant_since(now, asked).ns / 1000000;
        step((struct lease_input){.type = LEASE_IN_TICK});
        looks++;
    }
    assert_in_range(looks, 20, 30); /* 1, 2, 4 … ms, then every check interval */
    reply(LEASE_HELD, 9, SPAN_MS(70));
    now = update.deadline;
    step((struct lease_input){.type = LEASE_IN_TICK});
    reply(LEASE_HELD, 9, SPAN_NS(0)); /* that one did end this moment */
    assert_int_equal(instant_since(update.deadline, now).ns, SPAN_MS(1).ns);
}

static void a_release_wakes_a_follower_at_once(void **state)
{
    step((struct lease_input){.type = LEASE_IN_UP});
    reply(LEASE_HELD, 9, SPAN_S(30));
    step((struct lease_input){.type = LEASE_IN_RELEASED});
    sends(LEASE_TAKE);
    assert_int_equal(told(LEASE_EV_HOLDER)->epoch, 0);
}

static void a_process_that_is_not_the_heir_lets_it_ask_first(void **state)
{
    step((struct lease_input){.type = LEASE_IN_UP});
    reply(LEASE_HELD, 9, SPAN_S(30));
    step((struct lease_input){.type = LEASE_IN_RELEASED, .wait = SPAN_MS(2)});
    assert_int_equal(update.command_count, 0);
    assert_int_equal(instant_since(update.deadline, now).ns, SPAN_MS(2).ns);
    tick_after(SPAN_MS(2));
    sends(LEASE_TAKE);
}

static void a_release_that_crosses_the_answer_is_not_forgotten(void **state)
{
    step((struct lease_input){.type = LEASE_IN_UP});
    step((struct lease_input){.type = LEASE_IN_RELEASED});
    assert_int_equal(update.command_count, 0);
    reply(LEASE_HELD, 9, SPAN_S(30)); /* as it was before the release */
    sends(LEASE_TAKE);
    reply(LEASE_HELD, 11, SPAN_S(30));
    assert_int_equal(update.command_count, 0);
}

static void the_spread_grows_with_the_contenders_up_to_its_maximum(void **state)
{
    struct lease_input released = {.type = LEASE_IN_RELEASED};
    static const struct {
        uint32_t contenders;
        int64_t most_ms;
    } rows[] = {{1, 0}, {2, 0}, {10, 0}, {11, 1}, {201, 20}, {100000, 2000}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t largest = 0;
        for (uint64_t random = 0; random < 200; random++) {
            lease_init(&lease, true, 0);
            step((struct lease_input){.type = LEASE_IN_UP});
            reply(LEASE_HELD, 9, SPAN_S(30));
            step((struct lease_input){.type = LEASE_IN_CONTENDERS,
                                      .contenders = rows[i].contenders});
            lease_step(&lease, &settings, &released, now, random * 0x9e3779b97f4a7c15u, &update);
            if (update.command_count == 0) {
                int64_t wait = instant_since(update.deadline, now).ns;
                largest = wait > largest ? wait : largest;
            }
        }
        assert_true(largest <= SPAN_MS(rows[i].most_ms).ns);
        assert_true(largest >= SPAN_MS(rows[i].most_ms).ns / 2);
    }
}

static void resigning_voids_first_and_lets_others_go_first(void **state)
{
    lead(7);
    step((struct lease_input){.type = LEASE_IN_RESIGN});
    assert_false(update.held);
    sends(LEASE_RELEASE);
    assert_int_equal(told(LEASE_EV_LOST)->loss, LEASE_LOSS_RESIGNED);
    assert_true(instant_since(update.deadline, now).ns > 0);
    step((struct lease_input){.type = LEASE_IN_RESIGN});
    assert_int_equal(update.command_count, 0);
}

/* Notices come by another connection than answers: that of our own taking may come after all. */
static void late_news_of_a_taking_is_none(void **state)
{
    lead(7);
    step((struct lease_input){.type = LEASE_IN_RESIGN});
    step((struct lease_input){.type = LEASE_IN_TAKEN, .epoch = 7});
    assert_int_equal(update.command_count, 0);
    step((struct lease_input){.type = LEASE_IN_TAKEN, .epoch = 8});
    sends(LEASE_TAKE);
}

/* The keys were deleted, or a server's clock jumped: the sooner that is known, the better. */
static void a_leader_asks_at_once_when_another_process_took_the_lock(void **state)
{
    lead(7);
    step((struct lease_input){.type = LEASE_IN_TAKEN, .epoch = 7});
    assert_int_equal(update.command_count, 0);
    step((struct lease_input){.type = LEASE_IN_TAKEN, .epoch = 8});
    assert_true(update.held); /* a notice proves nothing */
    sends(LEASE_RENEW);
    reply(LEASE_HELD, 8, SPAN_S(30));
    assert_false(update.held);
    assert_int_equal(told(LEASE_EV_LOST)->loss, LEASE_LOSS_SUPERSEDED);
}

static void a_taking_that_crosses_a_renewal_is_asked_about_after_it(void **state)
{
    lead(7);
    tick_after(SPAN_S(10));
    sends(LEASE_RENEW);
    step((struct lease_input){.type = LEASE_IN_TAKEN, .epoch = 8});
    assert_int_equal(update.command_count, 0);
    reply(LEASE_GRANTED, 7, SPAN_NS(0));
    sends(LEASE_RENEW);
    reply(LEASE_GRANTED, 7, SPAN_NS(0)); /* it was nobody's word */
    assert_true(update.held);
    assert_int_equal(update.command_count, 0);
}

static void a_grant_to_a_process_that_has_left_is_given_back(void **state)
{
    uint32_t request;

    step((struct lease_input){.type = LEASE_IN_UP});
    request = lease.asked_request;
    step((struct lease_input){.type = LEASE_IN_LEAVE});
    assert_int_equal(update.deadline.ns, INSTANT_NEVER.ns);
    sends(LEASE_RELEASE); /* nobody may be there any more when the answer comes */
    assert_int_equal(update.commands[0].epoch, LEASE_EPOCH_UNKNOWN);
    step((struct lease_input){.type = LEASE_IN_REPLY,
                              .reply = {.request = request, .outcome = LEASE_GRANTED, .epoch = 7}});
    assert_false(update.held);
    sends(LEASE_RELEASE);
}

static void a_late_grant_is_not_pulled_from_under_the_next_answer(void **state)
{
    uint32_t late;

    step((struct lease_input){.type = LEASE_IN_UP});
    late = lease.asked_request;
    tick_after(settings.answer_timeout); /* given up */
    tick_after(SPAN_S(1));               /* asked anew: the store answers with the same lock */
    sends(LEASE_TAKE);
    step((struct lease_input){.type = LEASE_IN_REPLY,
                              .reply = {.request = late, .outcome = LEASE_GRANTED, .epoch = 7}});
    assert_int_equal(update.command_count, 0);
    reply(LEASE_GRANTED, 7, SPAN_NS(0));
    assert_true(update.held);
}

static void an_epoch_that_is_not_above_all_others_is_given_back(void **state)
{
    lease_init(&lease, true, 50);
    step((struct lease_input){.type = LEASE_IN_UP});
    assert_int_equal(update.commands[0].epoch, 50);
    reply(LEASE_GRANTED, 50, SPAN_NS(0));
    assert_false(update.held);
    sends(LEASE_RELEASE);
    assert_int_equal(told(LEASE_EV_STALE_EPOCH)->epoch, 50);
}

static void a_store_that_may_have_forgotten_is_waited_for(void **state)
{
    settings.check_interval = SPAN_S(60);
    step((struct lease_input){.type = LEASE_IN_UP});
    reply(LEASE_NOT_YET, 0, SPAN_S(12));
    assert_int_equal(instant_since(update.deadline, now).ns, SPAN_S(12).ns);
}

static void a_process_that_may_not_lead_only_looks(void **state)
{
    lead(7);
    step((struct lease_input){.type = LEASE_IN_ELIGIBLE, .eligible = false});
    assert_false(update.held);
    assert_int_equal(update.command_count, 2);
    assert_int_equal(update.commands[0].type, LEASE_RELEASE);
    assert_int_equal(update.commands[1].type, LEASE_LOOK);
}

static void settings_that_cannot_work_say_why(void **state)
{
    struct baton_error error;

    assert_int_equal(lease_settings_check(&settings, &error), BATON_OK);
    settings.renew_interval = SPAN_S(15);
    assert_int_equal(lease_settings_check(&settings, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "15000"));
    settings.clock_drift_ppm = 1000000;
    assert_int_equal(lease_settings_check(&settings, &error), BATON_EUNSAFE);
    lease_settings_default(&settings);
    settings.lease = SPAN_NS(0);
    assert_int_equal(lease_settings_check(&settings, &error), BATON_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_lease_is_counted_from_the_request_and_shortened, set_up),
        cmocka_unit_test_setup(a_grant_that_comes_too_late_is_given_back, set_up),
        cmocka_unit_test_setup(errors_never_demote_but_the_clock_does, set_up),
        cmocka_unit_test_setup(jeopardy_is_reported_before_the_end, set_up),
        cmocka_unit_test_setup(a_renewal_that_is_refused_demotes_at_once, set_up),
        cmocka_unit_test_setup(a_late_answer_of_a_new_lock_tells_all_that_happened, set_up),
        cmocka_unit_test_setup(a_follower_asks_in_the_moment_the_lock_ends, set_up),
        cmocka_unit_test_setup(a_lock_without_a_lifetime_is_asked_for_ever_more_seldom, set_up),
        cmocka_unit_test_setup(a_release_wakes_a_follower_at_once, set_up),
        cmocka_unit_test_setup(a_process_that_is_not_the_heir_lets_it_ask_first, set_up),
        cmocka_unit_test_setup(a_release_that_crosses_the_answer_is_not_forgotten, set_up),
        cmocka_unit_test_setup(the_spread_grows_with_the_contenders_up_to_its_maximum, set_up),
        cmocka_unit_test_setup(resigning_voids_first_and_lets_others_go_first, set_up),
        cmocka_unit_test_setup(late_news_of_a_taking_is_none, set_up),
        cmocka_unit_test_setup(a_leader_asks_at_once_when_another_process_took_the_lock, set_up),
        cmocka_unit_test_setup(a_taking_that_crosses_a_renewal_is_asked_about_after_it, set_up),
        cmocka_unit_test_setup(a_grant_to_a_process_that_has_left_is_given_back, set_up),
        cmocka_unit_test_setup(a_late_grant_is_not_pulled_from_under_the_next_answer, set_up),
        cmocka_unit_test_setup(an_epoch_that_is_not_above_all_others_is_given_back, set_up),
        cmocka_unit_test_setup(a_store_that_may_have_forgotten_is_waited_for, set_up),
        cmocka_unit_test_setup(a_process_that_may_not_lead_only_looks, set_up),
        cmocka_unit_test_setup(settings_that_cannot_work_say_why, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
