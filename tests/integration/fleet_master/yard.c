#include "yard.h"

#include "lib/process.h"
#include "member/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAKE_MS = 2, SUBSCRIPTIONS_MAX = 64, QUIET_TURNS = 20 };

uv_loop_t loop;
struct peer peers[PEERS];
char yard_events[EVENTS_MAX][32];
size_t yard_event_count;
int yard_put_fails;
int yard_list_fails;
bool yard_puts_linger;

static uv_timer_t wake;
static int lives;    /* of the fixture: each has a fleet of its own */
static pid_t server; /* redis; 0: none */
static int server_port;
static span offset;
static bool confirms_always;

/* ---- The provider ---------------------------------------------------------------------------- */

enum { URL_MAX = 256, DATABASES = 64 }; /* one for each life: no member of another is there */

static int redis_main(void *userdata)
{
    char port[12];
    (void)userdata;

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
                       "redis://127.0.0.1:%d/%d?lease=900ms&max-lease=900ms&check-interval=500ms"
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

/* ---- Writes that fail ------------------------------------------------------------------------ */

int __real_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);
int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr);

struct lingering {
    struct lingering *next;
    struct member *member;
    char *key;
    void *data; /* NULL: it deletes */
    size_t bytes;
    uint64_t revision;
    provider_put_cb done;
    void *userdata;
};

static struct lingering *lingering, **last_lingering = &lingering;

static void linger(const struct lingering *write)
{
    struct lingering *copy = malloc(sizeof(*copy));

    assert_non_null(copy);
    *copy = *write;
    copy->next = NULL;
    copy->key = strdup(write->key);
    copy->data = NULL;
    if (write->data) {
        copy->data = malloc(write->bytes + 1);
        assert_non_null(copy->data);
        memcpy(copy->data, write->data, write->bytes);
    }
    *last_lingering = copy;
    last_lingering = &copy->next;
}

static void end_lingering(void)
{
    struct lingering *write;

    while ((write = lingering)) {
        lingering = write->next;
        last_lingering = lingering ? last_lingering : &lingering;
        assert_int_equal(__real_store_put(write->member, write->key, write->data, write->bytes,
                                          write->revision, SPAN_NS(0), write->done, write->userdata,
                                          NULL),
                         BATON_OK);
        free(write->key);
        free(write->data);
        free(write);
    }
}

int __wrap_store_put(struct member *member, const char *key, const void *data, size_t bytes,
                     uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                     struct baton_error *reterr)
{
    if (yard_put_fails > 0) {
        yard_put_fails--;
        return error_set(reterr, BATON_EUNAVAILABLE, "no");
    }
    if (yard_puts_linger) {
        linger(&(struct lingering){.member = member,
                                   .key = (char *)key,
                                   .data = (void *)data,
                                   .bytes = bytes,
                                   .revision = revision,
                                   .done = done,
                                   .userdata = userdata});
        return BATON_OK;
    }
    return __real_store_put(member, key, data, bytes, revision, lifetime, done, userdata, reterr);
}

/* ---- Lists of the processes that fail -------------------------------------------------------- */

static provider_members_cb real_done;

int __real_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr);
int __wrap_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr);

static void on_failing_list(void *userdata, int code, const struct baton_member *members,
                            size_t count)
{
    (void)code;
    (void)members;
    (void)count;
    real_done(userdata, BATON_EUNAVAILABLE, NULL, 0);
}

/* By turns at once and later. */
int __wrap_members_list(struct election *election, provider_members_cb done, void *userdata,
                        struct baton_error *reterr)
{
    if (yard_list_fails > 0 && yard_list_fails-- % 2 == 0) {
        return error_set(reterr, BATON_EUNAVAILABLE, "no");
    }
    real_done = done;
    return __real_members_list(election, yard_list_fails > 0 ? on_failing_list : done, userdata,
                               reterr);
}

/* ---- Workers --------------------------------------------------------------------------------- */

struct worker_table {
    struct worker_observer *observers;
};

static struct {
    char id[16];
    char process[8];
    struct worker_live live;
    bool is_heard;
    bool may_run[SUBSCRIPTIONS_MAX];
} workers[YARD_WORKERS];

static char subscriptions[SUBSCRIPTIONS_MAX][64]; /* all that were ever assigned */

static size_t number_of(const char *subscription)
{
    size_t i = 0;

    while (subscriptions[i][0] && strcmp(subscriptions[i], subscription) != 0) {
        i++;
        assert_true(i < SUBSCRIPTIONS_MAX);
    }
    if (!subscriptions[i][0]) {
        (void)snprintf(subscriptions[i], sizeof(subscriptions[i]), "%s", subscription);
    }
    return i;
}

static size_t find(const char *id)
{
    size_t i = 0;

    while (workers[i].id[0] && strcmp(workers[i].id, id) != 0) {
        i++;
        assert_true(i < YARD_WORKERS);
    }
    if (!workers[i].id[0]) {
        (void)snprintf(workers[i].id, sizeof(workers[i].id), "%s", id);
    }
    return i;
}

/* Those of the worker's list now; all others as they are, or (`anew`) none. */
static void run(size_t number, bool anew)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(yard_state(), workers[number].id);

    if (anew) {
        memset(workers[number].may_run, 0, sizeof(workers[number].may_run));
    }
    for (size_t i = 0; assigned && workers[number].live.is_online && i < assigned->count; i++) {
        workers[number].may_run[number_of(assigned->subscriptions[i])] = true;
    }
}

static void watch(void)
{
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        const char *has = NULL;
        for (size_t j = 0; j < YARD_WORKERS; j++) {
            if (workers[j].live.is_online && workers[j].may_run[i]) {
                if (has) {
                    fail_msg("%s may run at %s and at %s", subscriptions[i], has, workers[j].id);
                }
                has = workers[j].id;
            }
        }
    }
}

