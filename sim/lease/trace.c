/* What the story of a contest tells. */
#include "sim/lease/contest.h"

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
