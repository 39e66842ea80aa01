#include "stand.h"

#include "lib/process.h"
#include "provider/agent_host.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uv_loop_t loop;
struct peer peers[PEERS];

static uv_timer_t wake;
static const char *chosen; /* provider */
static pid_t server;       /* redis; 0: none */
static int server_port;
/* The lease outlasts what keeps the loop of all peers busy. */
static struct agent_host agent = {.program = BATON_PROGRAM, .lease = "20s"};
static int lives; /* of the fixture: each has its own state */
static char folder[64];
static int ports[PEERS];

static int redis_main(void *userdata)
{
    char port[12];

    (void)snprintf(port, sizeof(port), "%d", server_port);
    (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null",
                 (char *)NULL);
    return 127;
}

static bool is_agent(void)
{
    return strcmp(chosen, "agent") == 0;
}

bool stand_choose(const char *provider)
{
    chosen = provider;
    if (strcmp(provider, "redis") == 0) {
        server_port = process_free_port();
        server = process_fork(redis_main, NULL);
        return true;
    }
    return strcmp(provider, "raft") == 0 || strcmp(provider, "memory") == 0 || is_agent();
}

void stand_end(void)
{
    if (server > 0) {
        process_end(server);
    }
}

/* ---- Members --------------------------------------------------------------------------------- */

static void raft_url(int number, char *ret, size_t ret_bytes)
{
    char data[80];

    (void)snprintf(data, sizeof(data), "%s/n%d", folder, number);
    (void)mkdir(data, 0700);
    (void)snprintf(ret, ret_bytes,
                   "raft://127.0.0.1:%d?group=yard&preset=fast&heartbeat-timeout=3s&lease=3s"
                   "&guardian=no&data=%s&peers=n0@127.0.0.1:%d,n1@127.0.0.1:%d,n2@127.0.0.1:%d",
                   ports[number], data, ports[0], ports[1], ports[2]);
}

static void url_of(int number, char *ret, size_t ret_bytes)
{
    if (strcmp(chosen, "raft") == 0) {
        raft_url(number, ret, ret_bytes);
    } else if (server > 0) {
        (void)snprintf(ret, ret_bytes,
                       "redis://127.0.0.1:%d?check-interval=500ms&guardian=no&state-prefix=yard-%d",
                       server_port, lives);
    } else if (is_agent()) {
        (void)snprintf(ret, ret_bytes, "%s", agent.url);
    } else {
        (void)snprintf(ret, ret_bytes, "memory:yard-%d-%d", (int)getpid(), lives);
    }
}

void stand_open_members(void)
{
    char url[TEXT_MAX], name[8];

    for (int i = 0; i < PEERS; i++) {
        const struct provider_config config = {.loop = &loop, .url = url, .node = name};
        (void)snprintf(name, sizeof(name), "n%d", i);
        url_of(i, url, sizeof(url));
        peers[i].is_closed = false;
        ASSERT_OK(member_open(&peers[i].member, &config, failure));
        ASSERT_OK(member_begin(peers[i].member, failure));
    }
}

static void on_wake(uv_timer_t *timer)
{
}

int stand_set_up(void **state)
{
    (void)signal(SIGPIPE, SIG_IGN);
    memset(peers, 0, sizeof(peers));
    lives++;
    process_make_folder(folder, sizeof(folder));
    process_free_ports(ports, PEERS);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &wake);
    (void)uv_timer_start(&wake, on_wake, 1, 1);
    if (is_agent()) {
        agent_host_begin(&agent);
    }
    stand_open_members();
    return 0;
}

static void on_closed(void *userdata)
{
    ((struct peer *)userdata)->is_closed = true;
}

int stand_tear_down(void **state)
{
    for (int i = 0; i < PEERS; i++) {
        stand_close(i);
        member_close(peers[i].member, on_closed, &peers[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        AWAIT(peers[i].is_closed);
    }
    uv_close((uv_handle_t *)&wake, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    for (int i = 0; i < PEERS; i++) {
        member_free(peers[i].member);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    if (is_agent()) {
        agent_host_end(&agent);
    }
    process_remove_folder(folder);
    return 0;
}

/* ---- States ---------------------------------------------------------------------------------- */

static void on_ready(void *userdata)
{
    ((struct peer *)userdata)->is_ready = true;
}

static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct peer *peer =
        (struct peer *)((char *)observer - offsetof(struct peer, observer)); /* which has it */
    struct heard *heard = &peer->heard[peer->heard_count];

    if (peer->heard_count < EVENTS_MAX) {
        peer->heard_count++;
        heard->change = event->change;
        heard->kind = event->kind;
        heard->has_before = event->before != NULL;
        (void)snprintf(heard->id, sizeof(heard->id), "%s", event->id);
        (void)snprintf(heard->reason, sizeof(heard->reason), "%s",
                       event->reason ? event->reason : "");
    }
}

void stand_open(int number)
{
    struct peer *peer = &peers[number];

    peer->is_ready = false;
    peer->heard_count = 0;
    peer->observer.on_change = on_change;
    ASSERT_OK(fleet_state_open(&peer->state, peer->member, "yard", on_ready, peer, failure));
    fleet_state_observe(peer->state, &peer->observer);
}

void stand_ready(int number)
{
    stand_open(number);
    AWAIT(peers[number].is_ready);
    assert_true(fleet_state_is_ready(peers[number].state));
}

void stand_close(int number)
{
    fleet_state_close(peers[number].state);
    peers[number].state = NULL;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct fleet_object *object_of(enum fleet_kind kind, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    struct fleet_object *object = NULL;

    assert_non_null(json);
    ASSERT_OK(fleet_object_read(&object, kind, NULL, json, failure));
    json_decref(json);
    return object;
}

void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct written *written = userdata;

    written->count++;
    written->code = code;
    written->revision = revision;
    (void)snprintf(written->message, sizeof(written->message), "%s", error ? error->message : "");
}

int put(int number, enum fleet_kind kind, const char *json, uint64_t revision,
        uint64_t *ret_revision)
{
    struct fleet_object *object = object_of(kind, json);
    struct written written = {0};

    ASSERT_OK(
        fleet_state_put(peers[number].state, object, revision, on_written, &written, failure));
    fleet_object_unref(object);
    AWAIT(written.count > 0);
    if (ret_revision) {
        *ret_revision = written.revision;
    }
    return written.code;
}

void put_raw(int number, const char *key, const char *text)
{
    struct written written = {0};

    AWAIT(store_put(peers[number].member, key, text, text ? strlen(text) : 0, PROVIDER_ANY_REVISION,
                    (span){0}, on_written, &written, NULL) == BATON_OK); /* it may connect yet */
    AWAIT(written.count > 0);
    assert_int_equal(written.code, BATON_OK);
}

const struct heard *heard_of(int number, enum fleet_change change, const char *id)
{
    for (size_t i = 0; i < peers[number].heard_count; i++) {
        const struct heard *heard = &peers[number].heard[i];
        if (heard->change == change && strcmp(heard->id, id) == 0) {
            return heard;
        }
    }
    return NULL;
}
