#include "checks.h"

#include <stdlib.h>
#include <string.h>

enum { NOWHERE = PLACEMENT_NOWHERE };

/* An item alone, or all items of a key. */
struct group {
    size_t first;
    size_t count;
    uint64_t weight, memory, gpus;
    int32_t priority;
    size_t waiting; /* have no node */
    size_t fixed;   /* are pinned to a healthy node */
    int32_t node;   /* of those that have one; the last of them if they are apart */
    bool is_apart;
    size_t new; /* have a node that they had not */
};

struct room {
    uint64_t weight, memory, gpus; /* used */
    size_t items;
    uint64_t new_weight, new_memory, new_gpus; /* of items that were not there */
};

struct world {
    const struct placement_problem *problem;
    const struct placement_answer *answer;
    struct room *rooms;
    size_t takers;
};

/* ---- What there is --------------------------------------------------------------------------- */

static bool has_label(const char *labels, const char *word, size_t bytes)
{
    while (labels && *labels) {
        size_t next = strcspn(labels, " ");
        if (next == bytes && memcmp(labels, word, bytes) == 0) {
            return true;
        }
        labels += next + (labels[next] == ' ');
    }
    return false;
}

bool checks_has_labels(const char *labels, const char *needs)
{
    while (needs && *needs) {
        size_t bytes = strcspn(needs, " ");
        if (bytes > 0 && !has_label(labels, needs, bytes)) {
            return false;
        }
        needs += bytes + (needs[bytes] == ' ');
    }
    return true;
}

bool checks_takes(const struct placement_node *node)
{
    return node->is_healthy && !node->is_cordoned && !node->is_draining;
}

static bool is_fixed(const struct placement_problem *problem, size_t i)
{
    const struct placement_item *item = &problem->items[i];

    return item->is_pinned && item->node != NOWHERE && problem->nodes[item->node].is_healthy;
}

static bool could_have(const struct placement_node *node, const struct placement_item *item)
{
    return checks_has_labels(node->labels, item->needs) && item->memory_mib <= node->memory_mib &&
           item->gpus <= node->gpus;
}

bool checks_may_stay(const struct placement_problem *problem, size_t i)
{
    const struct placement_item *item = &problem->items[i];
    const struct placement_node *node = item->node != NOWHERE ? &problem->nodes[item->node] : NULL;

    return node && node->is_healthy && (item->is_pinned || could_have(node, item));
}

static bool is_of_group(const struct placement_problem *problem, size_t first, size_t i)
{
    const char *key = problem->items[first].together;
    const char *other = problem->items[i].together;

    return i == first || (key && other && strcmp(key, other) == 0);
}

/* False: an earlier item is of the same group. */
static bool read_group(const struct world *world, size_t first, struct group *ret)
{
    const struct placement_problem *problem = world->problem;

    *ret = (struct group){.first = first, .priority = INT32_MIN, .node = NOWHERE};
    for (size_t i = 0; i < problem->item_count; i++) {
        const struct placement_item *item = &problem->items[i];
        int32_t node = world->answer->places[i].node;
        if (!is_of_group(problem, first, i)) {
            continue;
        }
        if (i < first) {
            return false;
        }
        ret->count++;
        ret->weight += item->weight;
        ret->memory += item->memory_mib;
        ret->gpus += item->gpus;
        ret->priority = item->priority > ret->priority ? item->priority : ret->priority;
        ret->waiting += node == NOWHERE;
        ret->fixed += is_fixed(problem, i);
        if (node != NOWHERE) {
            ret->is_apart |= ret->node != NOWHERE && ret->node != node;
            ret->new += node != item->node;
            ret->node = node;
        }
    }
    return true;
}

static bool is_whole(const struct group *group)
{
    return group->waiting == 0 && !group->is_apart;
}

/* It may go to the node, if there is room. */
static bool group_could_go(const struct world *world, const struct group *group, size_t node)
{
    const struct placement_problem *problem = world->problem;

    for (size_t i = 0; i < problem->item_count; i++) {
        if (is_of_group(problem, group->first, i) &&
            !could_have(&problem->nodes[node], &problem->items[i])) {
            return false;
        }
    }
    return checks_takes(&problem->nodes[node]) &&
           group->memory <= problem->nodes[node].memory_mib &&
           group->gpus <= problem->nodes[node].gpus;
}

