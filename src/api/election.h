/* The handle of an election. */
#ifndef API_ELECTION_H
#define API_ELECTION_H

#include "api/object.h"

/* After nobody looks any more: no listener runs, and the election has ended. NULL is nothing. */
void handle_free(struct baton_election *election);

#endif
