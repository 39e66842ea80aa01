/* `baton bench state`: keyed writes to a group of three agents, and to three etcd servers in the
 * same run.
 *
 * Each client has a connection of its own, a key of its own, and one write under way at a time. The
 * clients are spread over the three nodes, and the first one is at the leader's: in both groups. */
#include "cli/bench_state.h"

#include "cli/bench_agent.h"
#include "cli/bench_etcd.h"
#include "cli/cluster.h"
#include "cli/figures.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "net/local.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { COUNTS_MAX = 8, CLIENTS_MAX = 512, LOOK_MS = 20, PATIENCE_S = 60, COLUMNS = 8 };

struct bench_state {
    const struct options *options;
    char folder[64];
    const char *file_system;
    struct bench_group group;
    struct bench_etcd etcd;
    struct baton_error no_etcd; /* why it is not measured; BATON_OK: it is */
    size_t counts;
    struct bench_writes ours[COUNTS_MAX], theirs[COUNTS_MAX];
};

/* ---- Our clients ----------------------------------------------------------------------------- */

struct load;

struct writer {
    struct load *load;
    struct local *local;
    char key[24];
    instant sent;
    bool has_written;
};

struct load {
    struct bench_writes *writes;
    const struct bench_group *group;
    unsigned leader;
    uv_loop_t loop;
    uv_timer_t timer;
    struct writer *writers;
    unsigned opened, ready;
    json_t *value;
    instant deadline; /* by then each must have written once */
    instant begin, end;
    double *ms;
    size_t count, room;
    struct baton_error error;
    bool is_over;
};

static void finish(struct load *load)
{
    if (!load->is_over) {
        load->is_over = true;
        uv_close((uv_handle_t *)&load->timer, NULL);
        for (unsigned i = 0; i < load->opened; i++) {
            if (load->writers[i].local) {
                local_close(load->writers[i].local);
            }
        }
    }
}

static void fail(struct load *load, int code, const char *text)
{
    if (!load->is_over) {
        (void)error_set(&load->error, code, "a client of the agents: %s", text);
        finish(load);
    }
}

static void put(struct writer *writer)
{
    json_t *request = json_pack("{s:i, s:s, s:s, s:O}", "id", 1, "do", "put", "key", writer->key,
                                "text", writer->load->value);

    writer->sent = clock_now();
    if (request) {
        (void)local_send(writer->local, request); /* a failure closes it */
    }
    json_decref(request);
}

static void note(struct load *load, span took)
{
    if (load->count == load->room) {
        size_t room = load->room ? 2 * load->room : 65536;
        double *grown = realloc(load->ms, room * sizeof(*grown));
        if (!grown) {
            fail(load, BATON_ENOMEM, "out of memory");
            return;
        }
        load->ms = grown;
        load->room = room;
    }
    load->ms[load->count++] = (double)took.ns / 1e6;
}

static void open_next(struct load *load);

static void on_open(struct local *local, void *userdata)
{
    struct writer *writer = userdata;

    writer->local = local; /* may come before local_connect() returns */
    put(writer);
    open_next(writer->load);
}

static void on_message(struct local *local, json_t *message, void *userdata)
{
    struct writer *writer = userdata;
    struct load *load = writer->load;
    instant now = clock_now();
    (void)local;

    if (load->is_over) {
        return;
    }
    if (!json_is_true(json_object_get(message, "ok"))) {
        const char *text = json_string_value(json_object_get(message, "error"));
        fail(load, BATON_EPROTO, text ? text : "refused");
        return;
    }
    if (!writer->has_written) {
        writer->has_written = true;
        if (++load->ready == load->writes->clients) {
            load->begin = instant_add(now, load->writes->warm_up);
            load->end = instant_add(load->begin, load->writes->length);
        }
    } else if (instant_before(load->begin, now) && instant_before(now, load->end)) {
        note(load, instant_since(now, writer->sent));
    }
    put(writer);
}

