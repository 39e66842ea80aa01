#include "yard.h"

#include "lib/process.h"
#include "member/store.h"
#include "yard_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAKE_MS = 2, QUIET_TURNS = 20 };

uv_loop_t loop;
struct peer peers[PEERS];
char yard_events[EVENTS_MAX][32];
size_t yard_event_count;

static uv_timer_t wake;
static int lives;    /* of the fixture: each has a fleet of its own */
static pid_t server; /* redis; 0: none */
static int server_port;
static span offset;

/* ---- The provider ---------------------------------------------------------------------------- */

enum { URL_MAX = 256, DATABASES = 64 }; /* one for each life: no member of another is there */

static int redis_main(void *userdata)
{
    char port[12];

    (void)snprintf(port, sizeof(port), "%d", server_port);
    (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1",
                 "--databases", "64", "--save", "", "--dbfilename", "", "--appendonly", "no",
                 "--logfile", "/dev/null", (char *)NULL);
    return 127;
}

bool yard_choose(const char *provider)
{
    (void)signal(SIGPIPE, SIG_IGN);
    if (strcmp(provider, "redis") == 0) {
        server_port = process_free_port();
        server = process_fork(redis_main, NULL);
        return true;
    }
    return strcmp(provider, "memory") == 0;
}

void yard_end(void)
{
    if (server > 0) {
        process_end(server);
    }
}

static void url_of_fleet(char ret[static URL_MAX])
{
    if (server > 0) {
        (void)snprintf(ret, URL_MAX,
                       "redis://127.0.0.1:%d/%d?lease=3s&max-lease=3s&check-interval=500ms"
                       "&guardian=no&state-prefix=yard-%d",
                       server_port, lives % DATABASES, lives);
    } else {
        (void)snprintf(ret, URL_MAX, "memory:yard-%d-%d", (int)getpid(), lives);
    }
}

/* ---- Time ------------------------------------------------------------------------------------ */

instant __real_clock_now(void);
instant __wrap_clock_now(void);

instant __wrap_clock_now(void)
{
    return instant_add(__real_clock_now(), offset);
}

instant yard_real_now(void)
{
    return __real_clock_now();
}

/* A worker's record that changes makes the master look. */
void yard_pass(span time)
{
    static int number;
    char json[64];

    offset.ns += time.ns;
    (void)snprintf(json, sizeof(json), "{\"url\":\"ws://nobody:%d\",\"cordoned\":true}",
                   ++number % 60000 + 1);
    yard_put("worker/nobody", json);
}

/* ---- What is found --------------------------------------------------------------------------- */

struct discovery {
    struct discovery_config config;
    struct discovery *next;
};

static struct discovery *discoveries;
static const struct discovered *found;
static size_t found_count;
static bool found_whole;

int discovery_open(struct discovery **ret, const struct discovery_config *config,
                   struct baton_error *reterr)
{
    struct discovery *discovery;

    if (strcmp(config->urls[0], "bad") == 0) {
        return error_set(reterr, BATON_EINVAL, "bad");
    }
    discovery = calloc(1, sizeof(*discovery));
    assert_non_null(discovery);
    discovery->config = *config;
    discovery->next = discoveries;
    discoveries = discovery;
    *ret = discovery;
    return BATON_OK;
}

void discovery_close(struct discovery *discovery)
{
    struct discovery **at = &discoveries;

    while (*at != discovery) {
        at = &(*at)->next;
    }
    *at = discovery->next;
    free(discovery);
}

void yard_find(const struct discovered *list, size_t count, bool is_whole)
{
    found_whole = is_whole;
    found = list;
    found_count = count;
    for (struct discovery *at = discoveries; at; at = at->next) {
        at->config.on_change(at->config.userdata, found, found_count, found_whole);
    }
}

/* ---- Processes ------------------------------------------------------------------------------- */

struct fleet_state *yard_state(void)
{
    for (int i = 0; i < PEERS; i++) {
        if (peers[i].state && fleet_state_is_ready(peers[i].state)) {
            return peers[i].state;
        }
    }
    return NULL;
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    json_decref(fields);
    if (yard_event_count < EVENTS_MAX) {
        (void)snprintf(yard_events[yard_event_count++], sizeof(yard_events[0]), "%s", name);
    }
}

