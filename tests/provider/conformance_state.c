/* The rules of state and channels. */
#include "provider/conformance.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- State ----------------------------------------------------------------------------------- */

static void values_are_set_compared_and_forgotten(void **state)
{
    struct group *group = *state;
    struct baton *one;
    struct baton *other;
    struct baton_value *value;
    uint64_t revision;

    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    assert_int_equal(baton_get(one, "app/a", &value, NULL), BATON_ENOENT);
    ASSERT_OK(baton_put(one, "app/a", "1", 1, 0, 0, failure));
    assert_int_equal(baton_put(other, "app/a", "2", 1, 0, 0, NULL), BATON_ECONFLICT);
    ASSERT_OK(baton_get(other, "app/a", &value, failure));
    assert_string_equal(value->data, "1");
    assert_int_equal(value->bytes, 1);
    revision = value->revision;
    baton_values_free(value, 1);
    ASSERT_OK(baton_put(other, "app/a", "", 0, revision, 0, failure));
    assert_int_equal(baton_put(one, "app/a", "3", 1, revision, 0, NULL), BATON_ECONFLICT);
    ASSERT_OK(baton_get(one, "app/a", &value, failure));
    assert_true(value->revision > revision);
    assert_int_equal(value->bytes, 0);
    baton_values_free(value, 1);
    ASSERT_OK(baton_put(one, "app/a", NULL, 0, BATON_ANY_REVISION, 0, failure));
    assert_int_equal(baton_get(one, "app/a", &value, NULL), BATON_ENOENT);
    ASSERT_OK(baton_put(one, "app/short", "x", 1, 0, 20, failure));
    GROUP_AWAIT(baton_get(one, "app/short", &value, NULL) == BATON_ENOENT ||
                (baton_values_free(value, 1), false));
}

static void lists_are_sorted_and_of_the_prefix(void **state)
{
    struct group *group = *state;
    static const char *const keys[] = {"app/b", "app/a", "other", "app/c/d"};
    struct baton_value *values;
    struct baton *baton;
    size_t count;

    group_open_all(group);
    baton = group->members[0].baton;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        ASSERT_OK(baton_put(baton, keys[i], keys[i], strlen(keys[i]), 0, 0, failure));
    }
    ASSERT_OK(baton_list(baton, "app/", &values, &count, failure));
    assert_int_equal(count, 3);
    assert_string_equal(values[0].key, "app/a");
    assert_string_equal(values[1].key, "app/b");
    assert_string_equal(values[2].data, "app/c/d");
    baton_values_free(values, count);
    ASSERT_OK(baton_list(baton, "nothing", &values, &count, failure));
    assert_int_equal(count, 0);
    baton_values_free(values, count);
}

struct watched {
    _Atomic int changes;
    _Atomic int deletions;
    _Atomic uint64_t revision;
    _Atomic int out_of_order;
};

static void watch(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct watched *watched = userdata;

    watched->out_of_order += value->revision < watched->revision;
    watched->revision = value->revision;
    watched->deletions += value->data == NULL;
    watched->changes += value->data != NULL;
}

/* More than one message of an agent has, and than waits for its client. */
static void some_megabytes_are_listed_and_watched_whole(void **state)
{
    enum { KEYS = 96, BYTES = 64 * 1024 };
    struct group *group = *state;
    struct watched watched = {0};
    struct baton_value *values;
    struct baton *baton;
    char data[BYTES], key[16];
    size_t count;

    group_open_all(group);
    baton = group->members[0].baton;
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof(key), "app/%02d", i);
        memset(data, 'a' + i % 26, sizeof(data));
        ASSERT_OK(baton_put(baton, key, data, sizeof(data), 0, 0, failure));
    }
    ASSERT_OK(baton_list(group->members[1].baton, "app/", &values, &count, failure));
    assert_int_equal(count, KEYS);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof(key), "app/%02d", i);
        memset(data, 'a' + i % 26, sizeof(data));
        assert_string_equal(values[i].key, key);
        assert_int_equal(values[i].bytes, BYTES);
        assert_memory_equal(values[i].data, data, BYTES);
    }
    baton_values_free(values, count);
    ASSERT_OK(baton_watch(NULL, group->members[2].baton, "app/", watch, &watched, failure));
    GROUP_AWAIT(watched.changes == KEYS);
    ASSERT_OK(baton_put(baton, "app/00", NULL, 0, BATON_ANY_REVISION, 0, failure));
    GROUP_AWAIT(watched.deletions == 1);
    assert_int_equal(watched.changes, KEYS);
}

