/* The cache of one fleet at several processes, on each provider. */
#include "stand.h"

#include <stdio.h>
#include <string.h>

#define MODEL   "{\"id\":1,\"name\":\"m\",\"url\":\"http://h/m\"}"
#define CAMERA  "{\"id\":\"c\",\"rtspUrl\":\"rtsp://u:c4nary@h/s\"}"
#define DISPLAY "{\"id\":\"d\"}"
#define PAIR    "{\"id\":\"d;c\",\"model\":1}"

static void a_state_that_opens_later_has_all_and_in_order(void **state)
{
    const struct fleet_object *object;
    uint64_t revision = 0, seen = 0;

    stand_ready(0);
    assert_int_equal(put(0, FLEET_DISPLAY, "{\"id\":\"d2\"}", 0, NULL), BATON_OK);
    assert_int_equal(put(0, FLEET_DISPLAY, "{\"id\":\"d1\",\"name\":\"Pump\"}", 0, &revision),
                     BATON_OK);
    assert_int_equal(put(0, FLEET_CAMERA, CAMERA, 0, NULL), BATON_OK);
    stand_ready(1);
    assert_int_equal(peers[1].heard_count, 0); /* what was loaded is no change */
    assert_int_equal(fleet_state_count(peers[1].state, FLEET_DISPLAY), 2);
    object = fleet_state_next(peers[1].state, FLEET_DISPLAY, NULL);
    assert_string_equal(object->id, "d1");
    assert_string_equal(object->display.name, "Pump");
    object = fleet_state_next(peers[1].state, FLEET_DISPLAY, object);
    assert_string_equal(object->id, "d2");
    assert_null(fleet_state_next(peers[1].state, FLEET_DISPLAY, object));
    assert_non_null(fleet_state_object(peers[1].state, FLEET_DISPLAY, "d1", &seen));
    assert_int_equal(seen, revision);
    object = fleet_state_object(peers[1].state, FLEET_CAMERA, "c", NULL);
    assert_string_equal(object->camera.rtsp_url, "rtsp://u:c4nary@h/s");
}

static void a_change_is_told_to_all_with_what_was_before(void **state)
{
    struct written deleted = {0};
    uint64_t revision = 0;

    stand_ready(0);
    stand_ready(1);
    assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, 0, &revision), BATON_OK);
    AWAIT(heard_of(1, FLEET_CHANGED_OBJECT, "d"));
    assert_false(heard_of(1, FLEET_CHANGED_OBJECT, "d")->has_before);
    assert_int_equal(heard_of(1, FLEET_CHANGED_OBJECT, "d")->kind, FLEET_DISPLAY);
    peers[1].heard_count = peers[0].heard_count = 0;
    assert_int_equal(put(0, FLEET_DISPLAY, "{\"id\":\"d\",\"name\":\"n\"}", revision, &revision),
                     BATON_OK);
    assert_int_equal(peers[0].heard_count, 1); /* once, although its feed brings it too */
    AWAIT(heard_of(1, FLEET_CHANGED_OBJECT, "d"));
    assert_true(heard_of(1, FLEET_CHANGED_OBJECT, "d")->has_before);
    peers[1].heard_count = 0;
    ASSERT_OK(fleet_state_delete(peers[0].state, FLEET_DISPLAY, "d", revision, on_written, &deleted,
                                 failure));
    AWAIT(deleted.count > 0);
    assert_int_equal(deleted.code, BATON_OK);
    AWAIT(heard_of(1, FLEET_CHANGED_OBJECT, "d"));
    assert_true(heard_of(1, FLEET_CHANGED_OBJECT, "d")->has_before);
    assert_null(fleet_state_object(peers[1].state, FLEET_DISPLAY, "d", NULL));
    assert_int_equal(peers[0].heard_count, 2);
}

static bool was_there;

