/* Where each subscription should be.
 *
 * Subscriptions are items of weight 1, workers nodes; those of one camera belong together. A camera
 * that stays without a place, or is at several workers already, is divided then, and the rest is
 * placed again, in smaller and smaller parts: what is at one worker is one part, what waits is
 * halved.
 */
#include "base/error.h"
#include "fleet/plan/mutants.h"
#include "fleet/plan/plan_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIVISIONS_MAX = 12 };

#define NO_BALANCE UINT32_MAX

bool worker_takes(const struct plan_worker *worker)
{
    return worker->is_online && !worker->is_cordoned && !worker->is_draining && !worker->is_deleted;
}

static bool has_label(const char *labels, const char *word, size_t bytes)
{
    for (; labels && *labels; labels += strcspn(labels, " "), labels += strspn(labels, " ")) {
        if (strcspn(labels, " ") == bytes && memcmp(labels, word, bytes) == 0) {
            return true;
        }
    }
    return false;
}

bool plan_has_labels(const char *labels, const char *needs)
{
    for (; needs && *needs; needs += strcspn(needs, " "), needs += strspn(needs, " ")) {
        size_t bytes = strcspn(needs, " ");
        if (bytes > 0 && !has_label(labels, needs, bytes)) {
            return false;
        }
    }
    return true;
}

uint32_t worker_room(const struct planner *planner, size_t worker)
{
    uint32_t max = planner->problem->workers[worker].subscriptions_max;

    return max > 0 ? max : planner->problem->options.subscriptions_max;
}

/* ---- Nodes and items ------------------------------------------------------------------------- */

static void make_nodes(struct planner *planner)
{
    for (size_t i = 0; i < planner->problem->worker_count; i++) {
        const struct plan_worker *worker = &planner->problem->workers[i];
        planner->nodes[i] =
            (struct placement_node){.name = worker->id,
                                    .slots = worker_room(planner, i),
                                    .cpu_permille = worker->other_permille,
                                    .labels = worker->labels,
                                    .is_healthy = worker->is_online,
                                    .is_cordoned = worker->is_cordoned || worker->is_deleted,
                                    .is_draining = worker->is_draining};
    }
}

static void make_items(struct planner *planner)
{
    const struct plan_problem *problem = planner->problem;

    for (size_t i = 0; i < problem->subscription_count; i++) {
        const struct plan_subscription *subscription = &problem->subscriptions[i];
        const char *camera = subscription->camera;
        if (subscription->withheld && !PLAN_MUTANT(WITHHELD_PLACED)) {
            continue;
        }
        size_t at = planner->item_count++;
        planner->subscriptions[at] = (uint32_t)i;
        planner->cameras[at] =
            camera ? intern_add(&planner->camera_urls, camera, strlen(camera)) : INTERN_NONE;
        planner->items[at] =
            (struct placement_item){.id = subscription->id,
                                    .weight = 1,
                                    .priority = subscription->priority,
                                    .needs = subscription->needs,
                                    .together = PLAN_MUTANT(CAMERAS_IGNORED) ? NULL : camera,
                                    .node = planner->spots[i].has};
    }
    uint32_t alone = planner->camera_urls.count;
    for (size_t i = 0; i < planner->item_count; i++) {
        if (planner->cameras[i] == INTERN_NONE) {
            planner->cameras[i] = alone++;
        }
    }
}

/* ---- What a person moves --------------------------------------------------------------------- */

/* The wishes of people, while they come true. */
struct wishes {
    int32_t *to; /* of each camera; of several wishes the last one counts; NOWHERE: none */
    size_t *has; /* of each worker: its items */
};

static int begin_wishes(struct wishes *wishes, const struct planner *planner)
{
    wishes->to = malloc((planner->item_count + 1) * sizeof(*wishes->to));
    wishes->has = calloc(planner->problem->worker_count + 1, sizeof(*wishes->has));
    if (!wishes->to || !wishes->has) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < planner->item_count; i++) {
        wishes->to[i] = NOWHERE;
    }
    for (size_t i = 0; i < planner->item_count; i++) {
        const char *wanted = planner->problem->subscriptions[planner->subscriptions[i]].wanted;
        int32_t worker = planner_worker(planner, wanted);
        if (worker != NOWHERE) {
            wishes->to[planner->cameras[i]] = worker;
        }
        if (planner->items[i].node != NOWHERE) {
            wishes->has[planner->items[i].node]++;
        }
    }
    return BATON_OK;
}

/* Whether the worker may have all of the camera, beside what it has. */
static bool may_have(const struct planner *planner, const struct wishes *wishes, int32_t worker,
                     uint32_t camera)
{
    const struct plan_worker *there = &planner->problem->workers[worker];
    size_t count = wishes->has[worker], room = worker_room(planner, (size_t)worker);

    if (!worker_takes(there) || (count >= room && !PLAN_MUTANT(WANTED_OVERFILLS))) {
        return false;
    }
    for (size_t i = 0; i < planner->item_count; i++) {
        const struct placement_item *item = &planner->items[i];
        if (planner->cameras[i] == camera && !plan_has_labels(there->labels, item->needs)) {
            return false;
        }
        count += planner->cameras[i] == camera && item->node != worker;
    }
    return count <= room || PLAN_MUTANT(WANTED_OVERFILLS);
}

