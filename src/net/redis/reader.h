/* Answers out of the bytes of a connection, by hiredis, within limits: a few bytes can announce an
 * array of thousands of millions, for which hiredis would take memory at once. */
#ifndef NET_REDIS_READER_H
#define NET_REDIS_READER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    READER_BYTES_MAX = 64 * 1024 * 1024, /* of one answer */
    READER_ELEMENTS_MAX = 1 << 20,       /* the same, in all its arrays */
};

/* The caller's memory, which stays where it is; its fields are this file's. */
struct redis_reader {
    redisReader *base;
    redisReplyObjectFunctions functions; /* hiredis's own, but for one */
    const redisReplyObjectFunctions *own;
    size_t elements; /* of the answer so far */
};

/* False: no memory. */
bool redis_reader_init(struct redis_reader *reader);
void redis_reader_fini(struct redis_reader *reader); /* all zero: nothing */

/* False: more than an answer may have. */
bool redis_reader_feed(struct redis_reader *reader, const void *data, size_t bytes);
/* The next answer, which is the caller's to free; NULL: it is not all there. False: that is not the
 * protocol, or too many elements. */
bool redis_reader_next(struct redis_reader *reader, redisReply **ret);

#endif
