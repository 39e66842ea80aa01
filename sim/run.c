/* Forked processes take the seeds in turn and write their progress to one shared page. A violation
 * stops all of them, and its seed is played again for its trace. */
#include "sim/run.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = 256, FOUND_NOTHING = 0 };

struct share { /* shared by the processes of a run */
    _Atomic uint64_t played, events, counts[SIM_COUNTS_MAX];
    _Atomic uint64_t found; /* lowest seed that fails, plus 1; 0: none */
};

static double seconds(void)
{
    return (double)clock_now().ns / 1e9;
}

static void *new_world(const struct run *run)
{
    void *world = run->game->new_world();
    if (!world) {
        (void)fputs("baton-sim: out of memory\n", stderr);
        exit(EXIT_TROUBLE);
    }
    return world;
}

/* `,"leaderships":12,…`, or `, 12 leaderships, …` */
static void say_counts(const struct run *run, const uint64_t counts[SIM_COUNTS_MAX])
{
    for (size_t i = 0; i < SIM_COUNTS_MAX; i++) {
        if (run->is_json) {
            (void)printf(",\"%s\":%llu", run->game->count_names[i].key,
                         (unsigned long long)counts[i]);
        } else {
            (void)printf(", %llu %s", (unsigned long long)counts[i],
                         run->game->count_names[i].noun);
        }
    }
}

static void json_result(const struct run *run, const struct result *result, uint64_t seed)
{
    (void)printf("{\"seed\":%llu,\"outcome\":\"%s\",\"check\":\"%s\",\"events\":%llu",
                 (unsigned long long)seed, result->outcome == OUTCOME_HELD ? "held" : "violated",
                 result->check, (unsigned long long)result->events);
    say_counts(run, result->counts);
    (void)printf(",\"trace_hash\":\"%016llx\"}\n", (unsigned long long)result->hash);
}

static void say_replay(const struct run *run, const struct options *options)
{
    (void)printf("replay: baton-sim%s --seed %llu", run->game->flag,
                 (unsigned long long)options->seed);
    if (run->mutant) {
        (void)printf(" --mutant %s", run->mutant);
    }
    if (options->nodes > 0) {
        (void)printf(" --nodes %zu", options->nodes);
    }
    if (options->events > 0) {
        (void)printf(" --events %u", options->events);
    }
    (void)printf("%s --trace\n", options->breaks_drift ? " --break-drift" : "");
}

int run_seed(const struct run *run)
{
    void *world = new_world(run);
    struct options options = run->options;
    struct result result;

    options.keeps_trace = true;
    run->game->play(world, &options, &result);
    if (run->is_json) {
        json_result(run, &result, options.seed);
    } else if (result.outcome == OUTCOME_VIOLATED) {
        (void)printf("seed %llu (%s): VIOLATED %s: %s\n", (unsigned long long)options.seed,
                     run->game->theme(world), result.check, result.detail);
        if (!options.prints_trace) {
            (void)puts("  the end of its trace:");
            run->game->print_tail(world);
        }
        say_replay(run, &options);
    } else {
        (void)printf("seed %llu (%s): held; %llu events", (unsigned long long)options.seed,
                     run->game->theme(world), (unsigned long long)result.events);
        say_counts(run, result.counts);
        (void)printf(", %.3f s of virtual time, trace %016llx\n", (double)result.virtual_ns / 1e9,
                     (unsigned long long)result.hash);
    }
    run->game->free_world(world);
    return result.outcome == OUTCOME_HELD ? EXIT_HELD : EXIT_FOUND;
}

/* ---- A range --------------------------------------------------------------------------------- */

static void note(struct share *share, const struct result *result, uint64_t seed)
{
    atomic_fetch_add(&share->played, 1);
    atomic_fetch_add(&share->events, result->events);
    for (size_t i = 0; i < SIM_COUNTS_MAX; i++) {
        atomic_fetch_add(&share->counts[i], result->counts[i]);
    }
    if (result->outcome == OUTCOME_VIOLATED) {
        uint64_t none = FOUND_NOTHING;
        atomic_compare_exchange_strong(&share->found, &none, seed + 1);
    }
}

static void work(const struct run *run, struct share *share, unsigned job)
{
    void *world = new_world(run);

    for (uint64_t seed = run->from + job; seed <= run->to && !atomic_load(&share->found);
         seed += run->jobs) {
        struct options options = run->options;
        struct result result;
        options.seed = seed;
        run->game->play(world, &options, &result);
        note(share, &result, seed);
    }
    run->game->free_world(world);
}

static void show_progress(const struct share *share, uint64_t all, double since, bool is_terminal)
{
    enum { WIDTH = 40 };
    uint64_t played = atomic_load(&share->played);
    int filled = (int)((double)played / (double)all * WIDTH);
    double rate = (double)played / (seconds() - since + 1e-9);

    if (is_terminal) {
        (void)printf("\r[%.*s%*s] %llu of %llu seeds, %.0f/s, %.0f s left ", filled,
                     "########################################", WIDTH - filled, "",
                     (unsigned long long)played, (unsigned long long)all, rate,
                     (double)(all - played) / (rate + 1e-9));
    } else {
        (void)printf("%llu of %llu seeds, %.0f/s\n", (unsigned long long)played,
                     (unsigned long long)all, rate);
    }
    (void)fflush(stdout);
}