static void move_camera(struct planner *planner, struct wishes *wishes, uint32_t camera)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        int32_t *node = &planner->items[i].node;
        if (planner->cameras[i] == camera) {
            wishes->has[wishes->to[camera]]++;
            if (*node != NOWHERE) {
                wishes->has[*node]--;
            }
            *node = wishes->to[camera];
        }
    }
}

/* For the placement they have been there all the time, so they stay. What one leaves another may
 * get, whichever comes first. */
static int move_wanted(struct planner *planner)
{
    struct wishes wishes = {NULL};
    int code = begin_wishes(&wishes, planner);
    bool is_any = code == BATON_OK && !PLAN_MUTANT(WANTED_IGNORED);

    while (is_any) { /* for each camera once at most */
        is_any = false;
        for (size_t i = 0; i < planner->item_count; i++) {
            uint32_t camera = planner->cameras[i];
            int32_t to = wishes.to[camera];
            if (to != NOWHERE && planner->items[i].node != to &&
                may_have(planner, &wishes, to, camera)) {
                move_camera(planner, &wishes, camera);
                is_any = true;
            }
        }
    }
    free(wishes.to);
    free(wishes.has);
    return code;
}

/* ---- Placing --------------------------------------------------------------------------------- */

int planner_solve(struct planner *planner, uint32_t hysteresis_permille)
{
    const struct placement_problem problem = {.nodes = planner->nodes,
                                              .node_count = planner->problem->worker_count,
                                              .items = planner->items,
                                              .item_count = planner->item_count,
                                              .strategy = PLACEMENT_PRIORITY,
                                              .hysteresis_permille = hysteresis_permille};
    struct placement_answer answer;
    int code = placement_solve(&problem, &answer);

    if (code == BATON_OK) {
        memcpy(planner->places, answer.places, planner->item_count * sizeof(*planner->places));
        placement_answer_fini(&answer);
    }
    return code;
}

void planner_adopt(struct planner *planner)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        planner->items[i].node = planner->places[i].node;
    }
}

/* ---- Cameras that are divided ---------------------------------------------------------------- */

struct camera {
    uint32_t count;   /* of its items */
    uint32_t waiting; /* that have no worker, but might have one */
    uint32_t seen;    /* of the waiting ones */
    int32_t place;    /* of those that have one */
    bool is_apart;    /* they are at several workers */
};

static void look_at(const struct planner *planner, struct camera *cameras)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        cameras[i].place = NOWHERE;
    }
    for (size_t i = 0; i < planner->item_count; i++) {
        const struct placement_place *place = &planner->places[i];
        struct camera *camera = &cameras[planner->cameras[i]];
        camera->count++;
        if (place->node == NOWHERE) {
            camera->waiting += place->reason != PLACEMENT_NO_NODES;
            continue;
        }
        camera->is_apart |= camera->place != NOWHERE && camera->place != place->node;
        camera->place = place->node;
    }
}

static uint32_t part_size(const struct camera *camera, int division)
{
    uint32_t parts = 1u << division;

    return (camera->count + parts - 1) / parts;
}

/* Whether another division may place more of the camera. The first one also lets the parts of a
 * camera that is apart go their own ways. */
static bool is_divisible(const struct camera *camera, int division)
{
    return (division == 1 && camera->is_apart) ||
           (camera->waiting > 0 && part_size(camera, division - 1) > 1);
}

/* Gives the items of divided cameras keys of their own: a key for each worker where some are, and
 * one for each part of those that wait. */
static void write_keys(struct planner *planner, struct camera *cameras, int division)
{
    for (size_t i = 0; i < planner->item_count; i++) {
        struct camera *camera = &cameras[planner->cameras[i]];
        int32_t node = planner->places[i].node;
        uint32_t part = 0;
        if (!camera->is_apart && camera->waiting == 0) {
            continue;
        }
        if (node == NOWHERE) {
            part = camera->seen++ / part_size(camera, division);
        }
        (void)snprintf(planner->keys[i], PLAN_KEY_BYTES, "%u %d %u", planner->cameras[i], node,
                       part);
        planner->items[i].together = planner->keys[i];
    }
}

/* 1: there is something to place anew; 0: there is not. */
static int divide(struct planner *planner, int division)
{
    struct camera *cameras = calloc(planner->item_count + 1, sizeof(*cameras));
    bool is_any = false;

    if (!cameras) {
        return BATON_ENOMEM;
    }
    look_at(planner, cameras);
    for (size_t i = 0; i < planner->item_count; i++) {
        is_any |= is_divisible(&cameras[i], division);
    }
    if (is_any && !planner->keys) {
        planner->keys = calloc(planner->item_count, sizeof(*planner->keys));
    }
    if (is_any && planner->keys) {
        write_keys(planner, cameras, division);
    }
    free(cameras);
    return is_any && !planner->keys ? BATON_ENOMEM : is_any;
}

int planner_place(struct planner *planner)
{
    int code;

    make_nodes(planner);
    make_items(planner);
    code = move_wanted(planner);
    code = code ? code : planner_solve(planner, NO_BALANCE);
    for (int division = 1; code == BATON_OK && division <= DIVISIONS_MAX; division++) {
        int more = PLAN_MUTANT(NEVER_DIVIDED) ? 0 : divide(planner, division);
        if (more <= 0) {
            return more;
        }
        planner_adopt(planner);
        code = planner_solve(planner, NO_BALANCE);
    }
    return code;
}
