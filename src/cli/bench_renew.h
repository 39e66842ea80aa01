/* `baton bench renew`: the cost of leading many elections in one process. */
#ifndef CLI_BENCH_RENEW_H
#define CLI_BENCH_RENEW_H

#include "cli/command.h"

int bench_renew(const struct invocation *invocation);

#endif