static void tell(size_t number, enum worker_change change)
{
    for (int i = 0; i < PEERS; i++) {
        struct worker_observer *next;
        for (struct worker_observer *at = peers[i].table ? peers[i].table->observers : NULL; at;
             at = next) {
            next = at->next;
            at->on_change(at, &workers[number].live, change);
        }
    }
}

void worker_table_observe(struct worker_table *table, struct worker_observer *observer)
{
    observer->next = table->observers;
    table->observers = observer;
}

void worker_table_ignore(struct worker_table *table, const struct worker_observer *observer)
{
    struct worker_observer **at = &table->observers;

    while (*at != observer) {
        at = &(*at)->next;
    }
    *at = observer->next;
}

const struct worker_live *worker_table_find(const struct worker_table *table, const char *id)
{
    (void)table;
    for (size_t i = 0; i < YARD_WORKERS; i++) {
        if (workers[i].is_heard && strcmp(workers[i].id, id) == 0) {
            return &workers[i].live;
        }
    }
    return NULL;
}

void yard_hear(const char *id, bool is_online)
{
    size_t number = find(id);
    struct worker_live *live = &workers[number].live;

    (void)snprintf(workers[number].process, sizeof(workers[number].process), "%s",
                   is_online ? yard_owner(id, 0) : "");
    *live = (struct worker_live){.id = workers[number].id,
                                 .process = workers[number].process,
                                 .is_online = is_online,
                                 .since = clock_now(),
                                 .heard = clock_now()};
    workers[number].is_heard = true;
    run(number, true); /* it gets its list at once */
    watch();
    tell(number, is_online ? WORKER_CHANGED_ONLINE : WORKER_CHANGED_OFFLINE);
}

void yard_report(const char *id, double cpu)
{
    size_t number = find(id);

    workers[number].live.usage.cpu = cpu;
    workers[number].live.heard = clock_now();
    tell(number, WORKER_CHANGED_REPORT);
}

void yard_confirm(const char *id)
{
    size_t number = find(id);
    const struct fleet_assigned *assigned = fleet_state_assigned(yard_state(), id);
    struct worker_live *live = &workers[number].live;

    if (assigned && live->is_online && live->synced_revision != assigned->revision) {
        live->is_in_sync = true;
        live->synced_revision = assigned->revision;
        run(number, true);
        tell(number, WORKER_CHANGED_SYNC);
    }
}

void yard_confirm_always(bool always)
{
    confirms_always = always;
}

static void on_wake(uv_timer_t *timer)
{
    (void)timer;
    end_lingering();
    for (size_t i = 0; confirms_always && yard_state() && i < YARD_WORKERS; i++) {
        if (workers[i].is_heard) {
            yard_confirm(workers[i].id);
        }
    }
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

static struct fleet_observer watcher;
static struct fleet_state *watched;

/* What an online worker has is in nobody else's list, not even in that of a dead one. */
static void watch_lists(const char *id)
{
    const struct fleet_assigned *assigned = fleet_state_assigned(watched, id);

    for (size_t i = 0; assigned && workers[find(id)].live.is_online && i < assigned->count; i++) {
        for (const struct fleet_assigned *other = NULL;
             (other = fleet_state_next_assigned(watched, other));) {
            for (size_t j = 0; other != assigned && j < other->count; j++) {
                if (strcmp(other->subscriptions[j], assigned->subscriptions[i]) == 0) {
                    fail_msg("%s is in the lists of %s and %s", assigned->subscriptions[i], id,
                             other->worker);
                }
            }
        }
    }
}

/* Each list that is stored may run from now on. */
static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    (void)observer;
    if (event->change == FLEET_CHANGED_ASSIGNED) {
        run(find(event->id), false);
        watch();
        watch_lists(event->id);
    }
}

struct fleet_state *yard_state(void)
{
    for (int i = 0; i < PEERS; i++) {
        if (peers[i].state && fleet_state_is_ready(peers[i].state)) {
            return peers[i].state;
        }
    }
    return NULL;
}

static void watch_state(struct fleet_state *state)
{
    if (watched) {
        fleet_state_ignore(watched, &watcher);
    }
    watched = state;
    if (watched) {
        watcher.on_change = on_change;
        fleet_state_observe(watched, &watcher);
    }
}

static void on_event(void *userdata, const char *name, json_t *fields)
{
    (void)userdata;
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
    *peer = (struct peer){0};
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
    watch_state(yard_state());
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

void yard_close(int number)
{
    struct peer *peer = &peers[number];
    bool has_left = false;

    end_lingering();
    master_close(peer->master, set_flag, &has_left);
    AWAIT(has_left);
    end_lingering();
    watch_state(NULL);
    fleet_state_close(peer->state);
    peer->state = NULL;
    watch_state(yard_state());
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

int yard_set_up(void **state)
{
    (void)state;
    lives++;
    offset = SPAN_NS(0);
    confirms_always = true;
    memset(workers, 0, sizeof(workers));
    memset(subscriptions, 0, sizeof(subscriptions));
    yard_event_count = 0;
    yard_put_fails = 0;
    yard_list_fails = 0;
    yard_puts_linger = false;
    found = NULL;
    found_count = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)uv_timer_init(&loop, &wake);
    (void)uv_timer_start(&wake, on_wake, WAKE_MS, WAKE_MS);
    return 0;
}

int yard_tear_down(void **state)
{
    (void)state;
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
    (void)revision;
    (void)error;

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
        quiet = leader >= 0 && leader == yard_leader() &&
                        before == master_counters(peers[leader].master)->plans &&
                        writes == master_counters(peers[leader].master)->writes
                    ? quiet + 1
                    : 0;
    }
}
