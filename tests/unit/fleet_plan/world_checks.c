#include "work/placement.h"
#include "world_int.h"

#include <string.h>

/* ---- What there is --------------------------------------------------------------------------- */

static uint32_t room_of(const struct world_worker *worker)
{
    return worker->max > 0 ? worker->max : WORLD_ROOM;
}

static bool takes(const struct world_worker *worker)
{
    return worker->is_online && !worker->is_cordoned && !worker->is_draining;
}

static bool fits(const struct world_worker *worker, const struct world_subscription *subscription)
{
    const char *needs = subscription->needs;

    return !needs || (worker->labels && strstr(worker->labels, needs));
}

static bool is_due(const struct world_subscription *subscription)
{
    return subscription->exists && !subscription->is_paused;
}

static bool had(const struct world_worker *worker, int number)
{
    return world_lists(worker->assigned, worker->assigned_count, number);
}

static bool was_leaving(const struct world_worker *worker, int number)
{
    return world_lists(worker->leaving, worker->leaving_count, number);
}

static bool gets(const struct plan_list *list, int number)
{
    return world_lists(list->subscriptions, list->count, number);
}

static bool lets_go(const struct plan_list *list, int number)
{
    return world_lists(list->leaving, list->leaving_count, number);
}

/* The online worker in whose list it was; -1: none. */
static int worker_of(const struct world *world, int number)
{
    for (int i = 0; i < WORLD_WORKERS; i++) {
        if (world->workers[i].is_online && had(&world->workers[i], number)) {
            return i;
        }
    }
    return -1;
}

/* The worker in whose next list it is, an online one first. */
static int next_worker_of(const struct plan_answer *answer, const struct world *world, int number)
{
    int offline = -1;

    for (int i = 0; i < WORLD_WORKERS; i++) {
        if (gets(&answer->lists[i], number)) {
            if (world->workers[i].is_online) {
                return i;
            }
            offline = i;
        }
    }
    return offline;
}

static const struct plan_unplaced *unplaced(const struct world *world,
                                            const struct plan_answer *answer, int number)
{
    for (size_t i = 0; i < answer->unplaced_count; i++) {
        if (world->numbers[answer->unplaced[i].subscription] == number) {
            return &answer->unplaced[i];
        }
    }
    return NULL;
}

/* Whether two subscriptions have to be at one worker. */
static bool are_together(const struct world *world, int a, int b)
{
    const struct world_subscription *x = &world->subscriptions[a], *y = &world->subscriptions[b];

    return a == b || (is_due(x) && is_due(y) && x->camera > 0 && x->camera == y->camera);
}

/* ---- Of each worker -------------------------------------------------------------------------- */

static bool is_same(const char *const *a, size_t a_count, const char *const *b, size_t b_count)
{
    for (size_t i = 0; a_count == b_count && i < a_count; i++) {
        if (strcmp(a[i], b[i]) != 0) {
            return false;
        }
    }
    return a_count == b_count;
}

static size_t times(const char *const *ids, size_t count, int number)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++) {
        found += world_number(ids[i]) == number;
    }
    return found;
}

static const char *fault_of_gift(const struct world *world, const struct plan_answer *answer,
                                 int worker, int number)
{
    const struct world_worker *there = &world->workers[worker];

    if (!takes(there)) {
        return "a worker that takes nothing new gets something";
    }
    if (answer->lists[worker].count > room_of(there)) {
        return "a worker gets more than it has room for";
    }
    for (int i = 0; i < WORLD_WORKERS; i++) {
        if (i != worker && world->workers[i].is_online &&
            (world->workers[i].may_run[number] || gets(&answer->lists[i], number) ||
             lets_go(&answer->lists[i], number))) {
            return "a subscription is given that another online worker may run";
        }
    }
    return NULL;
}

static const char *fault_of_one(const struct world *world, const struct plan_answer *answer,
                                int worker, int number)
{
    const struct world_worker *there = &world->workers[worker];
    const struct plan_list *list = &answer->lists[worker];
    bool has = gets(list, number);

    if (times(list->subscriptions, list->count, number) +
            times(list->leaving, list->leaving_count, number) >
        1) {
        return "a worker's lists have a subscription twice";
    }
    if (has && !is_due(&world->subscriptions[number])) {
        return "a subscription is assigned that should be nowhere";
    }
    if (has && there->is_online && !fits(there, &world->subscriptions[number])) {
        return "a worker has a subscription that needs another one";
    }
    if (has && !had(there, number) && !was_leaving(there, number)) {
        return fault_of_gift(world, answer, worker, number);
    }
    if (has && !had(there, number) && !takes(there) && list->count > room_of(there)) {
        return "something comes back to a worker that has no room";
    }
    if (there->is_online && !has && there->may_run[number] && !lets_go(list, number)) {
        return "a worker may run what its lists have no more";
    }
    return !there->is_online && lets_go(list, number) ? "something leaves an offline worker" : NULL;
}

