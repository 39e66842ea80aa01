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
    struct letter *prev, *next;
    struct detection detection;
    bool is_patch; /* how it was handed over */
    uint64_t end;  /* it has arrived when so many bytes of its connection have */
};

/* {.waiting_max = N}: empty. */
struct outbox {
    struct letter *letters; /* the oldest first */
    struct letter *oldest;  /* that waits; NULL: none */
    size_t waiting_max, handed, waiting;
};

void outbox_fini(struct outbox *outbox);

/* Another bound, from now on. How many of the oldest that waited were dropped for it. */
size_t outbox_set_max(struct outbox *outbox, size_t waiting_max);

/* Takes the detection behind all others. How many were dropped: of the oldest that waited for the
 * bound, or this one, because memory is short. */
size_t outbox_put(struct outbox *outbox, struct detection *detection);

/* The oldest that waits; NULL: none, or so many were handed over that it must wait on. */
const struct detection *outbox_next(const struct outbox *outbox);
void outbox_hand_over(struct outbox *outbox, bool is_patch, uint64_t end); /* that one */

/* The oldest that was handed over is released, if so many bytes were enough for it. */
bool outbox_delivered(struct outbox *outbox, uint64_t arrived, bool *was_patch);

/* All that were handed over wait again. How many of the oldest were dropped for the bound. */
size_t outbox_recall(struct outbox *outbox);

#endif
