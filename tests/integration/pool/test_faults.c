/* Reads and writes of the state that fail: what a pool wants is done later, and once. Each fault is
 * planted in the functions of member/store.h; the provider is memory:. */
#include "crew.h"

#include "member/store.h"

#include <stdlib.h>
#include <string.h>

enum { ALL = 1000000, ALL_HELD = 128 };

/* Of the calls for keys that begin so, how many fail; and how. */
static struct fault {
    const char *prefix;
    int left;
    int code;
    bool is_late;  /* by the callback, not by the call */
    bool succeeds; /* although the reply says that it failed */
    bool is_held;  /* only writes: no reply comes before release() */
} fault;

/* Writes that wait for release(). */
static struct held {
    provider_put_cb done;
    void *userdata;
} held[ALL_HELD];
static size_t held_count, held_bytes;

static void release(void)
{
    const struct baton_error error = {.code = BATON_ETIMEDOUT, .message = "planted"};

    while (held_count > 0) {
        held_count--;
        held[held_count].done(held[held_count].userdata, error.code, 0, &error);
    }
}

static bool fails(const char *key)
{
    return fault.prefix && strncmp(key, fault.prefix, strlen(fault.prefix)) == 0 &&
           fault.left-- > 0;
}

int __real_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __real_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr);
int __real_store_list(struct member *member, const char *key, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);
int __wrap_store_list(struct member *member, const char *key, provider_values_cb done,
                      void *userdata, struct baton_error *reterr);

static void on_nothing(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
}

int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr)
{
    struct baton_error error;

    if (!fails(key)) {
        return __real_store_put(member, key, data, bytes, revision, lifetime, done, userdata,
                                reterr);
    }
    if (fault.succeeds) {
        assert_int_equal(__real_store_put(member, key, data, bytes, revision, lifetime, on_nothing,
                                          NULL, reterr),
                         BATON_OK);
    }
    if (fault.is_held) {
        assert_true(held_count < ALL_HELD);
        held_bytes += bytes;
        held[held_count++] = (struct held){done, userdata};
        return BATON_OK;
    }
    (void)error_set(fault.is_late ? &error : reterr, fault.code, "planted");
    if (!fault.is_late) {
        return fault.code;
    }
    done(userdata, fault.code, 0, &error);
    return BATON_OK;
}

static int fail_read(provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    if (!fault.is_late) {
        return error_set(reterr, fault.code, "planted");
    }
    done(userdata, fault.code, NULL, 0);
    return BATON_OK;
}

int __wrap_store_get(struct member *member, const char *key, provider_values_cb done,
                     void *userdata, struct baton_error *reterr)
{
    return !fault.is_held && fails(key) ? fail_read(done, userdata, reterr)
                                        : __real_store_get(member, key, done, userdata, reterr);
}

int __wrap_store_list(struct member *member, const char *key, provider_values_cb done,
                      void *userdata, struct baton_error *reterr)
{
    return !fault.is_held && fails(key) ? fail_read(done, userdata, reterr)
                                        : __real_store_list(member, key, done, userdata, reterr);
}

static int set_up(void **state)
{
    fault = (struct fault){.prefix = NULL};
    return crew_set_up(state);
}

static void plant(const char *prefix, int count, int code, bool is_late)
{
    fault = (struct fault){.prefix = prefix, .left = count, .code = code, .is_late = is_late};
}

static void run_jobs(size_t count)
{
    char *items = crew_items(count, "");

    crew_open(0, true, true);
    assert_int_equal(crew_submit(0, "all", items), BATON_OK);
    free(items);
    CREW_AWAIT(crew_completed() == count && fault.left <= 0);
    for (size_t i = 0; i < crew_task_count; i++) {
        assert_int_equal(crew_tasks[i].starts, 1);
    }
}

static void a_leader_whose_keys_cannot_be_read_tries_again(void **state)
{
    plant("work/pool/b/", 2, BATON_EUNAVAILABLE, true);
    run_jobs(3);
}

static void a_leader_that_cannot_even_ask_tries_again(void **state)
{
    plant("work/pool/s/", 1, BATON_EUNAVAILABLE, false);
    crew_open(0, true, true);
    CREW_AWAIT(crew_leader() == 0);
    assert_true(fault.left <= 0);
    assert_string_equal(crew[0].error, "planted");
}

static void a_bucket_that_was_refused_is_written_again(void **state)
{
    plant("work/pool/b/", 3, BATON_EUNAVAILABLE, true);
    run_jobs(3);
}

