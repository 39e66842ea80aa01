/* Writes the story of a contest, and ends a run that broke a rule. */
#ifndef SIM_LEASE_TRACE_H
#define SIM_LEASE_TRACE_H

#include "sim/lease/contest.h"

void contest_say(struct contest *contest, const struct contender *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Does not return. */
void contest_violated(struct contest *contest, const char *check, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
