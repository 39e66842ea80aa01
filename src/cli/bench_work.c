#include "cli/bench_work.h"

#include "cli/bench_agent.h"
#include "cli/bench_server.h"
#include "cli/bench_work_process.h"
#include "cli/cluster.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "member/store.h"
#include "pool/submit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 120, WORKER_PROCESSES_MAX = 20, BATCH = 10, WORKERS = 20, ITEMS = 500 };

struct bench_work {
    const struct options *options;
    unsigned workers, items; /* items in all */
    unsigned slots;          /* of each worker */
    unsigned processes;      /* with the candidates */
    bool kills_leader, is_lost;
    char folder[64];
    char redis_url[96];
    struct bench_group group;
    struct bench_server server;
    struct bench_yard *yard;
    pid_t pids[BENCH_PROCESSES_MAX];
    uv_loop_t loop; /* of this process's own client */
    struct member *client;
};

static void rest(span length)
{
    const struct timespec wait = {.tv_sec = length.ns / 1000000000,
                                  .tv_nsec = length.ns % 1000000000};
    (void)nanosleep(&wait, NULL);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static const char *url_for(const struct bench_work *bench, unsigned number)
{
    return bench->redis_url[0] ? bench->redis_url
                               : bench->group.agents[number % BENCH_GROUP_AGENTS].url;
}

/* The workers are spread over the processes behind the candidates. */
static unsigned first_worker(const struct bench_work *bench, unsigned number)
{
    return (number - BENCH_CANDIDATES) * bench->workers / (bench->processes - BENCH_CANDIDATES);
}

static int start(struct bench_work *bench, unsigned number, struct baton_error *reterr)
{
    struct bench_process process = {.yard = bench->yard,
                                    .number = number,
                                    .url = url_for(bench, number),
                                    .slots = bench->slots};

    if (number >= BENCH_CANDIDATES) {
        process.first_worker = first_worker(bench, number);
        process.workers = first_worker(bench, number + 1) - process.first_worker;
    }
    bench->pids[number] = fork();
    if (bench->pids[number] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setpgid(0, 0); /* Ctrl-C reaches only the benchmark */
        (void)signal(SIGPIPE, SIG_IGN);
        _exit(bench_process_run(&process));
    }
    bench->yard->pids[number] = bench->pids[number];
    return bench->pids[number] > 0 ? BATON_OK
                                   : error_set(reterr, BATON_EIO, "fork: %s", strerror(errno));
}

static void reap(struct bench_work *bench, unsigned number)
{
    if (bench->pids[number] > 0) {
        (void)kill(bench->pids[number], SIGKILL);
        (void)waitpid(bench->pids[number], NULL, 0);
        bench->pids[number] = 0;
    }
}

/* ---- What is awaited ------------------------------------------------------------------------- */

/* Items that the process runs; 0 of `process`: that none does. */
static unsigned count_at(const struct bench_work *bench, uint32_t process)
{
    unsigned count = 0;

    for (unsigned i = 0; i < bench->items; i++) {
        count += bench->yard->items[i].process == process;
    }
    return count;
}

static int leader_of(const struct bench_work *bench)
{
    for (int i = 0; i < BENCH_CANDIDATES; i++) {
        if (bench->pids[i] > 0 && bench->yard->leader[i] != 0) {
            return i;
        }
    }
    return -1;
}

static bool all_run(struct bench_work *bench)
{
    return count_at(bench, 0) == 0 && leader_of(bench) >= 0;
}

static bool has_started(struct bench_work *bench)
{
    return bench->yard->first_start_ns != 0;
}

/* Every worker has nearly its share. */
static bool are_balanced(struct bench_work *bench)
{
    unsigned share = bench->items / (bench->processes - BENCH_CANDIDATES);

    for (unsigned i = BENCH_CANDIDATES; i < bench->processes; i++) {
        if (count_at(bench, i + 1) < share - share / 10) {
            return false;
        }
    }
    return all_run(bench);
}

static int await(struct bench_work *bench, bool (*is_so)(struct bench_work *bench),
                 const char *what, struct baton_error *reterr)
{
    instant limit = instant_add(clock_now(), SPAN_S(PATIENCE_S));

    while (!is_so(bench)) {
        if (interrupt_signal()) {
            return BATON_ECANCELED;
        }
        if (!instant_before(clock_now(), limit)) {
            return error_set(reterr, BATON_ETIMEDOUT, "%s: not after %d s; %u of %u items run",
                             what, PATIENCE_S, bench->items - count_at(bench, 0), bench->items);
        }
        (void)uv_run(&bench->loop, UV_RUN_NOWAIT);
        rest(SPAN_US(200));
    }
    return BATON_OK;
}

/* ---- This process's own requests ------------------------------------------------------------- */

struct wanted {
    bool is_done;
    int code;
    struct baton_error error;
};

static void on_submitted(void *userdata, int code, const struct pool_submission *what,
                         const struct baton_error *error)
{
    struct wanted *wanted = userdata;
    (void)what;

    wanted->is_done = true;
    wanted->code = code;
    if (error) {
        wanted->error = *error;
    }
}

static int submit(struct bench_work *bench, const json_t *items, struct baton_error *reterr)
{
    static struct wanted wanted; /* its end may come when an interrupted benchmark closes */
    int code;

    wanted = (struct wanted){0};
    code = pool_submit(bench->client, BENCH_POOL, NULL, items, on_submitted, &wanted, reterr);

    while (code == BATON_OK && !wanted.is_done && !interrupt_signal()) {
        (void)uv_run(&bench->loop, UV_RUN_ONCE);
    }
    if (code == BATON_OK && wanted.code != BATON_OK && reterr) {
        *reterr = wanted.error;
    }
    return code ? code : wanted.code;
}

static int submit_services(struct bench_work *bench, struct baton_error *reterr)
{
    size_t bytes = (size_t)options_number(bench->options, "bytes");
    char *body = calloc(1, bytes + 1);
    json_t *items = json_array();
    int code;

    for (size_t i = 0; body && i < bytes; i++) {
        body[i] = 'x';
    }
    for (unsigned i = 0; i < bench->items; i++) {
        char id[24];

        (void)snprintf(id, sizeof(id), "item-%u", i);
        (void)json_array_append_new(
            items, json_pack("{s:s, s:s, s:s}", "id", id, "kind", "service", "body", body));
    }
    code = submit(bench, items, reterr);
    json_decref(items);
    free(body);
    return code;
}

static int submit_batch(struct bench_work *bench, struct baton_error *reterr)
{
    json_t *items = json_array();
    int code;

    for (int i = 0; i < BATCH; i++) {
        (void)json_array_append_new(items, json_pack("{s:s}", "body", "batch"));
    }
    code = submit(bench, items, reterr);
    json_decref(items);
    return code;
}

/* ---- A state that is lost -------------------------------------------------------------------- */

struct deletion {
    struct bench_work *bench;
    size_t left;
    bool is_listed;
    int code;
};

static void on_deleted(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct deletion *deletion = userdata;
    (void)revision;
    (void)error;

    deletion->left--;
    deletion->code = deletion->code ? deletion->code : code;
}

static void on_listed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct deletion *deletion = userdata;

    deletion->is_listed = true;
    deletion->code = code;
    for (size_t i = 0; code == BATON_OK && i < count; i++) {
        deletion->left +=
            store_put(deletion->bench->client, values[i].key, NULL, 0, PROVIDER_ANY_REVISION,
                      SPAN_NS(0), on_deleted, deletion, NULL) == BATON_OK;
    }
}

