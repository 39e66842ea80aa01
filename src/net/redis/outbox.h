/* Bytes that wait to be sent, in blocks that go as they are sent: a burst leaves no hole of its own
 * size behind, and what is left over is never moved. Blocks are of a size that is written at once.
 */
#ifndef NET_REDIS_OUTBOX_H
#define NET_REDIS_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct outbox_block;

struct outbox {
    struct outbox_block *first, *last;
    size_t bytes; /* of all */
    size_t max_bytes;
};

void outbox_init(struct outbox *outbox, size_t max_bytes);
void outbox_clear(struct outbox *outbox); /* frees all */

/* False: more than the maximum, or out of memory; then a part of it may have been added. */
bool outbox_put(struct outbox *outbox, const void *data, size_t bytes);

/* What is to be sent first; NULL: nothing. Stays until outbox_drop_first(). */
const void *outbox_first(const struct outbox *outbox, size_t *ret_bytes);
void outbox_drop_first(struct outbox *outbox);

#endif
