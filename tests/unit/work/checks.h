/* What holds for every answer of placement, computed without its code and without its tricks. */
#ifndef TESTS_WORK_CHECKS_H
#define TESTS_WORK_CHECKS_H

#include "work/placement.h"

/* NULL: nothing. Else what is wrong with the answer, in a sentence. */
const char *checks_fault(const struct placement_problem *problem,
                         const struct placement_answer *answer);

bool checks_has_labels(const char *labels, const char *needs);
/* Whether an item may stay on today's node, whatever else is there. */
bool checks_may_stay(const struct placement_problem *problem, size_t item);
/* Healthy, not cordoned, not draining. */
bool checks_takes(const struct placement_node *node);

#endif
