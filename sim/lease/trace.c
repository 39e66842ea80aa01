/* What happened, as lines for people, and as one hash that tells two runs apart. */
#include "sim/lease/contest.h"

#include <stdarg.h>
#include <stdio.h>

void contest_mix(struct contest *contest, uint64_t value)
{
    struct contest_trace *trace = &contest->trace;

    trace->hash = (trace->hash ^ value) * 0x9e3779b97f4a7c15u;
    trace->hash ^= trace->hash >> 29;
}

void contest_trace_begin(struct contest *contest)
{
    contest->trace.prints = contest->options.prints_trace;
    contest->trace.keeps = contest->options.keeps_trace || contest->options.prints_trace;
    contest->trace.hash = contest->options.seed + 1;
    contest->trace.lines = 0;
}

void contest_say(struct contest *contest, const struct contender *who, const char *format, ...)
{
    struct contest_trace *trace = &contest->trace;
    char *line = trace->line[trace->lines % CONTEST_TRACE_LINES];
    va_list arguments;
    int length;

    contest_mix(contest, (uint64_t)contest->now ^ (who ? who->id << 40 : 0));
    if (!trace->keeps) {
        return;
    }
    length = snprintf(line, CONTEST_TRACE_COLUMNS, "%12.6f ms  ", (double)contest->now / 1e6);
    if (who) {
        length += snprintf(line + length, CONTEST_TRACE_COLUMNS - (size_t)length, "c%u/%llu  ",
                           who->number, (unsigned long long)who->id);
    }
    va_start(arguments, format);
    (void)vsnprintf(line + length, CONTEST_TRACE_COLUMNS - (size_t)length, format, arguments);
    va_end(arguments);
    trace->lines++;
    if (trace->prints) {
        (void)puts(line);
    }
}

void contest_trace_print_tail(const struct contest *contest)
{
    const struct contest_trace *trace = &contest->trace;
    size_t from = trace->lines > CONTEST_TRACE_LINES ? trace->lines - CONTEST_TRACE_LINES : 0;

    for (size_t i = from; i < trace->lines; i++) {
        (void)printf("    %s\n", trace->line[i % CONTEST_TRACE_LINES]);
    }
}
