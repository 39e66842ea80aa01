/* The queue of events; requests, replies and notices in flight. */
#ifndef SIM_LEASE_WIRE_H
#define SIM_LEASE_WIRE_H

#include "sim/lease/contest.h"

struct contest_event *contest_push(struct contest *contest, enum contest_event_kind kind,
                                   int64_t at);
bool contest_pop(struct contest *contest, struct contest_event *ret);
int64_t contest_way(struct contest *contest);
/* When a message that leaves now arrives, after all earlier ones; INT64_MAX: it is lost. */
int64_t contest_out(struct contest *contest, struct contender *who);
int64_t contest_in(struct contest *contest, struct contender *who);
void contest_notify(struct contest *contest, enum contest_event_kind kind, uint64_t number,
                    uint64_t heir);

#endif
