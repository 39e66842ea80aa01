/* A provider that fails, answers late, or not as it did. Linked with --wrap=store_list, store_get,
 * store_put, feed_watch, value_read. */
#include "stand.h"

#include "fleet/state/value.h"
#include "member/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DISPLAY "{\"id\":\"d\"}"

int __real_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);
int __real_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int __real_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __real_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb on_value, void *userdata, struct baton_error *reterr);
int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);
int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __wrap_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb on_value, void *userdata, struct baton_error *reterr);
int __real_value_read(struct value **ret, const char *key, const void *data, size_t bytes,
                      struct baton_error *reterr);
int __wrap_value_read(struct value **ret, const char *key, const void *data, size_t bytes,
                      struct baton_error *reterr);

/* How a request fails: not at all; at once; by its callback; its reply is kept by the test; or, of
 * a write, by a conflict. */
enum { PUTS_MAX = 256 };
enum fault { NONE, AT_ONCE, BY_REPLY, KEPT, CONFLICT };

static enum fault list_fault, get_fault, put_fault;
static int puts_begun;
static int list_faults, watch_faults, get_faults, put_faults; /* so many more requests fail */
static int value_faults; /* so many more values find no memory */
static provider_values_cb kept_values;
static provider_put_cb kept_put;
static void *kept_userdata, *kept_puts[PUTS_MAX]; /* of a question; of writes */
static int kept_count;

static int refuse(struct baton_error *reterr)
{
    return error_set(reterr, BATON_EUNAVAILABLE, "there is no server");
}

static int list_or_get(enum fault fault, int *left, provider_values_cb done, void *userdata,
                       bool *ret_is_done, struct baton_error *reterr)
{
    *ret_is_done = *left > 0 && fault != NONE;
    if (!*ret_is_done) {
        return BATON_OK;
    }
    --*left;
    if (fault == AT_ONCE) {
        return refuse(reterr);
    }
    if (fault == BY_REPLY) {
        done(userdata, BATON_EUNAVAILABLE, NULL, 0);
    } else {
        kept_values = done;
        kept_userdata = userdata;
    }
    return BATON_OK;
}

int __wrap_store_list(struct member *member, const char *prefix, provider_values_cb done,
                      void *userdata, struct baton_error *reterr)
{
    bool is_done;
    int code = list_or_get(list_fault, &list_faults, done, userdata, &is_done, reterr);

    return is_done ? code : __real_store_list(member, prefix, done, userdata, reterr);
}

int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr)
{
    bool is_done;
    int code = list_or_get(get_fault, &get_faults, done, userdata, &is_done, reterr);

    return is_done ? code : __real_store_get(member, key, done, userdata, reterr);
}

int __wrap_feed_watch(struct feed **ret, struct member *member, const char *prefix,
                      feed_value_cb on_value, void *userdata, struct baton_error *reterr)
{
    if (watch_faults > 0) {
        watch_faults--;
        return refuse(reterr);
    }
    return __real_feed_watch(ret, member, prefix, on_value, userdata, reterr);
}

int __wrap_value_read(struct value **ret, const char *key, const void *data, size_t bytes,
                      struct baton_error *reterr)
{
    if (value_faults > 0) {
        value_faults--;
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    return __real_value_read(ret, key, data, bytes, reterr);
}

static void ignore(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
}

/* BY_REPLY: it is carried out, but the reply says that it timed out. */
int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct baton_error error = {.code = BATON_ETIMEDOUT};

    puts_begun++;
    if (put_faults == 0 || put_fault == NONE) {
        return __real_store_put(member, key, data, bytes, revision, lifetime, done, userdata,
                                reterr);
    }
    put_faults--;
    if (put_fault == AT_ONCE) {
        return refuse(reterr);
    }
    if (put_fault == CONFLICT) {
        error.code = BATON_ECONFLICT;
        done(userdata, BATON_ECONFLICT, 7, &error);
        return BATON_OK;
    }
    if (put_fault == KEPT) {
        assert_true(kept_count < PUTS_MAX);
        kept_put = done;
        kept_puts[kept_count++] = userdata;
        return BATON_OK;
    }
    ASSERT_OK(
        __real_store_put(member, key, data, bytes, revision, lifetime, ignore, NULL, failure));
    done(userdata, BATON_ETIMEDOUT, 0, &error);
    return BATON_OK;
}

static int set_up(void **state)
{
    list_fault = get_fault = put_fault = NONE;
    list_faults = watch_faults = get_faults = put_faults = value_faults = 0;
    kept_count = 0;
    return stand_set_up(state);
}

/* ---- Loading --------------------------------------------------------------------------------- */

