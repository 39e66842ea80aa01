/* Moves for balance are those that the placement makes when it is allowed to, and of them only the
 * ones that help for certain.
 *
 * The placement takes each subscription for 1 / room of its worker's load. If a worker is loaded
 * because its subscriptions are heavy, it would then give all of them away, and the next one, too.
 * So each is counted here as what it costs its worker on average,
 *
 *   cost = load / subscriptions, where load = max(subscriptions / room, what it reports)
 *
 * and a move is made if its new worker has less load than the old one even with that cost. The load
 * that a worker reports counts only if it is settled; until then only its room does.
 */
#include "base/error.h"
#include "fleet/plan/mutants.h"
#include "fleet/plan/plan_int.h"

#include <stdlib.h>
#include <string.h>

struct move {
    uint32_t camera;
    int32_t from, to;
    uint32_t item;
};

/* All in permille, but for the count. */
struct weight {
    uint32_t count; /* of subscriptions */
    uint64_t gives; /* its load as one that gives … */
    uint64_t takes; /* … and as one that takes */
};

static uint64_t permille(uint64_t count, uint32_t room)
{
    return count * 1000 / (room > 0 ? room : 1);
}

static void weigh(const struct planner *planner, struct weight *weights)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        if (planner->items[i].node != NOWHERE) {
            weights[planner->items[i].node].count++;
        }
    }
    for (size_t i = 0; i < planner->problem->worker_count; i++) {
        const struct plan_worker *worker = &planner->problem->workers[i];
        uint64_t share = permille(weights[i].count, worker_room(planner, i));
        bool is_settled = worker->is_settled || PLAN_MUTANT(BALANCED_UNSETTLED);
        weights[i].takes = share + worker->other_permille;
        weights[i].gives = is_settled ? weights[i].takes : share;
    }
}

/* `count` subscriptions that are at one worker and go to one other. */
static bool helps(const struct planner *planner, struct weight *weights, const struct move *move,
                  uint32_t count)
{
    struct weight *from = &weights[move->from], *to = &weights[move->to];
    uint32_t room = worker_room(planner, (size_t)move->to);
    uint64_t lost = from->gives * count / from->count;
    uint64_t got = permille(count, room);

    if (got < lost && !PLAN_MUTANT(BALANCED_CHEAPLY)) {
        got = lost;
    }
    if (to->count + count > room || to->takes + got >= from->gives ||
        to->takes + planner->problem->options.hysteresis_permille >= from->gives) {
        return false;
    }
    from->count -= count;
    from->gives -= lost;
    to->count += count;
    to->gives += got;
    to->takes += got;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct move *x = a, *y = b;

    return x->camera != y->camera ? (x->camera < y->camera ? -1 : 1)
           : x->from != y->from   ? (x->from < y->from ? -1 : 1)
                                  : (x->item > y->item) - (x->item < y->item);
}

/* What does not help stays where it is. */
static void sift(struct planner *planner, struct move *moves, size_t count, struct weight *weights)
{
    qsort(moves, count, sizeof(*moves), compare);
    for (size_t i = 0, end; i < count; i = end) {
        end = i + 1;
        while (end < count && moves[end].camera == moves[i].camera &&
               moves[end].from == moves[i].from) {
            end++;
        }
        if (helps(planner, weights, &moves[i], (uint32_t)(end - i))) {
            continue;
        }
        for (size_t j = i; j < end; j++) {
            planner->places[moves[j].item].node = moves[j].from;
        }
    }
}

/* Collects what has moved. What waits is not placed anew: its room may be that of a move that is
 * not made. */
static size_t collect(struct planner *planner, const struct placement_place *before,
                      struct move *ret)
{
    size_t count = 0;

    for (size_t i = 0; i < planner->item_count; i++) {
        int32_t from = before[i].node, to = planner->places[i].node;
        if (from == NOWHERE || to == NOWHERE) {
            planner->places[i] = before[i];
        } else if (from != to) {
            ret[count++] = (struct move){planner->cameras[i], from, to, (uint32_t)i};
        }
    }
    return count;
}

int planner_balance(struct planner *planner)
{
    size_t bytes = planner->item_count * sizeof(*planner->places);
    struct placement_place *before = calloc(planner->item_count + 1, sizeof(*before));
    struct move *moves = calloc(planner->item_count + 1, sizeof(*moves));
    struct weight *weights = calloc(planner->problem->worker_count + 1, sizeof(*weights));
    int code = before && moves && weights ? BATON_OK : BATON_ENOMEM;

    if (code == BATON_OK) {
        memcpy(before, planner->places, bytes);
        planner_adopt(planner);
        weigh(planner, weights);
        code = planner_solve(planner, planner->problem->options.hysteresis_permille);
    }
    if (code == BATON_OK) {
        sift(planner, moves, collect(planner, before, moves), weights);
    }
    free(before);
    free(moves);
    free(weights);
    return code;
}
