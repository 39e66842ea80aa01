/* A memory cgroup for each node of a benchmark, so that the kernel's out-of-memory killer ends the
 * node that goes beyond its limit, and no other process.
 *
 * On cgroup v2 in /sys/fs/cgroup, or on v1 in /sys/fs/cgroup/memory. Takes root.
 */
#ifndef CLI_BENCH_MEMORY_H
#define CLI_BENCH_MEMORY_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { BENCH_MEMORY_NODES_MAX = 9 };

struct bench_memory {
    unsigned nodes;
    char folders[BENCH_MEMORY_NODES_MAX][64];
};

/* BATON_ENOTSUP: no such cgroup can be made here; the text says why. */
int bench_memory_open(struct bench_memory *memory, unsigned nodes, size_t limit,
                      struct baton_error *reterr);
/* Removes the cgroups, and kills what is left in them. */
void bench_memory_close(struct bench_memory *memory);
/* From now on this process takes the time when the next child of it ends; it does so by a handler
 * of SIGCHLD. The memory is given back before that. */
void bench_memory_await_end(void);
instant bench_memory_ended(void); /* INSTANT_PAST: no child has ended since */
/* Puts this process into the node's cgroup. Async-signal-safe. */
bool bench_memory_enter(const struct bench_memory *memory, unsigned node);

#endif
