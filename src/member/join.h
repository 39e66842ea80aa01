/* Entering an election and leaving it.
 *
 *   election_init ─▶ election_observe ─▶ election_join ─▶ events … ─▶ BATON_EVENT_STOPPED
 *                                                            ▲              │
 *                              election_leave, member_close ─┘       election_fini
 */
#ifndef MEMBER_JOIN_H
#define MEMBER_JOIN_H

#include "member/election.h"

/* Makes one that is not joined yet in zeroed memory of election_bytes(), aligned as malloc()'s,
 * which stays its owner's. `lease`, which another process may look at, is written with each
 * publication and outlives the election; NULL: none. BATON_ENOMEM. Any thread. */
size_t election_bytes(const char *name);
int election_init(struct election *election, const char *name, struct lease_watch *lease);

/* Takes part, as a candidate unless it `observes`. `metadata` is for the registry: a JSON object,
 * or NULL; borrowed during the call. Events may come before this function returns.
 *
 * BATON_EINVAL (the name, the metadata), and what the provider says: BATON_EEXIST, BATON_EBUSY,
 * BATON_ECORRUPT, BATON_EUNSAFE, BATON_EIO, BATON_ENOMEM. After a failure only election_fini() is
 * left. */
int election_join(struct election *election, struct member *member, bool observes,
                  const char *metadata, struct baton_error *reterr);

/* One that waits for the end of an election; its memory is its owner's. */
struct departure {
    void (*left)(struct departure *departure);
};

/* Resigns if it leads, without draining, and leaves. BATON_EVENT_STOPPED is the last event. `left`
 * comes once after it, perhaps before this function returns, and may end the election's memory. */
void election_leave(struct election *election, struct departure *departure);

/* The election was never joined, or has ended. Any thread, the last that looks at it. */
void election_fini(struct election *election);

#endif