static void look(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    uint64_t seen = 0;

    was_there = fleet_state_object(peers[0].state, FLEET_DISPLAY, "d", &seen) && seen == revision;
    on_written(userdata, code, revision, error);
}

static void an_own_write_can_be_read_when_it_is_done(void **state)
{
    struct fleet_object *object = object_of(FLEET_DISPLAY, DISPLAY);
    struct written written = {0};

    stand_ready(0);
    ASSERT_OK(fleet_state_put(peers[0].state, object, 0, look, &written, failure));
    AWAIT(written.count > 0);
    assert_int_equal(written.code, BATON_OK);
    assert_true(was_there);
    fleet_object_unref(object);
}

/* The feed of the first peer may be late: the conflict itself brings what is there. */
static void after_a_conflict_the_cache_has_what_is_there(void **state)
{
    const struct fleet_object *object;
    uint64_t revision = 0, seen = 0;

    stand_ready(0);
    stand_ready(1);
    assert_int_equal(put(1, FLEET_DISPLAY, "{\"id\":\"d\",\"name\":\"theirs\"}", 0, NULL),
                     BATON_OK);
    assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, 0, &revision), BATON_ECONFLICT);
    object = fleet_state_object(peers[0].state, FLEET_DISPLAY, "d", &seen);
    assert_non_null(object);
    assert_string_equal(object->display.name, "theirs");
    assert_int_equal(seen, revision);
    assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, seen, NULL), BATON_OK);
    assert_int_equal(fleet_state_counters(peers[0].state)->conflicts, 1);
}

static void what_is_none_of_ours_is_told_and_never_overwritten(void **state)
{
    static const char *const values[] = {"{\"id\":\"c\",\"rtspUrl\":\"http://u:c4nary@h\"}",
                                         "{\"id\":\"c\",\"rtspUrl\":\"rtsp://u:c4na",
                                         "[\"c4nary\"]", "", "{\"id\":\"other\"}"};
    struct fleet_object *camera = object_of(FLEET_CAMERA, CAMERA);
    struct baton_error error = {0};

    stand_ready(0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        peers[0].heard_count = 0;
        put_raw(1, "yard/camera/c", values[i]);
        AWAIT(heard_of(0, FLEET_FOREIGN, "camera/c"));
        assert_null(strstr(heard_of(0, FLEET_FOREIGN, "camera/c")->reason, "c4na"));
        assert_null(fleet_state_object(peers[0].state, FLEET_CAMERA, "c", NULL));
        assert_int_equal(fleet_state_counters(peers[0].state)->foreign, i + 1);
        assert_int_equal(fleet_state_put(peers[0].state, camera, PROVIDER_ANY_REVISION, on_written,
                                         NULL, &error),
                         BATON_ECORRUPT);
        assert_non_null(strstr(error.message, "baton state delete yard/camera/c"));
        assert_null(strstr(error.message, "c4na"));
    }
    stand_ready(1); /* also while it loads */
    assert_non_null(heard_of(1, FLEET_FOREIGN, "camera/c"));
    assert_string_equal(fleet_state_next_foreign(peers[1].state, NULL)->key, "camera/c");
    put_raw(1, "yard/camera/c", NULL);
    AWAIT(!fleet_state_next_foreign(peers[0].state, NULL));
    assert_int_equal(put(0, FLEET_CAMERA, CAMERA, 0, NULL), BATON_OK);
    fleet_object_unref(camera);
}

static void a_good_value_that_is_torn_later_is_gone(void **state)
{
    stand_ready(0);
    assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, 0, NULL), BATON_OK);
    peers[0].heard_count = 0;
    put_raw(0, "yard/display/d", "{");
    AWAIT(heard_of(0, FLEET_FOREIGN, "display/d"));
    assert_true(heard_of(0, FLEET_CHANGED_OBJECT, "d")->has_before);
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_DISPLAY), 0);
}

