/* The story of a run: lines for people, and a hash that differs between two runs. */
#ifndef SIM_STORY_H
#define SIM_STORY_H

#include "sim/game.h"

#include <stdarg.h>

enum { STORY_LINES = 80, STORY_COLUMNS = 160 };

struct story {
    bool prints;   /* every line, to standard output */
    bool keeps;    /* the last lines, for a failure; otherwise none is written */
    uint64_t hash; /* over all events */
    size_t lines;  /* ever */
    char line[STORY_LINES][STORY_COLUMNS];
};

void story_begin(struct story *story, const struct options *options);
void story_mix(struct story *story, uint64_t value);
/* Adds a line: the time, the node `who` ("": none), the text. The hash does not cover it. */
void story_add(struct story *story, int64_t now, const char *who, const char *format,
               va_list arguments) __attribute__((format(printf, 4, 0)));
void story_print_tail(const struct story *story);

#endif
