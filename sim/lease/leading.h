/* Which contender leads at this instant. */
#ifndef SIM_LEASE_LEADING_H
#define SIM_LEASE_LEADING_H

#include "sim/lease/contest.h"

bool contender_leads(const struct contest *contest, const struct contender *who); /* is_leader */
struct contender *contest_leader(struct contest *contest);                        /* NULL: none */

#endif
