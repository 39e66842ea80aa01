/* Detections until the backend has them. Pure.
 *
 *   ┌ handed over: may still be lost with the connection ┬ waiting ┐
 *   │ oldest                                             │         │ newest
 *   └── outbox_delivered() takes from here               └─────────┴── outbox_put()
 *
 * So what was handed to a connection that ends before it has arrived is not lost: outbox_recall()
 * makes it wait again. Those that wait have a bound, and so have those that were handed over.
 */
#ifndef DETECTOR_OUTBOX_H
#define DETECTOR_OUTBOX_H

#include "protocol/protocol.h"

enum { OUTBOX_HANDED_MAX = 1024 };

struct letter {
    struct detection detection;
    bool is_patch; /* how it was handed over */
};

struct outbox {
    struct letter *ring;
    size_t room, waiting_max;
    size_t first, handed, waiting;
};

/* BATON_ENOMEM. */
int outbox_init(struct outbox *outbox, size_t waiting_max);
void outbox_fini(struct outbox *outbox); /* also one that is all zero */

/* Another bound, from now on. `ret_dropped`: how many of the oldest that waited are above it, and
 * gone. BATON_ENOMEM: nothing changed. */
int outbox_set_max(struct outbox *outbox, size_t waiting_max, size_t *ret_dropped);

/* Takes the detection behind all others. How many of the oldest that waited were dropped for it. */
size_t outbox_put(struct outbox *outbox, struct detection *detection);

/* The oldest that waits; NULL: none, or so many were handed over that it must wait on. */
const struct detection *outbox_next(const struct outbox *outbox);
void outbox_hand_over(struct outbox *outbox, bool is_patch); /* that one */

/* The oldest that was handed over is delivered and released. False: there was none. */
bool outbox_delivered(struct outbox *outbox, bool *was_patch);

/* All that were handed over wait again. How many of the oldest were dropped for the bound. */
size_t outbox_recall(struct outbox *outbox);

#endif
