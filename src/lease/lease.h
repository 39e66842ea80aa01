/* The lease core: one election over any store that can do "set if absent, with a lifetime,
 * atomically", as a pure function.
 *
 *                  input, now, random                    update
 *   replies  ──┐   ┌──────────────┐   ┌────────────┐   ┌─────────────────────────┐
 *   notices  ──┼──▶│ lease_input  │──▶│ lease_step │──▶│ lease to publish        │
 *   timers   ──┤   └──────────────┘   └────────────┘   │ commands, events        │
 *   user     ──┘                                       │ deadline                │
 *                                                      └─────────────────────────┘
 *
 * No I/O, no clock, no allocation, no randomness but the number that it is handed. What the caller
 * ("the driver") does with an update, in this order: it publishes the lease, void first; it sends
 * the commands; it tells the events; it comes back with LEASE_IN_TICK at the deadline.
 *
 * What keeps two leaders apart:
 *   - a lease is counted from the moment at which its request was *sent*, never from the answer,
 * and shortened by the drift factor (1 - rho) / (1 + rho);
 *   - at its end the node is a follower, whether or not the store ever answers;
 *   - void first: nothing that gives the lock up leaves before the lease is void;
 *   - a grant whose epoch is not above every epoch seen is given back, and reported;
 *   - a grant that comes too late, or to somebody who no longer wants it, is given back;
 *   - what was given back is never taken again: the release may still be on its way.
 */
#ifndef LEASE_LEASE_H
#define LEASE_LEASE_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEASE_MAX_S = 86400 };

struct lease_settings {
    span lease;          /* lifetime of the lock in the store (the seed: 30 s) */
    span renew_interval; /* how often a leader renews it (10 s) */
    span check_interval; /* how often a follower looks, even if nothing is to be expected (5 s) */
    span answer_timeout; /* a command without an answer by then has failed */
    span spread_each;    /* followers that could collide spread over this for each other one, */
    span spread_max;     /* at most over this (2 s); what is below a millisecond is none */
    uint32_t clock_drift_ppm;
};

/* The seed's times. */
void lease_settings_default(struct lease_settings *ret);
/* BATON_EUNSAFE, BATON_EINVAL: the inequality that fails, with its numbers. */
int lease_settings_check(const struct lease_settings *settings, struct baton_error *reterr);

enum lease_command_type {
    LEASE_TAKE,    /* set if absent; tells who has it otherwise */
    LEASE_LOOK,    /* tells who has it */
    LEASE_RENEW,   /* if it is still ours, in this epoch */
    LEASE_RELEASE, /* if it is still ours, in this epoch; nobody waits for the answer */
};

enum { LEASE_EPOCH_UNKNOWN = 0 };

struct lease_command {
    enum lease_command_type type;
    uint32_t request; /* comes back with the reply */
    /* RENEW, RELEASE: of the grant. RELEASE, LEASE_EPOCH_UNKNOWN: whatever a TAKE without an answer
     * may have got us; only for a driver that never asks under this id again, since it could reach
     * a later lock otherwise (others have the late answer as their occasion). TAKE: the new one
     * must be above this, also where the store thinks that the lock is ours already (an answer of
     * its was lost, or we gave it back). */
    uint64_t epoch;
};

enum lease_outcome {
    LEASE_GRANTED,   /* .epoch: taken, or renewed */
    LEASE_HELD,      /* by another: .epoch (0: not known), .left of its lifetime (0: none known) */
    LEASE_FREE,      /* nobody has it */
    LEASE_NOT_YET,   /* the store may have forgotten a lease: it gives none for .left */
    LEASE_NO_ANSWER, /* an error, a lost connection */
};

enum lease_input_type {
    LEASE_IN_TICK,
    LEASE_IN_REPLY,     /* .reply */
    LEASE_IN_RELEASED,  /* a notice: the lock was given up, or its holder is proved dead */
    LEASE_IN_TAKEN,     /* a notice: somebody has it now; .epoch */
    LEASE_IN_UP,        /* the store can be reached */
    LEASE_IN_DOWN,      /* it cannot: what was asked has no answer */
    LEASE_IN_ELIGIBLE,  /* .eligible: campaigns, or only looks */
    LEASE_IN_RESIGN,    /* give it up, and let others go first */
    LEASE_IN_LEAVE,     /* give it up for good */
    LEASE_IN_CONTENDERS /* .contenders: how many may collide, this one included */
};

struct lease_input {
    enum lease_input_type type;
    union {
        struct {
            uint32_t request;
            enum lease_outcome outcome;
            uint64_t epoch;
            span left;
        } reply;
        uint64_t epoch;
        span wait; /* RELEASED: somebody else is to ask first, and has so long for it */
        bool eligible;
        uint32_t contenders;
    };
};

enum lease_event_type {
    LEASE_EV_ACQUIRED,    /* .epoch */
    LEASE_EV_LOST,        /* .epoch, .loss */
    LEASE_EV_HOLDER,      /* who holds it has changed: .epoch (0: nobody, as far as is known) */
    LEASE_EV_JEOPARDY,    /* .left: the lease ends then unless it is renewed */
    LEASE_EV_STALE_EPOCH, /* .epoch was granted, but a higher one was seen before: given back */
};

enum lease_loss { LEASE_LOSS_EXPIRED, LEASE_LOSS_SUPERSEDED, LEASE_LOSS_RESIGNED };

struct lease_event {
    enum lease_event_type type;
    enum lease_loss loss;
    uint64_t epoch;
    span left;
};

/* One command that an input causes, and one that is due. Of events an answer causes most: the lock
 * was lost and taken anew, of which everybody hears, and that was so long ago that the end is near;
 * with a planted bug the end is over, and nobody leads. */
enum { LEASE_COMMANDS_MAX = 2, LEASE_EVENTS_MAX = 5 };

struct lease_update {
    bool held; /* is_leader() is true at an instant t if held && t < end */
    instant end;
    uint64_t epoch;
    struct lease_command commands[LEASE_COMMANDS_MAX];
    uint32_t command_count;
    struct lease_event events[LEASE_EVENTS_MAX];
    uint32_t event_count;
    instant deadline; /* INSTANT_NEVER: none */
};

/* The state; the caller's memory, its fields are the core's. */
struct lease {
    bool is_up;
    bool eligible;
    bool has_left;
    bool held;
    bool jeopardy_told;
    bool is_waiting;        /* for an answer */
    bool asks_again;        /* that answer may be out of date when it comes */
    uint32_t request;       /* the latest one of any kind */
    uint32_t asked_request; /* the one whose answer is waited for */
    uint32_t contenders;
    uint32_t failures; /* in a row */
    uint32_t endless;  /* looks in a row that found the lock held, and nothing left of it */
    instant end;
    uint64_t epoch;   /* of the lease held now, or held last */
    uint64_t highest; /* epoch seen */
    uint64_t holder;  /* epoch of whoever has the lock; 0: nobody known */
    instant sent;
    instant next; /* when to ask again */
};

/* `highest`: no epoch up to this one will be taken. */
void lease_init(struct lease *lease, bool eligible, uint64_t highest);
/* random: any number, a fresh one each time. */
void lease_step(struct lease *lease, const struct lease_settings *settings,
                const struct lease_input *input, instant now, uint64_t random,
                struct lease_update *ret);

#endif
