/* The library's own part of a hand-over: it waits for listeners. */
#ifndef API_HANDOVER_H
#define API_HANDOVER_H

#include "api/object.h"

/* On the loop, for a BATON_EVENT_DRAIN that listeners will get: the hand-over waits until all of
 * them have returned. */
void drain_begin(struct baton_election *election);
/* On the loop: the election has ended, and there is nothing to wait for. */
void drain_end(struct baton_election *election);

#endif
