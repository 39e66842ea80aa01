/* The driver of a work_leader: it begins one when its process is elected, carries out its outputs,
 * and drops it when the process learns that it leads no more, which may be long after that. */
#ifndef SIM_WORK_LEADING_H
#define SIM_WORK_LEADING_H

#include "sim/work/yard.h"

void leading_start(struct yard *yard, struct yard_process *process);
void leading_drop(struct yard_process *process);
void leading_elected(struct yard *yard, struct yard_process *process, uint64_t epoch);
void leading_happen(struct yard *yard, struct yard_process *process, struct yard_event *event);

#endif