static void keys_and_fields_of_a_newer_version_do_no_harm(void **state)
{
    put_raw(0, "yard/display/d", "{\"id\":\"d\",\"colour\":\"blue\"}");
    put_raw(0, "yard/fridge/f", "{}");
    put_raw(0, "yardstick/display/e", "{\"id\":\"e\"}"); /* of another fleet */
    stand_ready(0);
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_DISPLAY), 1);
    assert_non_null(heard_of(0, FLEET_FOREIGN, "fridge/f"));
    assert_int_equal(fleet_state_counters(peers[0].state)->foreign, 1);
}

/* ---- Who uses what --------------------------------------------------------------------------- */

static size_t used_count;

static void count_used(void *userdata, const struct fleet_object *subscription)
{
    assert_int_equal(subscription->kind, FLEET_SUBSCRIPTION);
    used_count++;
}

static size_t count_of(enum fleet_kind kind, const char *id)
{
    used_count = 0;
    fleet_state_each_of(peers[0].state, kind, id, count_used, NULL);
    return used_count;
}

static void an_index_says_who_uses_what(void **state)
{
    struct fleet_object *pair = object_of(FLEET_SUBSCRIPTION, PAIR);
    struct baton_error error = {0};
    const char *by = NULL;
    uint64_t revision = 0;

    stand_ready(0);
    assert_int_equal(fleet_state_check_references(peers[0].state, pair, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "display: there is no display \"d\""));
    assert_int_equal(put(0, FLEET_SUBSCRIPTION, PAIR, 0, &revision), BATON_OK);
    assert_int_equal(put(0, FLEET_SUBSCRIPTION, "{\"id\":\"d;b\",\"model\":1}", 0, NULL), BATON_OK);
    assert_int_equal(count_of(FLEET_DISPLAY, "d"), 2);
    assert_int_equal(count_of(FLEET_CAMERA, "c"), 1);
    assert_int_equal(count_of(FLEET_MODEL, "1"), 2);
    assert_int_equal(put(0, FLEET_SUBSCRIPTION, "{\"id\":\"d;c\",\"model\":2}", revision, NULL),
                     BATON_OK);
    assert_int_equal(count_of(FLEET_MODEL, "1"), 1);
    assert_int_equal(count_of(FLEET_MODEL, "2"), 1);
    assert_true(fleet_state_is_used(peers[0].state, FLEET_CAMERA, "c", &by));
    assert_string_equal(by, "d;c");
    assert_false(fleet_state_is_used(peers[0].state, FLEET_CAMERA, "d", &by));
    assert_int_equal(put(0, FLEET_MODEL, MODEL, 0, NULL), BATON_OK);
    assert_int_equal(put(0, FLEET_CAMERA, CAMERA, 0, NULL), BATON_OK);
    assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, 0, NULL), BATON_OK);
    assert_int_equal(fleet_state_check_references(peers[0].state, pair, &error), BATON_OK);
    fleet_object_unref(pair);
}

static int put_json(int number, const char *key, const char *text, uint64_t revision,
                    struct baton_error *error)
{
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    struct written written = {0};
    int code =
        fleet_state_put_json(peers[number].state, key, json, revision, on_written, &written, error);

    json_decref(json);
    if (code == BATON_OK) {
        AWAIT(written.count > 0);
        code = written.code;
    }
    return code;
}

