/* A process's side of its session: which elections it takes part in, in which it acts, and what it
 * orders for that. A pure state machine.
 *
 *   user    ──▶ enter, withdraw, resign, leave ┐   ┌──▶ lease    until when the process may act
 *   replies ──┐                                ├──▶├──▶ events   acquired, lost, asked, ended
 *   changes ──┼──▶ session_client_step ────────┘   ├──▶ renewal  to the leader of the log
 *   timers  ──┘                                    ├──▶ orders   for the log
 *                                                  └──▶ deadline
 *
 * The lease of the session is a lease core's (lease/lease.h): to take it is OPEN, to renew it is a
 * message to the leader of the log, to release it is END. The process acts in an election while it
 * has acquired and not lost it, and the lease of the session is valid.
 *
 * After each call the driver takes what came of it, in this order: it publishes the lease, void
 * first; it takes all events, and publishes what each says before it tells anybody; it sends the
 * renewal and the orders; it comes back with SESSION_IN_TICK at the deadline.
 *
 * Rules (docs/sessions.md):
 *   - an order that gives an election up leaves after the process has stopped acting there;
 *   - an epoch that was given up is never taken again, however late its grant is reported;
 *   - a session that is lost voids all that it held; a new one enters all elections again;
 *   - one order about an election is under way at a time. One without a reply is repeated: orders
 *     name the epoch that they give up, so a repeated one takes no later grant away;
 *   - a new connection to an agent changes nothing while the lease of the session is valid;
 *   - a resumed session gives up nothing that its process has not claimed anew, until every lease
 *     that an earlier agent granted has ended: the process may act by that one yet.
 */
#ifndef SESSIONS_CLIENT_H
#define SESSIONS_CLIENT_H

#include "lease/lease.h"
#include "sessions/sessions.h"

enum { SESSION_ORDERS_UNDER_WAY_MAX = 256 }; /* of one client: an agent's queue has an end */

struct session_client; /* one thread */

/* What the session's OPEN says; copied, the metadata too. The lifetime is that of the lease. */
struct session_client_options {
    struct lease_settings lease;
    char name[SESSION_NAME_MAX]; /* of the process */
    uint8_t secret[SESSION_SECRET_BYTES];
    uint64_t incarnation; /* of the node, if the process is the node's own; else 0 */
    const char *metadata; /* JSON object, or NULL */
    uint64_t resume;      /* the session to begin with, if that is possible; 0: a new one */
};

enum session_input_type {
    SESSION_IN_TICK,
    SESSION_IN_UP,       /* an agent is connected: it reports where the session stands, … */
    SESSION_IN_REPORTED, /* … as changes ENTERED, HELD and ASKED, and then this */
    SESSION_IN_DOWN,     /* it is not: no reply comes to what is under way */
    SESSION_IN_REPLY,    /* .request, .code, .session, .index: its agent has applied the order, or
                            failed. To a RESUME: .lifetime too, and after it where the session
                            stands, as with UP */
    SESSION_IN_RENEWED,  /* .request, .code, .session; BATON_ENOENT: the session has ended */
    SESSION_IN_CHANGE,   /* .change: its agent has applied an entry that changed this */
};

struct session_input {
    enum session_input_type type;
    uint64_t request;
    int code;
    uint64_t session;
    uint64_t index; /* of the order's entry */
    span lifetime;  /* of the session that a RESUME took up */
    struct session_change change;
};

enum session_event_type {
    SESSION_EV_OPENED,   /* .epoch: the session's id. No election */
    SESSION_EV_JEOPARDY, /* .left: the session is lost after that unless it is renewed. No election
                          */
    SESSION_EV_LOST,     /* .epoch, .loss: does not act there any more */
    SESSION_EV_ACQUIRED, /* .epoch: acts */
    SESSION_EV_ASKED,    /* .epoch: shall be given up, by session_client_resign() */
    SESSION_EV_REFUSED,  /* .code: the order failed; it is repeated */
    SESSION_EV_ENDED,    /* takes part no more: the last event of this election */
};

struct session_event {
    enum session_event_type type;
    void *userdata; /* of the election; NULL: no election */
    uint64_t epoch;
    enum lease_loss loss;
    span left;
    int code;
};

/* NULL when out of memory. */
struct session_client *session_client_new(const struct session_client_options *options);
void session_client_free(struct session_client *client); /* NULL allowed */

/* `random`: a fresh random number in each call. */
void session_client_step(struct session_client *client, const struct session_input *input,
                         instant now, uint64_t random);

/* Before the process enters this election by a client that resumes its session: the latest epoch
 * that it knows of there, not 0, and whether it acts in that one now. BATON_ENOMEM. */
int session_client_recall(struct session_client *client, const char *election, uint64_t epoch,
                          bool acts);
/* Takes part in the election, or changes how: a holder that may not lead any more gives it up.
 * `userdata` comes with the events; not NULL. BATON_ENOMEM, BATON_EINVAL (the name). */
int session_client_enter(struct session_client *client, const char *election, int32_t priority,
                         bool is_eligible, void *userdata);
/* NULL: the process does not take part. */
void *session_client_userdata(const struct session_client *client, const char *election);
/* Stops taking part; SESSION_EV_ENDED follows. */
void session_client_withdraw(struct session_client *client, const char *election);
/* No event of the election comes any more. */
void session_client_disown(struct session_client *client, const char *election);
/* Gives an election up in favour of the session `to`, or 0: of the one that a PASS named, or the
 * next in line. BATON_ENOTLEADER: does not act there in that epoch. */
int session_client_resign(struct session_client *client, const char *election, uint64_t epoch,
                          uint64_t to);
/* A leader of the log may have a clock as wrong as this: later leases are shortened for it. */
void session_client_widen_drift(struct session_client *client, uint32_t drift_ppm);
/* Replaces the session's metadata. BATON_ENOMEM. */
int session_client_describe(struct session_client *client, const char *metadata);
/* Ends the session, and takes part in nothing any more. */
void session_client_leave(struct session_client *client, instant now, uint64_t random);

/* The session's lease as of the last step; .epoch is its id. */
struct session_client_lease {
    bool is_held;
    instant end;
    uint64_t session;
};
struct session_client_lease session_client_lease(const struct session_client *client);
/* The epoch in which the process acts while the lease is valid; 0: it does not. */
uint64_t session_client_epoch(const struct session_client *client, const char *election);

/* Each takes the next, false: there is none. `metadata` is borrowed until the next call. An order
 * of request 0 expects no reply. */
bool session_client_next_event(struct session_client *client, struct session_event *ret);
bool session_client_next_renewal(struct session_client *client, uint64_t *ret_session,
                                 uint64_t *ret_request);
bool session_client_next_order(struct session_client *client, instant now,
                               struct session_order *ret);
instant session_client_deadline(const struct session_client *client); /* INSTANT_NEVER: none */

#endif
