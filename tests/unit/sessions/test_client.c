/* A process's side of its session, as a conversation. What came of each step is one line: events,
 * then the renewal, then the orders with the epoch that they name. */
#include "cmocka_all.h"
#include "sessions/client.h"

#include <stdio.h>
#include <string.h>

enum { MANY = 3000, SESSION = 7 };

struct talk {
    struct session_client *client;
    int64_t ms;
    uint64_t request; /* of the last order about an election, and of the last OPEN or renewal */
    uint64_t lease_request;
    char line[1024];
};

static char red[] = "red", blue[] = "blue";

static instant now_of(const struct talk *talk)
{
    return instant_add((instant){0}, SPAN_MS(talk->ms));
}

static void add(struct talk *talk, const char *verb, const char *name, uint64_t number)
{
    size_t used = strlen(talk->line);

    (void)snprintf(talk->line + used, sizeof(talk->line) - used, "%s%s%s%s %llu", used ? ", " : "",
                   verb, *name ? " " : "", name, (unsigned long long)number);
}

static void add_order(struct talk *talk, const struct session_order *order)
{
    static const char *const verbs[] = {"",       "OPEN", "END",      "ENTER",    "WITHDRAW",
                                        "RESIGN", "PASS", "ELIGIBLE", "DESCRIBE", "RESUME"};

    bool is_of_session = order->type == SESSION_OPEN || order->type == SESSION_RESUME;

    add(talk, verbs[order->type], is_of_session ? "" : order->name, order->epoch);
    *(is_of_session ? &talk->lease_request : &talk->request) = order->request;
}

static const char *all_of(struct talk *talk)
{
    static const char *const verbs[] = {"opened",   "jeopardy", "lost", "acquired",
                                        "asked of", "refused",  "ended"};
    struct session_event event;
    struct session_order order;
    uint64_t session, request;

    talk->line[0] = '\0';
    while (session_client_next_event(talk->client, &event)) {
        add(talk, verbs[event.type], event.userdata ? event.userdata : "", event.epoch);
    }
    while (session_client_next_renewal(talk->client, &session, &request)) {
        add(talk, "renews", "", session);
        talk->lease_request = request;
    }
    while (session_client_next_order(talk->client, now_of(talk), &order)) {
        add_order(talk, &order);
    }
    return talk->line;
}

static const char *step(struct talk *talk, struct session_input input)
{
    session_client_step(talk->client, &input, now_of(talk), 1);
    return all_of(talk);
}

static const char *up(struct talk *talk)
{
    return step(talk, (struct session_input){.type = SESSION_IN_UP});
}

static const char *opened(struct talk *talk, uint64_t session)
{
    return step(talk, (struct session_input){.type = SESSION_IN_REPLY,
                                             .request = talk->lease_request,
                                             .session = session});
}

static const char *answered(struct talk *talk, int code)
{
    return step(talk, (struct session_input){.type = SESSION_IN_REPLY,
                                             .request = talk->request,
                                             .session = SESSION,
                                             .code = code});
}

static const char *renewed(struct talk *talk, int code)
{
    return step(talk, (struct session_input){.type = SESSION_IN_RENEWED,
                                             .request = talk->lease_request,
                                             .session = SESSION,
                                             .code = code});
}

static const char *hear(struct talk *talk, enum session_change_type type, const char *name,
                        uint64_t epoch)
{
    return step(
        talk, (struct session_input){
                  .type = SESSION_IN_CHANGE,
                  .change = {.type = type, .session = SESSION, .election = name, .epoch = epoch}});
}

static const char *after(struct talk *talk, int64_t ms)
{
    talk->ms += ms;
    return step(talk, (struct session_input){.type = SESSION_IN_TICK});
}

static void begin(struct talk *talk)
{
    struct session_client_options options = {.name = "p", .incarnation = 3};

    lease_settings_default(&options.lease);
    *talk = (struct talk){.client = session_client_new(&options)};
    assert_non_null(talk->client);
}

static void enter(struct talk *talk, char *election)
{
    assert_int_equal(session_client_enter(talk->client, election, 0, true, election), BATON_OK);
}

/* Holds "red" in epoch 9. */
static void begin_holding(struct talk *talk)
{
    begin(talk);
    enter(talk, red);
    assert_string_equal(up(talk), "OPEN 0");
    assert_string_equal(opened(talk, SESSION), "opened 7, ENTER red 0");
    assert_string_equal(hear(talk, SESSION_HELD, red, 9), "acquired red 9");
    assert_string_equal(answered(talk, BATON_OK), "");
}

