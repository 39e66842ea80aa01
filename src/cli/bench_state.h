/* `baton bench state`: the cost of keyed writes to a group of three agents, beside etcd. */
#ifndef CLI_BENCH_STATE_H
#define CLI_BENCH_STATE_H

#include "cli/command.h"

int bench_state(const struct invocation *invocation);

#endif
