/* The container of a client, as far as it matters to an agent outside: its PID namespace.
 *
 * When process 1 of a PID namespace ends, the kernel kills all others of the namespace, and process
 * 1 is a zombie only when none of them is left. So its pidfd proves the death of all at once.
 */
#ifndef AGENT_CONTAINER_H
#define AGENT_CONTAINER_H

#include <sys/types.h>

/* A pidfd of process 1 of the PID namespace that `pid` is in, which the caller closes; -1: that is
 * the agent's own namespace, or this user may not look (another user's process). Reads /proc. */
int container_open_init(pid_t pid);

#endif
