/* The demonstration's screen: a table redrawn in place on a terminal, lines on a pipe. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>

enum { SCREEN_LINES_MAX = 8, SCREEN_LINE_BYTES = 160 };

struct screen {
    FILE *file;
    bool is_plain;
    instant begun;
    char lines[SCREEN_LINES_MAX][SCREEN_LINE_BYTES]; /* the last events, oldest first */
    size_t line_count;
};

void screen_init(struct screen *screen, FILE *file, bool is_plain);

/* Adds an event: printed at once when plain, else shown below the table from the next drawing on.
 */
void screen_say(struct screen *screen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Draws the table (cells as of print_table) and the last events. Does nothing when plain. */
void screen_draw(struct screen *screen, const char *title, const char *const *cells);

#endif
