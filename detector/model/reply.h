/* Reads the head of an HTTP reply for a file: its ETag, and which part of it follows. Pure. */
#ifndef DETECTOR_MODEL_REPLY_H
#define DETECTOR_MODEL_REPLY_H

#include <stddef.h>
#include <stdint.h>

enum { REPLY_ETAG_BYTES = 257 }; /* with its NUL */

struct reply {
    char etag[REPLY_ETAG_BYTES];      /* "": none, or one that is not printable or too long */
    int64_t range_start, range_total; /* of a part: its start, and the whole length; -1: unknown */
};

void reply_init(struct reply *reply);

/* Takes the next line of the head as it arrived, without an end or with CR LF. A status line begins
 * another reply, and forgets the last one. */
void reply_line(struct reply *reply, const char *line, size_t bytes);

/* Returns the ETag if it can be sent back, else "". */
void reply_etag(char ret[REPLY_ETAG_BYTES], const char *value, size_t bytes);

#endif
