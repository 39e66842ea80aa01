/* Parses replies from a connection's bytes with hiredis, within limits: a few bytes can announce an
 * array of billions of elements, for which hiredis would allocate memory at once. */
#ifndef NET_REDIS_READER_H
#define NET_REDIS_READER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    READER_BYTES_MAX = 64 * 1024 * 1024, /* of one reply */
    READER_ELEMENTS_MAX = 1 << 20,       /* of one reply, in all its arrays */
};

/* In the caller's memory; it must not be moved. The fields are private. */
struct redis_reader {
    redisReader *base;
    redisReplyObjectFunctions functions; /* hiredis's functions, except for one */
    const redisReplyObjectFunctions *own;
    size_t elements; /* of the reply so far */
};

/* False: out of memory. */
bool redis_reader_init(struct redis_reader *reader);
void redis_reader_fini(struct redis_reader *reader); /* does nothing if all fields are zero */

/* False: the reply exceeds READER_BYTES_MAX. */
bool redis_reader_feed(struct redis_reader *reader, const void *data, size_t bytes);
/* The next reply, owned by the caller; NULL: it is incomplete. False: the bytes break the protocol,
 * or the reply has too many elements. */
bool redis_reader_next(struct redis_reader *reader, redisReply **ret);

#endif