static void on_close(struct local *local, int code, const char *reason, void *userdata)
{
    struct writer *writer = userdata;
    (void)local;
    (void)code;

    writer->local = NULL;
    fail(writer->load, BATON_EUNAVAILABLE, reason);
}

/* One after the other: the agents' queues of new connections are short. */
static void open_next(struct load *load)
{
    static const struct local_callbacks callbacks = {
        .on_open = on_open, .on_message = on_message, .on_close = on_close};
    unsigned number = load->opened, node = (load->leader + number) % BENCH_GROUP_AGENTS;
    struct writer *writer = &load->writers[number];

    if (load->is_over || number == load->writes->clients) {
        return;
    }
    load->opened++;
    writer->load = load;
    (void)snprintf(writer->key, sizeof(writer->key), "bench/%u", number);
    if (local_connect(&writer->local, &load->loop, bench_agent_socket(&load->group->agents[node]),
                      &callbacks, writer, &load->error) != BATON_OK) {
        finish(load);
    }
}

static void look(uv_timer_t *timer)
{
    struct load *load = timer->data;
    instant now = clock_now();
    bool has_begun = load->ready == load->writes->clients;

    if (interrupt_signal()) {
        fail(load, BATON_ECANCELED, "interrupted");
    } else if (has_begun && !instant_before(now, load->end)) {
        finish(load);
    } else if (!has_begun && !instant_before(now, load->deadline)) {
        fail(load, BATON_ETIMEDOUT, "not each of them has written once in 60 s");
    }
}

static double cpu_seconds(void)
{
    struct timespec used = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static int evaluate(struct load *load, struct baton_error *reterr)
{
    struct bench_writes *writes = load->writes;
    json_t *figures;

    if (load->error.code == BATON_OK && load->count == 0) {
        (void)error_set(&load->error, BATON_ETIMEDOUT, "the agents answered no write in time");
    }
    if (load->error.code != BATON_OK) {
        *reterr = load->error;
        return load->error.code;
    }
    figures = figures_of(load->ms, load->count);
    writes->rate = (double)load->count / ((double)writes->length.ns / 1e9);
    writes->p50_ms = json_number_value(json_object_get(figures, "p50_ms"));
    writes->p99_ms = json_number_value(json_object_get(figures, "p99_ms"));
    json_decref(figures);
    return BATON_OK;
}

static int measure_ours(const struct bench_state *bench, struct bench_writes *writes,
                        struct baton_error *reterr)
{
    char *value = malloc(writes->bytes);
    struct load load = {.writes = writes,
                        .group = &bench->group,
                        .leader = (unsigned)bench_group_leader(&bench->group),
                        .writers = calloc(writes->clients, sizeof(*load.writers)),
                        .deadline = instant_add(clock_now(), SPAN_S(PATIENCE_S))};
    double cpu = cpu_seconds();
    int code;

    if (value) {
        memset(value, 'x', writes->bytes);
        load.value = json_stringn(value, writes->bytes);
        free(value);
    }
    if (!load.value || !load.writers || uv_loop_init(&load.loop) != 0) {
        json_decref(load.value);
        free(load.writers);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)uv_timer_init(&load.loop, &load.timer);
    load.timer.data = &load;
    (void)uv_timer_start(&load.timer, look, LOOK_MS, LOOK_MS);
    open_next(&load);
    (void)uv_run(&load.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&load.loop);
    writes->client_cpu_s = cpu_seconds() - cpu;
    code = evaluate(&load, reterr);
    json_decref(load.value);
    free(load.writers);
    free(load.ms);
    return code;
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* What an fsync costs there. */
static const char *name_of_file_system(const char *folder)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {{0xef53, "ext4"},
                 {0x58465342, "xfs"},
                 {0x9123683e, "btrfs"},
                 {0x2fc12fc1, "zfs"},
                 {0xf2f52010, "f2fs"},
                 {0x794c7630, "overlayfs"},
                 {0x01021994, "tmpfs, which has no disk: set TMPDIR"}};
    struct statfs about;

    if (statfs(folder, &about) == 0) {
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            if ((unsigned long)about.f_type == known[i].magic) {
                return known[i].name;
            }
        }
    }
    return "another file system";
}