/* As a server without persistence does that comes back empty: but the elections go on. */
static int lose_state(struct bench_work *bench, struct baton_error *reterr)
{
    static struct deletion deletion; /* as `wanted` in submit() */
    int code;

    deletion = (struct deletion){.bench = bench};
    code = store_list(bench->client, "work/" BENCH_POOL "/", on_listed, &deletion, reterr);

    while (code == BATON_OK && (!deletion.is_listed || deletion.left > 0) && !interrupt_signal()) {
        (void)uv_run(&bench->loop, UV_RUN_ONCE);
    }
    return code || deletion.code == BATON_OK
               ? code
               : error_set(reterr, deletion.code, "the pool's keys could not be deleted");
}

/* ---- The rounds ------------------------------------------------------------------------------ */

/* The worker process with the most items. */
static unsigned fullest(const struct bench_work *bench)
{
    unsigned best = BENCH_CANDIDATES;

    for (unsigned i = BENCH_CANDIDATES; i < bench->processes; i++) {
        if (count_at(bench, i + 1) > count_at(bench, best + 1)) {
            best = i;
        }
    }
    return best;
}

/* From the kill until everything that the worker ran runs elsewhere. */
static int kill_worker(struct bench_work *bench, double *ret_ms, unsigned *ret_count,
                       struct baton_error *reterr)
{
    unsigned victim = fullest(bench);
    instant fault, last;
    int code;