static bool wait_all(const pid_t *pids, unsigned count, const struct share *share,
                     const struct run *run, double since)
{
    bool is_terminal = isatty(STDOUT_FILENO) == 1;
    double shown = since;
    unsigned left = count;
    bool is_fine = true;

    while (left > 0) {
        struct timespec pause = {.tv_nsec = 20000000};
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) {
            left--;
            is_fine = is_fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            continue;
        }
        if (!run->is_json && seconds() - shown > (is_terminal ? 0.2 : 30)) {
            shown = seconds();
            show_progress(share, run->to - run->from + 1, since, is_terminal);
        }
        (void)nanosleep(&pause, NULL);
    }
    if (is_terminal && !run->is_json) {
        (void)printf("\r%100s\r", "");
    }
    (void)pids;
    return is_fine;
}

static bool play_all(const struct run *run, struct share *share)
{
    pid_t pids[JOBS_MAX];
    double since = seconds();
    unsigned started = 0;

    (void)fflush(NULL);
    while (started < run->jobs) {
        pid_t pid = fork();
        if (pid < 0) {
            (void)fprintf(stderr, "baton-sim: fork: %s\n", strerror(errno));
            atomic_store(&share->found, UINT64_MAX);
            break;
        }
        if (pid == 0) {
            work(run, share, started);
            _exit(0);
        }
        pids[started++] = pid;
    }
    return wait_all(pids, started, share, run, since) && started == run->jobs;
}

static void say_range(const struct run *run, const struct share *share, double took)
{
    uint64_t counts[SIM_COUNTS_MAX];
    unsigned long long from = run->from;
    unsigned long long to = run->to;
    unsigned long long played = atomic_load(&share->played);
    unsigned long long events = atomic_load(&share->events);
    int violations = atomic_load(&share->found) ? 1 : 0;

    for (size_t i = 0; i < SIM_COUNTS_MAX; i++) {
        counts[i] = atomic_load(&share->counts[i]);
    }
    if (run->is_json) {
        (void)printf("{\"from\":%llu,\"to\":%llu,\"seeds\":%llu,\"violations\":%d,"
                     "\"seconds\":%.1f,\"events\":%llu",
                     from, to, played, violations, took, events);
    } else {
        (void)printf("seeds %llu..%llu: %llu played, %d violations, %.1f s; %llu events", from, to,
                     played, violations, took, events);
    }
    say_counts(run, counts);
    (void)puts(run->is_json ? "}" : "");
}

int run_range(const struct run *run)
{
    double since = seconds();
    struct share *share =
        mmap(NULL, sizeof(*share), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t found;
    bool is_fine;

    if (share == MAP_FAILED) {
        (void)fputs("baton-sim: out of memory\n", stderr);
        return EXIT_TROUBLE;
    }
    is_fine = play_all(run, share);
    found = atomic_load(&share->found);
    say_range(run, share, seconds() - since);
    (void)munmap(share, sizeof(*share));
    if (!is_fine) {
        return EXIT_TROUBLE;
    }
    if (found != FOUND_NOTHING) {
        struct run again = *run;
        again.options.seed = found - 1;
        return run_seed(&again);
    }
    return EXIT_HELD;
}

/* ---- Planted bugs ---------------------------------------------------------------------------- */

/* 0: none is known. */
static uint64_t clue(const struct game *game, const char *mutant)
{
    const struct game_clue *at = game->clues;

    while (at && at->mutant && strcmp(at->mutant, mutant) != 0) {
        at++;
    }
    return at && at->mutant ? at->seed : 0;
}

static bool is_caught_by(const struct run *run, void *world, uint64_t seed, struct result *ret)
{
    struct options options = run->options;

    options.seed = seed;
    run->game->play(world, &options, ret);
    return ret->outcome == OUTCOME_VIOLATED;
}

static uint64_t seeds_until_caught(const struct run *run, void *world, const char *mutant,
                                   struct result *ret)
{
    uint64_t known = run->uses_clues ? clue(run->game, mutant) : 0;

    if (known && is_caught_by(run, world, known, ret)) {
        return 1;
    }
    for (uint64_t tried = 1; tried <= run->mutant_seeds; tried++) {
        if (is_caught_by(run, world, tried, ret)) {
            return tried;
        }
    }
    return 0;
}

static void say_mutant(const struct run *run, const struct game_mutant *mutant, uint64_t tried,
                       const struct result *result)
{
    const char *check = tried ? result->check : "SURVIVED";

    if (run->is_json) {
        (void)printf("{\"mutant\":\"%s\",\"caught\":%s,\"seeds\":%llu,\"check\":\"%s\"}\n",
                     mutant->name, tried ? "true" : "false",
                     (unsigned long long)(tried ? tried : run->mutant_seeds), check);
    } else {
        (void)printf("%-28s %6llu  %-18s %s\n", mutant->name,
                     (unsigned long long)(tried ? tried : run->mutant_seeds), check, mutant->text);
    }
    (void)fflush(stdout);
}

int run_mutants(const struct run *run)
{
    size_t count = run->game->mutant_count;
    void *world = new_world(run);
    size_t caught = 0;

    if (!run->is_json) {
        (void)printf("%-28s %6s  %-18s %s\n", "planted bug", "seeds", "caught by", "what it is");
    }
    for (size_t i = 0; i < count; i++) {
        struct result result = {0};
        uint64_t tried;
        run->game->set_mutant(run->game->mutants[i].number);
        tried = seeds_until_caught(run, world, run->game->mutants[i].name, &result);
        caught += tried > 0;
        say_mutant(run, &run->game->mutants[i], tried, &result);
    }
    run->game->set_mutant(SIM_NO_MUTANT);
    run->game->free_world(world);
    if (run->is_json) {
        (void)printf("{\"caught\":%zu,\"of\":%zu}\n", caught, count);
    } else {
        (void)printf("%zu of %zu caught\n", caught, count);
    }
    return caught == count ? EXIT_HELD : EXIT_FOUND;
}
