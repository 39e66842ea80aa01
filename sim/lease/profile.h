/* Draws from the seed what kind of contest it is. */
#ifndef SIM_LEASE_PROFILE_H
#define SIM_LEASE_PROFILE_H

#include "sim/lease/contest.h"

void contest_draw(struct contest *contest);
int64_t contest_draw_rate(struct contest *contest);
void contest_draw_life(struct contest *contest, struct contender *who);

#endif
