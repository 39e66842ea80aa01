/* The story of an assembly, and the end of a run that broke a rule. */
#ifndef SIM_SESSIONS_TRACE_H
#define SIM_SESSIONS_TRACE_H

#include "sim/sessions/assembly.h"

/* Of a process (p0 …) or an agent (a0 …); -1: none. */
void assembly_say(struct assembly *assembly, int process, int agent, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void assembly_violated(struct assembly *assembly, const char *check, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
