/* The state of one plan, and the functions of its parts:
 *
 *   plan.c         memory; what today's lists say; the steps
 *   plan_place.c   where each subscription should be: placement, and cameras that are divided
 *   plan_models.c  of workers with equal load, the one that has the model loaded
 *   plan_balance.c moves that balance the workers, as far as they help for certain
 *   plan_lists.c   what may be given now, and what leaves: the rule of two
 */
#ifndef FLEET_PLAN_PLAN_INT_H
#define FLEET_PLAN_PLAN_INT_H

#include "fleet/plan/plan.h"
#include "work/placement.h"
#include "work/placement_intern.h"

#define NOWHERE PLACEMENT_NOWHERE

enum { PLAN_KEY_BYTES = 40 };

/* Of a subscription. Its holders are online workers: they have it, or have not let it go yet. */
struct spot {
    int32_t has;        /* the online worker where its place is; NOWHERE: nowhere */
    int32_t holders[2]; /* two of them suffice to know that another one than any given worker is */
    int32_t target;     /* where it should be */
    int32_t listed;     /* the worker in whose next list it is */
    int32_t left;       /* the worker in whose next `leaving` it is */
    int32_t next;       /* another one with the same target; NOWHERE: the last */
    const char *reason; /* why it should be nowhere */
};

struct planner {
    const struct plan_problem *problem;
    struct intern ids;     /* their numbers are those of the subscriptions */
    struct intern workers; /* and of the workers */
    struct spot *spots;    /* of each subscription */
    size_t *headed;        /* of each worker: how many have their places there before they come */
    int32_t *candidates;   /* of each worker: the first subscription that should be there */

    /* What is to have a worker. An item's node is where it was before the latest step, its place
     * where it is after it. */
    struct placement_node *nodes;
    struct placement_item *items;
    struct placement_place *places;
    size_t item_count;
    uint32_t *subscriptions; /* of each item */
    uint32_t *cameras;       /* of each item: a number that it shares with others of its camera */
    struct intern camera_urls;
    char (*keys)[PLAN_KEY_BYTES]; /* of items whose cameras are divided; NULL: none is */
};

/* An index for so many texts; false: out of memory. To be freed in any case. */
bool planner_intern_init(struct intern *intern, size_t count);
void planner_intern_fini(struct intern *intern);
/* The number of a worker's id; NOWHERE: there is none, or id is NULL. */
int32_t planner_worker(const struct planner *planner, const char *id);

/* ---- plan_place.c ---------------------------------------------------------------------------- */

/* Whether a worker gets new subscriptions. */
bool worker_takes(const struct plan_worker *worker);
uint32_t worker_room(const struct planner *planner, size_t worker);
/* The places of all items, and those of an earlier step as today's. 0 or BATON_ENOMEM. */
int planner_solve(struct planner *planner, uint32_t hysteresis_permille);
void planner_adopt(struct planner *planner);
int planner_place(struct planner *planner);

/* ---- plan_models.c --------------------------------------------------------------------------- */

/* Of what planner_place() has placed anew. 0 or BATON_ENOMEM. */
int planner_prefer_models(struct planner *planner);

/* ---- plan_balance.c -------------------------------------------------------------------------- */

int planner_balance(struct planner *planner);

/* ---- plan_lists.c ---------------------------------------------------------------------------- */

/* Fills in an answer that has memory for all. */
void planner_answer(struct planner *planner, struct plan_answer *answer);

#endif
