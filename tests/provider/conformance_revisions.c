/* The rules of revisions: what a write reports is what the next one may name. */
#include "provider/conformance.h"

#include "api/perform.h"
#include "member/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t revision_of(struct baton *baton, const char *key)
{
    struct baton_value *value;
    uint64_t revision;

    ASSERT_OK(baton_get(baton, key, &value, failure));
    revision = value->revision;
    baton_values_free(value, 1);
    return revision;
}

static void a_write_s_revision_is_what_others_read(void **state)
{
    struct group *group = *state;
    uint64_t first = 0, second = 0, gone = 1;
    struct baton *one, *other;

    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    ASSERT_OK(baton_put_revision(one, "app/a", "1", 1, 0, 0, &first, failure));
    assert_true(first > 0);
    assert_int_equal(revision_of(other, "app/a"), first);
    ASSERT_OK(
        baton_put_revision(other, "app/a", "", 0, BATON_ANY_REVISION, 60000, &second, failure));
    assert_true(second > first);
    assert_int_equal(revision_of(one, "app/a"), second);
    ASSERT_OK(baton_put_revision(one, "app/a", NULL, 0, second, 0, &gone, failure));
    assert_int_equal(gone, 0);
    gone = 1;
    ASSERT_OK(baton_put_revision(one, "app/a", NULL, 0, gone - 1, 0, &gone, failure)); /* absent */
    assert_int_equal(gone, 0);
    ASSERT_OK(baton_put_revision(one, "app/a", "3", 1, gone, 0, &first, failure));
    assert_true(first > second);
    assert_int_equal(revision_of(other, "app/a"), first);
}

static void writes_follow_each_other_without_a_read(void **state)
{
    struct group *group = *state;
    uint64_t at = 0;
    struct baton_value *value;
    char text[16];

    group_open_all(group);
    for (int i = 0; i < 50; i++) { /* from one member and the other in turn */
        uint64_t before = at;
        (void)snprintf(text, sizeof(text), "%d", i);
        ASSERT_OK(baton_put_revision(group->members[i % 2].baton, "app/a", text, strlen(text), at,
                                     0, &at, failure));
        assert_true(at > before);
    }
    ASSERT_OK(baton_get(group->members[2].baton, "app/a", &value, failure));
    assert_string_equal(value->data, "49");
    assert_int_equal(value->revision, at);
    baton_values_free(value, 1);
}

/* ---- Two writers ----------------------------------------------------------------------------- */

enum { RACES = 20, WRITES = 20 };

struct writer {
    struct baton *baton;
    pthread_barrier_t *start;
    uint64_t at; /* the revision that it knows */
    int written; /* before the first conflict */
    int code;    /* of the last write */
};

static void *write_on(void *userdata)
{
    struct writer *writer = userdata;

    (void)pthread_barrier_wait(writer->start);
    do {
        writer->code = baton_put_revision(writer->baton, "app/raced", "v", 1, writer->at, 0,
                                          &writer->at, NULL);
        writer->written += writer->code == BATON_OK;
    } while (writer->code == BATON_OK && writer->written < WRITES);
    return NULL;
}

static void of_two_writers_at_one_revision_exactly_one_goes_on(void **state)
{
    struct group *group = *state;
    struct writer writers[2];
    pthread_barrier_t start;
    uint64_t at = 0;

    group_open_all(group);
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    for (int race = 0; race < RACES; race++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++) {
            writers[i] = (struct writer){group->members[i].baton, &start, .at = at};
            assert_int_equal(pthread_create(&threads[i], NULL, write_on, &writers[i]), 0);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        int winner = writers[1].written > 0;
        assert_int_equal(writers[winner].code, BATON_OK);
        assert_int_equal(writers[winner].written, WRITES);
        assert_int_equal(writers[!winner].code, BATON_ECONFLICT);
        assert_int_equal(writers[!winner].written, 0);
        assert_int_equal(writers[!winner].at, at); /* written on success only */
        at = writers[winner].at;
        assert_int_equal(revision_of(group->members[2].baton, "app/raced"), at);
    }
    (void)pthread_barrier_destroy(&start);
}

/* ---- The provider's own answer --------------------------------------------------------------- */

struct put_call {
    struct call base;
    const char *data; /* NULL: deletes */
    uint64_t revision, answer;
};

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct put_call *call = userdata;

    call->answer = revision;
    call_finish(&call->base, code, error);
}

static void run_put(struct call *base)
{
    struct put_call *call = (struct put_call *)base;
    int code = store_put(base->baton->member, "app/a", call->data, call->data ? 1 : 0,
                         call->revision, SPAN_NS(0), on_put, call, NULL);

    if (code != BATON_OK) {
        call_finish(base, code, NULL);
    }
}

/* What the provider calls back with: <baton.h> gives a revision on success only. */
static int put(struct baton *baton, const char *data, uint64_t revision, uint64_t *ret_answer)
{
    struct put_call *call = call_new(baton, sizeof(*call), run_put);
    int code;

    assert_non_null(call);
    call->data = data;
    call->revision = revision;
    call->answer = 4711;
    code = perform(&call->base, BATON_TIMEOUT_DEFAULT, BATON_EDEADLK, NULL);
    *ret_answer = call->answer;
    call_unref(&call->base);
    return code;
}

static void a_conflict_has_the_revision_at_which_the_key_is(void **state)
{
    struct group *group = *state;
    uint64_t at, answer;
    struct baton *one, *other;

    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    assert_int_equal(put(one, "1", 17, &answer), BATON_ECONFLICT);
    assert_int_equal(answer, 0); /* there is no such key */
    assert_int_equal(put(one, "1", 0, &at), BATON_OK);
    assert_int_equal(put(other, "2", 0, &answer), BATON_ECONFLICT);
    assert_int_equal(answer, at);
    assert_int_equal(put(other, NULL, at + 1, &answer), BATON_ECONFLICT);
    assert_int_equal(answer, at);
    assert_int_equal(put(other, "2", answer, &at), BATON_OK);
    assert_true(at > answer);
    assert_int_equal(put(one, NULL, at, &answer), BATON_OK);
    assert_int_equal(answer, 0);
}

/* ---- On the loop's thread -------------------------------------------------------------------- */

static void write_inside(struct baton *baton, const struct baton_value *value, void *userdata)
{
    uint64_t revision;

    *(_Atomic int *)userdata = baton_put_revision(baton, "out", "2", 1, 0, 0, &revision, NULL);
}

static void on_the_loop_s_thread_nothing_is_written_whose_revision_is_asked_for(void **state)
{
    struct group *group = *state;
    struct baton_value *value;
    struct baton *baton;
    _Atomic int inside = 1;

    group_open_all(group);
    baton = group->members[0].baton;
    ASSERT_OK(baton_watch(NULL, baton, "in", write_inside, &inside, failure));
    ASSERT_OK(baton_put(baton, "in", "1", 1, 0, 0, failure));
    GROUP_AWAIT(inside != 1);
    assert_int_equal(inside, BATON_EDEADLK);
    assert_int_equal(baton_get(baton, "out", &value, NULL), BATON_ENOENT);
}

int conformance_revisions(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_write_s_revision_is_what_others_read),
        CASE(writes_follow_each_other_without_a_read),
        CASE(of_two_writers_at_one_revision_exactly_one_goes_on),
        CASE(a_conflict_has_the_revision_at_which_the_key_is),
        CASE(on_the_loop_s_thread_nothing_is_written_whose_revision_is_asked_for),
    };

    return cmocka_run_group_tests_name("revisions", tests, NULL, NULL);
}