static void end(struct talk *talk)
{
    session_client_free(talk->client);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void a_process_opens_a_session_enters_and_acts(void **state)
{
    struct talk t;

    begin_holding(&t);
    assert_true(session_client_lease(t.client).is_held);
    assert_int_equal(session_client_lease(t.client).session, SESSION);
    assert_int_equal(session_client_epoch(t.client, red), 9);
    assert_int_equal(session_client_epoch(t.client, blue), 0);
    assert_string_equal(after(&t, 10000), "renews 7");
    assert_string_equal(renewed(&t, BATON_OK), "");
    end(&t);
}

static void a_resignation_leaves_after_the_process_has_stopped_acting(void **state)
{
    struct talk t;

    begin_holding(&t);
    assert_int_equal(session_client_resign(t.client, red, 8, 0), BATON_ENOTLEADER);
    assert_int_equal(session_client_resign(t.client, red, 9, 5), BATON_OK);
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_string_equal(all_of(&t), "lost red 9, RESIGN red 9");
    assert_int_equal(session_client_resign(t.client, red, 9, 5), BATON_ENOTLEADER);
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), ""); /* reported late */
    assert_string_equal(answered(&t, BATON_OK), "");
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), "RESIGN red 9"); /* by an agent that lags */
    assert_string_equal(answered(&t, BATON_ECONFLICT), "");
    assert_string_equal(hear(&t, SESSION_HELD, red, 12), "acquired red 12");
    end(&t);
}

static void an_order_without_a_reply_is_repeated(void **state)
{
    struct talk t;

    begin_holding(&t);
    session_client_withdraw(t.client, red);
    assert_string_equal(all_of(&t), "lost red 9, WITHDRAW red 9");
    assert_string_equal(after(&t, 4999), "");
    assert_string_equal(after(&t, 1), "WITHDRAW red 9");
    assert_string_equal(step(&t, (struct session_input){.type = SESSION_IN_DOWN}), "");
    assert_string_equal(up(&t), "renews 7, WITHDRAW red 9");
    assert_string_equal(answered(&t, BATON_ENOENT), "ended red 0"); /* the first one had arrived */
    end(&t);
}

static void what_was_given_up_is_remembered_after_the_election_was_left(void **state)
{
    struct talk t;

    begin_holding(&t);
    session_client_withdraw(t.client, red);
    (void)all_of(&t);
    assert_string_equal(answered(&t, BATON_OK), "ended red 0");
    enter(&t, red);
    assert_string_equal(all_of(&t), "ENTER red 0");
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), "");
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_string_equal(answered(&t, BATON_OK), "RESIGN red 9");
    end(&t);
}

/* Its agent has begun again with an old state, and reports what it goes through once more. */
static void what_was_given_up_is_not_forgotten_over_an_earlier_grant(void **state)
{
    struct talk t;

    begin_holding(&t);
    session_client_withdraw(t.client, red);
    (void)all_of(&t);
    assert_string_equal(answered(&t, BATON_OK), "ended red 0");
    assert_string_equal(hear(&t, SESSION_HELD, red, 8), "WITHDRAW red 8");
    enter(&t, red);
    assert_string_equal(answered(&t, BATON_ECONFLICT), "");
    assert_string_equal(after(&t, 1000), "ENTER red 0");
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), "");
    assert_int_equal(session_client_epoch(t.client, red), 0);
    end(&t);
}

static void a_session_that_has_ended_voids_all_and_a_new_one_enters_again(void **state)
{
    struct talk t;

    begin_holding(&t);
    enter(&t, blue);
    assert_string_equal(all_of(&t), "ENTER blue 0");
    assert_string_equal(hear(&t, SESSION_HELD, blue, 10), "acquired blue 10");
    assert_string_equal(answered(&t, BATON_OK), "");
    assert_string_equal(after(&t, 10000), "renews 7");
    assert_string_equal(renewed(&t, BATON_ENOENT), "lost red 9, lost blue 10, OPEN 0");
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_false(session_client_lease(t.client).is_held);
    assert_string_equal(opened(&t, 20), "opened 20, ENTER red 0, ENTER blue 0");
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), ""); /* of the session before */
    end(&t);
}