static bool has_room(const struct world *world, size_t node, uint64_t weight, uint64_t memory,
                     uint64_t gpus)
{
    const struct placement_node *at = &world->problem->nodes[node];
    const struct room *room = &world->rooms[node];

    return (weight == 0 || room->weight + weight <= at->slots) &&
           (memory == 0 || room->memory + memory <= at->memory_mib) &&
           (gpus == 0 || room->gpus + gpus <= at->gpus);
}

/* Any node but one has room for all of the group. */
static bool has_other_room(const struct world *world, const struct group *group, int32_t except)
{
    for (size_t i = 0; i < world->problem->node_count; i++) {
        if ((int32_t)i != except && group_could_go(world, group, i) &&
            has_room(world, i, group->weight, group->memory, group->gpus)) {
            return true;
        }
    }
    return false;
}

static bool has_other_room_overfilled(const struct world *world, struct group group, int32_t except)
{
    group.weight = 0;
    return world->problem->overfills && has_other_room(world, &group, except);
}

/* ---- Items ----------------------------------------------------------------------------------- */

static enum placement_reason reason_of(const struct world *world, const struct group *group)
{
    bool is_capable = false, is_large_enough = false;

    for (size_t i = 0; i < world->problem->node_count; i++) {
        bool could = group_could_go(world, group, i);
        is_capable |= could;
        is_large_enough |=
            could && (world->problem->overfills || group->weight <= world->problem->nodes[i].slots);
    }
    return world->takers == 0 ? PLACEMENT_NO_NODES
           : !is_capable      ? PLACEMENT_NO_CAPABLE_NODE
           : !is_large_enough ? PLACEMENT_ITEM_TOO_LARGE
                              : PLACEMENT_NO_ROOM;
}

static bool displacer_exists(const struct world *world, int32_t priority)
{
    struct group group;

    for (size_t i = 0; i < world->problem->item_count; i++) {
        if (read_group(world, i, &group) && group.priority > priority && group.new > 0) {
            return true;
        }
    }
    return false;
}

static const char *fault_of_place(const struct world *world, size_t i)
{
    const struct placement_item *item = &world->problem->items[i];
    const struct placement_place *place = &world->answer->places[i];
    const struct placement_node *node = &world->problem->nodes[place->node];

    if (is_fixed(world->problem, i)) {
        return place->node != item->node ? "a pinned item moved" : NULL;
    }
    if (!node->is_healthy) {
        return "an item is on a node that is not healthy";
    }
    if (!checks_has_labels(node->labels, item->needs)) {
        return "an item is on a node without a label that it needs";
    }
    if (place->node != item->node && !checks_takes(node)) {
        return "a node that takes nothing new got an item";
    }
    bool is_overfilled = world->rooms[place->node].weight > node->slots;
    return (place->reason == PLACEMENT_OVERFILLS) != is_overfilled ||
                   (place->reason == PLACEMENT_PLACED) == is_overfilled
               ? "a place has a wrong reason"
               : NULL;
}

