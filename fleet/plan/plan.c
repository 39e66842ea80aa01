/* The steps: read today's lists, place, balance, and answer with what may be done of it now. */
#include "fleet/plan/plan.h"

#include "base/error.h"
#include "base/invariant.h"
#include "fleet/plan/mutants.h"
#include "fleet/plan/plan_int.h"

#include <stdlib.h>
#include <string.h>

#ifdef BATON_MUTANTS
_Thread_local enum plan_mutant plan_mutant;
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

bool planner_intern_init(struct intern *intern, size_t count)
{
    size_t slots = intern_slots(count);

    intern->known = calloc(count + 1, sizeof(*intern->known));
    intern->slots = calloc(slots, sizeof(*intern->slots));
    intern->mask = (uint32_t)slots - 1;
    return intern->known && intern->slots;
}

void planner_intern_fini(struct intern *intern)
{
    free(intern->known);
    free(intern->slots);
}

static bool planner_init(struct planner *planner, const struct plan_problem *problem)
{
    size_t workers = problem->worker_count + 1, count = problem->subscription_count + 1;

    *planner = (struct planner){.problem = problem};
    planner->spots = calloc(count, sizeof(*planner->spots));
    planner->candidates = calloc(workers, sizeof(*planner->candidates));
    planner->headed = calloc(workers, sizeof(*planner->headed));
    planner->nodes = calloc(workers, sizeof(*planner->nodes));
    planner->items = calloc(count, sizeof(*planner->items));
    planner->places = calloc(count, sizeof(*planner->places));
    planner->subscriptions = calloc(count, sizeof(*planner->subscriptions));
    planner->cameras = calloc(count, sizeof(*planner->cameras));
    return planner_intern_init(&planner->ids, count) &&
           planner_intern_init(&planner->workers, workers) &&
           planner_intern_init(&planner->camera_urls, count) && planner->spots &&
           planner->candidates && planner->headed && planner->nodes && planner->items &&
           planner->places && planner->subscriptions && planner->cameras;
}

static void planner_fini(struct planner *planner)
{
    planner_intern_fini(&planner->ids);
    planner_intern_fini(&planner->workers);
    planner_intern_fini(&planner->camera_urls);
    free(planner->spots);
    free(planner->candidates);
    free(planner->headed);
    free(planner->nodes);
    free(planner->items);
    free(planner->places);
    free(planner->subscriptions);
    free(planner->cameras);
    free(planner->keys);
}

static bool answer_init(struct plan_answer *answer, const struct plan_problem *problem)
{
    size_t ids = problem->subscription_count + 1;

    for (size_t i = 0; i < problem->worker_count; i++) {
        ids += problem->workers[i].assigned_count + problem->workers[i].leaving_count;
    }
    *answer = (struct plan_answer){
        .lists = calloc(problem->worker_count + 1, sizeof(*answer->lists)),
        .unplaced = calloc(problem->subscription_count + 1, sizeof(*answer->unplaced)),
        .ids = calloc(ids, sizeof(*answer->ids))};
    return answer->lists && answer->unplaced && answer->ids;
}

void plan_answer_fini(struct plan_answer *answer)
{
    free(answer->lists);
    free(answer->unplaced);
    free(answer->ids);
    *answer = (struct plan_answer){0};
}

/* ---- Today's lists --------------------------------------------------------------------------- */

static void add_holder(struct spot *spot, int32_t worker)
{
    if (spot->holders[0] == NOWHERE) {
        spot->holders[0] = worker;
    } else if (spot->holders[0] != worker && spot->holders[1] == NOWHERE) {
        spot->holders[1] = worker;
    }
}

/* `holds`: the worker has these or has not let them go. `has`: and their place is there. */
static void read_list(struct planner *planner, int32_t worker, const char *const *ids, size_t count,
                      bool holds, bool has)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t at = intern_find(&planner->ids, ids[i], strlen(ids[i]));
        struct spot *spot = at != INTERN_NONE ? &planner->spots[at] : NULL;
        if (spot && has && spot->has == NOWHERE) {
            spot->has = worker;
        }
        if (spot && holds) {
            add_holder(spot, worker);
        }
    }
}

/* What leaves a worker that gets nothing new has its place there until it has another one, as far
 * as there is room: it can come back. Otherwise the place may be another one's already. */