static const char *fault_of_lists(const struct world *world, const struct plan_answer *answer)
{
    const char *fault = NULL;

    for (int i = 0; !fault && i < WORLD_WORKERS; i++) {
        const struct world_worker *worker = &world->workers[i];
        const struct plan_list *list = &answer->lists[i];
        bool same =
            is_same(worker->assigned, worker->assigned_count, list->subscriptions, list->count) &&
            is_same(worker->leaving, worker->leaving_count, list->leaving, list->leaving_count);
        if (same == list->is_changed) {
            return "a list does not say whether it is changed";
        }
        for (int j = 0; !fault && j < WORLD_SUBSCRIPTIONS; j++) {
            fault = fault_of_one(world, answer, i, j);
        }
    }
    return fault;
}

/* ---- Of each subscription -------------------------------------------------------------------- */

/* Whether it may lose the place that it has: only to a more important one, or where it does not
 * fit. */
static const char *fault_of_loss(const struct world *world, int number)
{
    int worker = worker_of(world, number);

    for (int i = 0; worker < 0 && i < WORLD_WORKERS; i++) {
        const struct world_worker *there = &world->workers[i];
        if (there->is_online && !takes(there) && was_leaving(there, number) &&
            there->assigned_count + there->leaving_count <= room_of(there)) {
            worker = i;
        }
    }
    if (worker >= 0 && !world->has_priorities &&
        fits(&world->workers[worker], &world->subscriptions[number])) {
        return "a subscription loses its place";
    }
    for (int i = 0; worker < 0 && i < WORLD_WORKERS; i++) {
        if (!world->workers[i].is_online && had(&world->workers[i], number)) {
            return "an offline worker's list loses what nobody else gets";
        }
    }
    return NULL;
}

static const char *fault_of_unplaced(const struct world *world, const struct plan_answer *answer,
                                     int number, const struct plan_unplaced *entry)
{
    if (world->subscriptions[number].is_paused) {
        return !entry || !entry->reason || strcmp(entry->reason, "paused") != 0
                   ? "a paused subscription does not say so"
                   : NULL;
    }
    if (!entry) {
        return "a subscription has no worker and no reason";
    }
    if (!entry->reason) {
        return entry->leaves >= WORLD_WORKERS || !world->workers[entry->leaves].is_online ||
                       !lets_go(&answer->lists[entry->leaves], number)
                   ? "a subscription is said to leave a worker that it does not leave"
                   : NULL;
    }
    return next_worker_of(answer, world, number) < 0 ? fault_of_loss(world, number) : NULL;
}

static const char *fault_of_subscriptions(const struct world *world,
                                          const struct plan_answer *answer)
{
    const char *fault = NULL;

    for (int i = 0; !fault && i < WORLD_SUBSCRIPTIONS; i++) {
        const struct plan_unplaced *entry = unplaced(world, answer, i);
        int worker = next_worker_of(answer, world, i);
        int lists = 0;
        for (int j = 0; j < WORLD_WORKERS; j++) {
            lists += gets(&answer->lists[j], i);
        }
        if (lists > 1) {
            return "two workers are assigned the same subscription";
        }
        if (!world->subscriptions[i].exists) {
            continue;
        }
        if (worker < 0 || !world->workers[worker].is_online) {
            fault = fault_of_unplaced(world, answer, i, entry);
        } else if (entry) {
            fault = "a subscription has a worker and a reason to have none";
        }
    }
    return fault;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

/* Whether its camera was at one worker, whole. */
static bool was_whole(const struct world *world, int number, int worker)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        if (are_together(world, number, i) && worker_of(world, i) != worker) {
            return false;
        }
    }
    return true;
}

static bool is_wanted(const struct world *world, int number)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        if (are_together(world, number, i) && world->subscriptions[i].wanted > 0) {
            return true;
        }
    }
    return false;
}

static bool must_move(const struct world *world, int number, int worker)
{
    const struct world_worker *there = &world->workers[worker];
    bool fit = true;

    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        fit &= !are_together(world, number, i) || fits(there, &world->subscriptions[i]);
    }
    return there->is_draining || there->assigned_count > room_of(there) || !fit ||
           !was_whole(world, number, worker) || is_wanted(world, number);
}

/* Whether something waits for a place, so that others may move to make room for it. */
static bool is_any_waiting(const struct world *world)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        int worker = worker_of(world, i);
        if (is_due(&world->subscriptions[i]) &&
            (worker < 0 || !was_whole(world, i, worker) ||
             !fits(&world->workers[worker], &world->subscriptions[i]))) {
            return true;
        }
    }
    return false;
}

static const char *fault_of_moves(const struct world *world, const struct plan_answer *answer)
{
    size_t moved = 0;

    if (is_any_waiting(world)) {
        return NULL;
    }
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        int worker = is_due(&world->subscriptions[i]) ? worker_of(world, i) : -1;
        if (worker < 0 || gets(&answer->lists[worker], i)) {
            continue;
        }
        moved++;
        if (!must_move(world, i, worker) && !world->problem.options.balances) {
            for (int j = 0; j < WORLD_WORKERS; j++) { /* room for a whole that is too large */
                if (world->workers[j].is_draining ||
                    world->workers[j].assigned_count > room_of(&world->workers[j])) {
                    return NULL;
                }
            }
            return "a subscription moves without a need";
        }
    }
    return moved < answer->moved ? "more moves are counted than there are" : NULL;
}