static const char *fault_of_item(const struct world *world, size_t i)
{
    const struct placement_place *place = &world->answer->places[i];
    struct group alone;

    if (place->node != NOWHERE) {
        return fault_of_place(world, i);
    }
    if (place->reason <= PLACEMENT_OVERFILLS) {
        return "an item without a node is placed";
    }
    (void)read_group(world, i, &alone);
    bool is_displaced = world->problem->strategy == PLACEMENT_PRIORITY &&
                        place->reason == PLACEMENT_DISPLACED &&
                        displacer_exists(world, alone.priority);
    if (checks_may_stay(world->problem, i) && !is_displaced) {
        return "an item lost a node on which it could stay";
    }
    if (!world->problem->items[i].together && !is_displaced &&
        place->reason != reason_of(world, &alone)) {
        return "an item waits for a wrong reason";
    }
    return NULL;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static const char *fault_of_node(const struct world *world, size_t i)
{
    const struct placement_node *node = &world->problem->nodes[i];
    const struct room *room = &world->rooms[i];

    if ((room->memory > node->memory_mib && room->new_memory > 0) ||
        (room->gpus > node->gpus && room->new_gpus > 0)) {
        return "a node got an item for which its memory or GPUs do not suffice";
    }
    return room->weight > node->slots && room->new_weight > 0 && !world->problem->overfills
               ? "a node got an item for which it has no slots"
               : NULL;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Some of the group are on one node, and the others have room there. */
static bool rest_has_room(const struct world *world, const struct group *group)
{
    const struct placement_problem *problem = world->problem;
    uint64_t weight = 0, memory = 0, gpus = 0;

    for (size_t i = 0; i < problem->item_count; i++) {
        if (is_of_group(problem, group->first, i) && world->answer->places[i].node == NOWHERE) {
            weight += problem->overfills ? 0 : problem->items[i].weight;
            memory += problem->items[i].memory_mib;
            gpus += problem->items[i].gpus;
        }
    }
    return group->node != NOWHERE && !group->is_apart &&
           group_could_go(world, group, (size_t)group->node) &&
           has_room(world, (size_t)group->node, weight, memory, gpus);
}

static const char *fault_of_waiting(const struct world *world, const struct group *group)
{
    const struct placement_problem *problem = world->problem;

    if (group->fixed > 0) {
        return NULL;
    }
    if (has_other_room(world, group, NOWHERE)) {
        return "an item waits or a group is apart although a node has room";
    }
    if (has_other_room_overfilled(world, *group, NOWHERE)) {
        return "an item waits or a group is apart although a node may be overfilled";
    }
    if (rest_has_room(world, group)) {
        return "the rest of a group waits although there is room where the others are";
    }
    for (size_t i = 0; i < problem->node_count; i++) {
        const struct placement_node *node = &problem->nodes[i];
        struct room rest = world->rooms[i];
        for (size_t j = 0; j < problem->item_count; j++) {
            const struct placement_item *item = &problem->items[j];
            bool is_lower = item->priority < group->priority && !item->is_pinned &&
                            !item->together && world->answer->places[j].node == (int32_t)i;
            rest.weight -= is_lower ? item->weight : 0;
            rest.memory -= is_lower ? item->memory_mib : 0;
            rest.gpus -= is_lower ? item->gpus : 0;
        }
        if (problem->strategy == PLACEMENT_PRIORITY && group_could_go(world, group, i) &&
            rest.weight + group->weight <= node->slots &&
            rest.memory + group->memory <= node->memory_mib &&
            rest.gpus + group->gpus <= node->gpus) {
            return "an item waits although less important ones could be displaced";
        }
    }
    return NULL;
}

static const char *fault_of_apart(const struct world *world, const struct group *group)
{
    const struct placement_problem *problem = world->problem;

    for (size_t i = 0; i < problem->item_count; i++) {
        int32_t node = world->answer->places[i].node;
        if (!is_of_group(problem, group->first, i) || node == NOWHERE ||
            node == problem->items[i].node) {
            continue;
        }
        bool is_with_fixed = false;
        for (size_t j = 0; j < problem->item_count; j++) {
            is_with_fixed |= is_of_group(problem, group->first, j) && is_fixed(problem, j) &&
                             world->answer->places[j].node == node;
        }
        if (!is_with_fixed) {
            return "a group went apart";
        }
    }
    return NULL;
}

static bool is_overfull_with(const struct world *world, const struct group *group)
{
    const struct placement_node *node = &world->problem->nodes[group->node];
    const struct room *room = &world->rooms[group->node];

    return (room->weight > node->slots && group->weight > 0) ||
           (room->memory > node->memory_mib && group->memory > 0) ||
           (room->gpus > node->gpus && group->gpus > 0);
}

static const char *fault_of_group(const struct world *world, const struct group *group)
{
    const char *fault = NULL;

    if (!is_whole(group)) {
        fault = group->is_apart ? fault_of_apart(world, group) : NULL;
        return fault ? fault : fault_of_waiting(world, group);
    }
    if (group->fixed > 0) {
        return NULL;
    }
    if (is_overfull_with(world, group) && has_other_room(world, group, group->node)) {
        return "a node is overfilled although another one has room";
    }
    if (world->problem->nodes[group->node].is_draining &&
        (has_other_room(world, group, group->node) ||
         has_other_room_overfilled(world, *group, group->node))) {
        return "an item is on a draining node although another one has room";
    }
    return NULL;
}

/* ---- Balance --------------------------------------------------------------------------------- */

/* In millionths, rounded down. */
static uint64_t load_of(const struct world *world, size_t node, uint64_t weight, uint64_t items)
{
    const struct placement_node *at = &world->problem->nodes[node];
    const struct room *room = &world->rooms[node];
    size_t mean = world->problem->item_count / (world->takers > 0 ? world->takers : 1);

    if (world->problem->strategy == PLACEMENT_ROUND_ROBIN) {
        return (room->items + items) * 1000000 / (mean > 0 ? mean : 1);
    }
    return at->slots > 0 ? (room->weight + weight) * 1000000 / at->slots + at->cpu_permille * 1000u
                         : UINT64_MAX / 2;
}

static uint64_t rank_of(const struct world *world, size_t node)
{
    uint64_t words = 0;

    if (world->problem->strategy != PLACEMENT_CAPABILITY) {
        return 0;
    }
    for (const char *at = world->problem->nodes[node].labels; at && *at;) {
        size_t bytes = strcspn(at, " ");
        words += bytes > 0;
        at += bytes + (at[bytes] == ' ');
    }
    return (uint64_t)world->problem->nodes[node].gpus << 32 | words;
}

/* A whole group could move from its node to the least loaded one that has room. */
static const char *fault_of_balance(const struct world *world, const struct group *group)
{
    uint64_t hysteresis = world->problem->hysteresis_permille * 1000u;
    int32_t to = NOWHERE;

    if (!is_whole(group) || group->fixed > 0 || group->node == NOWHERE ||
        !checks_takes(&world->problem->nodes[group->node])) {
        return NULL;
    }
    for (size_t i = 0; i < world->problem->node_count; i++) {
        if ((int32_t)i != group->node && group_could_go(world, group, i) &&
            has_room(world, i, group->weight, group->memory, group->gpus) &&
            rank_of(world, i) <= rank_of(world, (size_t)group->node) &&
            (to == NOWHERE || load_of(world, i, 0, 0) < load_of(world, (size_t)to, 0, 0))) {
            to = (int32_t)i;
        }
    }
    uint64_t from = load_of(world, (size_t)group->node, 0, 0);
    return to != NOWHERE &&
                   (group->weight > 0 || world->problem->strategy == PLACEMENT_ROUND_ROBIN) &&
                   from > load_of(world, (size_t)to, 0, 0) + hysteresis &&
                   from > load_of(world, (size_t)to, group->weight, group->count)
               ? "the loads differ by more than the hysteresis"
               : NULL;
}

/* No unit had to make room for another one: where any may go there is still room for it. */
static bool has_room_for_all(const struct world *world)
{
    struct group group;

    for (size_t i = 0; i < world->problem->item_count; i++) {
        for (size_t j = 0; read_group(world, i, &group) && j < world->problem->node_count; j++) {
            if (group_could_go(world, &group, j) &&
                !has_room(world, j, group.weight, group.memory, group.gpus)) {
                return false;
            }
        }
    }
    return true;
}

/* Where nothing had to move, what started is on the node that can least. */
static const char *fault_of_capability(const struct world *world, const struct group *group)
{
    if (world->problem->strategy != PLACEMENT_CAPABILITY || !is_whole(group) || group->fixed > 0 ||
        group->new < group->count || world->answer->moved > 0 || !has_room_for_all(world)) {
        return NULL;
    }
    for (size_t i = 0; i < world->problem->node_count; i++) {
        if (group_could_go(world, group, i) &&
            rank_of(world, i) < rank_of(world, (size_t)group->node)) {
            return "an item is on a node that can more than another one with room";
        }
    }
    return NULL;
}

/* ---- The whole ------------------------------------------------------------------------------- */

/* Every item could stay, nothing is to be relieved and the loads are within the hysteresis. */
static bool is_settled(const struct world *before)
{
    struct group group;

    for (size_t i = 0; i < before->problem->node_count; i++) {
        const struct placement_node *node = &before->problem->nodes[i];
        const struct room *room = &before->rooms[i];
        if (node->is_draining || room->weight > node->slots || room->memory > node->memory_mib ||
            room->gpus > node->gpus) {
            return false;
        }
    }
    for (size_t i = 0; i < before->problem->item_count; i++) {
        if (!checks_may_stay(before->problem, i) ||
            (read_group(before, i, &group) &&
             (!is_whole(&group) || fault_of_balance(before, &group)))) {
            return false;
        }
    }
    return true;
}

static const char *fault_of_counts(const struct world *world)
{
    const struct placement_answer *answer = world->answer;
    size_t placed = 0, started = 0, moved = 0, stopped = 0;

    for (size_t i = 0; i < world->problem->item_count; i++) {
        int32_t before = world->problem->items[i].node;
        int32_t after = answer->places[i].node;
        placed += after >= 0;
        started += before < 0 && after >= 0;
        stopped += before >= 0 && after < 0;
        moved += before >= 0 && after >= 0 && before != after;
    }
    return placed != answer->placed || started != answer->started || moved != answer->moved ||
                   stopped != answer->stopped
               ? "a count is wrong"
               : NULL;
}

static bool world_open(struct world *world, const struct placement_problem *problem,
                       const struct placement_answer *answer)
{
    *world = (struct world){.problem = problem,
                            .answer = answer,
                            .rooms = calloc(problem->node_count + 1, sizeof(*world->rooms))};
    for (size_t i = 0; world->rooms && i < problem->item_count; i++) {
        const struct placement_item *item = &problem->items[i];
        int32_t node = answer->places[i].node;
        if (node != NOWHERE) {
            struct room *room = &world->rooms[node];
            room->weight += item->weight;
            room->memory += item->memory_mib;
            room->gpus += item->gpus;
            room->items++;
            room->new_weight += item->node != node ? item->weight : 0;
            room->new_memory += item->node != node ? item->memory_mib : 0;
            room->new_gpus += item->node != node ? item->gpus : 0;
        }
    }
    for (size_t i = 0; i < problem->node_count; i++) {
        world->takers += checks_takes(&problem->nodes[i]);
    }
    return world->rooms != NULL;
}

static const char *fault_of_needless(const struct world *world)
{
    struct placement_place *places = calloc(world->problem->item_count + 1, sizeof(*places));
    const struct placement_answer today = {.places = places};
    struct world before = {0};
    const char *fault = NULL;

    for (size_t i = 0; places && i < world->problem->item_count; i++) {
        places[i].node = world->problem->items[i].node;
    }
    if (places && world_open(&before, world->problem, &today) && is_settled(&before) &&
        world->answer->moved + world->answer->stopped > 0) {
        fault = "an item moved without a reason";
    }
    free(before.rooms);
    free(places);
    return fault;
}

static const char *fault_in(const struct world *world)
{
    const struct placement_problem *problem = world->problem;
    const char *fault = fault_of_counts(world);
    struct group group;

    for (size_t i = 0; !fault && i < problem->item_count; i++) {
        fault = fault_of_item(world, i);
    }
    for (size_t i = 0; !fault && i < problem->node_count; i++) {
        fault = fault_of_node(world, i);
    }
    for (size_t i = 0; !fault && i < problem->item_count; i++) {
        if (read_group(world, i, &group)) {
            fault = fault_of_group(world, &group);
            fault = fault ? fault : fault_of_balance(world, &group);
            fault = fault ? fault : fault_of_capability(world, &group);
        }
    }
    return fault ? fault : fault_of_needless(world);
}

const char *checks_fault(const struct placement_problem *problem,
                         const struct placement_answer *answer)
{
    struct world world;
    const char *fault =
        world_open(&world, problem, answer) ? fault_in(&world) : "the check is out of memory";

    free(world.rooms);
    return fault;
}