static void watchers_hear_what_is_there_and_each_change(void **state)
{
    struct group *group = *state;
    struct watched watched = {0};
    struct watched twin = {0};
    struct baton_subscription *keys;
    struct baton_subscription *again;
    struct baton *one;
    struct baton *other;

    group_open_all(group);
    one = group->members[0].baton;
    other = group->members[1].baton;
    ASSERT_OK(baton_put(one, "app/there", "1", 1, 0, 0, failure));
    ASSERT_OK(baton_watch(&keys, other, "app/", watch, &watched, failure));
    ASSERT_OK(baton_watch(&again, other, "app/", watch, &twin, failure));
    GROUP_AWAIT(watched.changes == 1 && twin.changes == 1);
    baton_unsubscribe(again);
    for (int i = 0; i < 50; i++) {
        ASSERT_OK(baton_put(one, "app/x", "2", 1, BATON_ANY_REVISION, 0, failure));
    }
    ASSERT_OK(baton_put(one, "elsewhere", "2", 1, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_put(one, "app/x", NULL, 0, BATON_ANY_REVISION, 0, failure));
    ASSERT_OK(baton_put(one, "app/brief", "3", 1, 0, 20, failure));
    GROUP_AWAIT(watched.changes == 52 && watched.deletions == 2);
    assert_int_equal(watched.out_of_order, 0);
    baton_unsubscribe(keys);
    ASSERT_OK(baton_put(one, "app/x", "4", 1, 0, 0, failure));
    assert_int_equal(watched.changes, 52);
    assert_int_equal(twin.changes, 1);
}

struct writer {
    _Atomic int put; /* what it returned; 1: not called yet */
    _Atomic int read;
};

static void write_inside(struct baton *baton, const struct baton_value *value, void *userdata)
{
    struct writer *writer = userdata;
    struct baton_value *now;

    if (strcmp(value->key, "in/first") == 0) {
        writer->read = baton_get(baton, "in/first", &now, NULL);
        if (writer->read == BATON_OK) { /* a provider that need not wait */
            baton_values_free(now, 1);
        }
        writer->put = baton_put(baton, "in/second", "2", 1, 0, 0, NULL);
    }
}

static void on_the_loop_s_thread_a_read_is_refused_and_a_write_begins(void **state)
{
    struct group *group = *state;
    struct writer writer = {.put = 1, .read = 1};
    struct baton_value *value = NULL;
    struct baton *baton;

    group_open_all(group);
    baton = group->members[0].baton;
    ASSERT_OK(baton_watch(NULL, baton, "in/", write_inside, &writer, failure));
    ASSERT_OK(baton_put(baton, "in/first", "1", 1, 0, 0, failure));
    GROUP_AWAIT(writer.put != 1);
    assert_int_equal(writer.put, BATON_OK);
    assert_true(writer.read == BATON_EDEADLK || writer.read == BATON_OK);
    GROUP_AWAIT(baton_get(baton, "in/second", &value, NULL) == BATON_OK);
    baton_values_free(value, 1);
}

static void values_outlive_the_members(void **state)
{
    struct group *group = *state;
    struct baton_value *value;

    if (!tested->keeps_state) {
        skip();
    }
    for (int round = 0; round < 3; round++) {
        char text[32];
        group_open_all(group);
        if (round > 0) {
            ASSERT_OK(baton_get(group->members[round].baton, "app/kept", &value, failure));
            snprintf(text, sizeof(text), "round %d", round - 1);
            assert_string_equal(value->data, text);
            baton_values_free(value, 1);
        }
        snprintf(text, sizeof(text), "round %d", round);
        ASSERT_OK(baton_put(group->members[0].baton, "app/kept", text, strlen(text),
                            BATON_ANY_REVISION, 0, failure));
        for (int i = 0; i < GROUP_NODES; i++) {
            group_close(group, i);
        }
    }
}

static void what_is_too_big_is_refused_whole(void **state)
{
    struct group *group = *state;
    struct baton_error error;
    struct baton_value *value;
    size_t bytes = 64u << 20;
    char *data;

    group_open_all(group);
    data = calloc(1, bytes);
    assert_non_null(data);
    assert_int_equal(baton_put(group->members[0].baton, "big", data, bytes, 0, 0, &error),
                     BATON_ETOOBIG);
    assert_int_equal(baton_get(group->members[0].baton, "big", &value, NULL), BATON_ENOENT);
    assert_int_equal(baton_put(group->members[0].baton, "odd", "v", 1, 0, -5, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "-5"));
    assert_int_equal(baton_publish(group->members[0].baton, "big", data, bytes, &error),
                     BATON_ETOOBIG);
    free(data);
}

/* ---- Channels -------------------------------------------------------------------------------- */

static void count_message(struct baton *baton, const char *channel, const void *data, size_t bytes,
                          void *userdata)
{
    if (strcmp(channel, "news") == 0 && bytes == 5 && memcmp(data, "hel\0o", 5) == 0) {
        (*(_Atomic int *)userdata)++;
    }
}

static void a_channel_with_too_long_a_name_is_refused_by_both_sides(void **state)
{
    struct group *group = *state;
    struct baton *baton;
    _Atomic int heard = 0;
    struct baton_error error;
    char name[600];

    group_open_all(group);
    baton = group->members[0].baton;
    memset(name, 'c', sizeof(name));
    name[513] = '\0';
    assert_int_equal(baton_subscribe(NULL, baton, name, count_message, &heard, &error),
                     BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "512"));
    assert_int_equal(baton_publish(baton, name, "v", 1, &error), BATON_ETOOBIG);
    assert_non_null(strstr(error.message, "512"));
    assert_null(strstr(error.message, "1048576"));
    name[512] = '\0';
    ASSERT_OK(baton_subscribe(NULL, baton, name, count_message, &heard, failure));
    ASSERT_OK(baton_publish(baton, name, "v", 1, failure));
}

