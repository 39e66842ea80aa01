/* An election that this process takes part in: its leader, and its observers.
 *
 * There may be ten thousand of them in a process: large data, and data that many share, is
 * elsewhere.
 */
#ifndef MEMBER_ELECTION_H
#define MEMBER_ELECTION_H

#include "member/member.h"

struct election; /* opaque; join.h makes one */

/* Gets every event of an election on the loop's thread, after the observers that were added before.
 * Its memory is its owner's, and stays where it is until the election ends. on_event may leave the
 * election and begin a hand-over; it must not close the member. */
struct observer {
    void (*on_event)(struct observer *observer, const struct baton_event *event);
    struct observer *next; /* the election's */
};

/* The struct that holds the observer as its member `observer`. */
#define OBSERVER_OF(type, pointer) ((type *)((char *)(pointer)-offsetof(type, observer)))

/* Before election_join(), so that the observer misses nothing, or later. */
void election_observe(struct election *election, struct observer *observer);

/* 1 to 63 bytes, as long as the election lives. Any thread. */
const char *election_name(const struct election *election);

/* Any thread, without a lock and async-signal-safe: whether this process leads, by the lease and
 * the calling thread's clock (*ret_epoch: NULL allowed); the remaining lease, 0 if it does not
 * lead; the epoch in which it leads or led last, 0 if it never did. */
bool election_is_leader(const struct election *election, uint64_t *ret_epoch);
span election_lease_left(const struct election *election);
uint64_t election_epoch(const struct election *election);
/* The epoch of a leadership that the observers know of, and that was not lost; 0: none. */
uint64_t election_announced_epoch(const struct election *election);
/* The leader as known here, and its epoch; id "" if none is known or the election has ended. */
void election_leader(const struct election *election, struct baton_member *ret,
                     uint64_t *ret_epoch);
/* Whether it campaigns no more: it only observes, was cordoned, or is not able to lead. */
bool election_is_cordoned(const struct election *election);

#endif
