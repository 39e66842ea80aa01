/* A worker, as a conversation. What came of each step is one line: orders for its driver, then the
 * messages for the leader. An item is written "id/epoch". */
#include "cmocka_all.h"
#include "work/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SESSION = 7, LEADER = 100, REPORT_MS = 1000 };

struct talk {
    struct work_worker *worker;
    int64_t ms;
    struct work_number number; /* of the leader's latest message */
    char line[2048];
};

static instant now_of(const struct talk *talk)
{
    return instant_add((instant){0}, SPAN_MS(talk->ms));
}

static void __attribute__((format(printf, 2, 3))) add(struct talk *talk, const char *format, ...)
{
    size_t used = strlen(talk->line);
    va_list arguments;

    (void)snprintf(talk->line + used, sizeof(talk->line) - used, "%s", used ? ", " : "");
    used = strlen(talk->line);
    va_start(arguments, format);
    (void)vsnprintf(talk->line + used, sizeof(talk->line) - used, format, arguments);
    va_end(arguments);
}

static void add_message(struct talk *talk, const struct buffer *buffer)
{
    struct work_message message = {0};

    assert_int_equal(work_message_read(&message, buffer->data, buffer->bytes, NULL), BATON_OK);
    if (message.type == WORK_DONE) {
        add(talk, "done %s/%llu", message.result.id, (unsigned long long)message.result.epoch);
    } else {
        add(talk, "report%s %llu:", message.report.is_reply ? " in full" : "",
            (unsigned long long)message.report.seen.count);
        for (size_t i = 0; i < message.report.claim_count; i++) {
            const struct work_claim *claim = &message.report.claims[i];

            add(talk, "%s%s/%llu",
                claim->is_ended  ? "ended "
                : claim->is_gone ? "gone "
                                 : "",
                claim->id, (unsigned long long)claim->epoch);
            assert_int_equal(claim->item != NULL, message.report.is_reply);
        }
    }
    work_message_fini(&message);
}

static const char *all_of(struct talk *talk)
{
    struct work_order order;
    struct buffer buffer;

    talk->line[0] = '\0';
    buffer_init(&buffer, WORK_MESSAGE_MAX);
    while (work_worker_next_order(talk->worker, &order)) {
        add(talk, "%s %s/%llu", order.type == WORK_START ? "start" : "halt", order.id,
            (unsigned long long)order.epoch);
    }
    while (work_worker_next_message(talk->worker, &buffer)) {
        add_message(talk, &buffer);
        buffer_clear(&buffer);
    }
    buffer_fini(&buffer);
    return talk->line;
}

static const char *session(struct talk *talk, uint64_t number)
{
    work_worker_session(talk->worker, number, now_of(talk));
    return all_of(talk);
}

static const char *hear(struct talk *talk, struct work_message *message)
{
    message->number = talk->number;
    message->session = message->session ? message->session : SESSION;
    work_worker_hear(talk->worker, message, now_of(talk));
    return all_of(talk);
}

static const char *assigned_in(struct talk *talk, uint64_t session, const char *id, uint64_t epoch)
{
    json_t *object = json_object();
    struct work_assignment assignment = {.epoch = epoch, .attempt = 1};
    struct work_message message = {.type = WORK_ASSIGN,
                                   .session = session,
                                   .ledger = 1,
                                   .assignments = &assignment,
                                   .count = 1};
    const char *line;

    assert_int_equal(work_item_read(&assignment.item, object, id, NULL), BATON_OK);
    talk->number.count++;
    line = hear(talk, &message);
    work_item_unref(assignment.item);
    json_decref(object);
    return line;
}

static const char *assigned(struct talk *talk, const char *id, uint64_t epoch)
{
    return assigned_in(talk, SESSION, id, epoch);
}

static const char *about(struct talk *talk, enum work_message_type type, const char *id,
                         uint64_t epoch)
{
    char text[WORK_ID_MAX];
    struct work_claim claim = {.id = text, .epoch = epoch};
    struct work_message message = {.type = type, .ledger = 1, .ids = &claim, .count = 1};

    (void)snprintf(text, sizeof(text), "%s", id);
    talk->number.count++;
    return hear(talk, &message);
}

static const char *asked(struct talk *talk, uint64_t ledger)
{
    struct work_message message = {.type = WORK_ASK, .ledger = ledger};

    talk->number.count++;
    return hear(talk, &message);
}

static const char *ended(struct talk *talk, const char *id, uint64_t epoch)
{
    char text[WORK_ID_MAX];
    struct work_result result = {.id = text, .epoch = epoch, .is_success = true};

    (void)snprintf(text, sizeof(text), "%s", id);
    work_worker_ended(talk->worker, &result, now_of(talk));
    return all_of(talk);
}