/* What a person moves arrives, if it may: with all of its camera, where there is room. */
static const char *fault_of_wanted(const struct world *world, const struct plan_answer *answer)
{
    int wanted = -1;
    size_t count;

    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        if (is_due(&world->subscriptions[i]) && world->subscriptions[i].wanted > 0) {
            if (wanted >= 0) {
                return NULL;
            }
            wanted = i;
        }
    }
    if (wanted < 0 || world->problem.options.balances || is_any_waiting(world)) {
        return NULL;
    }
    int number = world->subscriptions[wanted].wanted - 1;
    const struct world_worker *worker = &world->workers[number];
    count = worker->assigned_count;
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        if (are_together(world, wanted, i)) {
            count += !had(worker, i);
            if (!fits(worker, &world->subscriptions[i])) {
                return NULL;
            }
        }
    }
    if (!takes(worker) || count > room_of(worker)) {
        return NULL;
    }
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        const struct plan_unplaced *entry = unplaced(world, answer, i);
        if (are_together(world, wanted, i) && !gets(&answer->lists[number], i) &&
            (!entry || entry->reason)) {
            return "what a person moves does not go there";
        }
    }
    return NULL;
}

const char *world_fault(const struct world *world, const struct plan_answer *answer)
{
    const char *fault = fault_of_lists(world, answer);

    fault = fault ? fault : fault_of_subscriptions(world, answer);
    fault = fault ? fault : fault_of_moves(world, answer);
    return fault ? fault : fault_of_wanted(world, answer);
}

/* ---- At rest --------------------------------------------------------------------------------- */

/* Whether a worker has room for all of the camera, beside what it has. */
static bool could_be_whole(const struct world *world, int number)
{
    for (int i = 0; i < WORLD_WORKERS; i++) {
        const struct world_worker *worker = &world->workers[i];
        size_t count = worker->assigned_count;
        bool fit = takes(worker);
        for (int j = 0; j < WORLD_SUBSCRIPTIONS; j++) {
            if (are_together(world, number, j)) {
                count++;
                fit &= fits(worker, &world->subscriptions[j]);
            }
        }
        if (fit && count <= room_of(worker)) {
            return true;
        }
    }
    return false;
}

const char *world_fault_at_rest(const struct world *world, const struct plan_answer *answer)
{
    for (int i = 0; i < WORLD_WORKERS; i++) {
        if (answer->lists[i].is_changed) {
            return "the answer to an answer is another one";
        }
    }
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        int worker = worker_of(world, i);
        if (!is_due(&world->subscriptions[i])) {
            continue;
        }
        if (worker >= 0 && !was_whole(world, i, worker) && could_be_whole(world, i)) {
            return "a camera is at two workers although one has room for it";
        }
        for (int j = 0; worker < 0 && j < WORLD_WORKERS; j++) {
            const struct world_worker *there = &world->workers[j];
            if (takes(there) && fits(there, &world->subscriptions[i]) &&
                there->assigned_count < room_of(there)) {
                return "a subscription has no worker although one has room";
            }
        }
    }
    return NULL;
}

static double load_of(const struct world_worker *worker, bool gives)
{
    double share = (double)worker->assigned_count * 1000 / room_of(worker);

    return gives && !worker->is_settled ? share : share + worker->other_permille;
}

/* Whether a worker is to get something, now or later: its load grows. */
static bool gets_any(const struct plan_answer *answer, int worker)
{
    for (size_t i = 0; i < answer->unplaced_count; i++) {
        if (!answer->unplaced[i].reason && answer->unplaced[i].target == (size_t)worker) {
            return true;
        }
    }
    return answer->lists[worker].gives;
}

/* In a world at rest nothing moves but for balance. Each camera that moves must help, even if it
 * costs what the subscriptions of its worker cost on average. Loads are as before all moves: the
 * least that may be asked. */
const char *world_fault_of_balance(const struct world *world, const struct plan_answer *answer)
{
    for (int i = 0; i < WORLD_SUBSCRIPTIONS; i++) {
        int worker = is_due(&world->subscriptions[i]) ? worker_of(world, i) : -1;
        if (worker < 0 || gets(&answer->lists[worker], i) || gets_any(answer, worker)) {
            continue;
        }
        const struct world_worker *from = &world->workers[worker];
        double gives = load_of(from, true), cost = 0, best = 1e9;
        for (int j = 0; j < WORLD_SUBSCRIPTIONS; j++) {
            cost += are_together(world, i, j) && had(from, j);
        }
        cost *= gives / (double)from->assigned_count;
        for (int j = 0; j < WORLD_WORKERS; j++) {
            if (takes(&world->workers[j]) && j != worker &&
                load_of(&world->workers[j], false) < best) {
                best = load_of(&world->workers[j], false);
            }
        }
        if (best + WORLD_HYSTERESIS >= gives + 3 || best + cost >= gives + 3) { /* 3: rounding */
            return "a subscription moves for balance and does not help";
        }
    }
    return NULL;
}
