/* Plays a pool of workers: the run of one seed. */
#ifndef SIM_WORK_PLAY_H
#define SIM_WORK_PLAY_H

#include "sim/work/yard.h"

extern const struct game work_game;

#endif
