/* The live state of workers, from what is published on the channels of a provider. */
#include "cmocka_all.h"
#include "fleet/workers/table.h"
#include "member/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
    uv_loop_t loop;
    struct member *member;
    struct worker_table *table;
    struct worker_observer observer;
    char told[512]; /* the latest changes and events */
};

static void note(struct world *world, const char *word)
{
    size_t used = strlen(world->told);

    (void)snprintf(world->told + used, sizeof(world->told) - used, "%s ", word);
}

static void on_change(struct worker_observer *observer, const struct worker_live *worker,
                      enum worker_change change)
{
    static const char *const words[] = {
        [WORKER_CHANGED_ONLINE] = "online", [WORKER_CHANGED_OFFLINE] = "offline",
        [WORKER_CHANGED_OWNER] = "owner",   [WORKER_CHANGED_SYNC] = "sync",
        [WORKER_CHANGED_REPORT] = "report",
    };
    struct world *world = (struct world *)((char *)observer - offsetof(struct world, observer));

    assert_non_null(worker->id);
    note(world, words[change]);
}

static void on_event(struct worker_observer *observer, const char *name, const json_t *fields)
{
    struct world *world = (struct world *)((char *)observer - offsetof(struct world, observer));

    note(world, name);
    note(world, json_string_value(json_object_get(fields, "worker")));
}

static void open_table(struct world *world, span silence)
{
    const struct worker_table_config config = {.member = world->member, .silence = silence};

    assert_int_equal(worker_table_open(&world->table, &config, NULL), 0);
    world->observer = (struct worker_observer){.on_change = on_change, .on_event = on_event};
    worker_table_observe(world->table, &world->observer);
}

static int set_up(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    struct provider_config config = {.loop = &world->loop, .url = "memory:table", .node = "a"};

    (void)uv_loop_init(&world->loop);
    assert_int_equal(member_open(&world->member, &config, NULL), 0);
    open_table(world, SPAN_S(15));
    *state = world;
    return 0;
}

static void on_closed(void *userdata)
{
}

static int tear_down(void **state)
{
    struct world *world = *state;

    worker_table_close(world->table);
    member_close(world->member, on_closed, NULL);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
    member_free(world->member);
    assert_int_equal(uv_loop_close(&world->loop), 0);
    free(world);
    return 0;
}

static void on_published(void *userdata, int code, const struct baton_error *error)
{
    assert_int_equal(code, 0);
}

/* Publishes, and lets the loop deliver it: what was told by that. */
static const char *say_bytes(struct world *world, const char *channel, const void *data,
                             size_t bytes)
{
    world->told[0] = '\0';
    assert_int_equal(store_publish(world->member, channel, data, bytes, on_published, NULL, NULL),
                     0);
    for (int turn = 0; turn < 3; turn++) {
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    return world->told;
}

static const char *say(struct world *world, const char *text)
{
    return say_bytes(world, WORKER_RESPONSES, text, strlen(text));
}

#define REPORT(worker, process, epoch, more)                                                       \
    "{\"type\":\"stateReport\",\"worker\":\"" worker "\",\"process\":\"" process                   \
    "\",\"epoch\":" epoch ",\"online\":true" more ",\"cpuUsage\":12.5,\"memoryUsage\":1,"          \
    "\"cameraConnections\":[]}"
#define OFFLINE(worker, process, epoch)                                                            \
    "{\"type\":\"workerOffline\",\"worker\":\"" worker "\",\"process\":\"" process                 \
    "\",\"epoch\":" epoch ",\"reason\":\"refused\"}"

static void a_report_makes_a_worker_known(void **state)
{
    struct world *world = *state;
    const struct worker_live *live;

    assert_null(worker_table_find(world->table, "w1"));
    assert_string_equal(say(world, REPORT("w1", "a", "7",
                                          ",\"inSync\":true,\"revision\":5,"
                                          "\"detections\":3,\"stalls\":1")),
                        "online owner sync report ");
    live = worker_table_find(world->table, "w1");
    assert_non_null(live);
    assert_string_equal(live->id, "w1");
    assert_string_equal(live->process, "a");
    assert_true(live->is_online && live->is_in_sync && live->synced_revision == 5);
    assert_true(live->epoch == 7 && live->detections == 3 && live->stalls == 1);
    assert_true(live->usage.cpu == 12.5 && live->report != NULL);
    assert_string_equal(say(world, REPORT("w1", "a", "7", ",\"inSync\":true,\"revision\":5")),
                        "report ");
}

static void an_owner_says_that_a_worker_is_offline(void **state)
{
    struct world *world = *state;

    assert_string_equal(say(world, OFFLINE("w1", "a", "7")), "owner ");
    (void)say(world, REPORT("w1", "a", "7", ",\"inSync\":true,\"revision\":5"));
    assert_string_equal(say(world, OFFLINE("w1", "a", "7")), "offline ");
    assert_true(worker_table_find(world->table, "w1")->since.ns ==
                worker_table_find(world->table, "w1")->heard.ns);
    assert_false(worker_table_find(world->table, "w1")->is_online);
    assert_false(worker_table_find(world->table, "w1")->is_in_sync);
    assert_string_equal(say(world, REPORT("w1", "a", "7", "")), "online report ");
}

static void what_an_owner_of_an_earlier_epoch_says_is_ignored(void **state)
{
    struct world *world = *state;

    (void)say(world, REPORT("w1", "a", "7", ""));
    assert_string_equal(say(world, REPORT("w1", "b", "9", "")), "owner report ");
    assert_string_equal(say(world, OFFLINE("w1", "a", "7")), "");
    assert_true(worker_table_find(world->table, "w1")->is_online);
    assert_string_equal(worker_table_find(world->table, "w1")->process, "b");
}

static void lines_are_read_one_by_one_and_detections_are_skipped(void **state)
{
    struct world *world = *state;

    assert_string_equal(
        say(world,
            "{\"key\":\"0123456789abcdef\", no JSON at all\n" REPORT(
                "w1", "a", "7", "") "\n"
                                    "\n{\"type\":\"imageDetection\"}\n" REPORT("w2", "a", "8", "")),
        "online owner report online owner report ");
}

#define TOO_LONG                                                                                   \
    "{\"type\":\"workerOffline\",\"process\":\"a\",\"worker\":\""                                  \
    "1234567890123456789012345678901234567890123456789\"}"

static void what_is_no_word_of_an_owner_changes_nothing(void **state)
{
    static const char *const texts[] = {
        "x",
        "{",
        "[]",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"stateReport\"}",
        "{\"type\":\"stateReport\",\"worker\":\"w1\"}",
        "{\"type\":\"stateReport\",\"worker\":\"w1\",\"process\":\"a\",\"epoch\":-1}",
        "{\"type\":\"stateReport\",\"worker\":\"w1\",\"process\":\"a\",\"inSync\":7}",
    };
    struct world *world = *state;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_string_equal(say(world, texts[i]), "");
    }
    assert_string_equal(say(world, TOO_LONG), "");
    assert_string_equal(say_bytes(world, WORKER_RESPONSES, "\0\xff\n\n\0", 5), "");
    assert_null(worker_table_find(world->table, "w1"));
}