static void a_process_that_cannot_renew_stops_and_ends_its_session(void **state)
{
    struct talk t;

    begin_holding(&t);
    assert_string_equal(step(&t, (struct session_input){.type = SESSION_IN_DOWN}), "");
    assert_string_equal(after(&t, 25000), "jeopardy 0");
    assert_string_equal(after(&t, 5000), "lost red 9, END 7");
    assert_string_equal(up(&t), "OPEN 0");
    end(&t);
}

static void a_new_connection_within_the_lease_goes_on_with_the_session(void **state)
{
    struct talk t;

    begin_holding(&t);
    enter(&t, blue);
    assert_string_equal(all_of(&t), "ENTER blue 0");
    assert_string_equal(answered(&t, BATON_OK), "");
    assert_string_equal(step(&t, (struct session_input){.type = SESSION_IN_DOWN}), "");
    assert_int_equal(session_client_epoch(t.client, red), 9);
    t.ms += 2000;
    assert_string_equal(up(&t), "renews 7");
    assert_string_equal(hear(&t, SESSION_ENTERED, red, 0), "");
    assert_string_equal(hear(&t, SESSION_HELD, red, 9), "");
    assert_string_equal(step(&t, (struct session_input){.type = SESSION_IN_REPORTED}),
                        "ENTER blue 0"); /* this agent does not know of it */
    assert_int_equal(session_client_epoch(t.client, red), 9);
    end(&t);
}

static void a_holder_is_asked_and_a_cordoned_one_gives_up(void **state)
{
    struct talk t;

    begin_holding(&t);
    assert_string_equal(hear(&t, SESSION_ASKED, red, 8), ""); /* about an earlier grant */
    assert_string_equal(hear(&t, SESSION_ASKED, red, 9), "asked of red 9");
    assert_int_equal(session_client_enter(t.client, red, 0, false, red), BATON_OK);
    assert_string_equal(all_of(&t), "lost red 9, ENTER red 0");
    assert_string_equal(answered(&t, BATON_OK), "RESIGN red 9");
    assert_string_equal(answered(&t, BATON_OK), "");
    end(&t);
}

static void late_orders_that_move_it_in_and_out_of_lines_are_undone(void **state)
{
    struct talk t;

    begin_holding(&t);
    enter(&t, blue);
    assert_string_equal(all_of(&t), "ENTER blue 0");
    session_client_withdraw(t.client, blue);
    assert_string_equal(after(&t, 5000), "WITHDRAW blue 0");
    assert_string_equal(answered(&t, BATON_ENOENT), "ended blue 0");
    assert_string_equal(hear(&t, SESSION_HELD, blue, 15), "WITHDRAW blue 15"); /* the late ENTER */
    assert_string_equal(answered(&t, BATON_OK), "");
    assert_string_equal(hear(&t, SESSION_LEFT, red, 0), "ENTER red 0");
    end(&t);
}

static void a_refused_order_is_reported_and_repeated_after_a_pause(void **state)
{
    struct talk t;

    begin_holding(&t);
    enter(&t, blue);
    (void)all_of(&t);
    assert_string_equal(answered(&t, BATON_EFULL), "refused blue 0");
    assert_int_equal(session_client_deadline(t.client).ns, now_of(&t).ns + SPAN_MS(100).ns);
    assert_string_equal(after(&t, 100), "ENTER blue 0");
    end(&t);
}

static void a_grant_that_is_given_up_before_it_was_told_is_not_told(void **state)
{
    const struct session_input held = {
        .type = SESSION_IN_CHANGE,
        .change = {.type = SESSION_HELD, .session = SESSION, .election = blue, .epoch = 12}};
    struct talk t;

    begin_holding(&t);
    enter(&t, blue);
    (void)all_of(&t);
    (void)answered(&t, BATON_OK);
    session_client_step(t.client, &held, now_of(&t), 1);
    assert_int_equal(session_client_resign(t.client, blue, 12, 0), BATON_OK);
    assert_string_equal(all_of(&t), "RESIGN blue 12");
    end(&t);
}

static void a_process_that_leaves_stops_acting_and_ends_its_session(void **state)
{
    struct talk t;

    begin_holding(&t);
    session_client_leave(t.client, now_of(&t), 1);
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_string_equal(all_of(&t), "lost red 9, ended red 0, END 7");
    assert_int_equal(session_client_enter(t.client, red, 0, true, red), BATON_EINVAL);
    end(&t);
}

