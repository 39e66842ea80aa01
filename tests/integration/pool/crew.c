#include "crew.h"

#include "lib/process.h"
#include "member/store.h"
#include "provider/agent_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAKE_MS = 2 };

uv_loop_t crew_loop;
struct hand crew[CREW_MAX];
struct task crew_tasks[CREW_ITEMS_MAX];
size_t crew_task_count;

static uv_timer_t wake;
static int lives; /* of the fixture: each has its own state */

/* ---- What runs --------------------------------------------------------------------------------
 */

struct task *crew_task(const char *id)
{
    for (size_t i = 0; i < crew_task_count; i++) {
        if (strcmp(crew_tasks[i].id, id) == 0) {
            return &crew_tasks[i];
        }
    }
    return NULL;
}

static struct task *task_of(const char *id)
{
    struct task *task = crew_task(id);

    if (!task) {
        assert_true(crew_task_count < CREW_ITEMS_MAX);
        task = &crew_tasks[crew_task_count++];
        (void)snprintf(task->id, sizeof(task->id), "%s", id);
        task->runs_on = task->completed_by = -1;
    }
    return task;
}

size_t crew_completed(void)
{
    size_t count = 0;

    for (size_t i = 0; i < crew_task_count; i++) {
        count += crew_tasks[i].completions > 0;
    }
    return count;
}

bool crew_runs(const char *id)
{
    const struct task *task = crew_task(id);

    return task && task->runs_on >= 0;
}

void crew_end(struct task *task, bool is_success)
{
    const struct work_result result = {.id = task->id,
                                       .epoch = task->epoch,
                                       .is_success = is_success,
                                       .code = is_success ? 0 : 7,
                                       .output = (uint8_t *)"out",
                                       .output_bytes = 3};
    struct hand *hand = &crew[task->runs_on];

    task->runs_on = -1;
    if (is_success) {
        task->completions++;
        task->completed_by = hand->number;
        task->completed_in = hand->sessions;
    }
    assert_int_equal(pool_ended(hand->pool, &result), BATON_OK);
}

/* A worker whose session ends before the leader has its results has lost them: the items run again.
 * So it is on a machine that leaves this process no time for as long as a lease. */
static bool may_have_lost(const struct task *task)
{
    const struct hand *hand = &crew[task->completed_by];

    return hand->sessions != task->completed_in || !pool_may_act(hand->pool, NULL);
}

static void on_start(void *userdata, const struct pool_start *start)
{
    struct hand *hand = userdata;
    struct task *task = task_of(start->item->id);

    assert_int_equal(task->runs_on, -1);
    assert_true(start->epoch >= task->epoch);
    assert_true(task->completed_by < 0 || may_have_lost(task));
    assert_true(pool_may_act(hand->pool, NULL));
    task->runs_on = hand->number;
    task->epoch = start->epoch;
    task->attempt = start->attempt;
    task->starts++;
    task->is_service = start->item->kind == WORK_SERVICE;
    (void)snprintf(task->checkpoint, sizeof(task->checkpoint), "%.*s", (int)start->checkpoint_bytes,
                   start->checkpoint ? (const char *)start->checkpoint : "");
}

static void on_halt(void *userdata, const char *id, uint64_t epoch, instant deadline)
{
    struct hand *hand = userdata;
    struct task *task = crew_task(id);

    assert_non_null(task);
    assert_int_equal(task->runs_on, hand->number);
    assert_int_equal(task->epoch, epoch);
    task->halts++;
    task->halt_by = deadline;
    task->lease_left = pool_lease_left(hand->pool);
    task->lease_end = instant_add(clock_now(), task->lease_left);
    if (!hand->ignores_halts) {
        crew_end(task, false);
    }
}

/* Jobs end in the loop's next rounds, a few at a time. */
static void end_some(void)
{
    int few = 5;

    for (size_t i = 0; i < crew_task_count && few > 0; i++) {
        struct task *task = &crew_tasks[i];

        if (task->runs_on >= 0 && !task->is_service && crew[task->runs_on].ends_jobs) {
            crew_end(task, !crew[task->runs_on].fails_jobs);
            few--;
        }
    }
}

static void on_wake(uv_timer_t *timer)
{
    end_some();
}

