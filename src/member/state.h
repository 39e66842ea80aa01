/* The state of an election, which the files of this folder work on; not for others. From below:
 * election.c; handover.c and members.c; join.c.
 */
#ifndef MEMBER_STATE_H
#define MEMBER_STATE_H

#include "member/member.h"

struct handover;  /* handover.c */
struct observer;  /* election.h */
struct departure; /* join.h */

/* There may be ten thousand of them: its bytes are counted (tests/provider/test_redis_many.c). */
struct election {
    struct member *member;              /* NULL: not joined yet */
    struct provider_election *provider; /* NULL: not joined yet, or ended */
    struct lease_cell *cell;
    struct observer *observers;
    struct handover *handover;   /* under way; NULL: none */
    uint64_t announced_epoch;    /* of the latest BATON_EVENT_ACQUIRED; 0: lost since */
    struct departure *departure; /* waits for the end; NULL: none */
    uint16_t telling;            /* events that observers are getting, one inside the other */
    bool is_cordoned;
    char name[];
};

/* To all observers, in their order. */
void election_tell(struct election *election, const struct baton_event *event);

/* BATON_ECLOSED unless the election has begun and not ended. */
int election_check(const struct election *election, struct baton_error *reterr);

#endif
