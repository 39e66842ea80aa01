/* A process: a candidate for the pool's leadership, a worker, or both. */
#ifndef SIM_WORK_PROCESS_H
#define SIM_WORK_PROCESS_H

#include "sim/work/yard.h"

void yard_start(struct yard *yard, struct yard_process *process);
/* Dies in this instant, with all that it runs, and starts again soon. */
void yard_crash(struct yard *yard, struct yard_process *process);
/* Ends in order: gives up what it holds. */
void yard_leave(struct yard *yard, struct yard_process *process);
void yard_stop(struct yard *yard, struct yard_process *process, int64_t until);
void yard_cut(struct yard *yard, struct yard_process *process, int64_t until);
/* Starts it if it is down, ends its cut. */
void yard_heal(struct yard *yard, struct yard_process *process);
void yard_set_rate(struct yard *yard, struct yard_process *process, int64_t ppm);
/* Frees what it has. */
void yard_drop(struct yard_process *process);

/* An event of this process; it may be put off. */
void yard_process_happen(struct yard *yard, struct yard_event *event);

#endif
