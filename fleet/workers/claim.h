/* The mark `online` in a worker's `assigned`, which its owner writes before it sends a list, and
 * takes away once the worker is offline.
 *
 * What an offline worker had is given to others at once, what an online one has only after it has
 * let it go. So an owner whose cache is late must not send a worker that comes back what others
 * have by now. Mark and lists are one value, written by compare and set: whoever has stored the
 * mark has read the list as it is, and the master, which may not have heard of the worker yet,
 * fails to take anything out of the list until it has read the mark.
 *
 *   NONE ──▶ ONLINE ◀──▶ OFFLINE      each by claim_set() and then claim_step()
 *
 * All on the thread of the state's loop.
 */
#ifndef FLEET_WORKERS_CLAIM_H
#define FLEET_WORKERS_CLAIM_H

#include "fleet/state/state.h"

enum claim_mark { CLAIM_NONE, CLAIM_ONLINE, CLAIM_OFFLINE };

struct claim_write; /* opaque */

/* Its memory, the state and the worker's id are the caller's. All zero but these, it claims
 * nothing. */
struct claim {
    struct fleet_state *state;
    const char *worker;
    /* The mark is stored; or the key has been read again, and claim_step() writes it anew. Not
     * after another failure, which may come at once: claim_step() is to wait. */
    void (*on_settled)(struct claim *claim);
    enum claim_mark wanted, stored;
    struct claim_write *write; /* NULL: none is under way */
    bool is_late;              /* it began before the mark was wanted */
};

/* Wants the mark, even if the cache has it already. CLAIM_NONE: of another owner from now on, so
 * nothing more is written. */
void claim_set(struct claim *claim, enum claim_mark wanted);
/* Writes what is wanted and not stored yet, unless a write is under way. Only while the caller is
 * the owner by its lease: then what it knows is from before the mark of a later owner, and does not
 * replace it. */
void claim_step(struct claim *claim);
/* A write that is under way goes on without it. */
void claim_fini(struct claim *claim);
/* The mark is stored: the worker may be sent its list, as the state has it. */
bool claim_is_online(const struct claim *claim);

#endif
