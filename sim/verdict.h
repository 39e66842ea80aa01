/* The end of a run that broke a rule. */
#ifndef SIM_VERDICT_H
#define SIM_VERDICT_H

#include "sim/world.h"

/* Does not return. */
void violated(struct world *world, const char *check, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#endif
