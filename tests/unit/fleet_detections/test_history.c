/* Lines of detections, their keys, and the latest of them. */
#include "cmocka_all.h"
#include "fleet/detections/history.h"
#include "fleet/detections/known.h"
#include "fleet/detections/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lines ----------------------------------------------------------------------------------- */

static struct line_writer writer;

static uint64_t write_parts(const struct line_parts *parts)
{
    uint64_t key;

    assert_true(line_write(&writer, parts, &key));
    assert_non_null(buffer_text(&writer.line));
    return key;
}

static uint64_t write_line(const char *worker, const char *subscription, const char *timestamp,
                           const char *session, const char *data)
{
    struct line_parts parts = {
        .worker = worker, .process = "p1", .subscription = subscription, .timestamp = timestamp};
    json_t *values[] = {session != NULL ? json_loads(session, JSON_DECODE_ANY, NULL) : NULL,
                        json_loads(data, 0, NULL)};
    uint64_t key;

    parts.session = values[0];
    parts.data = values[1];
    key = write_parts(&parts);
    json_decref(values[0]);
    json_decref(values[1]);
    return key;
}

static int set_up(void **state)
{
    line_writer_init(&writer);
    return 0;
}

static int tear_down(void **state)
{
    line_writer_fini(&writer);
    return 0;
}

static void a_line_begins_with_its_key_and_has_all_of_the_detection(void **state)
{
    char expected[256];
    uint64_t read, key = write_line("w1", "d;c", "2025-07-14T12:34:56.789Z", "5",
                                    "{\"detection\":{\"p\":0.95},\"modelId\":101}");

    (void)snprintf(expected, sizeof(expected),
                   "{\"key\":\"%016llx\",\"worker\":\"w1\",\"process\":\"p1\","
                   "\"type\":\"imageDetection\",\"subscriptionIdentifier\":\"d;c\","
                   "\"timestamp\":\"2025-07-14T12:34:56.789Z\",\"sessionId\":5,"
                   "\"data\":{\"detection\":{\"p\":0.95},\"modelId\":101}}",
                   (unsigned long long)key);
    assert_string_equal((const char *)writer.line.data, expected);
    assert_true(line_key(expected, strlen(expected), &read));
    assert_true(read == key);
}

static void texts_with_quotes_stay_json(void **state)
{
    json_t *line;

    (void)write_line("w\"1", "d\\\";c\x01ä", "\"", NULL, "{\"a\":\"\\\"\\n\"}");
    line = json_loads((const char *)writer.line.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(line);
    assert_string_equal(json_string_value(json_object_get(line, "worker")), "w\"1");
    assert_string_equal(json_string_value(json_object_get(line, "subscriptionIdentifier")),
                        "d\\\";c\x01ä");
    assert_true(json_is_null(json_object_get(line, "sessionId")));
    json_decref(line);
}

static void the_key_is_of_worker_subscription_timestamp_and_data(void **state)
{
    const uint64_t key = write_line("w", "d;c", "t", "5", "{\"a\":1}");

    assert_true(key == write_line("w", "d;c", "t", "6", "{\"a\":1}"));
    assert_true(key == write_line("w", "d;c", "t", NULL, "{\"a\":1}"));
    assert_true(key != write_line("v", "d;c", "t", "5", "{\"a\":1}"));
    assert_true(key != write_line("w", "d;d", "t", "5", "{\"a\":1}"));
    assert_true(key != write_line("w", "d;c", "u", "5", "{\"a\":1}"));
    assert_true(key != write_line("w", "d;c", "t", "5", "{\"a\":2}"));
    assert_true(key != write_line("wd", ";c", "t", "5", "{\"a\":1}"));
}

static void a_line_that_is_too_long_is_not_written(void **state)
{
    char *text = calloc(1, LINE_BYTES_MAX);
    struct line_parts parts = {
        .worker = "w", .process = "p", .subscription = "d;c", .timestamp = "t"};
    json_t *data;
    uint64_t key;

    assert_non_null(text);
    memset(text, 'x', LINE_BYTES_MAX - 1);
    data = json_pack("{s:s}", "a", text);
    parts.data = data;
    assert_false(line_write(&writer, &parts, &key));
    (void)write_line("w", "d;c", "t", NULL, "{}"); /* and the next one is */
    json_decref(data);
    free(text);
}

static void what_a_foreign_program_sends_is_no_line(void **state)
{
    static const char *const wrong[] = {
        "{\"key\":\"0123456789abcde\",\"worker\":\"w\"}",
        "{\"key\":\"0123456789ABCDEF\",\"worker\":\"w\"}",
        "{\"key\":\"0123456789abcdef\",\"process\":\"w\"}",
        "{\"key\":\"0123456789abcdef\",\"worker\":\"",
        "{\"key\":\"0123456789abcdef\",\"worker\":\"w\"",
        "{\"key\":\"0123456789abcdef\",\"worker\":\"w\r\"}",
        "{\"key\":\"0123456789abcdef\",\"worker\":\"w\x1b\"}",
        "{\"key\":\"",
        "{\"key\":\"}",
    };
    uint64_t key;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (line_key(wrong[i], strlen(wrong[i]), &key)) {
            fail_msg("taken: %s", wrong[i]);
        }
        assert_int_equal(line_is_detection(wrong[i], strlen(wrong[i])), strlen(wrong[i]) > 8);
    }
    assert_false(line_is_detection("{\"type\":\"stateReport\"}", 22));
}

/* ---- Keys ------------------------------------------------------------------------------------ */

