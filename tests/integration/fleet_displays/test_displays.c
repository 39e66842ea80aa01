/* Patches and sessions by several processes at once: none is lost, and all see the same. */
#include "fleet/displays/displays.h"
#include "integration/fleet_state/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATCHES = 40, DISPLAYS = 4, MOVES = 12 };

static struct displays *displays[PEERS];
static size_t ended, failed, events;
static char failure_text[BATON_ERROR_MESSAGE_MAX];

static void on_end(void *userdata, int code, const struct baton_error *error)
{
    ended++;
    if (code != BATON_OK) {
        failed++;
        (void)snprintf(failure_text, sizeof(failure_text), "%s", error->message);
    }
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    events++;
    json_decref(fields);
}

static void open_displays(void)
{
    for (int i = 0; i < PEERS; i++) {
        const struct displays_config config = {.state = peers[i].state, .on_event = on_event};

        AWAIT(fleet_state_count(peers[i].state, FLEET_DISPLAY) == DISPLAYS);
        ASSERT_OK(displays_open(&displays[i], &config, failure));
    }
}

/* All peers, with displays d0 … that all know. */
static void open_all(void)
{
    char text[32];

    ended = failed = events = 0;
    for (int i = 0; i < PEERS; i++) {
        stand_ready(i);
    }
    for (int i = 0; i < DISPLAYS; i++) {
        (void)snprintf(text, sizeof(text), "{\"id\":\"d%d\"}", i);
        assert_int_equal(put(0, FLEET_DISPLAY, text, 0, NULL), BATON_OK);
    }
    open_displays();
}

static void close_all(void)
{
    for (int i = 0; i < PEERS; i++) {
        displays_close(displays[i]);
        displays[i] = NULL;
    }
}

static int tear_down(void **state)
{
    close_all();
    return stand_tear_down(state);
}

static void await_ends(size_t count)
{
    AWAIT(ended == count);
    if (failed > 0) {
        fail_msg("%zu of %zu failed: %s", failed, count, failure_text);
    }
}

static const json_t *field(int peer, const char *display, const char *name)
{
    return json_object_get(fleet_state_data(peers[peer].state, display, NULL), name);
}

