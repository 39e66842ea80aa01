/* An election that its owner enters and leaves more than once, with the memory that belongs to it.
 *
 *   candidacy_begin ─▶ on_event … ─▶ candidacy_leave ─▶ on_event … ─▶ left
 */
#ifndef MEMBER_CANDIDACY_H
#define MEMBER_CANDIDACY_H

#include "member/join.h"

/* In its owner's struct, zeroed before its first use. */
struct candidacy {
    struct election *election; /* NULL: none */
    struct observer observer;
    struct departure departure;
    void (*on_event)(struct candidacy *candidacy, const struct baton_event *event);
    void (*left)(struct candidacy *candidacy);
    bool is_joining, is_leaving;
};

/* The struct that holds the candidacy as its member `name`. */
#define CANDIDACY_OF(type, name, pointer) ((type *)((char *)(pointer)-offsetof(type, name)))

/* Campaigns; `lease`: as election_init(). After a failure there is no election. Events may come
 * before this returns. Errors: as election_join(). */
int candidacy_begin(struct candidacy *candidacy, struct member *member, const char *name,
                    struct lease_watch *lease,
                    void (*on_event)(struct candidacy *candidacy, const struct baton_event *event),
                    struct baton_error *reterr);

/* Leaves, and frees the election before `left`, which comes once, perhaps before this returns:
 * candidacy_begin() may follow. Without an election it comes at once. */
void candidacy_leave(struct candidacy *candidacy, void (*left)(struct candidacy *candidacy));

#endif
