/* A node runs out of memory, while it applies committed entries or takes a connection. */
#include "cmocka_all.h"
#include "lib/process.h"
#include "net/stream.h"
#include "provider/raft/keys.h"
#include "provider/raft/raft_provider.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ORDERS = 3, FDS_MAX = 256 };

static char directory[64];
static bool is_out_of_memory;
static bool is_starved;    /* from then on there is none for anything */
static bool has_no_memory; /* calloc() finds none */

int __real_keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index,
                          instant now, struct keys_value *ret_changed);
int __wrap_keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index,
                          instant now, struct keys_value *ret_changed);

int __wrap_keys_carry_out(struct keys *keys, const struct keys_order *order, uint64_t index,
                          instant now, struct keys_value *ret_changed)
{
    *ret_changed = (struct keys_value){0};
    has_no_memory = is_starved;
    return is_out_of_memory ? BATON_ENOMEM
                            : __real_keys_carry_out(keys, order, index, now, ret_changed);
}

static int accepted;

int __real_stream_accept(struct stream **ret, const struct stream_options *options, int fd,
                         bool is_unix, struct baton_error *reterr);
int __wrap_stream_accept(struct stream **ret, const struct stream_options *options, int fd,
                         bool is_unix, struct baton_error *reterr);

int __wrap_stream_accept(struct stream **ret, const struct stream_options *options, int fd,
                         bool is_unix, struct baton_error *reterr)
{
    accepted++;
    if (is_out_of_memory) {
        (void)close(fd);
        return BATON_ENOMEM;
    }
    return __real_stream_accept(ret, options, fd, is_unix, reterr);
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return has_no_memory ? NULL : __real_calloc(count, bytes);
}

struct life {
    uv_loop_t loop;
    struct provider *provider;
    struct provider_election *election;
    struct lease_cell *cell;
    int losses, errors, answers;
    bool is_closed;
    char message[BATON_ERROR_MESSAGE_MAX];
    char found[64];
};

static void on_event(void *userdata, const struct baton_event *event)
{
    struct life *life = userdata;

    if (event->type == BATON_EVENT_LOST) {
        life->losses++;
    } else if (event->type == BATON_EVENT_ERROR) {
        life->errors++;
        (void)snprintf(life->message, sizeof(life->message), "%s", event->error.message);
    }
}

static void begin(struct life *life)
{
    char url[256];
    struct baton_error error = {0};
    struct provider_config config = {.loop = &life->loop, .url = url};
    struct provider_campaign campaign = {
        .election = "job", .eligible = true, .on_event = on_event, .userdata = life};

    *life = (struct life){.cell = lease_cell_new()};
    campaign.cell = life->cell;
    (void)uv_loop_init(&life->loop);
    (void)snprintf(url, sizeof(url),
                   "raft://127.0.0.1:0?node=alone&guardian=no&checkpoint=1s&data=%s/alone",
                   directory);
    if (raft_provider_ops.open(&life->provider, &config, &error) != 0 ||
        raft_provider_ops.campaign(&life->election, life->provider, &campaign, &error) != 0) {
        fail_msg("%s", error.message);
    }
    while (!lease_cell_is_leader(life->cell, NULL)) {
        (void)uv_run(&life->loop, UV_RUN_ONCE);
    }
}

static void on_closed(void *userdata)
{
    ((struct life *)userdata)->is_closed = true;
}

static void end(struct life *life)
{
    raft_provider_ops.close(life->provider, on_closed, life);
    (void)uv_run(&life->loop, UV_RUN_DEFAULT);
    assert_true(life->is_closed);
    assert_int_equal(uv_loop_close(&life->loop), 0);
    lease_cell_free(life->cell);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    (void)userdata; /* answered at the end at the latest, when its outcome is not known */
}

static void on_value(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct life *life = userdata;

    life->answers++;
    if (code == BATON_OK && count == 1) {
        (void)snprintf(life->found, sizeof(life->found), "%.*s", (int)values->bytes,
                       (const char *)values->data);
    }
}

static void put(struct life *life, const char *key, const char *value)
{
    assert_int_equal(raft_provider_ops.put(life->provider, key, value, strlen(value), UINT64_MAX,
                                           (span){0}, on_put, life, NULL),
                     BATON_OK);
}

static void a_node_without_memory_steps_down_and_has_everything_at_its_next_start(void **state)
{
    static struct life life;

    process_make_folder(directory, sizeof(directory));
    begin(&life);
    is_out_of_memory = true;
    for (int i = 0; i < ORDERS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%d", i);
        put(&life, key, "value");
    }
    while (life.losses == 0 || life.errors == 0) {
        (void)uv_run(&life.loop, UV_RUN_ONCE);
    }
    assert_false(lease_cell_is_leader(life.cell, NULL));
    assert_int_equal(life.errors, 1);
    assert_non_null(strstr(life.message, "out of memory for the group's state"));
    end(&life);

    is_out_of_memory = false;
    begin(&life);
    assert_int_equal(raft_provider_ops.get(life.provider, "key-0", on_value, &life, NULL),
                     BATON_OK);
    while (life.answers == 0) {
        (void)uv_run(&life.loop, UV_RUN_ONCE);
    }
    assert_string_equal(life.found, "value");
    end(&life);
    process_remove_folder(directory);
}

/* Its program ends when it hears of it, and else would go on without the group for ever. */
static void a_node_without_memory_says_so_as_soon_as_there_is_memory_to_say_it(void **state)
{
    static struct life life;

    process_make_folder(directory, sizeof(directory));
    begin(&life);
    is_out_of_memory = is_starved = true;
    put(&life, "key", "value");
    while (lease_cell_is_leader(life.cell, NULL)) {
        (void)uv_run(&life.loop, UV_RUN_ONCE);
    }
    assert_int_equal(life.errors, 0);
    is_out_of_memory = is_starved = has_no_memory = false;
    while (life.errors == 0) {
        (void)uv_run(&life.loop, UV_RUN_ONCE);
    }
    assert_non_null(strstr(life.message, "out of memory for the group's state"));
    end(&life);
    process_remove_folder(directory);
}

/* Connects to the only socket of this process that listens. */
static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    for (int one = 0; one < FDS_MAX; one++) {
        struct sockaddr_storage address;
        socklen_t bytes = sizeof(address), size = sizeof(int);
        int listens = 0;

        (void)getsockopt(one, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
        if (listens && getsockname(one, (struct sockaddr *)&address, &bytes) == 0 &&
            address.ss_family == AF_INET) {
            assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
            return fd;
        }
    }
    fail_msg("nobody listens");
    return -1;
}

static void a_connection_without_memory_is_ended_and_the_next_one_is_taken(void **state)
{
    static struct life life;
    int clients[2];
    char byte;

    process_make_folder(directory, sizeof(directory));
    begin(&life);
    for (int i = 0; i < 2; i++) {
        clients[i] = dial();
        is_out_of_memory = i == 0;
        while (accepted == i) {
            (void)uv_run(&life.loop, UV_RUN_ONCE);
        }
    }
    assert_int_equal(read(clients[0], &byte, 1), 0);
    (void)close(clients[0]);
    (void)close(clients[1]);
    end(&life);
    process_remove_folder(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_without_memory_steps_down_and_has_everything_at_its_next_start),
        cmocka_unit_test(a_node_without_memory_says_so_as_soon_as_there_is_memory_to_say_it),
        cmocka_unit_test(a_connection_without_memory_is_ended_and_the_next_one_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
