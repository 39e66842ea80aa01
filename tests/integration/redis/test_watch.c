/* A watch of many keys, while they change and are listed: what it has told it does not take back.
 */
#include "lib/await.h"
#include "lib/process.h"
#include "member/feed.h"
#include "member/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Large values, so that the reply to a list takes a while; each small one is put once
 * between two lists at most. */
enum { LARGE = 4, KEYS = 2000, A_TICK = 2, ROUNDS = 3, URL_MAX = 160 };

static uv_loop_t loop;
static uv_timer_t tick;
static struct member *member;
static struct feed *feed;
static pid_t server;
static int port, closed;
static int begun, written, wanted; /* small keys, round after round */
static uint64_t revisions[KEYS];
static int told[KEYS], deleted, backward;

static int server_main(void *userdata)
{
    char text[12];

    (void)snprintf(text, sizeof(text), "%d", port);
    (void)execlp("redis-server", "redis-server", "--port", text, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null",
                 (char *)NULL);
    return 127;
}

static void open_member(void)
{
    char url[URL_MAX];
    const struct provider_config config = {.loop = &loop, .url = url, .node = "n"};
    struct baton_error error = {0};

    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d?guardian=no&check-interval=500ms", port);
    if (member_open(&member, &config, &error) != BATON_OK) {
        fail_msg("%s", error.message);
    }
}

static void on_value(void *userdata, const struct provider_value *value)
{
    long key = strtol(value->key + 2, NULL, 10);

    assert_true(key >= 0 && key < KEYS);
    deleted += value->data == NULL;
    backward += value->data && value->revision < revisions[key];
    told[key]++;
    revisions[key] = value->revision;
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    assert_int_equal(code, BATON_OK);
    written++;
}

static void put(int key, size_t bytes)
{
    static const char value[PROVIDER_VALUE_MAX];
    char name[16];

    (void)snprintf(name, sizeof(name), "k/%d", key);
    begun++;
    assert_int_equal(
        store_put(member, name, value, bytes, PROVIDER_ANY_REVISION, (span){0}, on_put, NULL, NULL),
        BATON_OK);
}

static void on_tick(uv_timer_t *timer)
{
    for (int i = 0; i < A_TICK && begun < wanted; i++) {
        put(LARGE + begun % (KEYS - LARGE), 1);
    }
}

static size_t told_all(void)
{
    size_t count = 0;

    for (int i = 0; i < KEYS; i++) {
        count += told[i] > 0;
    }
    return count;
}

static void what_a_watch_has_told_it_does_not_take_back(void **state)
{
    AWAIT(store_put(member, "ready", "v", 1, PROVIDER_ANY_REVISION, (span){0}, on_put, NULL,
                    NULL) == BATON_OK);
    AWAIT(written == 1);
    for (int i = 0; i < LARGE; i++) {
        put(i, PROVIDER_VALUE_MAX);
    }
    AWAIT(written == 1 + LARGE);
    begun = written = 0;
    wanted = (KEYS - LARGE) * ROUNDS;
    assert_int_equal(feed_watch(&feed, member, "k/", on_value, NULL, NULL), BATON_OK);
    AWAIT(written == wanted);
    AWAIT(told_all() == KEYS);
    assert_int_equal(deleted, 0);
    assert_int_equal(backward, 0);
}

static int set_up(void **state)
{
    (void)signal(SIGPIPE, SIG_IGN);
    port = process_free_port();
    server = process_fork(server_main, NULL);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &tick);
    (void)uv_timer_start(&tick, on_tick, 1, 1);
    open_member();
    return 0;
}

static void on_closed(void *userdata)
{
    closed++;
}

static int tear_down(void **state)
{
    feed_stop(feed);
    member_close(member, on_closed, NULL);
    AWAIT(closed == 1);
    uv_close((uv_handle_t *)&tick, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    member_free(member);
    assert_int_equal(uv_loop_close(&loop), 0);
    process_end(server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_watch_has_told_it_does_not_take_back, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
