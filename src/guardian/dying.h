/* A death noticed when it begins, not when it is over.
 *
 *   signal ─▶ each thread: EXITING ─▶ robust locks ─▶ memory ─▶ sockets ─▶ pidfd readable
 *                             │             │                                   │
 *                             │             └─ dying_wait returns here            │
 *                             └─ dying_is_certain asks for this of all          └─ in any case
 *
 * The kernel takes a process apart before it reports the end, which for a gigabyte takes longer
 * than everything else in a failover. A thread that has the flag EXITING never runs a line of its
 * program again; when all threads have it, the process is as dead as it will ever be. To be woken
 * at that moment, the guardian waits for a lock that the parent's loop thread holds for life.
 *
 * All of it is only faster. Where /proc cannot be read, or its flags mean something else on this
 * kernel, the pidfd is waited for.
 */
#ifndef GUARDIAN_DYING_H
#define GUARDIAN_DYING_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process as /proc names it, which need not be a namespace of ours: by its pidfd alone. 0: it
 * has no name there, or what /proc says of the dead is not what we know. Forks. */
pid_t dying_name(int pidfd);

/* Waits until the owner of a robust lock dies. False: it let the lock go in order. */
bool dying_wait(pthread_mutex_t *held_for_life);

/* Whether no thread of the process (a dying_name) will ever run its program again. False: not, or
 * not known. */
bool dying_is_certain(pid_t name);

#endif