static const char *later(struct talk *talk, int64_t ms)
{
    talk->ms += ms;
    work_worker_tick(talk->worker, now_of(talk));
    return all_of(talk);
}

static int begin(void **state)
{
    static struct talk talk;
    struct work_worker_options options = {
        .name = "w1", .slots = 4, .report_interval = SPAN_MS(REPORT_MS)};

    talk = (struct talk){.worker = work_worker_new(&options), .number = {LEADER, 0}};
    assert_non_null(talk.worker);
    assert_string_equal(session(&talk, SESSION), "report 0:");
    *state = &talk;
    return 0;
}

static int end(void **state)
{
    work_worker_free(((struct talk *)*state)->worker);
    return 0;
}

static void an_assigned_item_starts_and_is_reported(void **state)
{
    assert_string_equal(assigned(*state, "a", 5), "start a/5");
    assert_string_equal(later(*state, REPORT_MS), "report 1:, a/5");
    assert_int_equal(work_worker_running(((struct talk *)*state)->worker), 1);
}

static void a_message_that_comes_twice_or_late_starts_nothing(void **state)
{
    struct talk *talk = *state;

    assert_string_equal(assigned(talk, "a", 5), "start a/5");
    assert_string_equal(about(talk, WORK_STOP, "a", 5), "halt a/5");
    assert_string_equal(ended(talk, "a", 5), "report 2:, gone a/5");
    talk->number.count = 0; /* the first message again */
    assert_string_equal(assigned(talk, "a", 5), "");
    talk->number = (struct work_number){LEADER - 1, 50}; /* of an earlier leader */
    assert_string_equal(assigned(talk, "a", 5), "");
}

static void a_message_for_an_earlier_session_starts_nothing(void **state)
{
    struct talk *talk = *state;

    assert_string_equal(session(talk, SESSION + 1), "report 0:");
    assert_string_equal(assigned(talk, "a", 5), "");
}

static void a_result_is_sent_until_it_is_acknowledged(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(ended(*state, "a", 5), "done a/5");
    assert_string_equal(later(*state, REPORT_MS), "done a/5, report 1:, ended a/5");
    assert_string_equal(about(*state, WORK_ACK, "a", 4), ""); /* of an earlier placing */
    assert_string_equal(later(*state, REPORT_MS), "done a/5, report 2:, ended a/5");
    assert_string_equal(about(*state, WORK_ACK, "a", 5), "");
    assert_string_equal(later(*state, REPORT_MS), "report 3:");
}

static void a_second_placing_starts_after_the_first_copy_has_ended(void **state)
{
    assert_string_equal(assigned(*state, "a", 5), "start a/5");
    assert_string_equal(assigned(*state, "a", 6), "halt a/5");
    assert_string_equal(ended(*state, "a", 5), "start a/6, report 2:, a/6");
}

static void a_placing_that_has_not_started_yet_is_just_dropped(void **state)
{
    struct talk *talk = *state;
    char id[] = "a";
    json_t *object = json_object();
    struct work_assignment assignment = {.epoch = 5, .attempt = 1};
    struct work_claim claim = {.id = id, .epoch = 5};
    struct work_message assign = {.type = WORK_ASSIGN,
                                  .number = {LEADER, 1},
                                  .session = SESSION,
                                  .assignments = &assignment,
                                  .count = 1};
    struct work_message stop = {
        .type = WORK_STOP, .number = {LEADER, 2}, .session = SESSION, .ids = &claim, .count = 1};

    assert_int_equal(work_item_read(&assignment.item, object, id, NULL), BATON_OK);
    work_worker_hear(talk->worker, &assign, now_of(talk));
    work_worker_hear(talk->worker, &stop, now_of(talk));
    assert_string_equal(all_of(talk), "report 2:");
    work_item_unref(assignment.item);
    json_decref(object);
}

static void a_lost_session_halts_all_and_a_new_one_begins_with_nothing(void **state)
{
    (void)assigned(*state, "a", 5);
    (void)assigned(*state, "b", 6);
    assert_string_equal(session(*state, 0), "halt a/5, halt b/6");
    assert_string_equal(ended(*state, "a", 5), "");
    assert_string_equal(session(*state, SESSION + 2), "report 2:");
    assert_string_equal(ended(*state, "b", 6), "report 2:");
}

