/* For the files of a session's client only. */
#ifndef SESSIONS_CLIENT_INT_H
#define SESSIONS_CLIENT_INT_H

#include "sessions/client.h"

#include <uthash.h>

/* Numbers of orders about elections; those up to it are the lease core's. */
#define OWN_REQUESTS UINT32_MAX

enum { COMMANDS_MAX = 8, EVENTS_MAX = 8 };

enum { TELL_LOST = 1, TELL_ACQUIRED = 2, TELL_ASKED = 4, TELL_REFUSED = 8, TELL_ENDED = 16 };

/* What the process wants of an election, and what it knows of it. The name "" stands for the
 * session itself: DESCRIBE. */
struct claim {
    void *userdata;
    bool is_wanted;
    bool is_eligible; /* wanted */
    int32_t priority;
    bool is_confirmed; /* priority and eligibility are those of the log, or an order says so */
    bool may_be_in;    /* the line, as far as known */
    bool is_kept;      /* not wanted, but the process of a resumed session may claim it yet */
    bool is_reported;  /* by the present agent */
    uint64_t granted;  /* the epoch in which the session holds it, as far as known; 0: none */
    uint64_t epoch;    /* in which the process acts; 0: it does not */
    uint64_t given_up; /* the latest that was */
    uint64_t to;       /* the heir of the present resignation, or 0 */

    uint64_t request; /* of the order under way; 0: none */
    enum session_order_type asked;
    uint64_t asked_epoch;
    instant sent;

    unsigned tells; /* events to come */
    uint64_t lost, asked_to_pass;
    enum lease_loss loss;
    int code;

    bool is_ready;               /* in `ready`; with a request it is in `waiting` */
    struct claim *prev, *next;   /* of these lists */
    struct claim *prior, *later; /* of those with events to come */
    UT_hash_handle hh;
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
    struct claim *claims;  /* by name */
    struct claim *ready;   /* need an order */
    struct claim *waiting; /* for the reply to one, in the order in which they were sent */
    struct claim *telling; /* have events to come */
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
void session_claim_free(struct session_client *client, struct claim *claim);
/* Which order the claim needs; 0: none. */
enum session_order_type session_claim_need(const struct claim *claim);

#endif