    *ret_count = count_at(bench, victim + 1);
    fault = last = clock_now();
    reap(bench, victim);
    for (unsigned i = 0; i < bench->items; i++) {
        uint32_t gone = victim + 1;

        (void)atomic_compare_exchange_strong(&bench->yard->items[i].process, &gone, 0);
    }
    code = await(bench, all_run, "the items of the killed worker run elsewhere", reterr);
    for (unsigned i = 0; i < bench->items; i++) {
        last = instant_max(last, (instant){bench->yard->items[i].started_ns});
    }
    *ret_ms = (double)instant_since(last, fault).ns / 1e6;
    code = code ? code : start(bench, victim, reterr);
    return code ? code : await(bench, are_balanced, "the new worker has its share", reterr);
}

/* From the kill until the next leader has had a new item started. */
static int kill_leader(struct bench_work *bench, double *ret_ms, struct baton_error *reterr)
{
    int victim = leader_of(bench);
    instant fault;
    int code;

    if (bench->is_lost) {
        (void)kill(bench->pids[victim], SIGSTOP); /* it would take the loss for cancellations */
    }
    code = bench->is_lost ? lose_state(bench, reterr) : BATON_OK;
    bench->yard->first_start_ns = 0;
    bench->yard->leader[victim] = 0;
    fault = clock_now();
    (void)kill(bench->pids[victim], SIGKILL);
    code = code ? code : submit_batch(bench, reterr);
    code = code ? code : await(bench, has_started, "the next leader starts an item", reterr);
    *ret_ms = (double)(bench->yard->first_start_ns - fault.ns) / 1e6;
    reap(bench, (unsigned)victim);
    code = code ? code : start(bench, (unsigned)victim, reterr);
    code = code ? code : await(bench, all_run, "all items run", reterr);
    rest(SPAN_MS(300)); /* the new candidate has heard the workers */
    return code;
}

static int one_round(struct bench_work *bench, double *ret_ms, uint64_t *ret_items,
                     struct baton_error *reterr)
{
    unsigned count = 0;
    int code = bench->kills_leader ? kill_leader(bench, ret_ms, reterr)
                                   : kill_worker(bench, ret_ms, &count, reterr);

    *ret_items += count;
    return code;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static int open_client(struct bench_work *bench, struct baton_error *reterr)
{
    struct provider_config config = {
        .loop = &bench->loop, .url = url_for(bench, 1), .node = "bench"};

    if (uv_loop_init(&bench->loop) != 0) {
        return error_set(reterr, BATON_EIO, "no descriptor is left for a loop");
    }
    return member_open(&bench->client, &config, reterr);
}

static void on_closed(void *userdata)
{
    (void)userdata; /* the loop ends by itself */
}

static void close_client(struct bench_work *bench)
{
    if (bench->client) {
        member_close(bench->client, on_closed, NULL);
        (void)uv_run(&bench->loop, UV_RUN_DEFAULT);
        member_free(bench->client);
        (void)uv_loop_close(&bench->loop);
    }
}

static int prepare(struct bench_work *bench, struct baton_error *reterr)
{
    size_t bytes = sizeof(*bench->yard) + bench->items * sizeof(struct bench_item);
    const char *base = getenv("TMPDIR");
    int code;

    bench->yard = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)snprintf(bench->folder, sizeof(bench->folder), "%s/baton-bench-XXXXXX",
                   base && strlen(base) < 32 ? base : "/var/tmp");
    if (bench->yard == MAP_FAILED || !mkdtemp(bench->folder)) {
        return error_set(reterr, BATON_EIO, "%s: %s", bench->folder, strerror(errno));
    }
    if (strcmp(options_text(bench->options, "provider"), "redis") == 0) {
        code = bench_server_start(&bench->server, reterr);
        (void)snprintf(bench->redis_url, sizeof(bench->redis_url), "redis://%s",
                       bench->server.address);
    } else {
        code = bench_group_start(&bench->group, bench->folder, reterr);
    }
    return code;
}

