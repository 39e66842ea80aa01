/* The best answer to a small problem, by looking at all of them. */
#ifndef TESTS_WORK_EXACT_H
#define TESTS_WORK_EXACT_H

#include "work/placement.h"

enum { EXACT_NODES_MAX = 4, EXACT_ITEMS_MAX = 7 };

struct exact_answer {
    size_t placed; /* the most items that can have a node while none loses one needlessly … */
    size_t moved;  /* … and how few of those that could stay have to move for that */
};

/* For a problem without `overfills` and draining nodes, where no node is overfilled today. */
struct exact_answer exact_solve(const struct placement_problem *problem);

#endif
