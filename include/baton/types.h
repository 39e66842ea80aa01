/* An election's roles, members and events. Shared by the library and its providers. */
#ifndef BATON_TYPES_H
#define BATON_TYPES_H

#include <baton/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BATON_NAME_MAX = 64,     /* bytes of a node's or an election's name, with the NUL */
    BATON_ADDRESS_MAX = 128, /* bytes of an address, with the NUL */
};

enum baton_role {
    BATON_ROLE_FOLLOWER,
    BATON_ROLE_CANDIDATE, /* asking to lead */
    BATON_ROLE_LEADER,    /* holds a lease */
};

enum baton_member_kind {
    BATON_MEMBER_VOTER,   /* votes and may lead; every member of a provider without votes */
    BATON_MEMBER_WITNESS, /* votes, never leads */
    BATON_MEMBER_LEARNER, /* follows only */
};

/* Why leadership ended. X(symbol, name) */
#define BATON_LOSSES(X)                                                                            \
    X(BATON_LOSS_EXPIRED, "expired")         /* the lease ran out before it was renewed */         \
    X(BATON_LOSS_SUPERSEDED, "superseded")   /* another member leads in a higher epoch */          \
    X(BATON_LOSS_RESIGNED, "resigned")       /* handed over on purpose */                          \
    X(BATON_LOSS_LOST_QUORUM, "lost-quorum") /* the group no longer answers */                     \
    X(BATON_LOSS_STORAGE, "storage")         /* the disk failed */                                 \
    X(BATON_LOSS_SHUTDOWN, "shutdown")       /* this process stops */

enum baton_loss {
#define BATON_LOSS_ENUM(symbol, name) symbol,
    BATON_LOSSES(BATON_LOSS_ENUM)
#undef BATON_LOSS_ENUM
};

/* A member of the group or registry. Copies own nothing; `metadata` is borrowed. */
struct baton_member {
    char id[BATON_NAME_MAX];   /* unique; a provider may use the name */
    char name[BATON_NAME_MAX]; /* for people */
    char address[BATON_ADDRESS_MAX];
    enum baton_member_kind kind;
    enum baton_role role;
    uint32_t weight;  /* of its vote; 1 where votes are not weighted */
    int32_t priority; /* the healthy member of the highest priority leads */
    bool is_alive;    /* as the answering node knows: the member sent a message lately */
    bool is_self;
    bool is_cordoned;     /* does not campaign */
    const char *metadata; /* JSON object, or NULL */
};

/* X(symbol, bit, name): the events. A mask of bits selects some of them. */
#define BATON_EVENTS(X)                                                                            \
    X(BATON_EVENT_ROLE, 0, "role-changed")                     /* role */                          \
    X(BATON_EVENT_ACQUIRED, 1, "leadership-acquired")          /* epoch, lease_left_ns */          \
    X(BATON_EVENT_LOST, 2, "leadership-lost")                  /* epoch, loss */                   \
    X(BATON_EVENT_LEADER, 3, "leader-changed")                 /* member (id "" if none), epoch */ \
    X(BATON_EVENT_ELECTION_STARTED, 4, "election-started")     /* epoch tried, where known */      \
    X(BATON_EVENT_ELECTION_COMPLETED, 5, "election-completed") /* member, epoch */                 \
    X(BATON_EVENT_ELECTION_FAILED, 6, "election-failed")       /* error, if there is one;          \
                         lease_left_ns, of another's that may hold, and that is waited for */      \
    X(BATON_EVENT_MEMBER_JOINED, 7, "member-joined")           /* member */                        \
    X(BATON_EVENT_MEMBER_LEFT, 8, "member-left")               /* member */                        \
    X(BATON_EVENT_JEOPARDY, 9, "jeopardy")                     /* lease_left_ns */                 \
    X(BATON_EVENT_DRAIN, 10, "drain")             /* hand-over is wanted; lease_left_ns is left */ \
    X(BATON_EVENT_INSTABILITY, 11, "instability") /* count of elections in the last hour */        \
    X(BATON_EVENT_ERROR, 12, "error")             /* error */                                      \
    X(BATON_EVENT_PROOF, 13, "leader-proved-gone") /* member; text: by what proof */               \
    X(BATON_EVENT_STOPPED, 14, "stopped")          /* the last event of an election */

enum baton_event_type {
#define BATON_EVENT_ENUM(symbol, bit, name) symbol = 1u << (bit),
    BATON_EVENTS(BATON_EVENT_ENUM)
#undef BATON_EVENT_ENUM
};

#define BATON_EVENT_ALL 0xffffffffu

/* One event. Fields that its type does not use are zero. Borrowed during the call. A later version
 * may add fields at the end. */
struct baton_event {
    enum baton_event_type type;
    enum baton_role role;
    enum baton_loss loss;
    uint64_t epoch;
    int64_t at_ns; /* CLOCK_BOOTTIME, when it happened */
    int64_t lease_left_ns;
    uint32_t count;
    struct baton_member member;
    struct baton_error error;
    const char *text; /* or NULL */
};

/* The names of these values; static storage; "unknown" for any other number. */
BATON_API const char *baton_role_name(enum baton_role role);        /* "follower" … */
BATON_API const char *baton_loss_name(enum baton_loss loss);        /* "lost-quorum" … */
BATON_API const char *baton_event_name(enum baton_event_type type); /* "leader-changed" … */
BATON_API const char *baton_member_kind_name(enum baton_member_kind kind); /* "voter" … */

#ifdef __cplusplus
}
#endif

#endif
