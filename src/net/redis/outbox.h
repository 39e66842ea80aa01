/* Bytes that wait to be sent, in blocks that are freed once they are sent: a burst leaves no memory
 * of its size in use, and the rest is never moved. One write sends one block.
 */
#ifndef NET_REDIS_OUTBOX_H
#define NET_REDIS_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct outbox_block;

struct outbox {
    struct outbox_block *first, *last;
    size_t bytes; /* in all blocks */
    size_t max_bytes;
};

void outbox_init(struct outbox *outbox, size_t max_bytes);
void outbox_clear(struct outbox *outbox); /* frees all */

/* False: beyond the maximum, or out of memory; a part of the data may have been added. */
bool outbox_put(struct outbox *outbox, const void *data, size_t bytes);

/* The first bytes to send, valid until outbox_drop_first(). NULL: none. */
const void *outbox_first(const struct outbox *outbox, size_t *ret_bytes);
void outbox_drop_first(struct outbox *outbox);

#endif