static int begin(struct bench_work *bench, struct baton_error *reterr)
{
    int code = BATON_OK;

    for (unsigned i = 0; code == BATON_OK && i < bench->processes; i++) {
        code = start(bench, i, reterr);
    }
    code = code ? code : open_client(bench, reterr);
    code = code ? code : submit_services(bench, reterr);
    return code ? code : await(bench, all_run, "all items run", reterr);
}

static void finish(struct bench_work *bench)
{
    close_client(bench);
    for (unsigned i = 0; i < bench->processes; i++) {
        reap(bench, i);
    }
    bench_group_kill(&bench->group);
    bench_server_kill(&bench->server);
    cluster_remove(bench->folder);
}

static void report(const struct bench_work *bench, double *ms, size_t rounds, uint64_t items)
{
    json_t *figures = figures_of(ms, rounds);

    (void)json_object_set_new(figures, "rounds", json_integer((json_int_t)rounds));
    (void)json_object_set_new(figures, "fault",
                              json_string(bench->kills_leader ? "master" : "worker"));
    (void)json_object_set_new(figures, "ledger", json_string(bench->is_lost ? "lost" : "stored"));
    (void)json_object_set_new(figures, "workers", json_integer(bench->workers));
    (void)json_object_set_new(figures, "items", json_integer(bench->items));
    (void)json_object_set_new(figures, "moved_each",
                              json_integer((json_int_t)(items / (rounds ? rounds : 1))));
    (void)json_object_set_new(figures, "starts", json_integer((json_int_t)bench->yard->starts));
    (void)json_object_set_new(figures, "doubles", json_integer((json_int_t)bench->yard->doubles));
    if (options_flag(bench->options, "json")) {
        print_json(stdout, figures);
    } else {
        printf("%u workers, %u items, %llu doubles in %llu starts\n", bench->workers, bench->items,
               (unsigned long long)bench->yard->doubles, (unsigned long long)bench->yard->starts);
        figures_print(figures, bench->kills_leader ? "kill of the leader to a start by the next"
                                                   : "kill of a worker until all its items run");
    }
    json_decref(figures);
}

/* The table's default is that of another benchmark. */
static unsigned number_of(const struct options *options, const char *name, unsigned initial)
{
    return options_is_set(options, name) ? (unsigned)options_number(options, name) : initial;
}

int bench_work(const struct invocation *invocation)
{
    const struct options *options = invocation->options;
    struct bench_work bench = {
        .options = options,
        .workers = number_of(options, "workers", WORKERS),
        .items = number_of(options, "items", ITEMS),
        .is_lost = strcmp(options_text(options, "ledger"), "lost") == 0,
        .kills_leader = strcmp(options_text(options, "fault"), "master") == 0,
    };
    size_t rounds = (size_t)options_number(options, "rounds"), done = 0;
    double *ms = calloc(rounds, sizeof(*ms));
    struct baton_error error = {0};
    uint64_t items = 0;
    int code = ms ? BATON_OK : error_set(&error, BATON_ENOMEM, "out of memory");

    bench.processes = BENCH_CANDIDATES +
                      (bench.workers < WORKER_PROCESSES_MAX ? bench.workers : WORKER_PROCESSES_MAX);
    bench.slots = 2 * bench.items / bench.workers + BATCH;
    interrupt_listen();
    code = code ? code : prepare(&bench, &error);
    code = code ? code : begin(&bench, &error);
    for (; code == BATON_OK && done < rounds && !interrupt_signal(); done++) {
        code = one_round(&bench, &ms[done], &items, &error);
    }
    if (code == BATON_OK && done > 0 && !interrupt_signal()) {
        report(&bench, ms, done, items);
    }
    finish(&bench);
    free(ms);
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal()
           : code             ? command_fail(invocation, &error)
                              : EXIT_OK;
}
