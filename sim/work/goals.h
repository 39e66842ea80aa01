/* What must be reached when no more faults come. */
#ifndef SIM_WORK_GOALS_H
#define SIM_WORK_GOALS_H

#include "sim/work/yard.h"

/* What is not reached yet, in words; NULL: all is. */
const char *yard_goal_missing(struct yard *yard);
/* A new leader that finds no ledger has in its own what is stored. It ends the run: the workers
 * hear that leader. */
void yard_check_rebuilt(struct yard *yard);

#endif
