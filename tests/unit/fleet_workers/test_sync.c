/* What a worker is sent and when its list counts as confirmed, by a clock of ours. */
#include "cmocka_all.h"
#include "fleet/workers/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 4 };

struct known {
    const char *display;
    struct session_id session;
    enum stage stage;
};

struct world {
    struct sync *sync;
    instant now;
    struct known displays[KNOWN_MAX]; /* those that ever had data */
    char cameras[256];                /* "+d;c " online, "-d;c " offline */
    char said[2048];
};

static void on_display(void *userdata, const char *display, struct session_id *ret_session,
                       enum stage *ret_stage)
{
    const struct world *world = userdata;

    for (size_t i = 0; i < KNOWN_MAX; i++) {
        const struct known *known = &world->displays[i];
        if (known->display != NULL && strcmp(known->display, display) == 0) {
            *ret_session = known->session;
            *ret_stage = known->stage;
        }
    }
}

static void on_camera(void *userdata, const char *identifier, bool is_online)
{
    struct world *world = userdata;
    size_t used = strlen(world->cameras);

    (void)snprintf(world->cameras + used, sizeof(world->cameras) - used, "%c%s ",
                   is_online ? '+' : '-', identifier);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    const struct sync_calls calls = {on_display, on_camera, world};

    world->sync = sync_new(&calls);
    world->now = (instant){SPAN_S(1000).ns};
    *state = world;
    return world->sync == NULL;
}

static int tear_down(void **state)
{
    struct world *world = *state;

    sync_free(world->sync);
    free(world);
    return 0;
}

static int print_session(char *at, size_t room, const struct sync_output *output)
{
    return output->session.is_set
               ? snprintf(at, room, "session %s %d, ", output->display, (int)output->session.id)
               : snprintf(at, room, "session %s -, ", output->display);
}

static int print_stage(char *at, size_t room, const struct sync_output *output)
{
    return snprintf(at, room, "stage %s %s, ", output->display,
                    output->stage != STAGE_NONE ? stage_name(output->stage) : "-");
}

/* All that is due now: "list, session d 7, session e -, stage d welcome, request, alarm, ". */
static const char *outputs(struct world *world)
{
    static const char *const words[] = {
        [SYNC_LIST] = "list, ", [SYNC_REQUEST] = "request, ", [SYNC_ALARM] = "alarm, "};
    size_t used = 0;

    world->said[0] = '\0';
    for (;;) {
        struct sync_output output = sync_next(world->sync, world->now);
        char *at = world->said + used;
        size_t room = sizeof(world->said) - used;

        if (output.type == SYNC_NOTHING) {
            return world->said;
        }
        used +=
            (size_t)(output.type == SYNC_SESSION ? print_session(at, room, &output)
                     : output.type == SYNC_STAGE ? print_stage(at, room, &output)
                                                 : snprintf(at, room, "%s", words[output.type]));
    }
}

#define expect(world, text) assert_string_equal(outputs(world), text)

static void pass_ms(struct world *world, int64_t ms)
{
    world->now = instant_add(world->now, SPAN_MS(ms));
}

/* Identifiers in one text, separated by blanks; all have the model 1. */
static void set_list(struct world *world, const char *identifiers, uint64_t revision, bool is_other)
{
    struct subscription list[8] = {{0}};
    char text[256];
    size_t count = 0;

    (void)snprintf(text, sizeof(text), "%s", identifiers);
    for (char *rest = text, *one; (one = strtok_r(rest, " ", &rest)) != NULL;) {
        list[count++] = (struct subscription){.identifier = one, .model_id = 1};
    }
    assert_int_equal(sync_set_list(world->sync, list, count, revision, is_other, world->now), 0);
}

static void report(struct world *world, const char *connections)
{
    char text[1024];
    json_t *message;

    (void)snprintf(text, sizeof(text), "{\"cameraConnections\":[%s]}", connections);
    message = json_loads(text, 0, NULL);
    assert_non_null(message);
    sync_report(world->sync, message, world->now);
    json_decref(message);
}

#define SHOWN(identifier, more)                                                                    \
    "{\"subscriptionIdentifier\":\"" identifier "\",\"modelId\":1,\"modelName\":\"M\"" more "}"
#define ONE(identifier) SHOWN(identifier, ",\"online\":true")