bool yard_has_event(const char *name)
{
    for (size_t i = 0; i < yard_event_count; i++) {
        if (strcmp(yard_events[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void yard_open_as(int number, const char *name, const char *const *urls)
{
    struct peer *peer = &peers[number];
    char url[URL_MAX];
    const struct provider_config config = {.loop = &loop, .url = url, .node = name};
    struct master_config master = {.plan = {.subscriptions_max = 4, .hysteresis_permille = 200},
                                   .worker_urls = urls,
                                   .twins_last = SPAN_MS(100),
                                   .on_event = on_event};
    struct baton_error error;

    url_of_fleet(url);
    *peer = (struct peer){.name = name};
    while (urls && urls[master.worker_count]) {
        master.worker_count++;
    }
    assert_int_equal(member_open(&peer->member, &config, &error), BATON_OK);
    assert_int_equal(member_begin(peer->member, &error), BATON_OK);
    assert_int_equal(fleet_state_open(&peer->state, peer->member, "yard", NULL, NULL, &error),
                     BATON_OK);
    peer->table = calloc(1, sizeof(*peer->table));
    assert_non_null(peer->table);
    master.state = peer->state;
    master.table = peer->table;
    assert_int_equal(master_open(&peer->master, &master, &error), BATON_OK);
    AWAIT(fleet_state_is_ready(peer->state));
    workers_watch(yard_state());
    for (struct discovery *at = discoveries; found && at; at = at->next) {
        at->config.on_change(at->config.userdata, found, found_count, found_whole);
    }
}

void yard_open(int number, const char *const *urls)
{
    static const char *const names[PEERS] = {"p0", "p1", "p2"};

    yard_open_as(number, names[number], urls);
}

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

void yard_leave(int number)
{
    peers[number].is_leaving = true;
    master_close(peers[number].master, set_flag, &peers[number].has_left);
}

void yard_close(int number)
{
    struct peer *peer = &peers[number];

    faults_end_lingering();
    if (!peer->is_leaving) {
        yard_leave(number);
    }
    AWAIT(peer->has_left);
    faults_end_lingering();
    workers_watch(NULL);
    fleet_state_close(peer->state);
    workers_leave(peer->state);
    peer->state = NULL;
    workers_watch(yard_state());
    member_close(peer->member, set_flag, &peer->is_closed);
    AWAIT(peer->is_closed);
    for (int i = 0; i < 3; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    member_free(peer->member);
    free(peer->table);
    *peer = (struct peer){0};
}

int yard_leader(void)
{
    for (int i = 0; i < PEERS; i++) {
        if (peers[i].master && master_leads(peers[i].master, NULL)) {
            return i;
        }
    }
    return -1;
}

static void on_wake(uv_timer_t *timer)
{
    faults_turn();
    workers_turn();
}

int yard_set_up(void **state)
{
    lives++;
    offset = SPAN_NS(0);
    workers_reset();
    faults_reset();
    yard_event_count = 0;
    found = NULL;
    found_count = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &wake);
    (void)uv_timer_start(&wake, on_wake, WAKE_MS, WAKE_MS);
    return 0;
}

int yard_tear_down(void **state)
{
    workers_check();
    for (int i = 0; i < PEERS; i++) {
        if (peers[i].member) {
            yard_close(i);
        }
    }
    uv_close((uv_handle_t *)&wake, NULL);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

struct written {
    bool is_done;
    int code;
};

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct written *written = userdata;

    *written = (struct written){true, code};
}

/* Below the state, as another program would; then until the state has it. */
void yard_put(const char *key, const char *json)
{
    struct written written = {0};
    char full[128];
    struct member *member = fleet_state_member(yard_state());
    uint64_t changes = fleet_state_counters(yard_state())->changes;
    int fails = yard_put_fails;

    yard_put_fails = 0;
    (void)snprintf(full, sizeof(full), "yard/%s", key);
    assert_int_equal(store_put(member, full, json, json ? strlen(json) : 0, PROVIDER_ANY_REVISION,
                               SPAN_NS(0), on_written, &written, NULL),
                     BATON_OK);
    yard_put_fails = fails;
    AWAIT(written.is_done);
    assert_int_equal(written.code, BATON_OK);
    AWAIT(fleet_state_counters(yard_state())->changes > changes);
}

void yard_subscribe(const char *display, const char *camera)
{
    char key[64], json[160];

    if (!fleet_state_object(yard_state(), FLEET_MODEL, "1", NULL)) {
        yard_put("model/1", "{\"id\":1,\"name\":\"m\",\"url\":\"http://h/m\"}");
    }
    if (!fleet_state_object(yard_state(), FLEET_DISPLAY, display, NULL)) {
        (void)snprintf(key, sizeof(key), "display/%s", display);
        (void)snprintf(json, sizeof(json), "{\"id\":\"%s\"}", display);
        yard_put(key, json);
    }
    if (!fleet_state_object(yard_state(), FLEET_CAMERA, camera, NULL)) {
        (void)snprintf(key, sizeof(key), "camera/%s", camera);
        (void)snprintf(json, sizeof(json), "{\"id\":\"%s\",\"rtspUrl\":\"rtsp://h/%s\"}", camera,
                       camera);
        yard_put(key, json);
    }
    (void)snprintf(key, sizeof(key), "subscription/%s;%s", display, camera);
    (void)snprintf(json, sizeof(json),
                   "{\"id\":\"%s;%s\",\"display\":\"%s\",\"camera\":\"%s\",\"model\":1}", display,
                   camera, display, camera);
    yard_put(key, json);
}

void yard_unsubscribe(const char *display, const char *camera)
{
    char key[64];

    (void)snprintf(key, sizeof(key), "subscription/%s;%s", display, camera);
    yard_put(key, NULL);
}

void yard_worker(const char *id, const char *more)
{
    char key[64], json[160];

    (void)snprintf(key, sizeof(key), "worker/%s", id);
    (void)snprintf(json, sizeof(json), "{\"url\":\"ws://%s:8000\"%s}", id, more);
    yard_put(key, json);
}

/* ---- Reading --------------------------------------------------------------------------------- */

const char *yard_worker_of(const char *subscription)
{
    const char *id = fleet_state_worker_of(yard_state(), subscription);

    return id ? id : "";
}

bool yard_is_leaving(const char *worker, const char *subscription)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(yard_state(), worker);

    for (size_t i = 0; assigned && i < assigned->leaving_count; i++) {
        if (strcmp(assigned->leaving[i], subscription) == 0) {
            return true;
        }
    }
    return false;
}

size_t yard_assigned(const char *worker)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(yard_state(), worker);

    return assigned ? assigned->count : 0;
}

const char *yard_reason(const char *subscription)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(fleet_state_unplaced(yard_state(), NULL), "unplaced"), i,
                       entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "subscription")), subscription) == 0) {
            return json_string_value(json_object_get(entry, "reason"));
        }
    }
    return "";
}

const char *yard_owner(const char *worker, size_t number)
{
    const json_t *workers_of = json_object_get(fleet_state_owners(yard_state(), NULL), "workers");
    const char *name =
        json_string_value(json_array_get(json_object_get(workers_of, worker), number));

    return name ? name : "";
}

void yard_settle(void)
{
    for (int quiet = 0; quiet < QUIET_TURNS;) {
        int leader = yard_leader();
        uint64_t before = leader < 0 ? 0 : master_counters(peers[leader].master)->plans;
        uint64_t writes = leader < 0 ? 0 : master_counters(peers[leader].master)->writes;
        (void)uv_run(&loop, UV_RUN_ONCE);
        quiet = leader >= 0 && leader == yard_leader() && !faults_is_any_late() &&
                        before == master_counters(peers[leader].master)->plans &&
                        writes == master_counters(peers[leader].master)->writes
                    ? quiet + 1
                    : 0;
    }
}