static void read_leaving(struct planner *planner, size_t number)
{
    const struct plan_worker *worker = &planner->problem->workers[number];
    bool holds = !worker->is_in_sync && !PLAN_MUTANT(SYNC_ASSUMED);
    size_t room = worker_room(planner, number);
    size_t back = room > worker->assigned_count ? room - worker->assigned_count : 0;

    if (worker_takes(worker) || worker->is_deleted || PLAN_MUTANT(PLACE_FREED)) {
        back = 0;
    }
    back = back < worker->leaving_count ? back : worker->leaving_count;
    read_list(planner, (int32_t)number, worker->leaving, back, holds, true);
    read_list(planner, (int32_t)number, worker->leaving + back, worker->leaving_count - back, holds,
              false);
}

int32_t planner_worker(const struct planner *planner, const char *id)
{
    uint32_t at = id ? intern_find(&planner->workers, id, strlen(id)) : INTERN_NONE;

    return at != INTERN_NONE ? (int32_t)at : NOWHERE;
}

static void name_all(struct planner *planner)
{
    const struct plan_problem *problem = planner->problem;

    for (size_t i = 0; i < problem->subscription_count; i++) {
        const char *id = problem->subscriptions[i].id;
        INVARIANT(intern_add(&planner->ids, id, strlen(id)) == i);
    }
    for (size_t i = 0; i < problem->worker_count; i++) {
        const char *id = problem->workers[i].id;
        INVARIANT(intern_add(&planner->workers, id, strlen(id)) == i);
    }
}

/* What leaves a worker has its place where it is headed for, if that worker still may have it. */
static void read_headed(struct planner *planner)
{
    const struct plan_problem *problem = planner->problem;

    for (size_t i = 0; i < problem->subscription_count; i++) {
        int32_t number = planner_worker(planner, problem->subscriptions[i].headed);
        const struct plan_worker *worker = number != NOWHERE ? &problem->workers[number] : NULL;
        if (worker && planner->spots[i].has == NOWHERE && worker_takes(worker) &&
            plan_has_labels(worker->labels, problem->subscriptions[i].needs) &&
            worker->assigned_count + planner->headed[number] <
                worker_room(planner, (size_t)number) &&
            !PLAN_MUTANT(HEADED_FORGOTTEN)) {
            planner->spots[i].has = number;
            planner->headed[number]++;
        }
    }
}

static void read_today(struct planner *planner)
{
    const struct plan_problem *problem = planner->problem;

    for (size_t i = 0; i < problem->subscription_count; i++) {
        planner->spots[i] = (struct spot){.has = NOWHERE,
                                          .holders = {NOWHERE, NOWHERE},
                                          .target = NOWHERE,
                                          .listed = NOWHERE,
                                          .left = NOWHERE};
    }
    for (size_t i = 0; i < problem->worker_count; i++) {
        const struct plan_worker *worker = &problem->workers[i];
        if (worker->is_online) {
            read_list(planner, (int32_t)i, worker->assigned, worker->assigned_count, true,
                      !worker->is_deleted);
        }
    }
    read_headed(planner);
    for (size_t i = 0; i < problem->worker_count; i++) {
        if (problem->workers[i].is_online) {
            read_leaving(planner, i);
        }
    }
}

/* ---- The steps ------------------------------------------------------------------------------- */

int plan_solve(const struct plan_problem *problem, struct plan_answer *ret)
{
    struct planner planner;
    struct plan_answer answer;
    bool has_memory = planner_init(&planner, problem);
    int code;

    INVARIANT(problem->worker_count < INT32_MAX);
    INVARIANT(problem->subscription_count < INT32_MAX);
    has_memory = answer_init(&answer, problem) && has_memory;
    code = has_memory ? BATON_OK : BATON_ENOMEM;
    if (code == BATON_OK) {
        name_all(&planner);
        read_today(&planner);
        code = planner_place(&planner);
        code = code ? code : planner_prefer_models(&planner);
    }
    if (code == BATON_OK && problem->options.balances) {
        code = planner_balance(&planner);
    }
    if (code == BATON_OK) {
        planner_answer(&planner, &answer);
        *ret = answer;
    } else {
        plan_answer_fini(&answer);
    }
    planner_fini(&planner);
    return code;
}
