/* Sends a dead process's commands (commands.h) to the servers, and connects only then. Each server
 * is tried again until the time is over, and none waits for another.
 */
#ifndef GUARDIAN_RELEASER_H
#define GUARDIAN_RELEASER_H

#include "guardian/commands.h"

struct secure;

struct releaser {
    const struct commands *commands; /* NULL: nothing to send */
    uint32_t slots_max;              /* in the shared memory */
    int fds[COMMANDS_SERVERS_MAX];   /* -1: not connected or under way */
    const struct secure *secure;
};

void releaser_init(struct releaser *releaser);

/* Begins to connect. Called early, it saves that time later. */
void releaser_connect(struct releaser *releaser);

/* Sends all commands, and waits for the servers' replies. */
void releaser_deliver(struct releaser *releaser);

#endif
