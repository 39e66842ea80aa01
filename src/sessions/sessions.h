/* Sessions, and the elections that they contend for: a pure function of a replicated log.
 *
 *   entry of the log ─▶ session_order_decode ─▶ sessions_carry_out ─▶ changes: held, freed, ended …
 *
 * A session is one process's life in a group: it contends for any number of elections, and what it
 * holds ends with it. Every node carries out the same orders in the same sequence, so all have the
 * same sessions, holders and lines. It has no clock, no I/O and no randomness: the leader of the
 * log measures lifetimes (keeper.h) and orders the end of a session.
 *
 * These rules keep two processes from leading at once (docs/sessions.md):
 *   - an election has one holder at most; its epoch is the index of the entry that granted it, so
 *     epochs grow, over the ends of sessions, snapshots and restarts;
 *   - only an order of the holder itself, or the end of its session, takes an election from it.
 *     Others may only ask for that (PASS, ELIGIBLE): the holder's node may not have seen the order
 *     yet, and its process must stop acting first;
 *   - such an order names the epoch that it gives up, so that one that comes late, or twice, takes
 *     no later grant away;
 *   - a process may resume its session, by its secret, at its node or at another one. From then on
 *     only that node orders for it;
 *   - the end of a session names its attachment, the entry that opened or resumed it last: one that
 *     an agent or the leader of the log ordered before a resumption ends nothing;
 *   - one entry ends a session, frees all that it held, and grants each of them to the next in its
 *     line: the eligible contender of the highest priority, and of those the one that has waited
 *     longest.
 */
#ifndef SESSIONS_SESSIONS_H
#define SESSIONS_SESSIONS_H

#include "base/deadlines.h"
#include "sessions/order.h"

#include <uthash.h>

enum {
    SESSIONS_FORMAT = 2,                   /* of a snapshot */
    SESSIONS_BYTES_MAX = 64 * 1024 * 1024, /* of all sessions and contenders */
};

struct session_contender;

/* Read only for callers, as are the two below; borrowed until the next order. */
struct session {
    uint64_t id;          /* index of the entry that opened it */
    uint64_t attached;    /* index of the entry that opened or resumed it last */
    uint64_t node;        /* that did so */
    uint64_t incarnation; /* of the node, if the process is the node's own; else 0 */
    span lifetime;
    uint8_t secret[SESSION_SECRET_BYTES]; /* a hash of it: who knows the secret is the process */
    char name[SESSION_NAME_MAX];          /* of the process, for people */
    char *metadata;                       /* JSON object, or NULL */
    struct session_contender *first, *last;
    size_t count;           /* of elections that it contends for */
    instant expires;        /* for keeper.h alone: by this node's clock, and in no snapshot */
    struct deadline expiry; /* for keeper.h alone: its place by that time */
    bool is_ending;         /* for keeper.h alone */
    bool is_dead;           /* for keeper.h alone: that is proved */
    UT_hash_handle hh;
};

struct session_contender {
    struct session *session;
    struct session_election *election;
    int32_t priority;
    bool is_eligible;                          /* false: observes, or is cordoned */
    struct session_contender *prev, *next;     /* in the election's line */
    struct session_contender *older, *younger; /* of the same session */
};

struct session_election {
    struct session_contender *holder;     /* NULL: no eligible contender */
    uint64_t epoch;                       /* of the holder; index of the entry that granted it */
    uint64_t wanted;                      /* session that leads next if it may; 0: none */
    struct session_contender *first;      /* of the line, the holder included */
    struct session_election *prev, *next; /* of all, in the order in which they began */
    uint32_t count;                       /* of contenders */
    char name[];                          /* NUL-terminated */
};

enum session_change_type {
    SESSION_OPENED,
    SESSION_ENDED,   /* .end */
    SESSION_ENTERED, /* .election: contends for it */
    SESSION_LEFT,    /* .election: does not any more */
    SESSION_HELD,    /* .election, .epoch: granted to the session */
    SESSION_FREED,   /* .election, .epoch: the session held it; no grant follows */
    SESSION_ASKED,   /* .election, .epoch: the session, its holder, shall give it up */
};

struct session_change {
    enum session_change_type type;
    uint64_t session;
    const char *election; /* NULL for OPENED and ENDED; valid during the call */
    uint64_t epoch;
    enum session_end end;
};

/* Called during sessions_carry_out() and sessions_install(), in order; must not call back. */
typedef void (*session_change_cb)(void *userdata, const struct session_change *change);

struct sessions; /* one thread */

/* NULL when out of memory. */
struct sessions *sessions_new(session_change_cb on_change, void *userdata);
void sessions_free(struct sessions *sessions); /* NULL allowed; reports no changes */

/* Carries out an order; `index` is its entry's and above those before. After an error nothing has
 * changed:
 *   BATON_ENOENT    the session has ended, is another node's now, or is not in that election's line
 *   BATON_ECONFLICT RESIGN, WITHDRAW: it holds the election in another epoch; RESIGN: or not at
 * all; END: the session was resumed since BATON_EAUTH     RESUME: another secret, or the session is
 * that of a node's own process BATON_EINVAL    PASS: `to` may not lead, or leads already
 *   BATON_EFULL     SESSIONS_BYTES_MAX
 *   BATON_ENOMEM    this node's state now differs from the group's, and the node must stop
 */
int sessions_carry_out(struct sessions *sessions, const struct session_order *order,
                       uint64_t index);

/* NULL: there is none, or not any more. */
struct session *sessions_find(const struct sessions *sessions, uint64_t id);
const struct session_election *sessions_election(const struct sessions *sessions, const char *name);
/* NULL: the session is not in the election's line. Both may be NULL. */
struct session_contender *sessions_contender(const struct session_election *election,
                                             const struct session *session);
/* In the order in which they began; prev NULL: the first. */
struct session *sessions_next(const struct sessions *sessions, const struct session *prev);
const struct session_election *sessions_next_election(const struct sessions *sessions,
                                                      const struct session_election *prev);

/* Encodes the whole state. */
void sessions_snapshot(const struct sessions *sessions, struct buffer *buffer);
/* Decodes a snapshot into new `sessions` without any callback. BATON_ENOTSUP (a later format),
 * BATON_ECORRUPT, BATON_ENOMEM. */
int sessions_restore(struct sessions **ret, const void *data, size_t bytes);
/* Replaces the state by a restored one, and frees that; reports what differs. Cannot fail. */
void sessions_install(struct sessions *sessions, struct sessions *restored);

#endif
