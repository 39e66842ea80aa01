/* The driver of a work_worker: its session, its messages, and the copies that it starts and ends.
 */
#ifndef SIM_WORK_WORKING_H
#define SIM_WORK_WORKING_H

#include "sim/work/yard.h"

void working_start(struct yard *yard, struct yard_process *process);
void working_drop(struct yard_process *process);
/* It leaves in order: the process ends when nothing of it runs and no result waits. */
void working_leave(struct yard *yard, struct yard_process *process);
/* What its clock shows is known to the driver before it does anything else. */
void working_look_at_clock(struct yard *yard, struct yard_process *process);
/* It cannot renew its lease, and ends what runs before that ends. */
void working_give_up(struct yard *yard, struct yard_process *process, uint64_t session);
/* The lease ends by the worker's own clock, whether its process is stopped or not. */
void working_session_end(struct yard *yard, struct yard_process *process, uint64_t session);
void working_elected(struct yard *yard, struct yard_process *process, uint64_t epoch);
void working_happen(struct yard *yard, struct yard_process *process,
                    const struct yard_event *event);

#endif
