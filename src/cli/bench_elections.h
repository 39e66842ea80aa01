/* `baton bench elections`: many elections of one group, and the death of the process that leads
 * some of them. */
#ifndef CLI_BENCH_ELECTIONS_H
#define CLI_BENCH_ELECTIONS_H

#include "cli/command.h"

int bench_elections(const struct invocation *invocation);

#endif
