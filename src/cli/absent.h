/* Which voters are missing for a quorum: the reason why nobody can lead, for a person. */
#ifndef CLI_ABSENT_H
#define CLI_ABSENT_H

#include "member/election.h"

/* "1 of 3 votes is here, and 2 are needed; no answer from b at 10.0.0.2:7400". False: the members
 * that answer are a quorum, or the provider has no votes. */
bool absent_voters(struct member *member, struct election *election, char *ret, size_t bytes);

#endif
