#include "sim/sessions/trace.h"

#include <stdarg.h>
#include <stdio.h>

void assembly_say(struct assembly *assembly, int process, int agent, const char *format, ...)
{
    char name[16] = "";
    va_list arguments;

    story_mix(&assembly->story, (uint64_t)assembly->now ^ ((uint64_t)(process + 1) << 40) ^
                                    ((uint64_t)(agent + 1) << 48));
    if (!assembly->story.keeps) {
        return;
    }
    if (process >= 0) {
        (void)snprintf(name, sizeof(name), "p%d", process);
    } else if (agent >= 0) {
        (void)snprintf(name, sizeof(name), "a%d", agent);
    }
    va_start(arguments, format);
    story_add(&assembly->story, assembly->now, name, format, arguments);
    va_end(arguments);
}

void assembly_violated(struct assembly *assembly, const char *check, const char *format, ...)
{
    struct result *result = &assembly->result;
    va_list arguments;

    va_start(arguments, format);
    result_violate(result, check, format, arguments);
    va_end(arguments);
    assembly_say(assembly, -1, -1, "VIOLATED %s: %s", result->check, result->detail);
    longjmp(assembly->violated, 1);
}
