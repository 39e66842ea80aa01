/* A small fleet that lives at random: workers die, return and confirm their lists, subscriptions
 * come and go; each plan is carried out. What a worker may run is known here: all of its lists
 * since it confirmed one. world_fault() says whether an answer keeps the rules. */
#ifndef TESTS_FLEET_PLAN_WORLD_H
#define TESTS_FLEET_PLAN_WORLD_H

#include "fleet/plan/plan.h"

enum { WORLD_WORKERS = 5, WORLD_SUBSCRIPTIONS = 24, WORLD_LIST = 2 * WORLD_SUBSCRIPTIONS };

struct world_worker {
    bool is_online, is_cordoned, is_draining, is_in_sync, is_settled;
    const char *labels;
    uint32_t max, other_permille;
    const char *assigned[WORLD_LIST], *leaving[WORLD_LIST];
    size_t assigned_count, leaving_count;
    bool may_run[WORLD_SUBSCRIPTIONS]; /* counts while it is online */
};

struct world_subscription {
    bool exists, is_paused;
    int camera; /* 0: none */
    const char *needs;
    int32_t priority;
    int wanted, headed; /* a worker's number + 1; 0: none */
};

struct world {
    uint64_t random;
    bool has_priorities, has_needs;
    struct world_worker workers[WORLD_WORKERS];
    struct world_subscription subscriptions[WORLD_SUBSCRIPTIONS];

    /* The problem of today, made by world_plan(). */
    struct plan_problem problem;
    struct plan_worker plan_workers[WORLD_WORKERS];
    struct plan_subscription plan_subscriptions[WORLD_SUBSCRIPTIONS];
    int numbers[WORLD_SUBSCRIPTIONS]; /* of the problem's subscriptions */
};

void world_make(struct world *world, uint64_t seed);
uint64_t world_draw(struct world *world, uint64_t below);
/* Something happens. */
void world_step(struct world *world);
/* A new master plans from now on: what leaves a worker is headed for nowhere. */
void world_forget(struct world *world);
/* All online workers confirm what they have. */
void world_sync(struct world *world);

/* Plans, checks the answer and carries it out; `stops`: a master that dies after the first round of
 * its writes. NULL: no fault; else what it is. */
const char *world_plan(struct world *world, bool balances, bool stops, bool *ret_is_changed);
/* Confirms and plans until nothing changes any more, and checks what holds then. */
const char *world_rest(struct world *world);

#endif
