/* Whole files applied to the state, on each provider. */
#include "stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 160 };

static const char small[] = "models: [{id: 1, name: m, url: \"http://h/m\"}]\n"
                            "cameras: [{id: c1, rtspUrl: \"rtsp://h/1\"},\n"
                            "          {id: c2, rtspUrl: \"rtsp://h/2\"}]\n"
                            "displays: [{id: d1}]\n"
                            "subscriptions: [{id: d1;c1, model: 1}, {id: d1;c2, model: 1}]\n";
/* One camera is changed, one gone with its subscription, one display new. */
static const char next[] = "models: [{id: 1, name: m, url: \"http://h/m\"}]\n"
                           "cameras: [{id: c1, rtspUrl: \"rtsp://h/other\"}]\n"
                           "displays: [{id: d1}, {id: d2}]\n"
                           "subscriptions: [{id: d1;c1, model: 1}]\n";

struct applied {
    int count, code;
    size_t progresses, written, of;
    struct fleet_apply_result result;
    char message[TEXT_MAX];
};

static void on_progress(void *userdata, size_t written, size_t of)
{
    struct applied *applied = userdata;

    applied->progresses++;
    applied->written = written;
    applied->of = of;
}

static void on_applied(void *userdata, int code, const struct fleet_apply_result *result,
                       const struct baton_error *error)
{
    struct applied *applied = userdata;

    applied->count++;
    applied->code = code;
    applied->result = *result;
    (void)snprintf(applied->message, sizeof(applied->message), "%s", error->message);
}

static void begin(int number, const char *text, bool prunes, struct applied *applied)
{
    struct fleet_file file = {0};

    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", text, strlen(text), failure));
    ASSERT_OK(fleet_state_apply(peers[number].state, &file, prunes, on_progress, on_applied,
                                applied, failure));
    fleet_file_fini(&file);
}

static struct fleet_apply_result apply(int number, const char *text, bool prunes)
{
    struct applied applied = {0};

    begin(number, text, prunes, &applied);
    AWAIT(applied.count > 0);
    if (applied.code != BATON_OK) {
        fail_msg("%s", applied.message);
    }
    assert_int_equal(applied.count, 1);
    assert_int_equal(applied.written, applied.of);
    assert_int_equal(applied.progresses, applied.of);
    return applied.result;
}

static void check_result(struct fleet_apply_result result, size_t created, size_t changed,
                         size_t deleted, size_t same)
{
    assert_int_equal(result.created, created);
    assert_int_equal(result.changed, changed);
    assert_int_equal(result.deleted, deleted);
    assert_int_equal(result.same, same);
}

static struct fleet_apply_result compare(int number, const char *text, bool prunes)
{
    struct fleet_file file = {0};
    struct fleet_apply_result result = {0};

    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", text, strlen(text), failure));
    ASSERT_OK(fleet_state_compare(peers[number].state, &file, prunes, &result, failure));
    fleet_file_fini(&file);
    return result;
}

static void only_what_differs_is_written(void **state)
{
    stand_ready(0);
    check_result(compare(0, small, true), 6, 0, 0, 0);
    check_result(apply(0, small, false), 6, 0, 0, 0);
    check_result(apply(0, small, true), 0, 0, 0, 6);
    assert_int_equal(fleet_state_counters(peers[0].state)->writes, 6);
    check_result(compare(0, next, true), 1, 1, 2, 3);
    check_result(apply(0, next, false), 1, 1, 0, 3);
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_CAMERA), 2);
    check_result(apply(0, next, true), 0, 0, 2, 5);
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_CAMERA), 1);
    assert_null(fleet_state_object(peers[0].state, FLEET_SUBSCRIPTION, "d1;c2", NULL));
}

/* As another process hears it: what is referred to comes first, and goes last. */
static void nothing_ever_refers_to_what_is_not_there(void **state)
{
    enum fleet_kind last = FLEET_MODEL;

    stand_ready(0);
    (void)apply(0, small, false);
    for (size_t i = 0; i < peers[0].heard_count; i++) {
        assert_true(peers[0].heard[i].kind >= last);
        last = peers[0].heard[i].kind;
    }
    assert_int_equal(last, FLEET_SUBSCRIPTION);
    peers[0].heard_count = 0;
    (void)apply(0, "subscriptions: []\n", true);
    for (size_t i = 0; i < peers[0].heard_count; i++) {
        assert_true(peers[0].heard[i].kind <= last);
        last = peers[0].heard[i].kind;
    }
    assert_int_equal(last, FLEET_MODEL);
    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        assert_int_equal(fleet_state_count(peers[0].state, (enum fleet_kind)kind), 0);
    }
}

