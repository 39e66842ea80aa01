/* What the head of an HTTP answer says of the file: its ETag, and which part of it comes. Pure. */
#ifndef DETECTOR_MODEL_REPLY_H
#define DETECTOR_MODEL_REPLY_H

#include <stddef.h>
#include <stdint.h>

enum { REPLY_ETAG_BYTES = 257 }; /* with its NUL */

struct reply {
    char etag[REPLY_ETAG_BYTES];      /* "": none, or one that is not printable or too long */
    int64_t range_start, range_total; /* of a part: where it begins, and all; -1: not said */
};

void reply_init(struct reply *reply);

/* The next line of the head, as it came: not terminated, or by CR LF. A status line begins another
 * answer, and what was said so far is forgotten. */
void reply_line(struct reply *reply, const char *line, size_t bytes);

/* The ETag if it is one that can be sent back, else "". */
void reply_etag(char ret[REPLY_ETAG_BYTES], const char *value, size_t bytes);

#endif