static void on_event(void *userdata, const struct pool_event *event)
{
    struct hand *hand = userdata;

    if (event->type == POOL_READY) {
        hand->is_ready = true;
    } else if (event->type == POOL_LEADS_NO_MORE) {
        hand->is_ready = false;
    } else if (event->type == POOL_SESSION) {
        hand->sessions++;
    } else if (event->type == POOL_WORKER_GONE) {
        hand->gone++;
    } else if (event->type == POOL_ERROR) {
        (void)snprintf(hand->error, sizeof(hand->error), "%s", event->error.message);
    }
}

/* ---- Providers ------------------------------------------------------------------------------- */

static struct agent_host host = {.program = BATON_PROGRAM, .lease = "2s"};
static int redis_port;
pid_t crew_server;
span crew_worker_lease;

static void nothing(void)
{
}

static void memory_url(char *ret, size_t ret_bytes)
{
    (void)snprintf(ret, ret_bytes, "memory:crew-%d-%d", (int)getpid(), lives);
}

static int redis_main(void *userdata)
{
    char port[12];

    (void)snprintf(port, sizeof(port), "%d", redis_port);
    (void)execlp("redis-server", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save",
                 "", "--dbfilename", "", "--appendonly", "no", "--logfile", "/dev/null",
                 (char *)NULL);
    return 127;
}

static void redis_begin(void)
{
    redis_port = process_free_port();
    crew_server = process_fork(redis_main, NULL); /* ends with this process */
}

enum { DATABASES = 16 };

static void redis_url(char *ret, size_t ret_bytes)
{
    (void)snprintf(ret, ret_bytes,
                   "redis://127.0.0.1:%d/%d?lease=2s&max-lease=2s&check-interval=500ms"
                   "&guardian=no&state-prefix=crew-%d",
                   redis_port, lives % DATABASES, lives);
}

/* Each test has an agent of its own: its state ends with its folder. */
static void agent_url(char *ret, size_t ret_bytes)
{
    (void)snprintf(ret, ret_bytes, "%s", host.url);
}

static void agent_begin(void)
{
    agent_host_begin(&host);
}

static void agent_end(void)
{
    agent_host_end(&host);
}

static const struct tested {
    const char *name;
    void (*begin)(void); /* once */
    void (*set_up)(void);
    void (*url)(char *ret, size_t ret_bytes);
    void (*tear_down)(void);
} providers[] = {
    {"memory", nothing, nothing, memory_url, nothing},
    {"redis", redis_begin, nothing, redis_url, nothing},
    {"agent", nothing, agent_begin, agent_url, agent_end},
};
static const struct tested *tested = &providers[0];

bool crew_choose(const char *provider)
{
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
        if (strcmp(providers[i].name, provider) == 0) {
            tested = &providers[i];
            tested->begin();
            return true;
        }
    }
    return false;
}

/* ---- The crew ---------------------------------------------------------------------------------
 */

int crew_set_up(void **state)
{
    lives++;
    crew_worker_lease = SPAN_MS(2500); /* an agent's clients have 2 s */
    memset(crew, 0, sizeof(crew));
    memset(crew_tasks, 0, sizeof(crew_tasks));
    crew_task_count = 0;
    tested->set_up();
    assert_int_equal(uv_loop_init(&crew_loop), 0);
    (void)uv_timer_init(&crew_loop, &wake);
    (void)uv_timer_start(&wake, on_wake, WAKE_MS, WAKE_MS);
    return 0;
}

static void on_any(void *userdata, int code, const struct provider_value *values, size_t count)
{
    *(int *)userdata = code;
}

/* Whether the provider has replied to a question. */
static bool replies(struct member *member)
{
    int code = 1;

    if (store_get(member, "any", on_any, &code, NULL) == BATON_OK) {
        CREW_AWAIT(code != 1);
    }
    return code == BATON_OK;
}

void crew_open_member(int number)
{
    struct hand *hand = &crew[number];
    char url[1024], name[16];
    const struct provider_config config = {.loop = &crew_loop, .url = url, .node = name};

    tested->url(url, sizeof(url));
    (void)snprintf(name, sizeof(name), "h%d", number);
    *hand = (struct hand){.number = number, .ends_jobs = true, .left = 1};
    ASSERT_OK(member_open(&hand->member, &config, failure));
    CREW_AWAIT(replies(hand->member));
}