static void concurrent_patches_of_several_processes_lose_nothing(void **state)
{
    uint64_t conflicts = 0;

    open_all();
    for (int n = 0; n < PATCHES; n++) {
        for (int peer = 0; peer < PEERS; peer++) {
            json_t *patch = json_pack("{s:{s:o}, s:{s:i}}", "fuelPump", "", json_null(),
                                      "weatherData", "latest", n);
            char name[32];

            (void)snprintf(name, sizeof(name), "p%d.%d", peer, n);
            assert_int_equal(
                json_object_set_new(json_object_get(patch, "fuelPump"), name, json_integer(n)), 0);
            ASSERT_OK(displays_patch(displays[peer], "d0", patch, on_end, NULL, failure));
            json_decref(patch);
        }
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    await_ends((size_t)PATCHES * PEERS);
    for (int peer = 0; peer < PEERS; peer++) {
        AWAIT(json_object_size(field(peer, "d0", "fuelPump")) == PATCHES * PEERS + 1);
        conflicts += displays_counters(displays[peer])->conflicts;
    }
    print_message("%llu conflicts\n", (unsigned long long)conflicts);
}

static size_t having(int peer, int64_t session)
{
    size_t count = 0;
    char id[8];

    for (int i = 0; i < DISPLAYS; i++) {
        (void)snprintf(id, sizeof(id), "d%d", i);
        count += json_integer_value(field(peer, id, "sessionId")) == session;
    }
    return count;
}

static void a_session_that_moves_from_process_to_process_is_at_one_display(void **state)
{
    char id[8] = "";

    open_all();
    for (int n = 0; n < MOVES; n++) {
        (void)snprintf(id, sizeof(id), "d%d", n % DISPLAYS);
        ASSERT_OK(displays_set_session(displays[n % PEERS], id,
                                       (struct session_id){.is_set = true, .id = 77}, on_end, NULL,
                                       failure));
        await_ends((size_t)n + 1);
        for (int peer = 0; peer < PEERS; peer++) {
            AWAIT(displays_of_session(displays[peer], 77) &&
                  strcmp(displays_of_session(displays[peer], 77), id) == 0);
        }
    }
    for (int peer = 0; peer < PEERS; peer++) {
        AWAIT(having(peer, 77) == 1);
    }
}

static void every_process_sees_sessions_and_takes_patches_of_them(void **state)
{
    json_t *patch = json_pack("{s:{s:s}}", "currentCar", "carModel", "Civic");

    open_all();
    ASSERT_OK(displays_set_session(displays[0], "d1",
                                   (struct session_id){.is_set = true, .id = 12345}, on_end, NULL,
                                   failure));
    await_ends(1);
    AWAIT(displays_of_session(displays[1], 12345) && displays_of_session(displays[2], 12345));
    ASSERT_OK(displays_patch_session(displays[2], 12345, patch, on_end, NULL, failure));
    await_ends(2);
    AWAIT(strcmp(json_string_value(json_object_get(field(0, "d1", "currentCar"), "carModel")) ?: "",
                 "Civic") == 0);
    AWAIT(events == PEERS);
    json_decref(patch);
}

static void the_data_of_a_deleted_display_is_deleted(void **state)
{
    struct written written = {0};
    uint64_t revision;

    open_all();
    ASSERT_OK(displays_set_session(displays[1], "d2", (struct session_id){.is_set = true, .id = 5},
                                   on_end, NULL, failure));
    await_ends(1);
    assert_non_null(fleet_state_object(peers[0].state, FLEET_DISPLAY, "d2", &revision));
    ASSERT_OK(fleet_state_delete(peers[0].state, FLEET_DISPLAY, "d2", revision, on_written,
                                 &written, failure));
    AWAIT(written.count == 1);
    for (int peer = 0; peer < PEERS; peer++) {
        AWAIT(!fleet_state_data(peers[peer].state, "d2", NULL));
        AWAIT(!displays_of_session(displays[peer], 5));
    }
}

static void put_session(const char *key)
{
    struct written written = {0};
    json_t *data = json_pack("{s:i}", "sessionId", 5);

    ASSERT_OK(fleet_state_put_json(peers[0].state, key, data, PROVIDER_ANY_REVISION, on_written,
                                   &written, failure));
    AWAIT(written.count == 1);
    assert_int_equal(written.code, BATON_OK);
    json_decref(data);
}

static void await_none_of(const char *display)
{
    for (int peer = 0; peer < PEERS; peer++) {
        AWAIT(fleet_state_data(peers[peer].state, display, NULL) == NULL);
    }
}

/* As of a process that did not know of the deletion yet, or that died after it. */
static void data_that_is_written_behind_the_deletion_is_deleted(void **state)
{
    open_all();
    close_all();
    put_session("data/before");
    open_displays();
    await_none_of("before");
    put_session("data/after");
    await_none_of("after");
    put_session("data/d2");
    AWAIT(displays_of_session(displays[1], 5) != NULL);
}

static void a_state_that_closes_ends_what_is_being_written(void **state)
{
    json_t *patch = json_pack("{s:s}", "qrCode", "x");

    open_all();
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(displays_patch(displays[0], "d0", patch, on_end, NULL, failure));
    }
    displays_close(displays[0]);
    displays[0] = NULL;
    stand_close(0);
    assert_int_equal(ended, 3);
    json_decref(patch);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, stand_set_up, tear_down)

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        TEST(concurrent_patches_of_several_processes_lose_nothing),
        TEST(a_session_that_moves_from_process_to_process_is_at_one_display),
        TEST(every_process_sees_sessions_and_takes_patches_of_them),
        TEST(the_data_of_a_deleted_display_is_deleted),
        TEST(data_that_is_written_behind_the_deletion_is_deleted),
        TEST(a_state_that_closes_ends_what_is_being_written),
    };
    int result;

    if (count != 2 || !stand_choose(arguments[1])) {
        return 64;
    }
    result = cmocka_run_group_tests(tests, NULL, NULL);
    stand_end();
    return result;
}
