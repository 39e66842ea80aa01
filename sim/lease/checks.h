/* The rules that must hold after every event. */
#ifndef SIM_LEASE_CHECKS_H
#define SIM_LEASE_CHECKS_H

#include "sim/lease/contest.h"

void contest_check_answered(struct contest *contest, struct contender *who,
                            const struct lease_input *reply);
void contest_check_step(struct contest *contest, struct contender *who,
                        const struct lease_update *before, const struct lease *had,
                        const struct lease_input *input);
void contest_check_asked(struct contest *contest, struct contender *who);
void contest_check_leaders(struct contest *contest);

#endif
