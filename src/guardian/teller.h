/* Says the last words to the servers: connects when there is something to say, and not before.
 * Bounded like the courier; each server is tried anew until the time is over, and none of them
 * waits for another.
 */
#ifndef GUARDIAN_TELLER_H
#define GUARDIAN_TELLER_H

#include "guardian/words.h"

struct secure;

struct teller {
    const struct words *words;  /* NULL: none */
    uint32_t slots_max;         /* that the shared memory has */
    int fds[WORDS_SERVERS_MAX]; /* -1: not connected or under way */
    const struct secure *secure;
};

void teller_init(struct teller *teller);

/* Begins to connect. May be called early, to have the connections ready. */
void teller_connect(struct teller *teller);

/* Says it all, and waits until the servers have heard it. */
void teller_deliver(struct teller *teller);

#endif
