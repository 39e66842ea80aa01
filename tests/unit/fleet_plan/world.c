#include "world.h"

#include "world_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 8, BALANCES_MAX = 40 };

static const char *const worker_ids[WORLD_WORKERS] = {"w0", "w1", "w2", "w3", "w4"};
static const char *const cameras[] = {NULL, "rtsp://1", "rtsp://2", "rtsp://3", "rtsp://4"};

static const char *id_of(int number)
{
    static char ids[WORLD_SUBSCRIPTIONS][8];

    (void)snprintf(ids[number], sizeof(ids[number]), "d;%d", number);
    return ids[number];
}

int world_number(const char *id)
{
    int number = strncmp(id, "d;", 2) == 0 ? atoi(id + 2) : -1;

    return number < WORLD_SUBSCRIPTIONS ? number : -1;
}

bool world_lists(const char *const *ids, size_t count, int number)
{
    for (size_t i = 0; i < count; i++) {
        if (world_number(ids[i]) == number) {
            return true;
        }
    }
    return false;
}

uint64_t world_draw(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return world->random % below;
}

static bool one_in(struct world *world, uint64_t count)
{
    return world_draw(world, count) == 0;
}

/* ---- What happens ---------------------------------------------------------------------------- */

static void draw_worker(struct world *world, struct world_worker *worker)
{
    static const char *const labels[] = {NULL, "gpu", "gpu east", "east"};

    worker->labels = world->has_needs ? labels[world_draw(world, 4)] : NULL;
    worker->max = one_in(world, 3) ? 0 : 1 + (uint32_t)world_draw(world, 8);
    worker->other_permille = one_in(world, 2) ? 0 : (uint32_t)world_draw(world, 900);
    worker->is_settled = one_in(world, 2);
}

static void draw_subscription(struct world *world, struct world_subscription *subscription)
{
    static const char *const needs[] = {NULL, NULL, "gpu", "east"};

    *subscription = (struct world_subscription){
        .exists = true,
        .camera = (int)world_draw(world, 5),
        .needs = world->has_needs ? needs[world_draw(world, 4)] : NULL,
        .priority = world->has_priorities ? (int32_t)world_draw(world, 3) : 0};
}

void world_make(struct world *world, uint64_t seed)
{
    *world = (struct world){.random = (seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++) {
        (void)world_draw(world, 2); /* similar seeds part */
    }
    world->has_priorities = one_in(world, 3);
    world->has_needs = one_in(world, 2);
    for (int i = 0; i < WORLD_WORKERS; i++) {
        draw_worker(world, &world->workers[i]);
        world->workers[i].is_online = !one_in(world, 4);
    }
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        if (one_in(world, 2)) {
            draw_subscription(world, &world->subscriptions[i]);
        }
    }
}

/* One that returns gets its list at once. */
static void die_or_return(struct world_worker *worker)
{
    worker->is_online = !worker->is_online;
    worker->is_in_sync = false;
    memset(worker->may_run, 0, sizeof(worker->may_run));
    for (size_t i = 0; worker->is_online && i < worker->assigned_count; i++) {
        worker->may_run[world_number(worker->assigned[i])] = true;
    }
}

static void confirm(struct world_worker *worker)
{
    if (worker->is_online) {
        memset(worker->may_run, 0, sizeof(worker->may_run));
        for (size_t i = 0; i < worker->assigned_count; i++) {
            worker->may_run[world_number(worker->assigned[i])] = true;
        }
        worker->is_in_sync = true;
    }
}

void world_sync(struct world *world)
{
    for (int i = 0; i < WORLD_WORKERS; i++) {
        confirm(&world->workers[i]);
    }
}

void world_step(struct world *world)
{
    struct world_worker *worker = &world->workers[world_draw(world, WORLD_WORKERS)];
    struct world_subscription *subscription =
        &world->subscriptions[world_draw(world, WORLD_SUBSCRIPTIONS)];

    switch (world_draw(world, 16)) {
    case 0:
        die_or_return(worker);
        break;
    case 1:
        worker->is_cordoned = !worker->is_cordoned && one_in(world, 2);
        break;
    case 2:
        worker->is_draining = !worker->is_draining && one_in(world, 2);
        break;
    case 3:
        draw_worker(world, worker);
        break;
    case 4:
    case 5:
    case 6:
        draw_subscription(world, subscription);
        break;
    case 7:
        subscription->exists = false;
        break;
    case 8:
        subscription->is_paused = !subscription->is_paused && one_in(world, 2);
        break;
    case 9:
        subscription->camera = (int)world_draw(world, 5);
        break;
    case 10:
        subscription->wanted = (int)world_draw(world, WORLD_WORKERS + 1);
        break;
    default:
        confirm(worker);
        break;
    }
}

void world_forget(struct world *world)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        world->subscriptions[i].headed = 0;
    }
}

/* ---- Plans ----------------------------------------------------------------------------------- */