static void a_provider_that_cannot_be_reached_is_tried_again(void **state)
{
    watch_faults = 1;
    list_fault = AT_ONCE;
    list_faults = 1;
    stand_open(0);
    AWAIT(list_faults == 0);
    list_fault = BY_REPLY;
    list_faults = 1;
    AWAIT(peers[0].is_ready);
    assert_int_equal(watch_faults, 0);
    assert_int_equal(fleet_state_counters(peers[0].state)->loads, 3);
}

static void a_list_that_comes_after_the_end_is_ignored(void **state)
{
    const struct provider_value value = {
        .key = "yard/display/d", .data = DISPLAY, .bytes = strlen(DISPLAY), .revision = 1};

    list_fault = KEPT;
    list_faults = 1;
    stand_open(0);
    AWAIT(list_faults == 0);
    assert_false(peers[0].is_ready);
    stand_close(0);
    (void)uv_run(&loop, UV_RUN_ONCE); /* its memory is gone */
    kept_values(kept_userdata, BATON_OK, &value, 1);
    assert_false(peers[0].is_ready);
}

/* Neither the feed nor the list finds memory for it; the next list does. */
static void a_list_of_which_something_was_lost_is_not_loaded(void **state)
{
    uint64_t number;

    stand_ready(0);
    value_faults = 2;
    put_raw(1, "yard/display/d", DISPLAY);
    number = fleet_state_load_again(peers[0].state);
    AWAIT(fleet_state_has_loaded(peers[0].state, number));
    assert_int_equal(value_faults, 0);
    assert_non_null(fleet_state_object(peers[0].state, FLEET_DISPLAY, "d", NULL));
}

/* What is stored after a list was read, and before its answer comes, is not in it. */
static void a_list_that_was_under_way_does_not_count(void **state)
{
    uint64_t number;

    list_fault = KEPT;
    list_faults = 1;
    stand_open(0);
    AWAIT(list_faults == 0);
    number = fleet_state_load_again(peers[0].state);
    kept_values(kept_userdata, BATON_OK, NULL, 0);
    assert_true(peers[0].is_ready);
    assert_false(fleet_state_has_loaded(peers[0].state, number));
    AWAIT(fleet_state_has_loaded(peers[0].state, number));
    assert_int_equal(fleet_state_counters(peers[0].state)->loads, 2);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void a_conflict_is_told_although_the_key_cannot_be_read(void **state)
{
    stand_ready(0);
    put_raw(1, "yard/display/d", DISPLAY);
    for (enum fault fault = AT_ONCE; fault <= BY_REPLY; fault++) {
        get_fault = fault;
        get_faults = 1;
        assert_int_equal(put(0, FLEET_DISPLAY, DISPLAY, 999, NULL), BATON_ECONFLICT);
        assert_int_equal(get_faults, 0);
    }
}

static void a_write_that_is_refused_at_once_has_no_callback(void **state)
{
    struct fleet_object *object = object_of(FLEET_DISPLAY, DISPLAY);
    struct written written = {0};
    struct baton_error error = {0};

    stand_ready(0);
    put_fault = AT_ONCE;
    put_faults = 1;
    assert_int_equal(fleet_state_put(peers[0].state, object, 0, on_written, &written, &error),
                     BATON_EUNAVAILABLE);
    stand_close(0);
    assert_int_equal(written.count, 0);
    fleet_object_unref(object);
}

static void a_reply_that_comes_after_the_end_is_ignored(void **state)
{
    struct fleet_object *object = object_of(FLEET_DISPLAY, DISPLAY);
    struct written written = {0};

    stand_ready(0);
    put_fault = KEPT;
    put_faults = 1;
    ASSERT_OK(fleet_state_put(peers[0].state, object, 0, on_written, &written, failure));
    assert_int_equal(written.count, 0);
    stand_close(0);
    assert_int_equal(written.count, 1);
    assert_int_equal(written.code, BATON_ECANCELED);
    (void)uv_run(&loop, UV_RUN_ONCE); /* its memory is gone */
    kept_put(kept_puts[0], BATON_OK, 1, NULL);
    assert_int_equal(written.count, 1);
    fleet_object_unref(object);
}

/* ---- Applying -------------------------------------------------------------------------------- */

struct applied {
    int count, code;
    struct fleet_apply_result result;
};

static void on_applied(void *userdata, int code, const struct fleet_apply_result *result,
                       const struct baton_error *error)
{
    struct applied *applied = userdata;

    applied->count++;
    applied->code = code;
    applied->result = *result;
}

static void apply(struct applied *applied)
{
    static const char text[] = "displays: [{id: d1}, {id: d2}, {id: d3}]\n";
    struct fleet_file file = {0};

    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", text, strlen(text), failure));
    ASSERT_OK(fleet_state_apply(peers[0].state, &file, false, NULL, on_applied, applied, failure));
    fleet_file_fini(&file);
    AWAIT(applied->count > 0);
}

static void a_write_that_timed_out_and_was_carried_out_is_no_failure(void **state)
{
    struct applied applied = {0};

    stand_ready(0);
    put_fault = BY_REPLY;
    put_faults = 2;
    apply(&applied);
    assert_int_equal(applied.code, BATON_OK);
    assert_int_equal(applied.result.created + applied.result.same, 3);
    assert_int_equal(fleet_state_count(peers[0].state, FLEET_DISPLAY), 3);
}

/* As long as a key of one kind is not answered, none of the next kind is written. */
static void kinds_wait_for_each_other(void **state)
{
    static const char all[] = "models: [{id: 1, name: m, url: \"http://h/m\"}]\n"
                              "cameras: [{id: c, rtspUrl: \"rtsp://h/1\"}]\n"
                              "displays: [{id: d}]\n"
                              "subscriptions: [{id: d;c, model: 1}]\n";
    struct fleet_file file = {0};

    stand_ready(0);
    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", all, strlen(all), failure));
    for (int round = 0; round < 2; round++) { /* written, then deleted */
        struct applied applied = {0};
        put_fault = KEPT;
        put_faults = FLEET_KINDS;
        puts_begun = kept_count = 0;
        ASSERT_OK(
            fleet_state_apply(peers[0].state, &file, true, NULL, on_applied, &applied, failure));
        for (int kind = 0; kind < FLEET_KINDS; kind++) {
            assert_int_equal(puts_begun, kind + 1);
            kept_put(kept_puts[kind], BATON_OK, round == 0 ? (uint64_t)kind + 1 : 0, NULL);
        }
        assert_int_equal(applied.code, BATON_OK);
        assert_int_equal(round == 0 ? applied.result.created : applied.result.deleted, FLEET_KINDS);
        fleet_file_fini(&file);
    }
}

static void a_key_that_always_changes_ends_it(void **state)
{
    struct applied applied = {0};

    stand_ready(0);
    put_fault = CONFLICT;
    put_faults = 1000;
    puts_begun = 0;
    apply(&applied);
    assert_int_equal(applied.code, BATON_ECONFLICT);
    assert_int_equal(puts_begun, FLEET_APPLY_TRIES);
}

static void only_so_many_keys_are_written_at_once(void **state)
{
    enum { MANY = 2 * FLEET_APPLY_WINDOW };
    char text[MANY * 32];
    size_t used = 0;
    struct fleet_file file = {0};
    struct applied applied = {0};

    used += (size_t)snprintf(text, sizeof(text), "displays:\n");
    for (int i = 0; i < MANY; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "- id: d%d\n", i);
    }
    stand_ready(0);
    put_fault = KEPT;
    put_faults = MANY;
    puts_begun = 0;
    ASSERT_OK(fleet_file_read(&file, "fleet.yaml", text, used, failure));
    ASSERT_OK(fleet_state_apply(peers[0].state, &file, false, NULL, on_applied, &applied, failure));
    fleet_file_fini(&file);
    assert_int_equal(puts_begun, FLEET_APPLY_WINDOW);
    kept_put(kept_puts[0], BATON_OK, 1, NULL);
    assert_int_equal(puts_begun, FLEET_APPLY_WINDOW + 1);
    stand_close(0);
    assert_int_equal(applied.code, BATON_ECANCELED);
    for (int i = 1; i < kept_count; i++) {
        kept_put(kept_puts[i], BATON_OK, 1, NULL);
    }
}

