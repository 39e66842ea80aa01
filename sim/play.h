/* Plays the Raft core: the run of one seed. */
#ifndef SIM_PLAY_H
#define SIM_PLAY_H

#include "sim/world.h"

extern const struct game raft_game;

/* Plays one seed. The world's memory is kept for the next one. */
void world_run(struct world *world, const struct options *options, struct result *ret);
struct world *world_new(void);
void world_free(struct world *world);

#endif
