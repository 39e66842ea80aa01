/* Decides when a leader counts as hung, and when its guardian may certify its death: a pure
 * function of the instants that the caller read.
 *
 *   not leading ──leads──▶ counting ──silent for `bound`──▶ killed ──dead──▶ certify
 *                           ▲    │
 *                           └────┘ a beat, or this process overslept: counts anew
 *
 * The leader's loop leaves beats in the shared page. Silence means something only while the
 * observer itself ran: if it was stopped, starved or suspended, the leader may have been, too, and
 * is well. So the observer looks every eighth of the bound, and after a look that came late by more
 * than an eighth it counts anew. It does so as well if it finds the leader starved. The kill makes
 * the verdict true; it proves nothing before the kernel reports the death.
 */
#ifndef GUARDIAN_HANG_H
#define GUARDIAN_HANG_H

#include "base/clock.h"

#include <stdbool.h>

struct hang {
    span bound;    /* silence that is a hang; 0: never */
    instant next;  /* the look after this one; INSTANT_NEVER: none is needed */
    instant since; /* the leader counts as silent since then at the earliest */
    bool has_killed;
};

struct hang_look {
    instant now;
    instant beat;  /* the latest one; 0: none yet */
    instant lease; /* the end of the leader's lease; 0: it does not lead */
    bool is_dead;  /* the kernel says so */
    /* It wants to run, and has got no processor since the look before: on an overloaded machine the
     * observer may still get one. */
    bool is_starved;
};

enum hang_verdict { HANG_WAIT, HANG_KILL, HANG_CERTIFY };

void hang_init(struct hang *hang, span bound);

/* Takes what one look has found. HANG_KILL comes once. HANG_WAIT: look again at hang->next, or when
 * something happens. */
enum hang_verdict hang_take(struct hang *hang, const struct hang_look *look);

/* The bound of a program that was killed for hangs `kills` times before: each kill doubles it, up
 * to the lease, at which a hang is as good as any other silence. */
span hang_bound(span wanted, unsigned kills, span lease);

#endif