static void a_failure_ends_it_and_the_file_can_be_applied_again(void **state)
{
    struct applied applied = {0};

    stand_ready(0);
    put_fault = AT_ONCE;
    put_faults = 1;
    apply(&applied);
    assert_int_equal(applied.count, 1);
    assert_int_equal(applied.code, BATON_EUNAVAILABLE);
    assert_int_equal(applied.result.created, 0);
    applied = (struct applied){0};
    apply(&applied); /* again */
    assert_int_equal(applied.code, BATON_OK);
    assert_int_equal(applied.result.created, 3);
}

#define FAULT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, stand_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(a_provider_that_cannot_be_reached_is_tried_again),
        FAULT_TEST(a_list_that_comes_after_the_end_is_ignored),
        FAULT_TEST(a_list_of_which_something_was_lost_is_not_loaded),
        FAULT_TEST(a_list_that_was_under_way_does_not_count),
        FAULT_TEST(a_conflict_is_told_although_the_key_cannot_be_read),
        FAULT_TEST(a_write_that_is_refused_at_once_has_no_callback),
        FAULT_TEST(a_reply_that_comes_after_the_end_is_ignored),
        FAULT_TEST(a_write_that_timed_out_and_was_carried_out_is_no_failure),
        FAULT_TEST(kinds_wait_for_each_other),
        FAULT_TEST(a_key_that_always_changes_ends_it),
        FAULT_TEST(only_so_many_keys_are_written_at_once),
        FAULT_TEST(a_failure_ends_it_and_the_file_can_be_applied_again),
    };

    (void)stand_choose("memory");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