static int make_folder(struct bench_state *bench, struct baton_error *reterr)
{
    const char *where = getenv("TMPDIR");

    where = where && *where == '/' ? where : "/var/tmp"; /* /tmp may have no disk */
    if (snprintf(bench->folder, sizeof(bench->folder), "%s/baton-state-XXXXXX", where) >=
            (int)sizeof(bench->folder) - 8 ||
        !mkdtemp(bench->folder)) {
        bench->folder[0] = '\0';
        return error_set(reterr, BATON_EIO, "TMPDIR %.200s: %s", where,
                         errno ? strerror(errno) : "its path is too long");
    }
    bench->file_system = name_of_file_system(bench->folder);
    return BATON_OK;
}

static int await_leader(const struct bench_state *bench, struct baton_error *reterr)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    instant limit = instant_add(clock_now(), SPAN_S(PATIENCE_S));

    while (bench_group_leader(&bench->group) < 0) {
        if (interrupt_signal()) {
            return BATON_ECANCELED;
        }
        if (!instant_before(clock_now(), limit)) {
            return error_set(reterr, BATON_ETIMEDOUT, "no leader in %d s", PATIENCE_S);
        }
        (void)nanosleep(&pause, NULL);
    }
    return BATON_OK;
}

static int measure(struct bench_state *bench, struct baton_error *reterr)
{
    int code = make_folder(bench, reterr);

    if (!code && bench_etcd_start(&bench->etcd, bench->folder, &bench->no_etcd) == BATON_ENOENT) {
        (void)fprintf(stderr, "baton bench: only ours is measured: %s\n", bench->no_etcd.message);
    } else if (!code && bench->no_etcd.code != BATON_OK) {
        *reterr = bench->no_etcd;
        return bench->no_etcd.code;
    }
    code = code ? code : bench_group_start(&bench->group, bench->folder, reterr);
    code = code ? code : await_leader(bench, reterr);
    for (size_t i = 0; !code && i < bench->counts; i++) {
        print_progress(stderr, "state", (double)i / (double)bench->counts);
        code = measure_ours(bench, &bench->ours[i], reterr);
        if (!code && bench->no_etcd.code == BATON_OK) {
            code = bench_etcd_measure(&bench->etcd, &bench->theirs[i], reterr);
        }
    }
    print_progress(stderr, NULL, 0);
    return code;
}

/* ---- What is asked and reported -------------------------------------------------------------- */

/* "1,64,512" */
static int read_counts(struct bench_state *bench, const char *text, struct baton_error *reterr)
{
    for (const char *at = text; *at;) {
        char *stop;
        unsigned long clients = strtoul(at, &stop, 10);
        if (stop == at || (*stop && *stop != ',') || clients < 1 || clients > CLIENTS_MAX ||
            bench->counts == COUNTS_MAX) {
            return error_set(reterr, BATON_EINVAL,
                             "--clients %s: up to %d numbers from 1 to %d, like 1,64,512", text,
                             COUNTS_MAX, CLIENTS_MAX);
        }
        bench->ours[bench->counts++].clients = (unsigned)clients;
        at = stop + (*stop == ',');
    }
    return bench->counts > 0 ? BATON_OK
                             : error_set(reterr, BATON_EINVAL, "--clients: must not be empty");
}

static int read_plan(struct bench_state *bench, struct baton_error *reterr)
{
    span length = {0};
    int code = figures_length(bench->options, &length, reterr);

    code = code ? code : read_counts(bench, options_text(bench->options, "clients"), reterr);
    for (size_t i = 0; i < bench->counts; i++) {
        struct bench_writes *writes = &bench->ours[i];
        writes->bytes = (unsigned)options_number(bench->options, "bytes");
        writes->length = length;
        writes->warm_up = SPAN_NS(length.ns / 5);
        bench->theirs[i] = *writes;
    }
    return code;
}

static json_t *column(const struct bench_writes *writes, size_t count, size_t offset)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)&writes[i] + offset, sizeof(value));
        (void)json_array_append_new(list, json_real(value));
    }
    return list;
}

