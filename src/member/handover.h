/* Giving leadership away: first everything that acts under the lease stops, then the lease is made
 * void, and only then does another member hear of it.
 *
 *                                    BATON_EVENT_DRAIN
 *   handover_begin ───────────┐      to all observers    no hold is left,
 *                             ├─▶ DRAINING ────────────────────────────▶ GOING ─▶ LOST: 0
 *   the provider's own DRAIN ─┘       │    or time is up, if forced        │
 *                                     │                                    ├─▶ goes on leading:
 *                                     └─▶ time is up: BATON_ETIMEDOUT      │   BATON_ETIMEDOUT
 *                                                                          └─▶ STOPPED:
 *                                                                              BATON_ECLOSED
 *
 * handover_begin and handover_want enter DRAINING, handover_proceed leads to GOING,
 * handover_end_by and a refusal of the provider end it.
 *
 * An observer that cannot stop at once calls handover_hold() inside its on_event for
 * BATON_EVENT_DRAIN, and handover_release() when it has stopped. The event's lease_left_ns is the
 * time there is.
 */
#ifndef MEMBER_HANDOVER_H
#define MEMBER_HANDOVER_H

#include "member/election.h"

enum handover_kind {
    HANDOVER_RESIGN, /* may win leadership again at once */
    HANDOVER_CORDON, /* leads no more before handover_uncordon(); also where it does not lead */
};

struct handover_request {
    enum handover_kind kind;
    const char *to;   /* RESIGN: the id or name of a member; NULL or "": the best placed */
    bool needs_heir;  /* without `to`: refused while no other member could take over */
    instant deadline; /* of draining and handing over together */
    span limit;       /* of the handing over, once everything has stopped; 0: until the deadline */
    /* When the deadline or the lease ends and something still holds: true hands over all the same,
     * false gives up, so that nothing ever acts without the lease. */
    bool is_forced;
    provider_done_cb done;
    void *userdata;
};

/* Hands leadership over. `done`: 0 when this process no longer leads (a cordoned follower: at
 * once); BATON_ETIMEDOUT when it goes on leading, since something held until the deadline or the
 * member `to` did not take over; BATON_ECLOSED when the election ends first; or the
 * provider's own code. Observers get the event of the outcome first.
 *
 * A draining that the group itself wants goes on by the terms of this request.
 *
 * Fails at once with BATON_ECLOSED; BATON_EBUSY: another hand-over is under way; BATON_ENOTLEADER;
 * BATON_EINVAL: `to` is no member that may lead, and no observer was asked to stop; BATON_ENOMEM.
 */
int handover_begin(struct election *election, const struct handover_request *request,
                   struct baton_error *reterr);

/* Ends a cordon: campaigns again. BATON_ECLOSED, or the provider's own code. */
int handover_uncordon(struct election *election, struct baton_error *reterr);

/* False: what an earlier leadership began has not ended here, so that nothing can begin. This
 * process campaigns no more meanwhile, as if it were cordoned, too. After a failure it is as
 * before: BATON_ECLOSED, or the provider's own code. */
int handover_set_able(struct election *election, bool is_able, struct baton_error *reterr);

/* Begins and ends one observer's hold on the draining. Without a draining they do nothing. */
void handover_hold(struct election *election);
void handover_release(struct election *election);

/* Whether everything has stopped and leadership is about to go: this process still leads, but does
 * not begin anything. */
bool handover_is_going(const struct election *election);

#endif