/* Of session 7, by an agent that has just started. */
static void begin_resuming(struct talk *talk)
{
    struct session_client_options options = {.name = "p", .resume = SESSION};

    lease_settings_default(&options.lease);
    *talk = (struct talk){.client = session_client_new(&options)};
    assert_non_null(talk->client);
    assert_string_equal(up(talk), "RESUME 0");
}

/* It holds "red" in epoch 9. */
static const char *resumed(struct talk *talk)
{
    char line[sizeof(talk->line)];

    (void)snprintf(line, sizeof(line), "%s",
                   step(talk, (struct session_input){.type = SESSION_IN_REPLY,
                                                     .request = talk->lease_request,
                                                     .session = SESSION,
                                                     .index = 20,
                                                     .lifetime = SPAN_S(30)}));
    assert_memory_equal(line, "opened 7", 8);
    (void)hear(talk, SESSION_ENTERED, red, 9);
    (void)hear(talk, SESSION_HELD, red, 9);
    return step(talk, (struct session_input){.type = SESSION_IN_REPORTED});
}

static void a_resumed_session_leads_on_where_its_process_acts(void **state)
{
    struct talk t;

    begin_resuming(&t);
    assert_string_equal(resumed(&t), "");
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_int_equal(session_client_recall(t.client, red, 9, true), BATON_OK);
    enter(&t, red);
    assert_string_equal(all_of(&t), "acquired red 9, ENTER red 0");
    end(&t);
}

static void a_resumed_session_gives_up_what_its_process_has_given_up(void **state)
{
    struct talk t;

    begin_resuming(&t);
    assert_int_equal(session_client_recall(t.client, red, 9, false), BATON_OK);
    enter(&t, red);
    (void)resumed(&t);
    assert_int_equal(session_client_epoch(t.client, red), 0);
    assert_string_equal(answered(&t, BATON_OK), "RESIGN red 9");
    end(&t);
}

static void what_a_process_does_not_claim_is_kept_until_all_earlier_leases_have_ended(void **state)
{
    struct talk t;

    begin_resuming(&t);
    (void)resumed(&t);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(after(&t, 10000), "renews 7");
        assert_string_equal(renewed(&t, BATON_OK), "");
    }
    assert_string_equal(after(&t, 9999), "");
    assert_string_equal(after(&t, 1), "renews 7, WITHDRAW red 9");
    end(&t);
}

static void what_a_lost_session_kept_is_not_taken_up_any_more(void **state)
{
    struct talk t;

    begin_resuming(&t);
    (void)resumed(&t);
    assert_string_equal(after(&t, 10000), "renews 7");
    assert_string_equal(renewed(&t, BATON_ENOENT), "OPEN 0");
    assert_int_equal(session_client_recall(t.client, red, 9, true), BATON_OK);
    enter(&t, red);
    assert_string_equal(all_of(&t), "");
    assert_string_equal(opened(&t, 31), "opened 31, ENTER red 0");
    assert_int_equal(session_client_epoch(t.client, red), 0);
    end(&t);
}

static void a_session_that_cannot_be_resumed_is_followed_by_a_new_one(void **state)
{
    struct talk t;

    begin_resuming(&t);
    enter(&t, red);
    assert_string_equal(step(&t, (struct session_input){.type = SESSION_IN_REPLY,
                                                        .request = t.lease_request,
                                                        .code = BATON_EAUTH}),
                        "OPEN 0");
    assert_string_equal(opened(&t, 31), "opened 31, ENTER red 0");
    end(&t);
}

static void a_resumed_session_has_the_lifetime_with_which_it_was_opened(void **state)
{
    struct talk t;

    begin_resuming(&t);
    (void)step(&t, (struct session_input){.type = SESSION_IN_REPLY,
                                          .request = t.lease_request,
                                          .session = SESSION,
                                          .index = 20,
                                          .lifetime = SPAN_S(6)});
    assert_true(session_client_lease(t.client).end.ns <= now_of(&t).ns + SPAN_S(6).ns);
    assert_string_equal(after(&t, 2000), "renews 7");
    end(&t);
}

static void the_end_of_a_resumed_session_names_its_attachment(void **state)
{
    struct talk t;

    begin_resuming(&t);
    (void)resumed(&t);
    session_client_leave(t.client, now_of(&t), 1);
    assert_string_equal(all_of(&t), "END 20");
    end(&t);
}

