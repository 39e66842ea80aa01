#include "exact.h"

#include "checks.h"

#include <string.h>

struct exact {
    const struct placement_problem *problem;
    struct placement_node left[EXACT_NODES_MAX]; /* what the nodes have left */
    int32_t nodes[EXACT_ITEMS_MAX];              /* of the items so far */
    struct exact_answer best;
    bool has_best;
};

static bool is_fixed(const struct placement_problem *problem, size_t i)
{
    return problem->items[i].is_pinned && checks_may_stay(problem, i);
}

static bool could_take(const struct exact *exact, size_t i, int32_t node)
{
    const struct placement_item *item = &exact->problem->items[i];
    const struct placement_node *left = &exact->left[node];

    if (is_fixed(exact->problem, i)) {
        return item->node == node;
    }
    if (item->node == node ? !checks_may_stay(exact->problem, i)
                           : !checks_takes(left) || !checks_has_labels(left->labels, item->needs)) {
        return false;
    }
    return item->weight <= left->slots && item->memory_mib <= left->memory_mib &&
           item->gpus <= left->gpus;
}

static bool are_together(const struct placement_problem *problem, size_t i, size_t j)
{
    const char *a = problem->items[i].together, *b = problem->items[j].together;

    return a && b && strcmp(a, b) == 0;
}

/* Items of a group are on one node, or where they are today. Pinned ones hold the others. */
static bool is_group_right(const struct exact *exact, size_t i)
{
    const struct placement_problem *problem = exact->problem;
    bool stays = exact->nodes[i] == problem->items[i].node;
    bool has_fixed = false, is_with_fixed = false, is_apart = false;

    if (exact->nodes[i] == PLACEMENT_NOWHERE || stays) {
        return true;
    }
    for (size_t j = 0; j < problem->item_count; j++) {
        bool other = are_together(problem, i, j) && exact->nodes[j] != PLACEMENT_NOWHERE;
        has_fixed |= other && is_fixed(problem, j);
        is_with_fixed |= other && is_fixed(problem, j) && exact->nodes[j] == exact->nodes[i];
        is_apart |= other && exact->nodes[j] != exact->nodes[i];
    }
    return has_fixed ? is_with_fixed : !is_apart;
}

/* A group that has no node yet gets one whole. */
static bool is_group_whole(const struct exact *exact, size_t i)
{
    bool has_today = false, is_placed = false, is_waiting = false;

    for (size_t j = 0; j < exact->problem->item_count; j++) {
        if (i == j || are_together(exact->problem, i, j)) {
            has_today |= checks_may_stay(exact->problem, j);
            is_placed |= exact->nodes[j] != PLACEMENT_NOWHERE;
            is_waiting |= exact->nodes[j] == PLACEMENT_NOWHERE;
        }
    }
    return has_today || !(is_placed && is_waiting);
}

static void finish(struct exact *exact, size_t placed, size_t moved)
{
    for (size_t i = 0; i < exact->problem->item_count; i++) {
        if (!is_group_right(exact, i) || !is_group_whole(exact, i)) {
            return;
        }
    }
    if (!exact->has_best || placed > exact->best.placed ||
        (placed == exact->best.placed && moved < exact->best.moved)) {
        exact->best = (struct exact_answer){.placed = placed, .moved = moved};
        exact->has_best = true;
    }
}

static void look(struct exact *exact, size_t i, size_t placed, size_t moved)
{
    const struct placement_problem *problem = exact->problem;
    size_t most = placed + problem->item_count - i;

    if (exact->has_best &&
        (most < exact->best.placed || (most == exact->best.placed && moved >= exact->best.moved))) {
        return;
    }
    if (i == problem->item_count) {
        finish(exact, placed, moved);
        return;
    }
    const struct placement_item *item = &problem->items[i];
    for (int32_t node = 0; node < (int32_t)problem->node_count; node++) {
        if (could_take(exact, i, node)) {
            struct placement_node *left = &exact->left[node];
            const struct placement_node before = *left;
            left->slots -= item->weight;
            left->memory_mib -= item->memory_mib;
            left->gpus -= item->gpus;
            exact->nodes[i] = node;
            look(exact, i + 1, placed + 1,
                 moved + (checks_may_stay(problem, i) && item->node != node));
            *left = before;
        }
    }
    if (!checks_may_stay(problem, i)) {
        exact->nodes[i] = PLACEMENT_NOWHERE;
        look(exact, i + 1, placed, moved);
    }
}

struct exact_answer exact_solve(const struct placement_problem *problem)
{
    struct exact exact = {.problem = problem};

    memcpy(exact.left, problem->nodes, problem->node_count * sizeof(exact.left[0]));
    look(&exact, 0, 0, 0);
    return exact.best;
}
