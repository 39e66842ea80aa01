/* The verbs of `baton work`; each returns an exit code. argv[0] is the verb. */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "cli/command.h"
#include "cli/work_link.h"

int work_submit(const struct invocation *invocation, struct work_link *link);
int work_list(const struct invocation *invocation, struct work_link *link);
int work_show(const struct invocation *invocation, struct work_link *link);
int work_logs(const struct invocation *invocation, struct work_link *link);
int work_watch(const struct invocation *invocation, struct work_link *link);
int work_stats(const struct invocation *invocation, struct work_link *link);

#endif
