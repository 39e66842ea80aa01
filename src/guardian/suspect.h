/* A process that may be one of the victims (victims.h), as /proc shows it.
 *
 * Any process of the host is a suspect, those of strangers too, and a stranger may try to keep this
 * one from an answer. So each answer is one of four: NO and YES are certain, UNKNOWN is not, and
 * GONE has ended or just ends, and may have left a child. A stranger can also make a read of its
 * memory last for ever: see victims_hunt().
 *
 * Uses libc only, as victims.h.
 */
#ifndef GUARDIAN_SUSPECT_H
#define GUARDIAN_SUSPECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SUSPECT_MARKER_MAX = 64 }; /* of a marker, with the byte that ends it */

enum finding { FINDING_NO, FINDING_YES, FINDING_UNKNOWN, FINDING_GONE };

struct suspect {
    pid_t pid; /* or the number of another of its threads, if the first one has ended */
    bool is_alive;
    bool is_unread; /* it may be alive, but there was no memory or descriptor to read about it */
    int threads;
    pid_t group;     /* 0: one whose leader is outside the PID namespace */
    uint64_t memory; /* in bytes; 0: a thread of the kernel, or a process that exits */
    uint64_t flags;
    uint64_t code; /* where it begins; Linux sets it last in execve(2), till then it is 0 */
    uint64_t environ_start, environ_end;
};

/* Never waits for the process. */
struct suspect suspect_read(pid_t pid);

/* Whether "NAME=value", or one that begins with it and "-", is in the environment that execve(2)
 * gave it. A process that has written over that environment, or has taken its memory away, is not
 * found: NO. Of another user whose processes this one may not kill, or of the kernel: NO. */
enum finding suspect_has_marker(const struct suspect *suspect, const char *marker);

/* Whether a process of the user may kill it, as kill(2) says; root may kill all. */
bool suspect_is_within_reach(const struct suspect *suspect, uid_t user);

#endif
