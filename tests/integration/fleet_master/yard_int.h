/* The yard's parts; not for tests. */
#ifndef TESTS_INTEGRATION_FLEET_MASTER_YARD_INT_H
#define TESTS_INTEGRATION_FLEET_MASTER_YARD_INT_H

#include "yard.h"

/* The stand-in. */
struct worker_table {
    struct worker_observer *observers;
};

/* ---- faults.c -------------------------------------------------------------------------------- */

void faults_reset(void);
/* Once in each turn of the yard's clock. */
void faults_turn(void);
void faults_end_lingering(void);
bool faults_is_any_late(void);

/* ---- workers.c ------------------------------------------------------------------------------- */

void workers_reset(void);
void workers_turn(void);
/* The state's peer closes. */
void workers_leave(const struct fleet_state *state);
/* Lists are watched as this state has them; NULL: not at all. */
void workers_watch(struct fleet_state *state);
/* At the end: nothing that seemed to be in two lists is still. */
void workers_check(void);

#endif
