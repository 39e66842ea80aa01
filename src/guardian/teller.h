/* Says the last words to the server: connects when there is something to say, and not before.
 * Bounded like the courier; the server is tried anew until the time is over. */
#ifndef GUARDIAN_TELLER_H
#define GUARDIAN_TELLER_H

#include "guardian/words.h"

struct teller {
    const struct words *words; /* NULL: none */
    uint32_t slots_max;        /* that the shared memory has */
    int fd;                    /* -1: not connected or under way */
};

/* Begins to connect. May be called early, to have the connection ready. */
void teller_connect(struct teller *teller);

/* Says it all, and waits until the server has heard it. */
void teller_deliver(struct teller *teller);

#endif