static json_t *ratios(const struct bench_state *bench)
{
    json_t *list = json_array();

    for (size_t i = 0; i < bench->counts; i++) {
        (void)json_array_append_new(
            list, bench->theirs[i].rate > 0 ? json_real(bench->ours[i].rate / bench->theirs[i].rate)
                                            : json_null());
    }
    return list;
}

static void report_json(const struct bench_state *bench)
{
    static const struct {
        const char *name;
        size_t offset;
    } columns[] = {{"writes_per_s", offsetof(struct bench_writes, rate)},
                   {"p50_ms", offsetof(struct bench_writes, p50_ms)},
                   {"p99_ms", offsetof(struct bench_writes, p99_ms)},
                   {"client_cpu_s", offsetof(struct bench_writes, client_cpu_s)}};
    json_t *json =
        json_pack("{s:[], s:o, s:I, s:f, s:s}", "clients", "etcd_ratio", ratios(bench), "bytes",
                  (json_int_t)bench->ours[0].bytes, "seconds",
                  (double)bench->ours[0].length.ns / 1e9, "file_system", bench->file_system);
    char name[32];

    for (size_t i = 0; i < bench->counts; i++) {
        (void)json_array_append_new(json_object_get(json, "clients"),
                                    json_integer(bench->ours[i].clients));
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        (void)json_object_set_new(json, columns[i].name,
                                  column(bench->ours, bench->counts, columns[i].offset));
        if (bench->no_etcd.code == BATON_OK) {
            (void)snprintf(name, sizeof(name), "etcd_%s", columns[i].name);
            (void)json_object_set_new(json, name,
                                      column(bench->theirs, bench->counts, columns[i].offset));
        }
    }
    print_json(stdout, json);
    json_decref(json);
}

static void report(const struct bench_state *bench)
{
    const char *cells[(COUNTS_MAX + 1) * (COLUMNS + 1) + 1] = {
        "CLIENTS", "WRITES/S", "P50 MS", "P99 MS", "ETCD", "P50 MS", "P99 MS", "RATIO"};
    char texts[COUNTS_MAX][COLUMNS][24];

    for (size_t i = 0; i < bench->counts; i++) {
        const struct bench_writes *ours = &bench->ours[i], *theirs = &bench->theirs[i];
        const double numbers[COLUMNS] = {
            ours->clients,  ours->rate,
            ours->p50_ms,   ours->p99_ms,
            theirs->rate,   theirs->p50_ms,
            theirs->p99_ms, theirs->rate > 0 ? ours->rate / theirs->rate : 0};
        static const int digits[COLUMNS] = {0, 0, 3, 3, 0, 3, 3, 2};
        const char **row = cells + (i + 1) * (COLUMNS + 1);
        for (size_t j = 0; j < COLUMNS; j++) {
            (void)snprintf(texts[i][j], sizeof(texts[i][j]), "%.*f", digits[j], numbers[j]);
            row[j] = j > 3 && theirs->rate <= 0 ? "-" : texts[i][j];
        }
    }
    printf("state: %u bytes a value, three nodes on loopback, on %s, for %.1f s each\n",
           bench->ours[0].bytes, bench->file_system, (double)bench->ours[0].length.ns / 1e9);
    print_table(stdout, cells);
}

int bench_state(const struct invocation *invocation)
{
    struct bench_state bench = {.options = invocation->options};
    struct baton_error error = {0};
    int code = read_plan(&bench, &error);

    if (!code) {
        interrupt_listen();
        code = measure(&bench, &error);
        bench_group_kill(&bench.group);
        bench_etcd_kill(&bench.etcd);
        if (bench.folder[0]) {
            cluster_remove(bench.folder);
        }
    }
    if (!code && options_flag(invocation->options, "json")) {
        report_json(&bench);
    } else if (!code) {
        report(&bench);
    }
    return interrupt_signal() ? EXIT_SIGNAL + interrupt_signal()
           : code             ? command_fail(invocation, &error)
                              : EXIT_OK;
}
