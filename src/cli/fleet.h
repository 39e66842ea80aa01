/* The verbs of `baton fleet`; each returns an exit code. argv[0] is the verb. */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include "cli/command.h"
#include "cli/fleet_link.h"

int fleet_status(const struct invocation *invocation, struct fleet_link *link);
int fleet_workers(const struct invocation *invocation, struct fleet_link *link);
int fleet_cameras(const struct invocation *invocation, struct fleet_link *link);
int fleet_displays(const struct invocation *invocation, struct fleet_link *link);
int fleet_apply(const struct invocation *invocation, struct fleet_link *link);
int fleet_tail(const struct invocation *invocation, struct fleet_link *link);

#endif