/* Spread as a hash is (splitmix64). */
static uint64_t key_of(uint64_t number)
{
    number = (number + 1) * 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    return number ^ (number >> 27);
}

static void a_key_is_new_once(void **state)
{
    struct known known = {0};

    assert_true(known_add(&known, 7));
    assert_false(known_add(&known, 7));
    assert_true(known_add(&known, 0));
    assert_false(known_add(&known, 0));
    known_fini(&known);
}

static void the_latest_keys_are_known_in_bounded_memory(void **state)
{
    const uint64_t all = 3 * (uint64_t)KNOWN_KEYS + 5;
    struct known known = {0};

    for (uint64_t i = 0; i < all; i++) {
        assert_true(known_add(&known, key_of(i)));
        assert_true(known.young.capacity <= 2 * (size_t)KNOWN_KEYS);
    }
    for (uint64_t i = all - KNOWN_KEYS; i < all; i++) {
        assert_false(known_add(&known, key_of(i)));
    }
    assert_true(known_add(&known, key_of(0))); /* forgotten */
    known_fini(&known);
}

/* ---- History --------------------------------------------------------------------------------- */

static void add(struct history *history, const char *subscription, int number)
{
    char data[64];

    (void)snprintf(data, sizeof(data), "{\"number\":%d}", number);
    (void)write_line("w", subscription, "t", NULL, data);
    assert_non_null(history_add(history, (const char *)writer.line.data, writer.line.bytes));
}

/* The numbers of the lines that are listed, separated by blanks. */
static void expect_listed(const struct history *history, const char *display, const char *camera,
                          size_t limit, const char *expected)
{
    json_t *list = history_list(history, display, camera, limit), *line;
    char found[128] = "";
    size_t index, used = 0;

    assert_non_null(list);
    json_array_foreach(list, index, line)
    {
        used += (size_t)snprintf(
            found + used, sizeof(found) - used, "%s%lld", index > 0 ? " " : "",
            json_integer_value(json_object_get(json_object_get(line, "data"), "number")));
    }
    assert_string_equal(found, expected);
    json_decref(list);
}

static void the_latest_of_a_display_or_a_camera_are_listed(void **state)
{
    struct history history;

    assert_true(history_init(&history));
    add(&history, "d1;c1", 1);
    add(&history, "d1;c2", 2);
    add(&history, "d2;c1", 3);
    add(&history, "d1\";c1", 4);
    (void)write_line("w", "xd1;c1x", "t", NULL, "{\"number\":5,\"note\":\"d1;c1\"}");
    assert_non_null(history_add(&history, (const char *)writer.line.data, writer.line.bytes));
    expect_listed(&history, NULL, NULL, 10, "5 4 3 2 1");
    expect_listed(&history, NULL, NULL, 2, "5 4");
    expect_listed(&history, "d1", NULL, 10, "2 1");
    expect_listed(&history, "d1", NULL, 1, "2");
    expect_listed(&history, NULL, "c1", 10, "4 3 1");
    expect_listed(&history, "d1", "c1", 10, "1");
    expect_listed(&history, "d1\"", NULL, 10, "4");
    expect_listed(&history, "d3", NULL, 10, "");
    expect_listed(&history, NULL, NULL, 0, "");
    history_fini(&history);
}

static void lines_that_are_no_json_are_left_out(void **state)
{
    static const char *const wrong[] = {"{\"key\":\"\",\"subscriptionIdentifier\":\"d;c}", "[]",
                                        "{\"subscriptionIdentifier\":5}"};
    struct history history;

    assert_true(history_init(&history));
    add(&history, "d;c", 1);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_non_null(history_add(&history, wrong[i], strlen(wrong[i])));
    }
    expect_listed(&history, NULL, NULL, 10, "1");
    expect_listed(&history, "d", NULL, 10, "1");
    history_fini(&history);
}

static void the_history_is_bounded_by_lines(void **state)
{
    struct history history;

    assert_true(history_init(&history));
    for (int i = 0; i < HISTORY_LINES_MAX + 7; i++) {
        add(&history, "d;c", i);
    }
    assert_int_equal(history.count, HISTORY_LINES_MAX);
    expect_listed(&history, NULL, NULL, 2, "10006 10005");
    history_fini(&history);
}

static void the_history_is_bounded_by_bytes(void **state)
{
    char *line = malloc(LINE_BYTES_MAX);
    struct history history;

    assert_non_null(line);
    memset(line, 'x', LINE_BYTES_MAX);
    assert_true(history_init(&history));
    for (int i = 0; i < 300; i++) {
        assert_non_null(history_add(&history, line, LINE_BYTES_MAX));
        assert_true(history.bytes <= HISTORY_BYTES_MAX);
    }
    assert_int_equal(history.count, HISTORY_BYTES_MAX / LINE_BYTES_MAX);
    history_fini(&history);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_begins_with_its_key_and_has_all_of_the_detection),
        cmocka_unit_test(texts_with_quotes_stay_json),
        cmocka_unit_test(the_key_is_of_worker_subscription_timestamp_and_data),
        cmocka_unit_test(a_line_that_is_too_long_is_not_written),
        cmocka_unit_test(what_a_foreign_program_sends_is_no_line),
        cmocka_unit_test(a_key_is_new_once),
        cmocka_unit_test(the_latest_keys_are_known_in_bounded_memory),
        cmocka_unit_test(the_latest_of_a_display_or_a_camera_are_listed),
        cmocka_unit_test(lines_that_are_no_json_are_left_out),
        cmocka_unit_test(the_history_is_bounded_by_lines),
        cmocka_unit_test(the_history_is_bounded_by_bytes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
