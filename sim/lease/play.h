/* Plays the lease core: the run of one seed. */
#ifndef SIM_LEASE_PLAY_H
#define SIM_LEASE_PLAY_H

#include "sim/lease/contest.h"

extern const struct game lease_game;

struct contest *contest_new(void);
void contest_free(struct contest *contest);
void contest_run(struct contest *contest, const struct options *options, struct result *ret);

#endif
