#include "sim/story.h"

#include <stdio.h>

void story_begin(struct story *story, const struct options *options)
{
    story->prints = options->prints_trace;
    story->keeps = options->keeps_trace || options->prints_trace;
    story->hash = options->seed + 1;
    story->lines = 0;
}

void story_mix(struct story *story, uint64_t value)
{
    story->hash = (story->hash ^ value) * 0x9e3779b97f4a7c15u;
    story->hash ^= story->hash >> 29;
}

void story_add(struct story *story, int64_t now, const char *who, const char *format,
               va_list arguments)
{
    char *line = story->line[story->lines % STORY_LINES];
    int length = snprintf(line, STORY_COLUMNS, "%12.6f ms  %s%s", (double)now / 1e6, who,
                          who[0] != '\0' ? "  " : "");

    (void)vsnprintf(line + length, STORY_COLUMNS - (size_t)length, format, arguments);
    story->lines++;
    if (story->prints) {
        (void)puts(line);
    }
}

void story_print_tail(const struct story *story)
{
    size_t from = story->lines > STORY_LINES ? story->lines - STORY_LINES : 0;

    for (size_t i = from; i < story->lines; i++) {
        (void)printf("    %s\n", story->line[i % STORY_LINES]);
    }
}