static void workers_and_what_they_have_are_read_too(void **state)
{
    struct baton_error error = {0};
    const struct fleet_worker *worker;
    const struct fleet_assigned *assigned;

    stand_ready(0);
    stand_ready(1);
    assert_int_equal(put_json(0, "worker/w1",
                              "{\"url\":\"ws://h:1\",\"source\":\"static\",\"labels\":\"gpu\","
                              "\"maxSubscriptions\":5,\"draining\":true}",
                              0, &error),
                     BATON_OK);
    assert_int_equal(put_json(0, "assigned/w1",
                              "{\"epoch\":7,\"subscriptions\":[\"d;c\"],\"leaving\":[\"d;b\"]}", 0,
                              &error),
                     BATON_OK);
    assert_int_equal(put_json(0, "owners", "{\"epoch\":7,\"workers\":{}}", 0, &error), BATON_OK);
    assert_int_equal(put_json(0, "data/d", "{\"sessionId\":5}", 0, &error), BATON_OK);
    AWAIT(fleet_state_data(peers[1].state, "d", NULL));
    worker = fleet_state_next_worker(peers[1].state, NULL);
    assert_string_equal(worker->id, "w1");
    assert_string_equal(worker->url, "ws://h:1");
    assert_string_equal(worker->labels, "gpu");
    assert_int_equal(worker->subscriptions_max, 5);
    assert_true(worker->is_draining);
    assert_false(worker->is_cordoned);
    assigned = fleet_state_assigned(peers[1].state, "w1");
    assert_int_equal(assigned->epoch, 7);
    assert_string_equal(assigned->subscriptions[0], "d;c");
    assert_string_equal(assigned->leaving[0], "d;b");
    assert_string_equal(fleet_state_worker_of(peers[1].state, "d;c"), "w1");
    assert_null(fleet_state_worker_of(peers[1].state, "d;b"));
    assert_non_null(fleet_state_owners(peers[1].state, NULL));
    assert_string_equal(fleet_state_next_data(peers[1].state, ""), "d");
    assert_int_equal(put_json(0, "assigned/w1", NULL, PROVIDER_ANY_REVISION, &error), BATON_OK);
    AWAIT(!fleet_state_worker_of(peers[1].state, "d;c"));
}

static void a_move_says_which_subscription_goes_where(void **state)
{
    struct baton_error error = {0};
    const struct fleet_move *move;

    stand_ready(0);
    stand_ready(1);
    assert_int_equal(put_json(0, "move/d;c", "{\"to\":\"w 1\"}", 0, &error), BATON_EINVAL);
    assert_int_equal(put_json(0, "move/d;c", "{\"to\":\"w1\"}", 0, &error), BATON_OK);
    AWAIT(heard_of(1, FLEET_CHANGED_MOVE, "d;c"));
    move = fleet_state_next_move(peers[1].state, NULL);
    assert_string_equal(move->subscription, "d;c");
    assert_string_equal(move->to, "w1");
    assert_int_equal(put_json(0, "move/d;c", NULL, move->revision, &error), BATON_OK);
    AWAIT(!fleet_state_next_move(peers[1].state, NULL));
}

static void what_the_master_makes_of_the_others_is_made_anew(void **state)
{
    static const char *const keys[] = {"owners", "unplaced", "assigned/w1"};
    struct baton_error error = {0};
    char full[64];

    stand_ready(0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void)snprintf(full, sizeof(full), "yard/%s", keys[i]);
        put_raw(1, full, "no JSON");
        AWAIT(heard_of(0, FLEET_FOREIGN, keys[i]));
        assert_int_equal(put_json(0, keys[i], "{\"epoch\":1}", 0, &error), BATON_OK);
        assert_null(fleet_state_next_foreign(peers[0].state, NULL));
    }
}

