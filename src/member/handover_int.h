/* join.c's reports of an election's events to handover.c; for these two files only. */
#ifndef MEMBER_HANDOVER_INT_H
#define MEMBER_HANDOVER_INT_H

#include "member/election.h"

struct handover;

/* The provider's BATON_EVENT_DRAIN: the group wants another leader. */
void handover_want(struct election *election, const struct baton_event *event);

/* The hand-over that this event ends; NULL: none. It is no longer the election's from here on;
 * handover_reply() calls its `done` and frees it. */
struct handover *handover_end_by(struct election *election, const struct baton_event *event);
void handover_reply(struct handover *handover); /* NULL allowed */

/* Takes the next step, if one is due, once all observers have got the present event. */
void handover_proceed(struct election *election);

#endif
