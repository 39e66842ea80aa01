/* The story of a contest, and the end of a run that broke a rule. */
#include "sim/lease/trace.h"

#include <stdarg.h>
#include <stdio.h>

void contest_say(struct contest *contest, const struct contender *who, const char *format, ...)
{
    char name[48] = "";
    va_list arguments;

    story_mix(&contest->story, (uint64_t)contest->now ^ (who ? who->id << 40 : 0));
    if (!contest->story.keeps) {
        return;
    }
    if (who) {
        (void)snprintf(name, sizeof(name), "c%u/%llu", who->number, (unsigned long long)who->id);
    }
    va_start(arguments, format);
    story_add(&contest->story, contest->now, name, format, arguments);
    va_end(arguments);
}

void contest_violated(struct contest *contest, const char *check, const char *format, ...)
{
    struct result *result = &contest->result;
    va_list arguments;

    va_start(arguments, format);
    result_violate(result, check, format, arguments);
    va_end(arguments);
    contest_say(contest, NULL, "VIOLATED %s: %s", result->check, result->detail);
    longjmp(contest->violated, 1);
}