static void a_connection_is_sent_the_list_then_the_sessions_then_the_stages(void **state)
{
    struct world *world = *state;

    world->displays[0] = (struct known){"a", {true, 7}, STAGE_WELCOME};
    world->displays[1] = (struct known){"b", {true, 8}, STAGE_NONE};
    set_list(world, "a;1 a;2 b;1 c;1", 5, false);
    expect(world, "");
    sync_connected(world->sync, world->now);
    expect(world, "list, session a 7, session b 8, session c -, stage a welcome, stage b -, "
                  "stage c -, ");
    assert_true(sync_deadline(world->sync).ns == instant_add(world->now, SPAN_MS(250)).ns);
}

static void later_only_changes_are_sent(void **state)
{
    struct world *world = *state;

    world->displays[0] = (struct known){"a", {true, 7}, STAGE_WELCOME};
    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    sync_display_changed(world->sync, "a");
    sync_display_changed(world->sync, "z");
    expect(world, "");
    world->displays[0].stage = STAGE_CAR_FUELING;
    sync_display_changed(world->sync, "a");
    expect(world, "stage a car_fueling, ");
    world->displays[0].session.is_set = false;
    sync_display_changed(world->sync, "a");
    assert_true(sync_deadline(world->sync).ns <= world->now.ns);
    expect(world, "session a -, ");
}

static void a_new_connection_is_sent_everything_again(void **state)
{
    struct world *world = *state;

    world->displays[0] = (struct known){"a", {true, 7}, STAGE_NONE};
    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, ONE("a;1"));
    assert_true(sync_is_in_sync(world->sync));
    sync_disconnected(world->sync);
    assert_false(sync_is_in_sync(world->sync));
    world->displays[0].session.is_set = false; /* meanwhile */
    sync_display_changed(world->sync, "a");
    expect(world, "");
    sync_connected(world->sync, world->now);
    expect(world, "list, session a -, stage a -, ");
}

static void a_display_that_comes_with_a_list_is_sent_after_it(void **state)
{
    struct world *world = *state;

    world->displays[0] = (struct known){"a", {true, 7}, STAGE_NONE};
    world->displays[1] = (struct known){"b", {true, 8}, STAGE_NONE};
    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    set_list(world, "a;1 b;1", 6, false);
    expect(world, "list, session b 8, stage b -, ");
    set_list(world, "b;1", 7, false);
    expect(world, "list, ");
    set_list(world, "a;1 b;1", 8, false); /* the worker may have forgotten it */
    expect(world, "request, list, session a 7, stage a -, ");
}

static void the_session_of_a_deleted_display_is_not_that_of_the_next_one_of_its_name(void **state)
{
    struct world *world = *state;

    world->displays[0] = (struct known){"a", {true, 7}, STAGE_WELCOME};
    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    set_list(world, "", 6, false);
    (void)outputs(world);
    world->displays[0] = (struct known){0};
    set_list(world, "a;1", 7, false);
    expect(world, "request, list, session a -, stage a -, ");
}

static void only_a_report_of_exactly_the_list_confirms_it(void **state)
{
    static const char *const others[] = {
        "",
        ONE("a;1"),
        ONE("a;1") "," ONE("a;2") "," ONE("a;3"),
        ONE("a;1") "," ONE("a;1"),
        ONE("a;1") "," ONE("a;3"),
        ONE("a;1") ",{\"subscriptionIdentifier\":\"a;2\",\"modelId\":2,\"online\":true}",
        ONE("a;1") "," SHOWN("a;2", ",\"online\":true,\"cropX1\":5"),
    };
    struct world *world = *state;

    set_list(world, "a;1 a;2", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        report(world, others[i]);
        if (sync_is_in_sync(world->sync)) {
            fail_msg("in sync by %s", others[i]);
        }
    }
    report(world, ONE("a;2") "," SHOWN("a;1", ",\"online\":false,\"cropX1\":null"));
    assert_true(sync_is_in_sync(world->sync));
    assert_true(sync_revision(world->sync) == 5);
    assert_true(sync_deadline(world->sync).ns == INSTANT_NEVER.ns);
}

static void a_crop_must_be_right_where_it_is_reported(void **state)
{
    struct subscription one = {
        .identifier = "a;1",
        .model_id = 1,
        .crop = {.given = 1u << CROP_X1 | 1u << CROP_Y2, .at = {5, 0, 0, 9}}};
    struct world *world = *state;

    assert_int_equal(sync_set_list(world->sync, &one, 1, 5, false, world->now), 0);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, SHOWN("a;1", ",\"cropX1\":5,\"cropY2\":8"));
    assert_false(sync_is_in_sync(world->sync));
    report(world, SHOWN("a;1", ",\"cropX1\":5,\"cropY2\":9"));
    assert_true(sync_is_in_sync(world->sync));
    report(world, SHOWN("a;1", ""));
    assert_true(sync_is_in_sync(world->sync));
    one.crop.at[CROP_X1] = 6;
    assert_int_equal(sync_set_list(world->sync, &one, 1, 6, false, world->now), 0);
    expect(world, "list, ");
}