/* Each of them writes each key, and finds it changed by the others again and again. */
static void files_applied_at_once_at_several_processes_all_end(void **state)
{
    static const char *const texts[PEERS] = {small, next, small};
    struct applied applied[PEERS] = {0};

    for (int i = 0; i < PEERS; i++) {
        stand_ready(i);
    }
    for (int i = 0; i < PEERS; i++) {
        begin(i, texts[i], false, &applied[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        AWAIT(applied[i].count > 0);
        if (applied[i].code != BATON_OK) {
            fail_msg("%d: %s", i, applied[i].message);
        }
    }
    for (int i = 0; i < PEERS; i++) {
        AWAIT(fleet_state_count(peers[i].state, FLEET_CAMERA) == 2);
        AWAIT(fleet_state_count(peers[i].state, FLEET_DISPLAY) == 2);
        AWAIT(fleet_state_count(peers[i].state, FLEET_SUBSCRIPTION) == 2);
    }
}

static void a_foreign_key_stops_it_and_says_which(void **state)
{
    struct applied applied = {0};

    put_raw(0, "yard/camera/c2", "{");
    stand_ready(0);
    begin(0, small, false, &applied);
    AWAIT(applied.count > 0);
    assert_int_equal(applied.code, BATON_ECORRUPT);
    assert_non_null(strstr(applied.message, "yard/camera/c2"));
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_SUBSCRIPTION), 0);
    put_raw(0, "yard/camera/c2", NULL);
    AWAIT(!fleet_state_next_foreign(peers[0].state, NULL));
    check_result(apply(0, small, false), 6 - applied.result.created, 0, 0, applied.result.created);
}

static void a_state_that_closes_ends_it(void **state)
{
    struct applied applied = {0};

    stand_ready(0);
    begin(0, small, false, &applied);
    stand_close(0);
    assert_int_equal(applied.count, 1);
    assert_true(applied.code == BATON_ECANCELED || applied.code == BATON_OK);
}

static void a_state_that_is_not_loaded_applies_nothing(void **state)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};

    stand_open(0);
    assert_int_equal(
        fleet_state_apply(peers[0].state, &file, false, NULL, on_applied, NULL, &error),
        BATON_EBUSY);
}

/* ---- Many ------------------------------------------------------------------------------------ */

static char *many(size_t count)
{
    size_t room = 2 * count * LINE_MAX_BYTES + 1024, used = 0;
    char *text = malloc(room);

    assert_non_null(text);
    used +=
        (size_t)snprintf(text, room, "models: [{id: 1, name: m, url: \"s3://b/m\"}]\ncameras:\n");
    for (size_t i = 0; i < count / 4; i++) {
        used += (size_t)snprintf(text + used, room - used,
                                 "  - id: camera-%05zu\n    rtspUrl: rtsp://u:p@10.0.%zu.%zu/s\n",
                                 i, i / 250, i % 250);
    }
    used += (size_t)snprintf(text + used, room - used, "displays:\n");
    for (size_t i = 0; i < count / 8; i++) {
        used += (size_t)snprintf(text + used, room - used, "  - id: display-%05zu\n", i);
    }
    used += (size_t)snprintf(text + used, room - used, "subscriptions:\n");
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, room - used,
                                 "  - display: display-%05zu\n    camera: camera-%05zu\n"
                                 "    model: 1\n    cropX2: 1920\n",
                                 i % (count / 8), (i / 4 + i * 31) % (count / 4));
    }
    return text;
}

static double ms_since(instant begin_)
{
    return (double)instant_since(clock_now(), begin_).ns / 1e6;
}

/* The figures are printed and not judged. */
static void ten_thousand_subscriptions_are_read_applied_and_loaded(void **state)
{
    enum { MANY = 10000 };
    char *text = many(MANY);
    struct fleet_file file = {0};
    const struct fleet_object *cursor = NULL;
    instant start = clock_now();
    size_t walked = 0;

    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", text, strlen(text), failure));
    print_message("read: %.0f ms for %zu objects of %zu bytes\n", ms_since(start), file.count,
                  strlen(text));
    fleet_file_fini(&file);
    stand_ready(0);
    start = clock_now();
    (void)apply(0, text, true);
    print_message("applied: %.0f ms\n", ms_since(start));
    start = clock_now();
    check_result(compare(0, text, true), 0, 0, 0, MANY + MANY / 4 + MANY / 8 + 1);
    print_message("read again and compared: %.0f ms\n", ms_since(start));
    start = clock_now();
    stand_ready(1);
    print_message("loaded and indexed: %.0f ms\n", ms_since(start));
    start = clock_now();
    while ((cursor = fleet_state_next(peers[1].state, FLEET_SUBSCRIPTION, cursor))) {
        walked++;
    }
    print_message("walked: %.1f ms\n", ms_since(start));
    assert_int_equal(walked, MANY);
    free(text);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        STAND_TEST(only_what_differs_is_written),
        STAND_TEST(nothing_ever_refers_to_what_is_not_there),
        STAND_TEST(files_applied_at_once_at_several_processes_all_end),
        STAND_TEST(a_foreign_key_stops_it_and_says_which),
        STAND_TEST(a_state_that_closes_ends_it),
        STAND_TEST(a_state_that_is_not_loaded_applies_nothing),
        STAND_TEST(ten_thousand_subscriptions_are_read_applied_and_loaded),
    };
    int failed;

    if (count != 2 || !stand_choose(arguments[1])) {
        return 64;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    stand_end();
    return failed;
}
