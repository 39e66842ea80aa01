/* The listeners of an election, each on its thread. */
#ifndef API_LISTENER_H
#define API_LISTENER_H

#include "api/object.h"

/* On the loop, without the lock: tells all listeners of the event. */
void listeners_tell(struct baton_election *election, const struct baton_event *event);
/* Waits until none of them runs, and lets go of them. Any thread but a listener's. */
void listeners_end(struct baton_election *election);

#endif
