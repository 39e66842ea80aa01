/* What happened in a world, as lines for people, and as one hash that tells two runs apart. */
#ifndef SIM_STORY_H
#define SIM_STORY_H

#include "sim/game.h"

#include <stdarg.h>

enum { STORY_LINES = 80, STORY_COLUMNS = 160 };

struct story {
    bool prints;   /* each line, to standard output */
    bool keeps;    /* the last lines, for a failure: only then a line is worth its words */
    uint64_t hash; /* over everything that happened */
    size_t lines;  /* ever */
    char line[STORY_LINES][STORY_COLUMNS];
};

void story_begin(struct story *story, const struct options *options);
void story_mix(struct story *story, uint64_t value);
/* A line: when, `who` it happened to ("": nobody), what. The hash does not see it. */
void story_add(struct story *story, int64_t now, const char *who, const char *format,
               va_list arguments) __attribute__((format(printf, 4, 0)));
void story_print_tail(const struct story *story);

#endif
