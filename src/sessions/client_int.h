/* For the files of a session's client only. */
#ifndef SESSIONS_CLIENT_INT_H
#define SESSIONS_CLIENT_INT_H

#include "base/names.h"
#include "sessions/client.h"

/* Numbers of orders about elections; those up to it are the lease core's. */
#define OWN_REQUESTS UINT32_MAX

enum { COMMANDS_MAX = 8, EVENTS_MAX = 8 };

enum {
    TELL_LOST = 1,
    TELL_ACQUIRED = 2,
    TELL_ASKED = 4,
    TELL_REFUSED = 8,
    TELL_ENDED = 16,
    TELL_ALL = 31
};

/* An order about an election that is under way. */
struct errand {
    struct claim *claim;
    uint64_t request;
    uint64_t epoch; /* that it names */
    instant sent;
    enum session_order_type type;
    struct errand *prev, *next;
};

/* What the process wants of an election, and what it knows of it. The name "" stands for the
 * session itself: DESCRIBE. There may be ten thousand of them in a process: small fields stand
 * together, and what only an order under way needs is elsewhere. */
struct claim {
    void *userdata;
    uint64_t granted;  /* the epoch in which the session holds it, as far as known; 0: none */
    uint64_t epoch;    /* in which the process acts; 0: it does not */
    uint64_t given_up; /* the latest that was */
    uint64_t to;       /* the heir of the present resignation, or 0 */
    uint64_t lost, asked_to_pass; /* of events to come */
    int32_t priority;
    int16_t code;       /* BATON_E…, of an event to come */
    unsigned tells : 5; /* events to come */
    unsigned loss : 2;  /* enum lease_loss, of an event to come */
    bool is_wanted : 1;
    bool is_eligible : 1;  /* wanted */
    bool is_confirmed : 1; /* priority and eligibility are those of the log, or an order says so */
    bool may_be_in : 1;    /* the line, as far as known */
    bool is_kept : 1;      /* not wanted, but the process of a resumed session may claim it yet */
    bool is_reported : 1;  /* by the present agent */
    bool has_errand : 1;   /* an order about it is under way */
    bool is_ready : 1;     /* in `ready` */
    bool is_telling : 1;   /* in `telling`; what it had to tell may have become void there */
    struct claim *prev, *next;     /* of all, in the order in which they came */
    struct claim *former, *latter; /* of `ready` */
    struct claim *later;           /* of those with events to come */
    char name[];
};

struct session_client {
    struct session_client_options options;
    char *metadata;
    struct lease lease;
    struct lease_update update;
    struct lease_command commands[COMMANDS_MAX];
    size_t command_count;
    struct session_event events[EVENTS_MAX]; /* of the session */
    size_t event_count;
    struct claim *claims;
    struct names names;                /* of the claims */
    struct claim *ready;               /* need an order */
    struct claim *telling, *told_last; /* have events to come */
    struct errand *waiting;            /* for a reply, in the order in which they were sent */
    size_t under_way;
    uint64_t requests;
    uint64_t given_up; /* the latest epoch that a claim which is gone gave up */
    uint64_t resumed;  /* the session that was; 0: none */
    uint64_t attached; /* the index of its resumption */
    uint32_t resuming; /* the latest request for it */
    instant kept_until;
    bool is_up;
    bool has_left;
    instant paused_until; /* after a failure */
};

/* NULL: none. */
struct claim *session_claim_find(const struct session_client *client, const char *election);
/* It has no order under way, and no events to come, unless the client ends. */
void session_claim_free(struct session_client *client, struct claim *claim);
/* After a failure: no order about an election leaves for a moment. */
void session_client_hold_back(struct session_client *client, instant now);
/* Which order the claim needs; 0: none. */
enum session_order_type session_claim_need(const struct claim *claim);

#endif
