/* Entering an election and leaving it.
 *
 *   election_new ─▶ election_observe ─▶ election_join ─▶ events … ─▶ BATON_EVENT_STOPPED
 *                                                            ▲              │
 *                              election_leave, member_close ─┘       election_free
 */
#ifndef MEMBER_JOIN_H
#define MEMBER_JOIN_H

#include "member/election.h"

/* One that is not joined yet. `lease`, which another process may look at, is written with each
 * publication and outlives the election; NULL: none. NULL: out of memory. Any thread. */
struct election *election_new(const char *name, struct lease_watch *lease);

/* Takes part, as a candidate unless it `observes`. `metadata` is for the registry: a JSON object,
 * or NULL; borrowed during the call. Events may come before this function returns.
 *
 * BATON_EINVAL (the name, the metadata), and what the provider says: BATON_EEXIST, BATON_EBUSY,
 * BATON_ECORRUPT, BATON_EUNSAFE, BATON_EIO, BATON_ENOMEM. After a failure the election can only be
 * freed. */
int election_join(struct election *election, struct member *member, uv_loop_t *loop, bool observes,
                  const char *metadata, struct baton_error *reterr);

/* Resigns if it leads, without draining, and leaves. BATON_EVENT_STOPPED is the last event. `left`
 * comes once after it, perhaps before this function returns, and may free the election. */
void election_leave(struct election *election, void (*left)(void *userdata), void *userdata);

/* One that was never joined, or that has ended. NULL is nothing. Any thread, the last that looks at
 * it. */
void election_free(struct election *election);

#endif