static void what_would_be_foreign_is_not_written(void **state)
{
    static const char *const bad[][2] = {
        {"worker/w1", "{\"url\":5}"},
        {"worker/w1", "{\"url\":\"ws://u:c4nary@h:1\"}"},
        {"worker/a b", "{\"url\":\"ws://h:1\"}"},
        {"assigned/w1", "{\"epoch\":1,\"subscriptions\":[\"x\"]}"},
        {"assigned/w1", "{\"epoch\":-1}"},
        {"fridge/1", "{}"},
        {"camera/c", "{}"},
        {"owners", "[]"},
    };
    struct baton_error error = {0};

    stand_ready(0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(put_json(0, bad[i][0], bad[i][1], 0, &error), BATON_EINVAL);
        assert_null(strstr(error.message, "c4na"));
    }
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void a_write_under_way_is_canceled_when_the_state_closes(void **state)
{
    struct fleet_object *object = object_of(FLEET_DISPLAY, DISPLAY);
    struct written written = {0};

    stand_ready(0);
    ASSERT_OK(fleet_state_put(peers[0].state, object, 0, on_written, &written, failure));
    stand_close(0);
    assert_int_equal(written.count, 1); /* memory: carries it out at once */
    assert_true(written.code == BATON_ECANCELED || written.code == BATON_OK);
    fleet_object_unref(object);
}

static struct fleet_observer closer;

static void close_it(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    stand_close(0);
}

static void an_observer_may_close_the_state(void **state)
{
    struct fleet_object *object = object_of(FLEET_DISPLAY, DISPLAY);
    struct written written = {0};

    stand_ready(0);
    closer.on_change = close_it;
    fleet_state_observe(peers[0].state, &closer);
    ASSERT_OK(fleet_state_put(peers[0].state, object, 0, on_written, &written, failure));
    AWAIT(written.count > 0);
    assert_int_equal(written.code, BATON_ECANCELED);
    assert_null(peers[0].state);
    fleet_object_unref(object);
}

static int calls;

static void ignore_it(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    calls++;
    fleet_state_ignore(peers[0].state, observer);
}

static void an_observer_that_is_ignored_hears_nothing_more(void **state)
{
    static struct fleet_observer observer;

    calls = 0;
    observer = (struct fleet_observer){.on_change = ignore_it};
    stand_ready(0);
    fleet_state_observe(peers[0].state, &observer);
    (void)put(0, FLEET_DISPLAY, "{\"id\":\"a\"}", 0, NULL);
    (void)put(0, FLEET_DISPLAY, "{\"id\":\"b\"}", 0, NULL);
    AWAIT(heard_of(0, FLEET_CHANGED_OBJECT, "b"));
    assert_int_equal(calls, 1);
}

static void a_state_may_close_while_it_loads(void **state)
{
    stand_open(0);
    stand_close(0);
    stand_open(0);
    (void)uv_run(&loop, UV_RUN_ONCE);
    stand_close(0);
    stand_ready(0);
}

static void names_are_checked(void **state)
{
    struct fleet_state *none = NULL;
    struct baton_error error = {0};

    assert_int_equal(fleet_state_open(&none, peers[0].member, "a/b", NULL, NULL, &error),
                     BATON_EINVAL);
    assert_int_equal(fleet_state_open(&none, peers[0].member, "", NULL, NULL, &error),
                     BATON_EINVAL);
    assert_null(none);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        STAND_TEST(a_state_that_opens_later_has_all_and_in_order),
        STAND_TEST(a_change_is_told_to_all_with_what_was_before),
        STAND_TEST(an_own_write_can_be_read_when_it_is_done),
        STAND_TEST(after_a_conflict_the_cache_has_what_is_there),
        STAND_TEST(what_is_none_of_ours_is_told_and_never_overwritten),
        STAND_TEST(what_the_master_makes_of_the_others_is_made_anew),
        STAND_TEST(a_good_value_that_is_torn_later_is_gone),
        STAND_TEST(keys_and_fields_of_a_newer_version_do_no_harm),
        STAND_TEST(an_index_says_who_uses_what),
        STAND_TEST(workers_and_what_they_have_are_read_too),
        STAND_TEST(a_move_says_which_subscription_goes_where),
        STAND_TEST(what_would_be_foreign_is_not_written),
        STAND_TEST(a_write_under_way_is_canceled_when_the_state_closes),
        STAND_TEST(an_observer_may_close_the_state),
        STAND_TEST(an_observer_that_is_ignored_hears_nothing_more),
        STAND_TEST(a_state_may_close_while_it_loads),
        STAND_TEST(names_are_checked),
    };
    int failed;

    if (count != 2 || !stand_choose(arguments[1])) {
        return 64;
    }
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    stand_end();
    return failed;
}
