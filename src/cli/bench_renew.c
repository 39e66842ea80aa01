/* `baton bench renew`: one process renews many elections on one server, as fast as the server
 * answers. */
#include "cli/bench_renew.h"

#include "api/measure.h"
#include "cli/bench_server.h"
#include "cli/bench_yardstick.h"
#include "cli/figures.h"
#include "cli/print.h"
#include "provider/redis/redis_provider.h"

#include <baton.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TURN_MS = 50,
    ALL_LEAD_S = 120,
    OCTAVES = 40,
    STEPS = 64, /* steps of an octave, 2^6: a value is exact to 1.6 % */
};

/* How long renewals took, in microseconds. */
struct histogram {
    uint64_t counts[OCTAVES][STEPS];
    uint64_t total;
};

struct bench_renew {
    const struct options *options;
    span length; /* for how long renewals are counted */
    const char *url;
    unsigned elections;
    struct bench_server server; /* used without --url */
    char server_url[64];
    struct yardstick yardstick;
    struct baton *baton;
    struct baton_election **elections_of_ours;
    unsigned begun;
    pthread_mutex_t lock; /* guards the next four, which the loop's thread writes too */
    bool is_counting;
    bool has_error;
    struct baton_error error; /* the latest error */
    struct histogram took;
    /* Results: */
    double rate;
    double seconds;
    double cpu;      /* seconds of processor time of this process */
    double memory;   /* bytes per election */
    double theirs;   /* renewals/s of redis-benchmark; 0: not measured */
    double their[2]; /* before and after our own measurement */
};

/* ---- Measures -------------------------------------------------------------------------------- */

static void histogram_add(struct histogram *histogram, span took)
{
    uint64_t us = took.ns > 0 ? (uint64_t)took.ns / 1000 : 0;
    /* Octave 0 holds the values below STEPS as they are; octave n begins at STEPS << (n - 1). */
    unsigned octave = us >= STEPS ? 58 - (unsigned)__builtin_clzll(us) : 0;
    uint64_t step = octave > 0 ? (us >> (octave - 1)) % STEPS : us;

    histogram->counts[octave < OCTAVES ? octave : OCTAVES - 1][step]++;
    histogram->total++;
}

/* Returns milliseconds. */
static double histogram_percentile(const struct histogram *histogram, double percent)
{
    uint64_t rank = (uint64_t)(percent / 100 * (double)histogram->total);
    uint64_t seen = 0;

    for (unsigned octave = 0; octave < OCTAVES; octave++) {
        for (unsigned step = 0; step < STEPS; step++) {
            seen += histogram->counts[octave][step];
            if (seen > rank || (seen == histogram->total && seen > 0)) {
                return octave == 0 ? step / 1e3
                                   : (double)((uint64_t)(STEPS + step) << (octave - 1)) / 1e3;
            }
        }
    }
    return 0;
}

