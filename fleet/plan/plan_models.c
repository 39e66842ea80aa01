/* Of workers with equal load, the one that has the model loaded.
 *
 * The placement knows loads, not models. So a camera that has just got a worker goes to another one
 * instead, if that one has more of the camera's models in its list today, and has no more load with
 * the camera than the first one has with it. What is at a worker already stays there.
 */
#include "base/error.h"
#include "fleet/plan/plan_int.h"

#include <stdlib.h>
#include <string.h>

struct worker_models {
    uint32_t count; /* of subscriptions that are placed there */
    bool *has;      /* of each model: whether it is loaded */
};

/* Its items, all new and at one worker. */
struct arrival {
    uint32_t first, count; /* in `order` */
};

struct chooser {
    const struct planner *planner;
    struct intern models;
    uint32_t *model_of; /* of each item; INTERN_NONE: none */
    struct worker_models *workers;
    bool *has;       /* memory of all */
    uint32_t *order; /* the items, those of one camera together */
};

static uint64_t load_of(const struct chooser *chooser, int32_t worker, uint32_t more)
{
    uint64_t count = (uint64_t)chooser->workers[worker].count + more;
    uint32_t room = worker_room(chooser->planner, (size_t)worker);

    return count * 1000 / (room > 0 ? room : 1) +
           chooser->planner->problem->workers[worker].other_permille;
}

/* How many of its items find their model there. */
static uint32_t loaded(const struct chooser *chooser, const struct arrival *arrival, int32_t worker)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < arrival->count; i++) {
        uint32_t model = chooser->model_of[chooser->order[arrival->first + i]];
        count += model != INTERN_NONE && chooser->workers[worker].has[model];
    }
    return count;
}

static bool may_take(const struct chooser *chooser, const struct arrival *arrival, int32_t worker)
{
    const struct planner *planner = chooser->planner;
    const struct plan_worker *there = &planner->problem->workers[worker];

    if (!worker_takes(there) ||
        chooser->workers[worker].count + arrival->count > worker_room(planner, (size_t)worker)) {
        return false;
    }
    for (uint32_t i = 0; i < arrival->count; i++) {
        if (!plan_has_labels(there->labels,
                             planner->items[chooser->order[arrival->first + i]].needs)) {
            return false;
        }
    }
    return true;
}

/* The worker for the camera that the placement has put at `worker`. */
static int32_t prefer(const struct chooser *chooser, const struct arrival *arrival, int32_t worker)
{
    uint64_t load = load_of(chooser, worker, 0);
    uint32_t most = loaded(chooser, arrival, worker);
    int32_t best = worker;

    for (int32_t i = 0; i < (int32_t)chooser->planner->problem->worker_count; i++) {
        uint32_t count = most < arrival->count ? loaded(chooser, arrival, i) : 0;
        if (count > most && load_of(chooser, i, arrival->count) <= load &&
            may_take(chooser, arrival, i)) {
            most = count;
            best = i;
        }
    }
    return best;
}

/* Whether the item has had no worker, and no person chooses one. */
static bool is_new(const struct planner *planner, uint32_t item)
{
    uint32_t at = planner->subscriptions[item];

    return planner->spots[at].has == NOWHERE && !planner->problem->subscriptions[at].wanted &&
           planner->places[item].node != NOWHERE;
}

static bool is_arrival(const struct chooser *chooser, const struct arrival *arrival)
{
    const struct planner *planner = chooser->planner;
    int32_t worker = planner->places[chooser->order[arrival->first]].node;

    for (uint32_t i = 0; i < arrival->count; i++) {
        uint32_t item = chooser->order[arrival->first + i];
        if (!is_new(planner, item) || planner->places[item].node != worker) {
            return false;
        }
    }
    return true;
}

