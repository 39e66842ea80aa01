/* One process around one lease core. */
#ifndef SIM_LEASE_CONTENDER_H
#define SIM_LEASE_CONTENDER_H

#include "sim/lease/contest.h"

void contender_start(struct contest *contest, struct contender *who);
void contender_happen(struct contest *contest, struct contender *who,
                      const struct contest_event *event);
void contender_step(struct contest *contest, struct contender *who,
                    const struct lease_input *input);
void contender_crash(struct contest *contest, struct contender *who, bool has_guardian);
void contender_leave(struct contest *contest, struct contender *who);
void contender_speak_for(struct contest *contest, const struct contender *who);
void contender_set_rate(struct contest *contest, struct contender *who);

#endif
