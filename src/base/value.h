/* Values as people write them: whole numbers, durations, ranges of durations, choices.
 *
 * Every parser takes the whole text or nothing, and its error names the text and the valid form.
 * Pure.
 */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { VALUE_TEXT_MAX = 64 }; /* bytes that the formatters need at most */

/* A whole decimal number from min to max. BATON_EINVAL. */
int value_number(const char *text, int64_t min, int64_t max, int64_t *ret,
                 struct baton_error *reterr);

/* "15ms", "1.5s", "2m", "1h", "250us", or "0": other values need a unit. 0 to 366 days.
 * BATON_EINVAL. */
int value_duration(const char *text, span *ret, struct baton_error *reterr);

/* "150ms-300ms"; a single duration is both ends. BATON_EINVAL also where min > max. */
int value_range(const char *text, span *ret_min, span *ret_max, struct baton_error *reterr);

/* One of "a|b|c": its position, from 0. BATON_EINVAL lists them. */
int value_choice(const char *text, const char *choices, struct baton_error *reterr);

/* "yes", "true", "on", "1" and their opposites. BATON_EINVAL. */
int value_flag(const char *text, bool *ret, struct baton_error *reterr);

/* HOST:PORT, [IPV6]:PORT. Port 0 only if allowed. BATON_EINVAL, BATON_ETOOBIG. */
int value_address(const char *text, bool allows_port_0, char *ret_host, size_t host_bytes,
                  int *ret_port, struct baton_error *reterr);

/* 4.98 s, 150 ms, 0.4 ms: three digits that matter, in the unit that fits. Returns `ret`. */
const char *value_format_span(span length, char ret[static VALUE_TEXT_MAX]);

#endif