/* Its first write is a placing, of which the worker hears once the leader has read it. */
static void a_write_that_was_carried_out_without_a_reply_counts_once(void **state)
{
    crew_open(0, true, true);
    CREW_AWAIT(crew_leader() == 0);
    plant("work/pool/b/", 4, BATON_ETIMEDOUT, true);
    fault.succeeds = true;
    assert_int_equal(crew_submit(0, "all", "[{\"body\":\"a\"},{\"body\":\"b\"}]"), BATON_OK);
    CREW_AWAIT(crew_completed() == 2);
    assert_true(fault.left <= 0);
    assert_int_equal(crew_task("all.0")->starts + crew_task("all.1")->starts, 2);
}

static void a_result_that_was_refused_is_written_again(void **state)
{
    plant("work/pool/r/", 2, BATON_EUNAVAILABLE, true);
    run_jobs(1);
}

/* An attempt without it might do again what was done. */
static void a_copy_does_not_start_before_its_checkpoint_was_read(void **state)
{
    crew_open(0, true, true);
    CREW_AWAIT(crew_leader() == 0);
    plant("work/pool/k/", 2, BATON_EUNAVAILABLE, true);
    assert_int_equal(crew_submit(0, "all", "[{\"id\":\"one\"}]"), BATON_OK);
    CREW_AWAIT(crew_completed() == 1);
    assert_true(fault.left <= 0);
    assert_int_equal(crew_task("one")->starts, 1);
}

static void a_copy_is_halted_while_its_checkpoint_cannot_be_read(void **state)
{
    int code = 1;

    crew_open(0, true, true);
    CREW_AWAIT(crew_leader() == 0);
    plant("work/pool/k/", ALL, BATON_EUNAVAILABLE, false);
    assert_int_equal(crew_submit(0, "all", "[{\"id\":\"one\"}]"), BATON_OK);
    CREW_AWAIT(fault.left < ALL);
    ASSERT_OK(pool_cancel(crew[0].member, "pool", "one", crew_on_done, &code, failure));
    CREW_AWAIT(code != 1 && pool_running(crew[0].pool) == 0);
    assert_null(crew_task("one"));
}

static void a_checkpoint_that_was_stored_without_a_reply_may_be_stored_again(void **state)
{
    int code = 1;

    crew_open(0, true, true);
    crew[0].ends_jobs = false;
    assert_int_equal(crew_submit(0, "all", "[{\"body\":\"a\"}]"), BATON_OK);
    CREW_AWAIT(crew_runs("all.0"));
    plant("work/pool/k/", 1, BATON_ETIMEDOUT, true);
    fault.succeeds = true;
    for (int i = 0; i < 2; i++) {
        code = 1;
        ASSERT_OK(pool_checkpoint(crew[0].pool, "all.0", crew_task("all.0")->epoch, "x", 1,
                                  crew_on_done, &code, failure));
        CREW_AWAIT(code != 1);
        assert_int_equal(code, i == 0 ? BATON_ETIMEDOUT : BATON_OK);
    }
}

/* An agent closes a client of which more than 4 MiB wait. */
static void no_more_than_a_few_writes_are_under_way_if_they_are_large(void **state)
{
    char *items = crew_items(30000, "");

    held_count = held_bytes = 0;
    crew_open_member(1);
    assert_int_equal(crew_submit(1, "all", items), BATON_OK);
    free(items);
    plant("work/pool/b/", ALL, BATON_OK, false);
    fault.is_held = true;
    crew_open(0, true, true);
    CREW_AWAIT(held_bytes > 512 * 1024);
    for (int i = 0; i < 50; i++) { /* nothing follows */
        (void)uv_run(&crew_loop, UV_RUN_ONCE);
    }
    assert_true(held_bytes < 1536 * 1024);
    crew_kill(0);
    release();
}

int main(void)
{
#define FAULT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, crew_tear_down)
    const struct CMUnitTest tests[] = {
        FAULT_TEST(a_leader_whose_keys_cannot_be_read_tries_again),
        FAULT_TEST(a_leader_that_cannot_even_ask_tries_again),
        FAULT_TEST(a_bucket_that_was_refused_is_written_again),
        FAULT_TEST(a_write_that_was_carried_out_without_a_reply_counts_once),
        FAULT_TEST(a_result_that_was_refused_is_written_again),
        FAULT_TEST(a_copy_does_not_start_before_its_checkpoint_was_read),
        FAULT_TEST(a_copy_is_halted_while_its_checkpoint_cannot_be_read),
        FAULT_TEST(no_more_than_a_few_writes_are_under_way_if_they_are_large),
        FAULT_TEST(a_checkpoint_that_was_stored_without_a_reply_may_be_stored_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