static void events_of_all_processes_are_told(void **state)
{
    static const char text[] = "{\"type\":\"camera-offline\",\"worker\":\"w1\",\"process\":\"b\"}";
    struct world *world = *state;

    assert_string_equal(say_bytes(world, WORKER_EVENTS, text, sizeof(text) - 1),
                        "camera-offline w1 ");
}

static void a_worker_that_nobody_mentions_any_more_is_offline(void **state)
{
    struct world *world = *state;

    worker_table_close(world->table);
    open_table(world, SPAN_MS(1));
    (void)say(world, REPORT("w1", "a", "7", ""));
    while (strstr(world->told, "offline") == NULL) {
        (void)uv_run(&world->loop, UV_RUN_ONCE);
    }
    assert_false(worker_table_find(world->table, "w1")->is_online);
}

/* Another program may have published it; or the group was made anew, and its epochs begin again. */
static void an_epoch_of_which_nobody_speaks_any_more_is_forgotten(void **state)
{
    struct world *world = *state;
    const struct worker_live *live;

    worker_table_close(world->table);
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    open_table(world, SPAN_MS(1));
    (void)say(world, OFFLINE("w1", "a", "4611686018427387904"));
    live = worker_table_find(world->table, "w1");
    while (instant_since(clock_now(), live->heard).ns < SPAN_MS(1).ns) {
    }
    assert_string_equal(say(world, REPORT("w1", "b", "7", "")), "online owner report ");
    assert_true(live->epoch == 7);
    assert_string_equal(live->process, "b");
}

static void the_table_is_bounded_and_forgets_the_offline_first(void **state)
{
    struct world *world = *state;

    (void)say(world, REPORT("kept", "a", "7", ""));
    for (int i = 0; i < WORKER_TABLE_MAX + 1; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), OFFLINE("w%d", "a", "7"), i);
        assert_int_equal(store_publish(world->member, WORKER_RESPONSES, text, strlen(text),
                                       on_published, NULL, NULL),
                         0);
        (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    (void)say(world, "{}");
    assert_non_null(worker_table_find(world->table, "kept"));
    assert_null(worker_table_find(world->table, "w0"));
    assert_non_null(worker_table_find(world->table, "w4096"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_report_makes_a_worker_known),
        TEST(an_owner_says_that_a_worker_is_offline),
        TEST(what_an_owner_of_an_earlier_epoch_says_is_ignored),
        TEST(lines_are_read_one_by_one_and_detections_are_skipped),
        TEST(what_is_no_word_of_an_owner_changes_nothing),
        TEST(events_of_all_processes_are_told),
        TEST(a_worker_that_nobody_mentions_any_more_is_offline),
        TEST(an_epoch_of_which_nobody_speaks_any_more_is_forgotten),
        TEST(the_table_is_bounded_and_forgets_the_offline_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
