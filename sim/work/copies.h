/* The copies of items that run, by true time: from the instant at which a worker's driver starts
 * one to that at which nothing of it acts any more. Its worker hears of the end later. */
#ifndef SIM_WORK_COPIES_H
#define SIM_WORK_COPIES_H

#include "sim/work/yard.h"

void copies_start(struct yard *yard, struct yard_process *process, const struct work_order *order);
void copies_halt(struct yard *yard, const struct yard_process *process,
                 const struct work_order *order);
/* All copies of the process end in this instant. */
void copies_kill(struct yard *yard, const struct yard_process *process);
/* The process has died: it hears of none of them. */
void copies_forget(struct yard *yard, const struct yard_process *process);

/* The copy ends; or its worker is to hear of that: then true, and the result, which borrows. */
bool copies_happen(struct yard *yard, const struct yard_event *event, struct work_result *ret);

#endif
