/* What goes wrong in a yard, one fault at a time. */
#ifndef SIM_WORK_FAULTS_H
#define SIM_WORK_FAULTS_H

#include "sim/work/yard.h"

void yard_fault_next(struct yard *yard);
/* Everything is up and reachable again, or soon. */
void yard_faults_stop(struct yard *yard);

#endif
