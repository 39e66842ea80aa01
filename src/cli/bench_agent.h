/* The agents that a benchmark needs. */
#ifndef CLI_BENCH_AGENT_H
#define CLI_BENCH_AGENT_H

#include "base/clock.h"
#include "base/error.h"
#include "cli/bench_network.h"

#include <sys/types.h>

struct bench_agent {
    pid_t pid; /* 0: not running */
    char folder[64];
    char url[96]; /* "agent:/…" */
};

/* Starts one that is a group of its own, and waits until it listens. client_lease: of the processes
 * that it serves. BATON_ETIMEDOUT, BATON_EIO. */
int bench_agent_start(struct bench_agent *agent, span client_lease, struct baton_error *reterr);
/* Kills it, and removes its files. */
void bench_agent_kill(struct bench_agent *agent);
const char *bench_agent_socket(const struct bench_agent *agent);

enum { BENCH_GROUP_AGENTS = 3 };

/* Three agents that are one group, with the settings that an agent has by default. The first two
 * are the caller's. */
struct bench_group {
    struct bench_network *network; /* each is at a host of its own; NULL: they are on loopback */
    span client_lease;             /* 0: the default */
    struct bench_agent agents[BENCH_GROUP_AGENTS];
    char addresses[BENCH_GROUP_AGENTS][32];
};

/* Each has its files in a folder within `folder`. */
int bench_group_start(struct bench_group *group, const char *folder, struct baton_error *reterr);
/* Asks them who leads their log. -1: nobody does, as far as they know. */
int bench_group_leader(const struct bench_group *group);
void bench_group_kill(struct bench_group *group);

#endif