void crew_open(int number, bool leads, bool works)
{
    struct hand *hand = &crew[number];
    char worker[16];
    struct pool_config config = {
        .name = "pool",
        .may_lead = leads,
        .worker = works ? worker : NULL,
        .worker_options = {.slots = CREW_SLOTS, .report_interval = SPAN_MS(50)},
        .leader_options = pool_leader_options(),
        .calls = {
            .on_start = on_start, .on_halt = on_halt, .on_event = on_event, .userdata = hand}};

    config.leader_options.report_interval = SPAN_MS(50);
    config.leader_options.silence = SPAN_S(2);
    config.leader_options.collect = SPAN_MS(500);
    config.leader_options.worker_lease = crew_worker_lease;
    config.leader_options.rebalance_every = SPAN_MS(200);
    (void)snprintf(worker, sizeof(worker), "w%d", number);
    crew_open_member(number);
    ASSERT_OK(pool_open(&hand->pool, hand->member, &config, failure));
}

static void on_member_closed(void *userdata)
{
    ((struct hand *)userdata)->is_member_closed = true;
}

static void on_closed(void *userdata)
{
    ((struct hand *)userdata)->is_closed = true;
}

void crew_kill(int number)
{
    struct hand *hand = &crew[number];

    for (size_t i = 0; i < crew_task_count; i++) {
        struct task *task = &crew_tasks[i];

        task->runs_on = task->runs_on == number ? -1 : task->runs_on;
        task->completed_by = task->completed_by == number ? -1 : task->completed_by;
    }
    if (hand->pool) {
        pool_close(hand->pool, on_closed, hand);
        CREW_AWAIT(hand->is_closed);
        hand->pool = NULL;
    }
    member_close(hand->member, on_member_closed, hand);
    CREW_AWAIT(hand->is_member_closed);
    member_free(hand->member);
    *hand = (struct hand){.number = number};
}

int crew_leader(void)
{
    for (int i = 0; i < CREW_MAX; i++) {
        if (crew[i].pool && crew[i].is_ready) {
            return i;
        }
    }
    return -1;
}

int crew_tear_down(void **state)
{
    for (int i = 0; i < CREW_MAX; i++) {
        if (crew[i].member) {
            crew_kill(i);
        }
    }
    uv_close((uv_handle_t *)&wake, NULL);
    (void)uv_run(&crew_loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&crew_loop), 0);
    tested->tear_down();
    return 0;
}

/* ---- The operator -----------------------------------------------------------------------------
 */

static int pass_main(void *userdata)
{
    (void)setenv("BATON_AGENT", host.url + strlen("agent:"), 1);
    (void)execl(BATON_PROGRAM, BATON_PROGRAM, "pass", "--election", (const char *)userdata,
                (char *)NULL);
    return 127;
}

bool crew_pass(const char *election)
{
    int status = -1;
    pid_t pid;

    if (strcmp(tested->name, "agent") != 0) {
        return false;
    }
    pid = process_fork(pass_main, (char *)(uintptr_t)election);
    CREW_AWAIT(waitpid(pid, &status, WNOHANG) != 0);
    assert_int_equal(status, 0);
    return true;
}

/* ---- Submitting -------------------------------------------------------------------------------
 */

char *crew_items(size_t count, const char *members)
{
    struct buffer items;
    char *text;

    buffer_init(&items, 16 * 1024 * 1024);
    buffer_put_text(&items, "[");
    for (size_t i = 0; i < count; i++) {
        buffer_printf(&items, "%s{\"body\":\"%zu\"%s}", i > 0 ? "," : "", i, members);
    }
    buffer_put_text(&items, "]");
    text = strdup(buffer_text(&items));
    buffer_fini(&items);
    return text;
}

void crew_on_done(void *userdata, int code, const struct baton_error *error)
{
    *(int *)userdata = code;
}

static void on_submitted(void *userdata, int code, const struct pool_submission *submission,
                         const struct baton_error *error)
{
    *(int *)userdata = code;
}

int crew_submit(int number, const char *name, const char *items)
{
    json_t *json = json_loads(items, 0, NULL);
    int code = 1;

    assert_non_null(json);
    ASSERT_OK(pool_submit(crew[number].member, "pool", name, json, on_submitted, &code, failure));
    json_decref(json);
    CREW_AWAIT(code != 1);
    return code;
}
