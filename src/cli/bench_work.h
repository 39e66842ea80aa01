/* `baton bench work`: how long the work of a killed worker, or of a killed leader, stands still. */
#ifndef CLI_BENCH_WORK_H
#define CLI_BENCH_WORK_H

#include "cli/command.h"

int bench_work(const struct invocation *invocation);

#endif
