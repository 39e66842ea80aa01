/* Nodes of one election in their own processes, and their observations: for every leadership the
 * first and the last instant at which is_leader was certainly true. Instants of two processes on
 * one machine can be compared, and the observations outlive kill -9. */
#ifndef TESTS_PROVIDER_WITNESS_H
#define TESTS_PROVIDER_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { WITNESS_NODES = 3, WITNESS_LEADERSHIPS_MAX = 256 };

struct leadership {
    uint64_t epoch;
    int64_t first_ns, last_ns;
};

struct witness {
    _Atomic int count;
    _Atomic bool leads;     /* as of its latest look */
    _Atomic uint64_t epoch; /* of the latest leadership */
    struct leadership seen[WITNESS_LEADERSHIPS_MAX];
};

struct witnesses {
    pid_t pids[WITNESS_NODES];
    struct witness *of[WITNESS_NODES]; /* shared with the nodes */
};

/* Starts all nodes; each campaigns in "race". */
void witnesses_start(struct witnesses *witnesses, const char *url);
/* Starts one, for the first time or again. */
void witness_start(struct witnesses *witnesses, int number, const char *url);
void witness_kill(struct witnesses *witnesses, int number);
/* Kills the nodes that are left. */
void witnesses_end(struct witnesses *witnesses);

/* Waits until a node leads in an epoch above this one; returns its number. */
int witnesses_await_leader(struct witnesses *witnesses, uint64_t above);
/* No instant had two leaders, and no epoch two holders. */
void witnesses_check(const struct witnesses *witnesses);

#endif
