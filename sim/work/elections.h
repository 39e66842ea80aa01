/* The elections of the pool: who leads it, and each worker's presence. Each is granted to one
 * process at a time, in growing epochs, and only after the lease of the one before has ended. How
 * a provider brings that about is not modelled (the other simulators play that); here a lease
 * lasts as long as its process lives and is reachable, and for some time more.
 */
#ifndef SIM_WORK_ELECTIONS_H
#define SIM_WORK_ELECTIONS_H

#include "sim/work/yard.h"

void elections_begin(struct yard *yard);
/* A process wants it, if it is free. */
void election_contend(struct yard *yard, int election);
/* A leader that has just entered a worker's election hears its epoch. */
void election_say_epoch(struct yard *yard, const struct yard_process *process, int election);
void election_release(struct yard *yard, int election, const struct yard_process *process,
                      uint64_t epoch);
/* The process renews nothing until it is reachable again. */
void elections_unreachable(struct yard *yard, struct yard_process *process, bool is_stopped);
void elections_reachable(struct yard *yard, struct yard_process *process);
void elections_crash(struct yard *yard, const struct yard_process *process);
/* The pool's leader loses its lease, and learns it late. */
void election_depose(struct yard *yard);

void elections_happen(struct yard *yard, const struct yard_event *event);

#endif
