/* Figures of a benchmark: how long its rounds took. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include "base/clock.h"
#include "options/option.h"

#include <jansson.h>
#include <stddef.h>

/* min_ms, p50_ms, p95_ms, p99_ms, max_ms; sorts `ms`, which are one at least. NULL: out of
 * memory. */
json_t *figures_of(double *ms, size_t count);
/* As a table with one row. */
void figures_print(const json_t *figures, const char *what);

/* The option `seconds`: a duration, or a number of seconds. */
int figures_length(const struct options *options, span *ret, struct baton_error *reterr);

#endif