/* Publishing is at most once, and who has just subscribed may miss the first ones. */
static void messages_reach_all_who_subscribed(void **state)
{
    struct group *group = *state;
    _Atomic int heard[GROUP_NODES] = {0};
    struct baton_subscription *handles[GROUP_NODES];
    int before;

    group_open_all(group);
    for (int i = 0; i < GROUP_NODES; i++) {
        ASSERT_OK(baton_subscribe(&handles[i], group->members[i].baton, i < 2 ? "news" : "olds",
                                  count_message, &heard[i], failure));
    }
    do {
        ASSERT_OK(baton_publish(group->members[2].baton, "news", "hel\0o", 5, failure));
        group_pause();
    } while (heard[0] == 0 || heard[1] == 0);
    baton_unsubscribe(handles[1]);
    before = heard[1];
    for (int i = 0, first = heard[0]; heard[0] < first + 3; i++) {
        assert_true(i < PATIENCE_MS);
        ASSERT_OK(baton_publish(group->members[2].baton, "news", "hel\0o", 5, failure));
        group_pause();
    }
    assert_int_equal(heard[1], before);
    assert_int_equal(heard[2], 0);
}

int conformance_state(void)
{
    const struct CMUnitTest tests[] = {
        CASE(values_are_set_compared_and_forgotten),
        CASE(lists_are_sorted_and_of_the_prefix),
        CASE(some_megabytes_are_listed_and_watched_whole),
        CASE(watchers_hear_what_is_there_and_each_change),
        CASE(on_the_loop_s_thread_a_read_is_refused_and_a_write_begins),
        CASE(values_outlive_the_members),
        CASE(what_is_too_big_is_refused_whole),
        CASE(a_channel_with_too_long_a_name_is_refused_by_both_sides),
        CASE(messages_reach_all_who_subscribed),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
