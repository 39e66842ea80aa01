/* Draws what kind of yard the seed plays. */
#ifndef SIM_WORK_PROFILE_H
#define SIM_WORK_PROFILE_H

#include "sim/work/yard.h"

void yard_draw(struct yard *yard);
/* The rate of a clock, in parts per million. */
int64_t yard_draw_rate(struct yard *yard);

#endif
