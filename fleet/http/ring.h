/* The latest events, as the text of server-sent events, for clients that follow and for those that
 * come back.
 *
 *   id: 6a09e667-42
 *   event: worker-offline
 *   data: {"worker":"w1"}
 *
 * The first half of an id is this process's run: the number means nothing to another one. A client
 * that comes back with an id of another run, or one that is no longer here, has missed something,
 * and gets the event "missed" first, upon which it reads everything again. Pure.
 */
#ifndef FLEET_HTTP_RING_H
#define FLEET_HTTP_RING_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RING_EVENTS = 1000,
    RING_BYTES = 8 << 20,      /* of all texts */
    RING_DATA_MAX = 256 << 10, /* bytes of one event's data; a longer one is not kept */
    RING_NAME_MAX = 63,        /* of its name */
};

struct ring {
    uint32_t run;
    uint64_t next; /* number of the next event; the first is 1 */
    size_t count, bytes;
    struct ring_event {
        char *text;
        size_t bytes;
        size_t name_at, name_bytes; /* in the text */
    } events[RING_EVENTS];          /* event N at N % RING_EVENTS */
};

void ring_init(struct ring *ring, uint32_t run);
void ring_fini(struct ring *ring);

/* The name is of letters, digits, "-" and "_", the data one line; both are copied. False: it is not
 * so, or out of memory; then nobody gets it, and everybody has missed it. */
bool ring_add(struct ring *ring, const char *name, const char *data, size_t bytes);

/* The number of the oldest event that is here; `next` if there is none. */
uint64_t ring_oldest(const struct ring *ring);

/* Where a client goes on that gives this Last-Event-ID; NULL: from now on. *ret_has_missed: it
 * needs the event "missed". */
uint64_t ring_begin(const struct ring *ring, const char *last_id, bool *ret_has_missed);

/* Appends the events from *at on, as long as `out` has less than `bytes`, and moves *at behind
 * them. `only`: names with commas between them; NULL: all. *at is not before ring_oldest(). */
void ring_put(const struct ring *ring, uint64_t *at, const char *only, size_t bytes,
              struct buffer *out);

#endif
