/* The latest lines of detections, bounded by their number and their bytes.
 *
 * A line is kept as it came, and read as JSON only when somebody asks.
 */
#ifndef FLEET_DETECTIONS_HISTORY_H
#define FLEET_DETECTIONS_HISTORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { HISTORY_LINES_MAX = 10000, HISTORY_BYTES_MAX = 8 * 1024 * 1024 };

struct history_line {
    char *text; /* NUL-terminated */
    size_t bytes;
};

struct history {
    struct history_line *ring; /* HISTORY_LINES_MAX */
    size_t first, count;
    size_t bytes; /* of all lines */
};

/* False: out of memory. */
bool history_init(struct history *history);
void history_fini(struct history *history);

/* The line as it is kept, until the next call; NULL: out of memory. */
const char *history_add(struct history *history, const char *line, size_t bytes);

/* New array of the latest lines, the last one first, at most `limit`, of this display and this
 * camera (NULL: of any). Lines that are no such JSON are left out. NULL: out of memory. */
json_t *history_list(const struct history *history, const char *display, const char *camera,
                     size_t limit);

#endif
