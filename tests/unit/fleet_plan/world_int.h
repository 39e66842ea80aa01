#ifndef TESTS_FLEET_PLAN_WORLD_INT_H
#define TESTS_FLEET_PLAN_WORLD_INT_H

#include "world.h"

enum { WORLD_ROOM = 4, WORLD_HYSTERESIS = 200 };

/* The number of an id; -1: none of this world. */
int world_number(const char *id);
bool world_lists(const char *const *ids, size_t count, int number);
/* world_checks.c: of an answer, before it is carried out; and of a world at rest. */
const char *world_fault(const struct world *world, const struct plan_answer *answer);
const char *world_fault_at_rest(const struct world *world, const struct plan_answer *answer);
/* Of an answer that balances a world at rest. */
const char *world_fault_of_balance(const struct world *world, const struct plan_answer *answer);

#endif
