/* Notices a process's death at its beginning rather than at its end.
 *
 *   signal ─▶ each thread: EXITING ─▶ robust locks ─▶ memory ─▶ sockets ─▶ pidfd readable
 *                             │             │                                   │
 *                             │             └─ dying_wait returns here            │
 *                             └─ dying_is_certain checks all threads for this    └─ always
 *
 * The kernel dismantles a process before it reports the end, which for a gigabyte of memory takes
 * longer than the rest of a failover. A thread with the flag EXITING never runs another line of its
 * program; once all threads have it, the process is dead for our purposes. To wake at that moment,
 * the guardian waits for a lock that the parent's loop thread holds for life.
 *
 * This is an optimisation only. Where /proc cannot be read, or the flag means something else in
 * this kernel, the guardian waits for the pidfd.
 */
#ifndef GUARDIAN_DYING_H
#define GUARDIAN_DYING_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* The process's number in our /proc, which may belong to another PID namespace; found by the pidfd
 * alone. 0: it has none there, or /proc does not show a dead process as we expect. Forks. */
pid_t dying_name(int pidfd);

/* Waits until the owner of a robust lock dies. False: the owner unlocked it. */
bool dying_wait(pthread_mutex_t *held_for_life);

/* Whether no thread of the process (a dying_name) will ever run its program again. False: some may,
 * or it is not known. */
bool dying_is_certain(pid_t name);

#endif