static void an_unconfirmed_list_is_requested_repeated_and_an_alarm_once(void **state)
{
    struct world *world = *state;
    instant begin = world->now;
    char all[512] = "";

    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    while (instant_since(world->now, begin).ns < SPAN_S(100).ns) {
        size_t used = strlen(all);
        (void)snprintf(all + used, sizeof(all) - used, "%g: %s",
                       (double)instant_since(world->now, begin).ns / 1e9, outputs(world));
        report(world, "");
        world->now = sync_deadline(world->sync);
    }
    assert_string_equal(all,
                        "0: list, session a -, stage a -, 0.25: request, 2: list, 2.25: request, "
                        "6: list, 6.25: request, 14: list, 14.25: request, "
                        "30: list, alarm, 30.25: request, 60: list, 60.25: request, "
                        "90: list, 90.25: request, ");
    assert_true(sync_is_alarmed(world->sync));
    report(world, ONE("a;1"));
    assert_true(sync_is_in_sync(world->sync));
    assert_false(sync_is_alarmed(world->sync));
}

/* In sync with {a;1}, then sent {a;1 a;2} and {a;1}. */
static void flap(struct world *world)
{
    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, ONE("a;1"));
    set_list(world, "a;1 a;2", 6, false);
    (void)outputs(world);
    set_list(world, "a;1", 7, false);
}

static void a_list_that_was_shown_before_is_confirmed_once_the_one_between_was_shown(void **state)
{
    struct world *world = *state;

    flap(world);
    expect(world, "request, list, ");
    report(world, ONE("a;1"));
    assert_false(sync_is_in_sync(world->sync));
    pass_ms(world, 250);
    expect(world, "request, ");
    for (unsigned i = 0; i < 7; i++) { /* of a worker that is late */
        pass_ms(world, 1000);
        report(world, ONE("a;1"));
        assert_false(sync_is_in_sync(world->sync));
    }
    report(world, ONE("a;1") "," ONE("a;2"));
    assert_false(sync_is_in_sync(world->sync));
    report(world, ONE("a;1"));
    assert_true(sync_is_in_sync(world->sync));
}

static void a_list_that_was_shown_before_is_confirmed_after_ten_seconds(void **state)
{
    struct world *world = *state;

    flap(world);
    (void)outputs(world);
    for (unsigned second = 0; second < 10; second++) {
        report(world, ONE("a;1"));
        assert_false(sync_is_in_sync(world->sync));
        pass_ms(world, 1000);
        (void)outputs(world); /* sent again, it is no other list */
    }
    report(world, ONE("a;1"));
    assert_true(sync_is_in_sync(world->sync));
    set_list(world, "a;1 a;3", 8, false); /* what was between is forgotten */
    expect(world, "list, ");
    report(world, ONE("a;1") "," ONE("a;3"));
    assert_true(sync_is_in_sync(world->sync));
}

static void lists_that_were_never_shown_before_are_confirmed_by_any_report(void **state)
{
    struct world *world = *state;

    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    set_list(world, "a;1 a;2", 6, false);
    expect(world, "list, ");
    set_list(world, "a;2 a;3", 7, false);
    expect(world, "list, ");
    set_list(world, "a;2 a;3", 8, true); /* the same, with another URL */
    expect(world, "list, ");
    report(world, ONE("a;3") "," ONE("a;2"));
    assert_false(sync_is_in_sync(world->sync)); /* it cannot show the URL */
    pass_ms(world, 250);
    expect(world, "request, ");
    report(world, ONE("a;3") "," ONE("a;2"));
    assert_true(sync_is_in_sync(world->sync));
}

/* A worker that takes any time below ten seconds for each list, and tells now and then. What it let
 * go by its list must be gone whenever it counts as in sync. */