static void a_placing_whose_copy_was_ended_never_starts_again(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(session(*state, 0), "halt a/5");
    assert_string_equal(ended(*state, "a", 5), "");
    assert_int_equal(work_worker_running(((struct talk *)*state)->worker), 0);
    assert_string_equal(session(*state, SESSION), "report 1:, gone a/5"); /* it was not lost */
    assert_string_equal(assigned(*state, "a", 5), "report 2:, gone a/5");
    assert_string_equal(about(*state, WORK_STOP, "a", 5), "report 3:, gone a/5");
    assert_string_equal(assigned(*state, "a", 6), "start a/6");
}

static void what_is_gone_is_reported_until_it_is_acknowledged(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(about(*state, WORK_STOP, "a", 5), "halt a/5");
    assert_string_equal(ended(*state, "a", 5), "report 2:, gone a/5");
    assert_string_equal(about(*state, WORK_ACK, "a", 4), "");
    assert_string_equal(later(*state, REPORT_MS), "report 3:, gone a/5");
    assert_string_equal(about(*state, WORK_ACK, "a", 5), "");
    assert_string_equal(later(*state, REPORT_MS), "report 4:");
}

static void a_copy_of_an_earlier_session_ends_before_a_new_one_starts(void **state)
{
    struct talk *talk = *state;
    char id[] = "a";
    json_t *object = json_object();
    struct work_assignment assignment = {.epoch = 9, .attempt = 2};
    struct work_message assign = {
        .type = WORK_ASSIGN, .session = SESSION + 2, .assignments = &assignment, .count = 1};

    (void)assigned(talk, "a", 5);
    assert_string_equal(session(talk, 0), "halt a/5");
    assert_string_equal(session(talk, SESSION + 2), "report 1:");
    assert_int_equal(work_item_read(&assignment.item, object, id, NULL), BATON_OK);
    talk->number.count++;
    assert_string_equal(hear(talk, &assign), "");
    assert_string_equal(ended(talk, "a", 5), "start a/9, report 2:, a/9");
    work_item_unref(assignment.item);
    json_decref(object);
}

static void a_question_is_answered_at_once_and_in_full_where_the_ledger_is_lost(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(asked(*state, 1), "report 2:, a/5");
    assert_string_equal(asked(*state, 0), "report in full 3:, a/5");
}

static void a_new_leader_gets_the_results_that_wait(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(ended(*state, "a", 5), "done a/5");
    assert_string_equal(asked(*state, 1), "done a/5, report 2:, ended a/5");
}

static void to_stop_what_is_not_there_is_answered_by_a_report(void **state)
{
    assert_string_equal(about(*state, WORK_STOP, "a", 5), "report 1:");
}

static void the_result_of_a_copy_that_was_to_stop_is_dropped(void **state)
{
    (void)assigned(*state, "a", 5);
    assert_string_equal(about(*state, WORK_STOP, "a", 5), "halt a/5");
    assert_string_equal(ended(*state, "a", 5), "report 2:, gone a/5");
    assert_int_equal(work_worker_results(((struct talk *)*state)->worker), 0);
}

/* A report without it would say that it is not there, and its leader would place it elsewhere. */
static void a_placing_that_waits_for_an_earlier_copy_is_reported(void **state)
{
    struct talk *talk = *state;

    (void)assigned(talk, "a", 5);
    (void)session(talk, 0);
    assert_string_equal(session(talk, 9), "report 1:");
    assert_string_equal(assigned_in(talk, 9, "a", 6), "");
    assert_string_equal(later(talk, REPORT_MS), "report 2:, a/6");
    assert_string_equal(ended(talk, "a", 5), "start a/6, report 2:, a/6");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_assigned_item_starts_and_is_reported),
        TEST(a_message_that_comes_twice_or_late_starts_nothing),
        TEST(a_message_for_an_earlier_session_starts_nothing),
        TEST(a_result_is_sent_until_it_is_acknowledged),
        TEST(a_second_placing_starts_after_the_first_copy_has_ended),
        TEST(a_placing_that_has_not_started_yet_is_just_dropped),
        TEST(a_lost_session_halts_all_and_a_new_one_begins_with_nothing),
        TEST(a_placing_whose_copy_was_ended_never_starts_again),
        TEST(what_is_gone_is_reported_until_it_is_acknowledged),
        TEST(a_copy_of_an_earlier_session_ends_before_a_new_one_starts),
        TEST(a_question_is_answered_at_once_and_in_full_where_the_ledger_is_lost),
        TEST(a_new_leader_gets_the_results_that_wait),
        TEST(to_stop_what_is_not_there_is_answered_by_a_report),
        TEST(the_result_of_a_copy_that_was_to_stop_is_dropped),
        TEST(a_placing_that_waits_for_an_earlier_copy_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
