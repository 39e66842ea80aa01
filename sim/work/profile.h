/* Draws what kind of yard the seed plays. */
#ifndef SIM_WORK_PROFILE_H
#define SIM_WORK_PROFILE_H

#include "sim/work/yard.h"

void yard_draw(struct yard *yard);
/* The settings of a life of a process. */
void yard_draw_options(struct yard *yard, struct work_leader_options *ret);
/* The rate of a clock, in parts per million. */
int64_t yard_draw_rate(struct yard *yard);

#endif