static void a_late_worker_is_in_sync_only_when_nothing_is_under_way(void **state)
{
    static const char *const texts[] = {"", "a;1", "a;1 a;2", "a;2"};
    static const char *const shown[] = {"", ONE("a;1"), ONE("a;1") "," ONE("a;2"), ONE("a;2")};
    struct world *world = *state;
    unsigned queue[512], begin = 0, end = 0, has = 0, wanted = 0, confirmed = 0;
    instant due[512];

    srand(71);
    set_list(world, texts[0], 1, false);
    sync_connected(world->sync, world->now);
    for (unsigned turn = 0; turn < 20000; turn++) {
        struct sync_output output;

        pass_ms(world, rand() % 100);
        if (rand() % (turn / 1000 % 2 == 0 ? 5 : 100) == 0) {
            wanted = (unsigned)rand() % 4;
            set_list(world, texts[wanted], turn + 2, false);
        }
        while ((output = sync_next(world->sync, world->now)).type != SYNC_NOTHING) {
            if (output.type == SYNC_LIST) {
                instant at = instant_add(world->now, SPAN_MS(rand() % 9000));
                due[end % 512] = begin < end ? instant_max(at, due[(end - 1) % 512]) : at;
                queue[end++ % 512] = wanted;
                assert_true(end - begin <= 512);
            }
        }
        while (begin < end && !instant_before(world->now, due[begin % 512])) {
            has = queue[begin++ % 512];
        }
        if (rand() % 4 == 0) {
            report(world, shown[has]);
        }
        if (sync_is_in_sync(world->sync)) {
            confirmed++;
            assert_int_equal(has, wanted);
            for (unsigned i = begin; i < end; i++) {
                assert_int_equal(queue[i % 512], wanted); /* sent again */
            }
        }
    }
    assert_true(confirmed > 1000);
}

static void a_report_from_before_the_list_was_sent_confirms_nothing(void **state)
{
    struct world *world = *state;

    sync_connected(world->sync, world->now);
    report(world, "");
    set_list(world, "", 5, false);
    assert_false(sync_is_in_sync(world->sync));
    report(world, "");
    assert_false(sync_is_in_sync(world->sync));
    expect(world, "list, ");
    report(world, "");
    assert_true(sync_is_in_sync(world->sync));
}

static void a_list_is_sent_only_if_something_of_it_changed(void **state)
{
    struct world *world = *state;

    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, ONE("a;1"));
    set_list(world, "a;1", 6, false);
    expect(world, "");
    assert_true(sync_is_in_sync(world->sync));
    assert_true(sync_revision(world->sync) == 6);
    set_list(world, "a;1", 6, true); /* its camera's URL */
    expect(world, "list, ");
    assert_false(sync_is_in_sync(world->sync));
}

static void a_worker_that_loses_a_subscription_gets_the_list_again(void **state)
{
    struct world *world = *state;

    set_list(world, "a;1", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, ONE("a;1"));
    pass_ms(world, 60000);
    report(world, "");
    assert_false(sync_is_in_sync(world->sync));
    expect(world, "list, ");
    report(world, "");
    expect(world, ""); /* not with every report */
    pass_ms(world, 2000);
    expect(world, "list, ");
}

static void cameras_are_told_from_the_second_report_on(void **state)
{
    struct world *world = *state;

    set_list(world, "a;1 a;2", 5, false);
    sync_connected(world->sync, world->now);
    (void)outputs(world);
    report(world, ONE("a;1"));
    assert_string_equal(world->cameras, "");
    report(world, ONE("a;1") "," ONE("a;2"));
    assert_string_equal(world->cameras, "+a;2 ");
    report(world, ONE("a;1") "," SHOWN("a;2", ",\"online\":false"));
    assert_string_equal(world->cameras, "+a;2 -a;2 ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_connection_is_sent_the_list_then_the_sessions_then_the_stages),
        TEST(later_only_changes_are_sent),
        TEST(a_new_connection_is_sent_everything_again),
        TEST(a_display_that_comes_with_a_list_is_sent_after_it),
        TEST(the_session_of_a_deleted_display_is_not_that_of_the_next_one_of_its_name),
        TEST(only_a_report_of_exactly_the_list_confirms_it),
        TEST(a_crop_must_be_right_where_it_is_reported),
        TEST(an_unconfirmed_list_is_requested_repeated_and_an_alarm_once),
        TEST(a_list_that_was_shown_before_is_confirmed_once_the_one_between_was_shown),
        TEST(a_list_that_was_shown_before_is_confirmed_after_ten_seconds),
        TEST(lists_that_were_never_shown_before_are_confirmed_by_any_report),
        TEST(a_late_worker_is_in_sync_only_when_nothing_is_under_way),
        TEST(a_report_from_before_the_list_was_sent_confirms_nothing),
        TEST(a_list_is_sent_only_if_something_of_it_changed),
        TEST(a_worker_that_loses_a_subscription_gets_the_list_again),
        TEST(cameras_are_told_from_the_second_report_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