static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128] = "";
    const char *second = NULL;

    if (file) {
        second = fgets(line, sizeof(line), file) ? strchr(line, ' ') : NULL;
        (void)fclose(file);
    }
    return second ? strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static double cpu_seconds(void)
{
    struct timespec used = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void show(const struct bench_renew *bench, const char *what, double share)
{
    if (!options_flag(bench->options, "json")) {
        print_progress(stderr, what, share);
    }
}

/* ---- Elections ------------------------------------------------------------------------------- */

/* This and the next callback run on the loop's thread. */
static void on_event(struct baton_election *election, const struct baton_event *event,
                     void *userdata)
{
    struct bench_renew *bench = userdata;
    (void)election;

    (void)pthread_mutex_lock(&bench->lock);
    bench->has_error = true;
    bench->error = event->error;
    (void)pthread_mutex_unlock(&bench->lock);
}

static void on_renewed(void *userdata, span took)
{
    struct bench_renew *bench = userdata;

    (void)pthread_mutex_lock(&bench->lock);
    if (bench->is_counting) {
        histogram_add(&bench->took, took);
    }
    (void)pthread_mutex_unlock(&bench->lock);
}

static void set_counting(struct bench_renew *bench, bool is_counting)
{
    (void)pthread_mutex_lock(&bench->lock);
    bench->is_counting = is_counting;
    (void)pthread_mutex_unlock(&bench->lock);
}

static unsigned count_leading(const struct bench_renew *bench)
{
    unsigned leading = 0;

    for (unsigned i = 0; i < bench->begun; i++) {
        leading += baton_is_leader(bench->elections_of_ours[i]);
    }
    return leading;
}

/* Sets an error: what failed, then the latest reported error. */
static int fail(struct bench_renew *bench, int code, const char *what, struct baton_error *reterr)
{
    char reason[BATON_ERROR_MESSAGE_MAX] = "";

    (void)pthread_mutex_lock(&bench->lock);
    if (bench->has_error) {
        (void)snprintf(reason, sizeof(reason), ": %s", bench->error.message);
    }
    (void)pthread_mutex_unlock(&bench->lock);
    return error_set(reterr, code, "%u of %u elections %s%s", count_leading(bench),
                     bench->elections, what, reason);
}

/* Gives each election a listener, as a real program does. */
static int begin(struct bench_renew *bench, struct baton_error *reterr)
{
    struct baton_election **election = &bench->elections_of_ours[bench->begun];
    char name[64];
    int r;

    yardstick_election(bench->begun, name);
    r = baton_campaign(election, bench->baton, name, NULL, reterr);
    if (r != BATON_OK) {
        return r;
    }
    bench->begun++;
    return baton_on(NULL, *election, BATON_EVENT_ERROR, BATON_ON_LOOP, on_event, bench, reterr);
}

/* Waits until this process leads `count` of them. */
static int lead(struct bench_renew *bench, unsigned count, struct baton_error *reterr)
{
    instant end = instant_add(clock_now(), SPAN_S(ALL_LEAD_S));
    unsigned first = bench->begun;
    int r = BATON_OK;

    while (r == BATON_OK && bench->begun < count) {
        r = begin(bench, reterr);
        show(bench, "taking", (double)bench->begun / bench->elections);
    }
    for (unsigned i = first; r == BATON_OK && i < count; i++) {
        int64_t left_ms = instant_since(end, clock_now()).ns / 1000000;
        r = baton_wait_leadership(bench->elections_of_ours[i], left_ms > 0 ? left_ms : 1, reterr);
        if (r == BATON_ETIMEDOUT) {
            return fail(bench, r, "are led, and no more in time", reterr);
        }
    }
    return r;
}

static void run_for(struct bench_renew *bench, span length, const char *what)
{
    static const struct timespec turn = {.tv_nsec = TURN_MS * 1000000L};
    instant begun = clock_now();
    instant end = instant_add(begun, length);

    while (instant_before(clock_now(), end)) {
        (void)nanosleep(&turn, NULL);
        show(bench, what, (double)instant_since(clock_now(), begun).ns / (double)length.ns);
    }
}

static int measure(struct bench_renew *bench, struct baton_error *reterr)
{
    double memory;
    instant begun;
    int r = lead(bench, 1, reterr); /* alone: its one-time cost is not counted */

    run_for(bench, SPAN_MS(200), "taking");
    memory = resident_bytes();
    r = r == BATON_OK ? lead(bench, bench->elections, reterr) : r;
    if (r != BATON_OK) {
        return r;
    }
    run_for(bench, SPAN_MS(500), "settling");
    bench->cpu = cpu_seconds();
    begun = clock_now();
    set_counting(bench, true);
    run_for(bench, bench->length, "renewing");
    set_counting(bench, false);
    bench->seconds = (double)instant_since(clock_now(), begun).ns / 1e9;
    bench->cpu = cpu_seconds() - bench->cpu;
    bench->rate = (double)bench->took.total / bench->seconds;
    bench->memory = (resident_bytes() - memory) / (bench->elections > 1 ? bench->elections - 1 : 1);
    return count_leading(bench) < bench->elections
               ? fail(bench, BATON_EUNAVAILABLE, "are still led", reterr)
               : BATON_OK;
}

/* ---- Ours ------------------------------------------------------------------------------------ */

static int ours(struct bench_renew *bench, struct baton_error *reterr)
{
    char interval[32];
    char lease[32];
    int64_t interval_ns = options_duration(bench->options, "interval").ns;
    (void)snprintf(interval, sizeof(interval), "%gms",
                   (double)(interval_ns > 0 ? interval_ns : 1000) / 1e6);
    (void)snprintf(lease, sizeof(lease), "%gms",
                   (double)options_duration(bench->options, "lease").ns / 1e6);
    struct baton_setting settings[] = {
        {"heartbeat-interval", interval},
        {"lease", lease},
        {"layout", "master-election"},
        {"guardian", options_text(bench->options, "guardian")},
    };
    struct baton_options options = {.size = sizeof(options),
                                    .node = "bench",
                                    .settings = settings,
                                    .setting_count = sizeof(settings) / sizeof(settings[0])};
    int r = baton_open(&bench->baton, bench->url, &options, reterr);

    if (r == BATON_OK) {
        redis_provider_observe(baton_provider(bench->baton), on_renewed, bench);
        r = measure(bench, reterr);
        baton_close(bench->baton);
    }
    return r;
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* Half of it runs before our measurement and half after, so that other load on the machine slows
 * both. */
static int theirs(struct bench_renew *bench, unsigned half, struct baton_error *reterr)
{
    double seconds = (double)bench->length.ns / 2e9;

    if (options_duration(bench->options, "interval").ns > 0 ||
        yardstick_obstacle(&bench->yardstick)) {
        return BATON_OK;
    }
    show(bench, half == 0 ? "redis-benchmark, before" : "redis-benchmark, after", 0);
    return yardstick_measure(&bench->yardstick, bench->elections, seconds, &bench->their[half],
                             reterr);
}

static int run(struct bench_renew *bench, struct baton_error *reterr)
{
    int r = BATON_OK;

    bench->url = options_text(bench->options, "url");
    if (!bench->url) {
        r = bench_server_start(&bench->server, reterr);
        (void)snprintf(bench->server_url, sizeof(bench->server_url), "redis://%s",
                       bench->server.address);
        bench->url = bench->server_url;
    }
    r = r == BATON_OK ? yardstick_open(&bench->yardstick, bench->url, bench->elections, reterr) : r;
    r = r == BATON_OK ? theirs(bench, 0, reterr) : r;
    r = r == BATON_OK ? ours(bench, reterr) : r;
    r = r == BATON_OK ? theirs(bench, 1, reterr) : r;
    bench->theirs = (bench->their[0] + bench->their[1]) / 2;
    yardstick_close(&bench->yardstick);
    bench_server_kill(&bench->server);
    show(bench, NULL, 1);
    return r;
}

static json_t *figures(const struct bench_renew *bench)
{
    return json_pack("{s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:s,s:o,s:o}", "elections",
                     (int)bench->elections, "seconds", bench->seconds, "renewals_per_s",
                     bench->rate, "p50_ms", histogram_percentile(&bench->took, 50), "p99_ms",
                     histogram_percentile(&bench->took, 99), "cpu_percent",
                     100 * bench->cpu / bench->seconds, "cpu_percent_per_1000",
                     bench->rate > 0 ? 1e5 * bench->cpu / bench->seconds / bench->rate : 0,
                     "memory_per_election", bench->memory, "memory_counts",
                     "resident, through <baton.h>, one listener each", "redis_benchmark_per_s",
                     bench->theirs > 0 ? json_real(bench->theirs) : json_null(), "ratio",
                     bench->theirs > 0 ? json_real(bench->rate / bench->theirs) : json_null());
}

static void report(const struct bench_renew *bench)
{
    json_t *json = figures(bench);
    char texts[8][32];
    static const struct {
        const char *key;
        int decimals;
        const char *title;
    } rows[] = {
        {"renewals_per_s", 0, "renewals in a second"},
        {"p50_ms", 3, "a renewal takes, p50, ms"},
        {"p99_ms", 3, "a renewal takes, p99, ms"},
        {"cpu_percent", 1, "of a processor, %"},
        {"cpu_percent_per_1000", 3, "the same for 1,000 renewals in a second, %"},
        {"memory_per_election", 0, "memory for each election, bytes"},
        {"redis_benchmark_per_s", 0, "renewals in a second, redis-benchmark"},
        {"ratio", 2, "ours in proportion to theirs"},
    };
    const char *cells[3 * 8 + 1] = {NULL};
    size_t used = 0;

    if (options_flag(bench->options, "json")) {
        print_json(stdout, json);
    } else {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            const json_t *value = json_object_get(json, rows[i].key);
            if (json_is_real(value)) {
                (void)snprintf(texts[i], sizeof(texts[i]), "%.*f", rows[i].decimals,
                               json_real_value(value));
                cells[used++] = rows[i].title;
                cells[used++] = texts[i];
                cells[used++] = NULL;
            }
        }
        printf("redis, %u elections, %.1f s\n", bench->elections, bench->seconds);
        print_table(stdout, cells);
    }
    json_decref(json);
    if (yardstick_obstacle(&bench->yardstick)) {
        (void)fprintf(stderr, "baton bench: %s: left out\n", yardstick_obstacle(&bench->yardstick));
    }
}

int bench_renew(const struct invocation *invocation)
{
    struct baton_error error = {0};
    struct bench_renew *bench = calloc(1, sizeof(*bench));
    int code;

    if (!bench) {
        (void)error_set(&error, BATON_ENOMEM, "out of memory");
        return command_fail(invocation, &error);
    }
    bench->options = invocation->options;
    bench->elections = (unsigned)options_number(invocation->options, "elections");
    (void)pthread_mutex_init(&bench->lock, NULL);
    bench->elections_of_ours = calloc(bench->elections, sizeof(struct baton_election *));
    code = figures_length(invocation->options, &bench->length, &error);
    if (code == BATON_OK) {
        code = bench->elections_of_ours ? run(bench, &error)
                                        : error_set(&error, BATON_ENOMEM, "out of memory");
    }
    if (code == BATON_OK) {
        report(bench);
    }
    free(bench->elections_of_ours);
    (void)pthread_mutex_destroy(&bench->lock);
    free(bench);
    return code ? command_fail(invocation, &error) : EXIT_OK;
}
