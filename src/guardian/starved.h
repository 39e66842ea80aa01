/* Whether a thread wants to run and gets no processor. */
#ifndef GUARDIAN_STARVED_H
#define GUARDIAN_STARVED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct starved {
    uint64_t used_ns; /* processor time at the latest look; 0: none yet */
};

/* True: the thread is runnable, and has used no processor time since the latest call. False also if
 * /proc does not tell. */
bool starved_look(struct starved *starved, pid_t process, pid_t thread);

#endif
