/* `baton bench placement`: how long the leader computes where the items of its pool go. */
#ifndef CLI_BENCH_PLACEMENT_H
#define CLI_BENCH_PLACEMENT_H

#include "cli/command.h"

int bench_placement(const struct invocation *invocation);

#endif
