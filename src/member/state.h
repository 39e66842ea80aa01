/* The state of an election, which the files of this folder work on; not for others. From below:
 * election.c; handover.c and members.c; join.c.
 */
#ifndef MEMBER_STATE_H
#define MEMBER_STATE_H

#include "member/member.h"

struct handover;  /* handover.c */
struct observer;  /* election.h */
struct departure; /* join.h */
struct later;     /* join.c */

/* There may be ten thousand of them: its bytes are counted (tests/provider/test_redis_many.c). */
struct election {
    struct member *member;              /* NULL: not joined yet */
    struct provider_election *provider; /* NULL: not joined yet, or ended */
    struct lease_cell *cell;
    struct observer *observers;
    struct handover *handover;   /* under way; NULL: none */
    uint64_t announced_epoch;    /* of the latest BATON_EVENT_ACQUIRED; 0: lost since */
    struct departure *departure; /* waits for the end; NULL: none */
    struct later *later;         /* events that came meanwhile, the first one first; NULL: none */
    uint16_t telling;            /* whether observers are getting an event */
    bool is_cordoned, is_unable;
    char name[];
};

/* To all observers, in their order. */
void election_tell(struct election *election, const struct baton_event *event);

/* Delivers the events that came while observers got another one; nothing while they still do. The
 * last of them may end the election's memory. */
void election_catch_up(struct election *election);

/* BATON_ECLOSED unless the election has begun and not ended. */
int election_check(const struct election *election, struct baton_error *reterr);

#endif