static void choose(struct chooser *chooser, struct planner *planner)
{
    struct arrival arrival = {0};

    for (; arrival.first < planner->item_count; arrival.first += arrival.count) {
        uint32_t camera = planner->cameras[chooser->order[arrival.first]];
        arrival.count = 1;
        while (arrival.first + arrival.count < planner->item_count &&
               planner->cameras[chooser->order[arrival.first + arrival.count]] == camera) {
            arrival.count++;
        }
        if (!is_arrival(chooser, &arrival)) {
            continue;
        }
        int32_t from = planner->places[chooser->order[arrival.first]].node;
        int32_t to = prefer(chooser, &arrival, from);
        chooser->workers[from].count -= arrival.count;
        chooser->workers[to].count += arrival.count;
        for (uint32_t i = 0; i < arrival.count; i++) {
            planner->places[chooser->order[arrival.first + i]].node = to;
        }
    }
}

/* ---- What is there --------------------------------------------------------------------------- */

/* Whether any worker has a model. */
static bool look(struct chooser *chooser)
{
    const struct planner *planner = chooser->planner;
    bool is_any = false;

    for (size_t i = 0; i < planner->item_count; i++) {
        const char *model = planner->problem->subscriptions[planner->subscriptions[i]].model;
        chooser->model_of[i] =
            model ? intern_add(&chooser->models, model, strlen(model)) : INTERN_NONE;
    }
    chooser->has = calloc((size_t)chooser->models.count * planner->problem->worker_count + 1,
                          sizeof(*chooser->has));
    for (size_t i = 0; i < planner->problem->worker_count && chooser->has; i++) {
        chooser->workers[i].has = &chooser->has[i * chooser->models.count];
    }
    for (size_t i = 0; i < planner->item_count && chooser->has; i++) {
        int32_t today = planner->spots[planner->subscriptions[i]].has,
                node = planner->places[i].node;
        if (today != NOWHERE && chooser->model_of[i] != INTERN_NONE) {
            chooser->workers[today].has[chooser->model_of[i]] = is_any = true;
        }
        if (node != NOWHERE) {
            chooser->workers[node].count++;
        }
    }
    return is_any;
}

/* By counting: the items in the order of their cameras, and of those of one camera as they are. */
static bool sort(struct chooser *chooser)
{
    const struct planner *planner = chooser->planner;
    uint32_t *ends = calloc(planner->item_count + 2, sizeof(*ends));

    for (size_t i = 0; i < planner->item_count && ends; i++) {
        ends[planner->cameras[i] + 1]++;
    }
    for (size_t i = 1; i <= planner->item_count && ends; i++) {
        ends[i] += ends[i - 1];
    }
    for (size_t i = 0; i < planner->item_count && ends; i++) {
        chooser->order[ends[planner->cameras[i]]++] = (uint32_t)i;
    }
    free(ends);
    return ends != NULL;
}

static bool has_arrivals(const struct planner *planner)
{
    for (uint32_t i = 0; i < planner->item_count; i++) {
        if (is_new(planner, i)) {
            return true;
        }
    }
    return false;
}

int planner_prefer_models(struct planner *planner)
{
    size_t count = planner->item_count + 1;
    struct chooser chooser = {.planner = planner};
    bool has_memory;

    if (!has_arrivals(planner)) {
        return BATON_OK;
    }
    chooser.model_of = calloc(count, sizeof(*chooser.model_of));
    chooser.order = calloc(count, sizeof(*chooser.order));
    chooser.workers = calloc(planner->problem->worker_count + 1, sizeof(*chooser.workers));
    has_memory = planner_intern_init(&chooser.models, count) && chooser.model_of && chooser.order &&
                 chooser.workers && sort(&chooser);
    if (has_memory && look(&chooser)) {
        choose(&chooser, planner);
    }
    has_memory = has_memory && chooser.has;
    planner_intern_fini(&chooser.models);
    free(chooser.model_of);
    free(chooser.order);
    free(chooser.workers);
    free(chooser.has);
    return has_memory ? BATON_OK : BATON_ENOMEM;
}