static void make_problem(struct world *world, bool balances)
{
    size_t count = 0;

    for (int i = 0; i < WORLD_WORKERS; i++) {
        const struct world_worker *worker = &world->workers[i];
        world->plan_workers[i] = (struct plan_worker){.id = worker_ids[i],
                                                      .labels = worker->labels,
                                                      .subscriptions_max = worker->max,
                                                      .other_permille = worker->other_permille,
                                                      .is_settled = worker->is_settled,
                                                      .is_online = worker->is_online,
                                                      .is_cordoned = worker->is_cordoned,
                                                      .is_draining = worker->is_draining,
                                                      .is_in_sync = worker->is_in_sync,
                                                      .assigned = worker->assigned,
                                                      .assigned_count = worker->assigned_count,
                                                      .leaving = worker->leaving,
                                                      .leaving_count = worker->leaving_count};
    }
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        const struct world_subscription *subscription = &world->subscriptions[i];
        if (subscription->exists) {
            world->numbers[count] = i;
            world->plan_subscriptions[count++] = (struct plan_subscription){
                .id = id_of(i),
                .camera = cameras[subscription->camera],
                .model = i % 3 == 0   ? NULL
                         : i % 3 == 1 ? "1"
                                      : "2",
                .needs = subscription->needs,
                .withheld = subscription->is_paused ? "paused" : NULL,
                .wanted = subscription->wanted > 0 ? worker_ids[subscription->wanted - 1] : NULL,
                .headed = subscription->headed > 0 ? worker_ids[subscription->headed - 1] : NULL,
                .priority = subscription->priority};
        }
    }
    world->problem = (struct plan_problem){.workers = world->plan_workers,
                                           .worker_count = WORLD_WORKERS,
                                           .subscriptions = world->plan_subscriptions,
                                           .subscription_count = count,
                                           .options = {.subscriptions_max = WORLD_ROOM,
                                                       .balances = balances,
                                                       .hysteresis_permille = WORLD_HYSTERESIS}};
}

/* The ids outlive the answer: they are the world's. */
static void store(struct world_worker *worker, const struct plan_list *list)
{
    memcpy(worker->assigned, list->subscriptions, list->count * sizeof(*list->subscriptions));
    memcpy(worker->leaving, list->leaving, list->leaving_count * sizeof(*list->leaving));
    worker->assigned_count = list->count;
    worker->leaving_count = list->leaving_count;
    worker->is_in_sync = worker->is_settled = false;
    for (size_t i = 0; worker->is_online && i < list->count; i++) {
        worker->may_run[world_number(list->subscriptions[i])] = true;
    }
}

static bool carry_out(struct world *world, const struct plan_answer *answer, bool stops)
{
    bool is_changed = false;

    world_forget(world);
    for (size_t i = 0; i < answer->unplaced_count; i++) {
        const struct plan_unplaced *unplaced = &answer->unplaced[i];
        if (!unplaced->reason) {
            world->subscriptions[world->numbers[unplaced->subscription]].headed =
                (int)unplaced->target + 1;
        }
    }
    for (int i = 0; i < WORLD_WORKERS; i++) {
        is_changed |= answer->lists[i].is_changed;
        if (answer->lists[i].is_changed && (!stops || !answer->lists[i].gives)) {
            store(&world->workers[i], &answer->lists[i]);
        }
    }
    return is_changed;
}

static const char *fault_of_two(const struct world *world)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        int count = 0;
        for (int j = 0; j < WORLD_WORKERS; j++) {
            count += world->workers[j].is_online && world->workers[j].may_run[i];
        }
        if (count > 1) {
            return "two online workers may run a subscription at once";
        }
    }
    return NULL;
}

typedef const char *(*check)(const struct world *world, const struct plan_answer *answer);

static const char *plan(struct world *world, bool balances, bool stops, bool *ret_is_changed,
                        check more)
{
    struct plan_answer answer;
    const char *fault;

    make_problem(world, balances);
    if (plan_solve(&world->problem, &answer) != 0) {
        return "it has failed";
    }
    fault = world_fault(world, &answer);
    if (!fault && more) {
        fault = more(world, &answer);
    }
    if (!fault) {
        *ret_is_changed = carry_out(world, &answer, stops);
        fault = fault_of_two(world);
    }
    plan_answer_fini(&answer);
    return fault;
}

const char *world_plan(struct world *world, bool balances, bool stops, bool *ret_is_changed)
{
    return plan(world, balances, stops, ret_is_changed, NULL);
}

const char *world_rest(struct world *world)
{
    bool is_changed = true;
    const char *fault = NULL;

    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        world->subscriptions[i].wanted = 0;
    }
    for (int i = 0; !fault && is_changed; i++) {
        if (i == ROUNDS_MAX) {
            return "plans go on although nothing happens";
        }
        world_sync(world);
        fault = plan(world, false, false, &is_changed, NULL);
    }
    fault = fault ? fault : plan(world, false, false, &is_changed, world_fault_at_rest);
    for (int i = 0; !fault && i == 0;) {
        fault = plan(world, true, false, &is_changed, world_fault_of_balance);
        i++;
    }
    for (int i = 0; !fault && is_changed; i++) {
        if (i == BALANCES_MAX) {
            return "balancing goes on although nothing happens";
        }
        world_sync(world);
        fault = plan(world, true, false, &is_changed, NULL);
    }
    return fault;
}
