/* A detection as one line of JSON, by which the processes of a fleet tell each other of it.
 *
 *   {"key":"0123456789abcdef","worker":"w1","process":"p1","type":"imageDetection",
 *    "subscriptionIdentifier":"d;c","timestamp":"…","sessionId":5,"data":{…}}
 *
 * The key comes first, so that a reader which only looks for duplicates need not parse the line. It
 * is a hash of worker, subscription, timestamp and data: a detection that a worker sends twice has
 * one key, whichever process got it, and whichever session the display had then.
 */
#ifndef FLEET_DETECTIONS_LINE_H
#define FLEET_DETECTIONS_LINE_H

#include "base/buffer.h"

#include <jansson.h>

enum { LINE_BYTES_MAX = 64 * 1024 };

struct line_parts {
    const char *worker, *process;
    const char *subscription, *timestamp;
    const json_t *session; /* an integer or null */
    const json_t *data;    /* as the worker sent it */
};

struct line_writer {
    struct buffer line;    /* the latest line, without its end */
    struct buffer covered; /* what its key covers */
};

void line_writer_init(struct line_writer *writer);
void line_writer_fini(struct line_writer *writer);
/* False: the line is longer than LINE_BYTES_MAX, or out of memory. */
bool line_write(struct line_writer *writer, const struct line_parts *parts, uint64_t *ret_key);

/* Whether bytes from outside begin as a detection's line does. */
bool line_is_detection(const char *line, size_t bytes);
/* The key of such a line. False: it cannot be a line of this layer; what follows the key may still
 * be anything but control characters. */
bool line_key(const char *line, size_t bytes, uint64_t *ret_key);

/* Appends the text as it stands in a JSON string, without the quotes. */
void line_put_text(struct buffer *buffer, const char *text);

#endif
