/* The published word of an election: who reads it knows whether this process leads, now.
 *
 * One cell for each election, 64 bytes, on pages that a forked child sees wiped (MADV_WIPEONFORK),
 * so that a child never answers true. The provider's thread writes; any thread reads, without a
 * lock, by its own reading of the clock: it needs no event loop that is still alive.
 */
#ifndef PROVIDER_LEASE_CELL_H
#define PROVIDER_LEASE_CELL_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lease_cell; /* opaque */

/* What another process sees of the lease, in memory that both share. */
struct lease_watch {
    _Atomic int64_t end_ns; /* as published last; 0: none */
    int wake_fd;            /* eventfd: the lease ends sooner than was published before */
};

/* NULL when out of memory, or where the kernel cannot wipe pages on fork. */
struct lease_cell *lease_cell_new(void);
/* After the last reader is gone. NULL allowed. */
void lease_cell_free(struct lease_cell *cell);

/* From now on the cell says "not the leader" as soon as the calling thread, which lives as long as
 * the process, has begun to die: a process that shares this one's memory without being a thread of
 * it (CLONE_VM) does not outlive it as a leader. Without the means for that, nothing happens. */
void lease_cell_bind(struct lease_cell *cell);
/* From now on `watch` is written, too; it outlives the cell. */
void lease_cell_watch(struct lease_cell *cell, struct lease_watch *watch);

/* Writer: leads in `epoch` until `end`. An end in the past is a void. Async-signal-safe. */
void lease_cell_publish(struct lease_cell *cell, uint64_t epoch, instant end);
/* Writer: no longer leads. Returns only when every later read says so. Async-signal-safe. */
void lease_cell_void(struct lease_cell *cell);
/* Whether it was poisoned. */
bool lease_cell_is_poisoned(const struct lease_cell *cell);
/* For ever: every read from here on says "not the leader", whatever is published. For a process
 * that has begun to die. Any thread; async-signal-safe. */
void lease_cell_poison(struct lease_cell *cell);

/* Reader: true only while the lease holds by this thread's clock; then *ret_epoch (NULL allowed)
 * is its epoch. Wait-free but for a retry while a publish is under way. Async-signal-safe. */
bool lease_cell_is_leader(const struct lease_cell *cell, uint64_t *ret_epoch);
/* Reader: what is left; 0 or less: not the leader; INT64_MAX: published until INSTANT_NEVER. */
span lease_cell_remaining(const struct lease_cell *cell);
/* Reader: the epoch last led in; 0: never. */
uint64_t lease_cell_epoch(const struct lease_cell *cell);

#endif