static void metadata_go_with_the_session_and_change(void **state)
{
    struct talk t;

    begin_holding(&t);
    assert_int_equal(session_client_describe(t.client, "{}"), BATON_OK);
    assert_string_equal(all_of(&t), "DESCRIBE 0");
    assert_string_equal(answered(&t, BATON_OK), "");
    end(&t);
}

static void open_at_once(struct talk *talk)
{
    const struct session_input reply = {
        .type = SESSION_IN_REPLY, .request = talk->lease_request, .session = SESSION};

    session_client_step(talk->client, &reply, now_of(talk), 1);
}

/* Replies to all orders under way, each before the next one is taken; returns how many. */
static int answer_all(struct talk *talk)
{
    struct session_input replies[SESSION_ORDERS_UNDER_WAY_MAX];
    struct session_order order;
    int count = 0;

    while (session_client_next_order(talk->client, now_of(talk), &order)) {
        assert_int_equal(order.type, SESSION_ENTER);
        assert_true(count < SESSION_ORDERS_UNDER_WAY_MAX);
        replies[count++] =
            (struct session_input){.type = SESSION_IN_REPLY, .request = order.request};
    }
    for (int i = 0; i < count; i++) {
        session_client_step(talk->client, &replies[i], now_of(talk), 1);
    }
    return count;
}

static void thousands_are_entered_a_few_at_a_time_and_renewed_by_one_message(void **state)
{
    static char names[MANY][8];
    int entered = 0;
    struct talk t;

    begin(&t);
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "e%d", i);
        enter(&t, names[i]);
    }
    assert_string_equal(up(&t), "OPEN 0");
    open_at_once(&t);
    for (int count; (count = answer_all(&t)) > 0;) {
        entered += count;
    }
    assert_int_equal(entered, MANY);
    assert_string_equal(all_of(&t), "opened 7");
    for (int i = 0; i < MANY; i++) {
        (void)hear(&t, SESSION_HELD, names[i], (uint64_t)(100 + i));
        assert_int_equal(session_client_epoch(t.client, names[i]), 100 + i);
    }
    assert_string_equal(after(&t, 10000), "renews 7");
    assert_string_equal(renewed(&t, BATON_OK), "");
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_opens_a_session_enters_and_acts),
        cmocka_unit_test(a_resignation_leaves_after_the_process_has_stopped_acting),
        cmocka_unit_test(an_order_without_a_reply_is_repeated),
        cmocka_unit_test(what_was_given_up_is_remembered_after_the_election_was_left),
        cmocka_unit_test(what_was_given_up_is_not_forgotten_over_an_earlier_grant),
        cmocka_unit_test(a_session_that_has_ended_voids_all_and_a_new_one_enters_again),
        cmocka_unit_test(a_process_that_cannot_renew_stops_and_ends_its_session),
        cmocka_unit_test(a_new_connection_within_the_lease_goes_on_with_the_session),
        cmocka_unit_test(a_holder_is_asked_and_a_cordoned_one_gives_up),
        cmocka_unit_test(late_orders_that_move_it_in_and_out_of_lines_are_undone),
        cmocka_unit_test(a_refused_order_is_reported_and_repeated_after_a_pause),
        cmocka_unit_test(a_grant_that_is_given_up_before_it_was_told_is_not_told),
        cmocka_unit_test(a_process_that_leaves_stops_acting_and_ends_its_session),
        cmocka_unit_test(a_resumed_session_leads_on_where_its_process_acts),
        cmocka_unit_test(a_resumed_session_gives_up_what_its_process_has_given_up),
        cmocka_unit_test(what_a_process_does_not_claim_is_kept_until_all_earlier_leases_have_ended),
        cmocka_unit_test(what_a_lost_session_kept_is_not_taken_up_any_more),
        cmocka_unit_test(a_session_that_cannot_be_resumed_is_followed_by_a_new_one),
        cmocka_unit_test(a_resumed_session_has_the_lifetime_with_which_it_was_opened),
        cmocka_unit_test(the_end_of_a_resumed_session_names_its_attachment),
        cmocka_unit_test(metadata_go_with_the_session_and_change),
        cmocka_unit_test(thousands_are_entered_a_few_at_a_time_and_renewed_by_one_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
