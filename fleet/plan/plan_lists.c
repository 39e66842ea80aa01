/* The rule of two: what goes where it should be now, what leaves first, and what waits for that. */
#include "fleet/plan/mutants.h"
#include "fleet/plan/plan_int.h"

#include <string.h>

/* ---- What should be where -------------------------------------------------------------------- */

static void set_targets(struct planner *planner)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        struct spot *spot = &planner->spots[planner->subscriptions[i]];
        spot->target = planner->places[i].node;
        spot->reason = placement_reason_text(planner->places[i].reason);
    }
    for (size_t i = 0; i < planner->problem->worker_count; i++) {
        planner->candidates[i] = NOWHERE;
    }
    for (size_t i = planner->problem->subscription_count; i-- > 0;) {
        struct spot *spot = &planner->spots[i];
        if (spot->target != NOWHERE) {
            spot->next = planner->candidates[spot->target];
            planner->candidates[spot->target] = (int32_t)i;
        }
    }
}

/* An online worker other than this one that has it, or has not let it go; NOWHERE: none. */
static int32_t other_holder(const struct spot *spot, int32_t worker)
{
    return spot->holders[0] != worker ? spot->holders[0] : spot->holders[1];
}

/* ---- The lists of a worker ------------------------------------------------------------------- */

struct writer {
    struct planner *planner;
    struct plan_list *list;
    const struct plan_worker *worker;
    int32_t number;   /* of the worker */
    const char **end; /* of the ids so far */
};

static struct spot *spot_of(const struct planner *planner, const char *id)
{
    uint32_t at = intern_find(&planner->ids, id, strlen(id));

    return at != INTERN_NONE ? &planner->spots[at] : NULL;
}

static bool is_wanted(const struct planner *planner, const struct spot *spot)
{
    return !planner->problem->subscriptions[spot - planner->spots].withheld;
}

/* Whether what is in the worker's list stays there. An offline worker's stays for its return, if
 * nobody else has it or gets it. */
static bool stays(const struct writer *writer, const struct spot *spot)
{
    if (!spot || spot->listed != NOWHERE) {
        return false;
    }
    if (writer->worker->is_online) {
        return spot->target == writer->number;
    }
    return is_wanted(writer->planner, spot) && !PLAN_MUTANT(OFFLINE_FORGETS) &&
           ((spot->target == NOWHERE && spot->holders[0] == NOWHERE) || PLAN_MUTANT(OFFLINE_KEEPS));
}

static void write_present(struct writer *writer)
{
    for (size_t i = 0; i < writer->worker->assigned_count; i++) {
        const char *id = writer->worker->assigned[i];
        struct spot *spot = spot_of(writer->planner, id);
        if (stays(writer, spot)) {
            spot->listed = writer->number;
            *writer->end++ = id;
        } else {
            writer->list->is_changed = true;
        }
    }
}

static void write_given(struct writer *writer)
{
    struct planner *planner = writer->planner;

    for (int32_t i = planner->candidates[writer->number]; i != NOWHERE;
         i = planner->spots[i].next) {
        struct spot *spot = &planner->spots[i];
        if (spot->listed != NOWHERE ||
            (other_holder(spot, writer->number) != NOWHERE && !PLAN_MUTANT(GIVEN_AT_ONCE))) {
            continue;
        }
        spot->listed = writer->number;
        *writer->end++ = planner->problem->subscriptions[i].id;
        writer->list->is_changed = writer->list->gives = true;
    }
}

/* What was in the list and is not any more. */
static void write_left(struct writer *writer, size_t *moved)
{
    for (size_t i = 0; i < writer->worker->assigned_count; i++) {
        const char *id = writer->worker->assigned[i];
        struct spot *spot = spot_of(writer->planner, id);
        if (spot && (spot->listed == writer->number || spot->left == writer->number)) {
            continue;
        }
        if (spot) {
            spot->left = writer->number;
            *moved += spot->target != NOWHERE;
        } else if (PLAN_MUTANT(DELETED_LEAVES_AT_ONCE)) {
            continue;
        }
        *writer->end++ = id;
    }
}

static void write_leaving(struct writer *writer)
{
    for (size_t i = 0; i < writer->worker->leaving_count; i++) {
        const char *id = writer->worker->leaving[i];
        struct spot *spot = spot_of(writer->planner, id);
        bool is_back = spot && spot->listed == writer->number;
        bool is_there = spot && spot->left == writer->number;
        if (writer->worker->is_in_sync || !writer->worker->is_online || is_back || is_there ||
            PLAN_MUTANT(LEAVING_FORGOTTEN)) {
            writer->list->is_changed = true;
            continue;
        }
        if (spot) {
            spot->left = writer->number;
        }
        *writer->end++ = id;
    }
}

static void write_lists(struct writer *writer, size_t *moved)
{
    struct plan_list *list = writer->list;

    list->subscriptions = writer->end;
    write_present(writer);
    write_given(writer);
    list->count = (size_t)(writer->end - list->subscriptions);
    list->leaving = writer->end;
    if (writer->worker->is_online) {
        write_left(writer, moved);
    }
    write_leaving(writer);
    list->leaving_count = (size_t)(writer->end - list->leaving);
}

/* ---- What has no worker ---------------------------------------------------------------------- */

static bool explain(const struct planner *planner, size_t number, struct plan_unplaced *ret)
{
    const struct plan_subscription *subscription = &planner->problem->subscriptions[number];
    const struct spot *spot = &planner->spots[number];

    *ret = (struct plan_unplaced){.subscription = number, .reason = subscription->withheld};
    if (subscription->withheld) {
        return true;
    }
    if (spot->target == NOWHERE) {
        ret->reason = spot->reason;
        return true;
    }
    ret->target = (size_t)spot->target;
    ret->leaves = (size_t)other_holder(spot, spot->target);
    return spot->listed == NOWHERE && !PLAN_MUTANT(REASON_LOST);
}

void planner_answer(struct planner *planner, struct plan_answer *answer)
{
    struct writer writer = {.planner = planner, .end = answer->ids};

    set_targets(planner);
    for (size_t i = 0; i < planner->problem->worker_count; i++) {
        writer.list = &answer->lists[i];
        writer.worker = &planner->problem->workers[i];
        writer.number = (int32_t)i;
        write_lists(&writer, &answer->moved);
    }
    for (size_t i = 0; i < planner->problem->subscription_count; i++) {
        answer->unplaced_count += explain(planner, i, &answer->unplaced[answer->unplaced_count]);
    }
}
