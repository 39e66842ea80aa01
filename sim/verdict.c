/* The end of a run that broke a rule. */
#include "sim/verdict.h"

#include "sim/trace.h"

#include <stdarg.h>

void violated(struct world *world, const char *check, const char *format, ...)
{
    struct result *result = &world->result;
    va_list arguments;

    va_start(arguments, format);
    result_violate(result, check, format, arguments);
    va_end(arguments);
    trace_say(world, RAFT_NOBODY, "VIOLATED %s: %s", result->check, result->detail);
    longjmp(world->violated, 1);
}
