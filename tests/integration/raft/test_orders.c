/* Many orders of the same moment: how often the disk is written for them, and what the log keeps.
 */
#include "cmocka_all.h"
#include "lib/process.h"
#include "provider/raft/raft_provider.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum {
    TOGETHER = 300,
    LARGE = 100 * 1024,
    LARGE_ORDERS = 200 /* more than a log keeps */,
    EARLIER = 3
};

static char directory[64];

struct life {
    uv_loop_t loop;
    struct provider *provider;
    struct provider_election *election;
    struct lease_cell *cell;
    int done, found;
    bool is_closed;
};

static void on_event(void *userdata, const struct baton_event *event)
{
}

static void start(struct life *life)
{
    char url[256];
    struct baton_error error = {0};
    struct provider_config config = {.loop = &life->loop, .url = url};
    struct provider_campaign campaign = {
        .election = "job", .eligible = true, .on_event = on_event, .userdata = life};

    *life = (struct life){.cell = lease_cell_new()};
    campaign.cell = life->cell;
    (void)uv_loop_init(&life->loop);
    (void)snprintf(url, sizeof(url), "raft://127.0.0.1:0?node=alone&guardian=no&data=%s/alone",
                   directory);
    if (raft_provider_ops.open(&life->provider, &config, &error) != 0 ||
        raft_provider_ops.campaign(&life->election, life->provider, &campaign, &error) != 0) {
        fail_msg("%s", error.message);
    }
}

static void set_up(struct life *life)
{
    process_make_folder(directory, sizeof(directory));
    start(life);
    while (!lease_cell_is_leader(life->cell, NULL)) {
        (void)uv_run(&life->loop, UV_RUN_ONCE);
    }
}

static void on_closed(void *userdata)
{
    ((struct life *)userdata)->is_closed = true;
}

static void tear_down(struct life *life)
{
    raft_provider_ops.close(life->provider, on_closed, life);
    (void)uv_run(&life->loop, UV_RUN_DEFAULT);
    assert_true(life->is_closed);
    assert_int_equal(uv_loop_close(&life->loop), 0);
    lease_cell_free(life->cell);
}

static json_int_t status_of(const struct life *life, const char *group, const char *name)
{
    json_t *status = raft_provider_ops.status(life->provider);
    json_t *at = group ? json_object_get(status, group) : status;
    json_int_t value = json_integer_value(json_object_get(at, name));

    json_decref(status);
    return value;
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    assert_int_equal(code, BATON_OK);
    ((struct life *)userdata)->done++;
}

static void put(struct life *life, int key, const char *value, size_t bytes)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "k%d", key);
    assert_int_equal(raft_provider_ops.put(life->provider, name, value, bytes, UINT64_MAX,
                                           (span){0}, on_put, life, NULL),
                     BATON_OK);
}

static void await(struct life *life, int done)
{
    while (life->done < done) {
        (void)uv_run(&life->loop, UV_RUN_ONCE);
    }
}

static void orders_of_one_moment_are_written_together(void **state)
{
    static struct life life;
    json_int_t writes;

    set_up(&life);
    writes = status_of(&life, "counters", "writes");
    for (int i = 0; i < TOGETHER; i++) {
        put(&life, i, "value", 5);
    }
    await(&life, TOGETHER);
    assert_true(status_of(&life, "counters", "writes") - writes < TOGETHER / 10);
    tear_down(&life);
}

static void a_log_of_many_bytes_is_compacted_before_its_time(void **state)
{
    static struct life life;
    static char value[LARGE];

    set_up(&life);
    memset(value, 'x', sizeof(value));
    for (int i = 0; i < LARGE_ORDERS; i++) {
        put(&life, 0, value, sizeof(value));
        await(&life, i + 1);
    }
    while (status_of(&life, NULL, "first_index") < LARGE_ORDERS / 2) {
        (void)uv_run(&life.loop, UV_RUN_ONCE);
    }
    tear_down(&life);
}

static void on_found(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct life *life = userdata;

    assert_int_equal(code, BATON_OK);
    life->found = (int)count;
    life->done++;
}

static void list(struct life *life)
{
    assert_int_equal(raft_provider_ops.list(life->provider, "k", on_found, life, NULL), BATON_OK);
}

/* The log still has the orders of the process before, and carries them out at the start. */
static void an_order_of_an_earlier_process_answers_no_request(void **state)
{
    static struct life life;

    set_up(&life);
    for (int i = 0; i < EARLIER; i++) {
        put(&life, i, "earlier", 7);
        await(&life, i + 1);
    }
    tear_down(&life);

    start(&life);
    put(&life, EARLIER, "later", 5);
    list(&life); /* the log is carried out for it at once, before what was put is in the log */
    await(&life, 2);
    list(&life);
    await(&life, 3);
    assert_int_equal(life.found, EARLIER + 1);
    tear_down(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_of_one_moment_are_written_together),
        cmocka_unit_test(a_log_of_many_bytes_is_compacted_before_its_time),
        cmocka_unit_test(an_order_of_an_earlier_process_answers_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
