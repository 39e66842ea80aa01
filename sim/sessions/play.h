/* Plays sessions on a replicated log: the run of one seed. */
#ifndef SIM_SESSIONS_PLAY_H
#define SIM_SESSIONS_PLAY_H

#include "sim/sessions/assembly.h"

extern const struct game sessions_game;

#endif
