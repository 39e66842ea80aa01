/* A process of `baton bench work`: a candidate for the pool's leadership, or some of its workers.
 *
 * Each worker notes in memory that all processes share which items it runs, since when by the one
 * clock of this machine, and whether another process that lives runs the same item: a double. */
#ifndef CLI_BENCH_WORK_PROCESS_H
#define CLI_BENCH_WORK_PROCESS_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { BENCH_CANDIDATES = 3, BENCH_PROCESSES_MAX = 64 };

#define BENCH_POOL "bench"

struct bench_item {
    _Atomic uint32_t process; /* that runs it, plus 1; 0: none */
    _Atomic int64_t started_ns;
    _Atomic uint64_t epoch;
};

struct bench_yard {
    _Atomic uint64_t
        leader[BENCH_CANDIDATES]; /* the epoch in which it leads and is ready; 0: not */
    _Atomic uint64_t starts, doubles;
    _Atomic int64_t first_start_ns; /* of an item of a submission, since it was set to 0 */
    _Atomic pid_t pids[BENCH_PROCESSES_MAX];
    struct bench_item items[]; /* the services "item-N" */
};

struct bench_process {
    struct bench_yard *yard;
    unsigned number;
    const char *url;
    unsigned first_worker, workers; /* 0: a candidate */
    unsigned slots;                 /* of each worker */
};

/* In a forked child: takes part until it is killed; returns only if that fails. */
int bench_process_run(const struct bench_process *process);

#endif
