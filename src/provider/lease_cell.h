/* The published lease of an election: a reader learns whether this process leads now.
 *
 * One cell of 64 bytes for each election, on pages that a forked child sees wiped
 * (MADV_WIPEONFORK), so that a child never reads true. The provider's thread writes; any thread
 * reads without a lock and compares with the clock itself, so the answer does not depend on a
 * working event loop.
 */
#ifndef PROVIDER_LEASE_CELL_H
#define PROVIDER_LEASE_CELL_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lease_cell; /* opaque */

/* The lease as another process sees it, in shared memory. */
struct lease_watch {
    _Atomic int64_t end_ns; /* the end published last; 0: none */
    int wake_fd;            /* eventfd: written when the end moves to an earlier instant */
};

/* INT64_MAX: it never ends. */
static inline span lease_watch_left(const struct lease_watch *watch)
{
    instant end = {atomic_load(&watch->end_ns)};

    return end.ns == INSTANT_NEVER.ns ? SPAN_NS(INT64_MAX) : instant_since(end, clock_now());
}

/* NULL: out of memory, or the kernel cannot wipe pages on fork. */
struct lease_cell *lease_cell_new(void);
/* Call this after the last reader has finished. NULL allowed. */
void lease_cell_free(struct lease_cell *cell);

/* Binds the cell to the calling thread, which lives as long as the process: once that thread begins
 * to die, every read says "not the leader", also in a process that shares this one's memory without
 * being a thread of it (CLONE_VM). Does nothing where that is impossible. */
void lease_cell_bind(struct lease_cell *cell);
/* Publishes to `watch` too from now on; it outlives the cell. */
void lease_cell_watch(struct lease_cell *cell, struct lease_watch *watch);

/* Writer: leads in `epoch` until `end`; an end in the past voids. Async-signal-safe. */
void lease_cell_publish(struct lease_cell *cell, uint64_t epoch, instant end);
/* Writer: leads no longer. After the return every read says so. Async-signal-safe. */
void lease_cell_void(struct lease_cell *cell);
/* Whether it was poisoned. */
bool lease_cell_is_poisoned(const struct lease_cell *cell);
/* Makes every later read say "not the leader" for good, whatever is published: for a process that
 * has begun to die. Any thread; async-signal-safe. */
void lease_cell_poison(struct lease_cell *cell);

/* Reader: true only while the lease holds by this thread's clock; then *ret_epoch (NULL allowed) is
 * its epoch. Wait-free except for a retry during a publish. Async-signal-safe. */
bool lease_cell_is_leader(const struct lease_cell *cell, uint64_t *ret_epoch);
/* Reader: the remaining time; 0 or less: not the leader; INT64_MAX: published until
 * INSTANT_NEVER. */
span lease_cell_remaining(const struct lease_cell *cell);
/* Reader: the epoch last led in; 0: never. */
uint64_t lease_cell_epoch(const struct lease_cell *cell);

#endif
