/* Problems of placement from a seed. */
#ifndef TESTS_WORK_RANDOM_PROBLEM_H
#define TESTS_WORK_RANDOM_PROBLEM_H

#include "work/placement.h"

enum { RANDOM_NODES_MAX = 8, RANDOM_ITEMS_MAX = 40 };

struct random_problem {
    uint64_t random; /* its generator's state */
    struct placement_problem problem;
    struct placement_node nodes[RANDOM_NODES_MAX];
    struct placement_item items[RANDOM_ITEMS_MAX];
};

/* At most this many nodes and items. Today's places are any, or those of an answer after which
 * something has changed. The struct must not be copied. */
void random_problem_make(struct random_problem *ret, uint64_t seed, size_t nodes_max,
                         size_t items_max);
/* From 0 to below - 1. */
uint64_t random_draw(struct random_problem *random, uint64_t below);
/* Makes the answer's places today's. */
void random_problem_adopt(struct random_problem *random, const struct placement_answer *answer);

#endif
