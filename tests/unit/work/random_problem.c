#include "random_problem.h"

#include <stdlib.h>

uint64_t random_draw(struct random_problem *random, uint64_t below)
{
    random->random ^= random->random << 13;
    random->random ^= random->random >> 7;
    random->random ^= random->random << 17;
    return random->random % below;
}

static bool one_in(struct random_problem *random, uint64_t count)
{
    return random_draw(random, count) == 0;
}

static const char *draw_labels(struct random_problem *random)
{
    static const char *const labels[] = {NULL, "", "a", "b", "a b", "c", "b a", "c  a", " a b c"};

    return labels[random_draw(random, sizeof(labels) / sizeof(labels[0]))];
}

static void draw_node(struct random_problem *random, struct placement_node *ret)
{
    *ret = (struct placement_node){.name = "node",
                                   .slots = (uint32_t)random_draw(random, 16),
                                   .cpu_permille = one_in(random, 4) ? 300 : 0,
                                   .memory_mib = one_in(random, 3) ? 60 : 1000,
                                   .gpus = one_in(random, 3) ? 2 : 0,
                                   .labels = draw_labels(random),
                                   .is_healthy = !one_in(random, 8),
                                   .is_cordoned = one_in(random, 10),
                                   .is_draining = one_in(random, 10)};
}

static void draw_item(struct random_problem *random, struct placement_item *ret)
{
    static const char *const groups[] = {"x", "y", "z"};

    *ret = (struct placement_item){.id = "item",
                                   .weight = (uint32_t)random_draw(random, 5),
                                   .priority = (int32_t)random_draw(random, 3) - 1,
                                   .needs = one_in(random, 2) ? draw_labels(random) : NULL,
                                   .memory_mib = random_draw(random, 30),
                                   .gpus = one_in(random, 6) ? 1 : 0,
                                   .together =
                                       one_in(random, 6) ? groups[random_draw(random, 3)] : NULL,
                                   .node = PLACEMENT_NOWHERE,
                                   .is_pinned = one_in(random, 12)};
}

void random_problem_adopt(struct random_problem *random, const struct placement_answer *answer)
{
    for (size_t i = 0; i < random->problem.item_count; i++) {
        random->items[i].node = answer->places[i].node;
    }
}

static void scatter(struct random_problem *random)
{
    for (size_t i = 0; i < random->problem.item_count && random->problem.node_count > 0; i++) {
        random->items[i].node = (int32_t)random_draw(random, random->problem.node_count + 1) - 1;
    }
}

/* Places all, and changes a node and an item. */
static void settle(struct random_problem *random)
{
    struct placement_answer answer;

    if (placement_solve(&random->problem, &answer) != 0) {
        abort();
    }
    random_problem_adopt(random, &answer);
    placement_answer_fini(&answer);
    for (int i = 0; i < 2 && random->problem.node_count > 0; i++) {
        draw_node(random, &random->nodes[random_draw(random, random->problem.node_count)]);
    }
    if (random->problem.item_count > 0) {
        draw_item(random, &random->items[random_draw(random, random->problem.item_count)]);
    }
}

void random_problem_make(struct random_problem *ret, uint64_t seed, size_t nodes_max,
                         size_t items_max)
{
    static const uint32_t hystereses[] = {0, 50, 200, 1000};

    *ret = (struct random_problem){.random = (seed + 1) * 0x9e3779b97f4a7c15u};
    for (int i = 0; i < 4; i++) {
        (void)random_draw(ret, 2); /* similar seeds part */
    }
    ret->problem =
        (struct placement_problem){.nodes = ret->nodes,
                                   .node_count = random_draw(ret, nodes_max + 1),
                                   .items = ret->items,
                                   .item_count = random_draw(ret, items_max + 1),
                                   .strategy = (enum placement_strategy)random_draw(ret, 4),
                                   .hysteresis_permille = hystereses[random_draw(ret, 4)],
                                   .overfills = one_in(ret, 3)};
    for (size_t i = 0; i < ret->problem.node_count; i++) {
        draw_node(ret, &ret->nodes[i]);
    }
    for (size_t i = 0; i < ret->problem.item_count; i++) {
        draw_item(ret, &ret->items[i]);
    }
    switch (random_draw(ret, 3)) {
    case 0:
        scatter(ret);
        break;
    case 1:
        settle(ret);
        break;
    default: /* all wait */
        break;
    }
}
