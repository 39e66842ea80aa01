#include "fleet/plan/spread.h"

#include "base/error.h"
#include "fleet/plan/mutants.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- One even deal --------------------------------------------------------------------------- */

/* Deals some of the workers to processes, as evenly as possible. */
struct deal {
    size_t process_count;
    int32_t except; /* a process that gets none; SPREAD_NONE: each gets some */
    const uint32_t *workers;
    size_t count;
    int32_t *ret;      /* by worker; SPREAD_NONE at the beginning */
    size_t *kept;      /* by process: would keep if all kept what they want */
    size_t *room;      /* by process: of its share, what is left */
    const size_t *all; /* by process: of earlier deals; fewer come first */
};

/* The processes that may keep the most get the larger shares; of equals those that have the fewest
 * from earlier deals. */
static bool comes_first(const struct deal *deal, size_t a, size_t b)
{
    if (deal->kept[a] != deal->kept[b]) {
        return deal->kept[a] > deal->kept[b];
    }
    return deal->all[a] != deal->all[b] ? deal->all[a] < deal->all[b] : a < b;
}

static void share_out(struct deal *deal)
{
    size_t takers = deal->process_count - (deal->except != SPREAD_NONE);
    size_t each = deal->count / takers, rest = deal->count % takers;

    for (size_t i = 0; i < deal->process_count; i++) {
        size_t before = 0;
        for (size_t j = 0; j < deal->process_count; j++) {
            before += (int32_t)j != deal->except && j != i && comes_first(deal, j, i);
        }
        deal->room[i] = (int32_t)i == deal->except ? 0 : each + (before < rest);
    }
}

static bool may_take(const struct deal *deal, int32_t process)
{
    return process != SPREAD_NONE && deal->room[process] > 0;
}

/* Gives each worker that has none yet the one that it wants, if that has room and, where `owner` is
 * given, owns it. */
static void deal_wanted(struct deal *deal, const int32_t *wanted, const int32_t *owner)
{
    for (size_t i = 0; i < deal->count; i++) {
        uint32_t worker = deal->workers[i];
        int32_t process = wanted[worker];
        if (deal->ret[worker] == SPREAD_NONE && may_take(deal, process) &&
            (!owner || owner[worker] == process)) {
            deal->ret[worker] = process;
            deal->room[process]--;
        }
    }
}

/* The others go where the most room is. */
static void deal_rest(struct deal *deal)
{
    for (size_t i = 0; i < deal->count; i++) {
        size_t best = 0;
        if (deal->ret[deal->workers[i]] != SPREAD_NONE) {
            continue;
        }
        for (size_t j = 1; j < deal->process_count; j++) {
            best = deal->room[j] > deal->room[best] ? j : best;
        }
        deal->ret[deal->workers[i]] = (int32_t)best;
        deal->room[best]--;
    }
}

static void count_kept(struct deal *deal, const int32_t *wanted)
{
    memset(deal->kept, 0, deal->process_count * sizeof(*deal->kept));
    for (size_t i = 0; i < deal->count; i++) {
        int32_t process = wanted[deal->workers[i]];
        if (process != SPREAD_NONE && process != deal->except) {
            deal->kept[process]++;
        }
    }
}

/* ---- Firsts and seconds ---------------------------------------------------------------------- */

struct spread {
    const struct spread_problem *problem;
    int32_t *first, *second; /* the answer */
    int32_t *wanted;         /* by worker */
    uint32_t *workers;       /* of one deal */
    size_t *kept, *room, *all;
};

static struct deal deal_of(struct spread *spread, int32_t except, int32_t *ret)
{
    return (struct deal){.process_count = spread->problem->process_count,
                         .except = except,
                         .workers = spread->workers,
                         .ret = ret,
                         .kept = spread->kept,
                         .room = spread->room,
                         .all = spread->all};
}

static void deal_firsts(struct spread *spread)
{
    const struct spread_problem *problem = spread->problem;
    struct deal deal = deal_of(spread, SPREAD_NONE, spread->first);

    deal.count = problem->worker_count;
    for (size_t i = 0; i < problem->worker_count; i++) {
        spread->workers[i] = (uint32_t)i;
    }
    count_kept(&deal, problem->first);
    share_out(&deal);
    if (!PLAN_MUTANT(OWNER_IGNORED)) {
        deal_wanted(&deal, problem->first, problem->owner);
    }
    deal_wanted(&deal, PLAN_MUTANT(FIRST_RESHUFFLED) ? problem->second : problem->first, NULL);
    deal_wanted(&deal, problem->owner, NULL);
    deal_wanted(&deal, problem->second, NULL);
    deal_rest(&deal);
}

/* Of all workers with this first. One that was the first itself until now is the best second: it is
 * connected, and hands over in its own time. */
static void deal_seconds(struct spread *spread, int32_t first)
{
    const struct spread_problem *problem = spread->problem;
    struct deal deal = deal_of(spread, first, spread->second);

    for (size_t i = 0; i < problem->worker_count; i++) {
        if (spread->first[i] == first) {
            spread->workers[deal.count++] = (uint32_t)i;
            spread->wanted[i] =
                problem->second[i] != first ? problem->second[i] : problem->first[i];
        }
    }
    count_kept(&deal, spread->wanted);
    share_out(&deal);
    if (PLAN_MUTANT(SECOND_UNPAIRED)) {
        for (size_t i = 0; i < problem->process_count; i++) {
            deal.room[i] = (int32_t)i == (first == 0) ? deal.count : 0;
        }
    }
    deal_wanted(&deal, spread->wanted, NULL);
    deal_wanted(&deal, problem->first, NULL);
    deal_rest(&deal);
    for (size_t i = 0; i < deal.count; i++) {
        spread->all[spread->second[spread->workers[i]]]++;
    }
}

static void solve(struct spread *spread)
{
    if (spread->problem->process_count > 0) {
        deal_firsts(spread);
    }
    for (size_t i = 0; spread->problem->process_count > 1 && i < spread->problem->process_count;
         i++) {
        deal_seconds(spread, (int32_t)i);
    }
}

int spread_solve(const struct spread_problem *problem, int32_t *ret_first, int32_t *ret_second)
{
    size_t workers = problem->worker_count + 1, processes = problem->process_count + 1;
    struct spread spread = {.problem = problem,
                            .first = ret_first,
                            .second = ret_second,
                            .wanted = calloc(workers, sizeof(*spread.wanted)),
                            .workers = calloc(workers, sizeof(*spread.workers)),
                            .kept = calloc(processes, sizeof(*spread.kept)),
                            .room = calloc(processes, sizeof(*spread.room)),
                            .all = calloc(processes, sizeof(*spread.all))};
    bool has_memory = spread.wanted && spread.workers && spread.kept && spread.room && spread.all;

    for (size_t i = 0; has_memory && i < problem->worker_count; i++) {
        ret_first[i] = ret_second[i] = SPREAD_NONE;
    }
    if (has_memory) {
        solve(&spread);
    }
    free(spread.wanted);
    free(spread.workers);
    free(spread.kept);
    free(spread.room);
    free(spread.all);
    return has_memory ? BATON_OK : BATON_ENOMEM;
}
