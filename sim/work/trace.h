/* The story of a yard, and the end of one that broke a rule. */
#ifndef SIM_WORK_TRACE_H
#define SIM_WORK_TRACE_H

#include "sim/work/yard.h"

/* `process`: whose line it is, or YARD_NOBODY. */
void yard_say(struct yard *yard, int process, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What a process sends to another one (YARD_NOBODY: to all). */
void yard_say_message(struct yard *yard, int from, int to, const struct work_message *message);
/* Does not return. */
void yard_violated(struct yard *yard, const char *check, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
