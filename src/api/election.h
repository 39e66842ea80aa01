/* The handle of an election. */
#ifndef API_ELECTION_H
#define API_ELECTION_H

#include "api/object.h"

/* When no listener runs and the election has ended. NULL is allowed. */
void handle_free(struct baton_election *election);

#endif
