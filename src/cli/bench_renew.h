/* `baton bench renew`: what it costs one process to lead many elections. */
#ifndef CLI_BENCH_RENEW_H
#define CLI_BENCH_RENEW_H

#include "cli/command.h"

int bench_renew(const struct invocation *invocation);

#endif
