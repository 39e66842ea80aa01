/* The agent that a benchmark needs: a group of its own, on loopback. */
#ifndef CLI_BENCH_AGENT_H
#define CLI_BENCH_AGENT_H

#include "base/clock.h"
#include "base/error.h"

#include <sys/types.h>

struct bench_agent {
    pid_t pid; /* 0: not running */
    char folder[64];
    char url[96]; /* "agent:/…" */
};

/* Starts it and waits until it listens. client_lease: of the processes that it serves.
 * BATON_ETIMEDOUT, BATON_EIO. */
int bench_agent_start(struct bench_agent *agent, span client_lease, struct baton_error *reterr);
/* Kills it, and removes its files. */
void bench_agent_kill(struct bench_agent *agent);

#endif
