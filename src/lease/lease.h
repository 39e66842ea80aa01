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
 * It has no I/O, no clock, no allocation, and no randomness but the number that it is given. The
 * caller ("the driver") handles an update in this order: it publishes the lease, void first; it
 * sends the commands; it passes on the events; it comes back with LEASE_IN_TICK at the deadline.
 *
 * These rules keep two processes from leading at once (docs/lease.md proves it):
 *   - a lease is counted from the moment at which its request was *sent*, never from the reply, and
 *     shortened by the drift factor (1 - rho) / (1 + rho);
 *   - at its end the process is a follower, whether or not the store ever replies;
 *   - a command that gives the lock up leaves after the lease is void;
 *   - a grant whose epoch is not above every epoch seen is given back, and reported;
 *   - a grant that arrives too late, or after the process no longer wants it, is given back;
 *   - an epoch that was given back is never taken again: its release may still be in the network.
 */
#ifndef LEASE_LEASE_H
#define LEASE_LEASE_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEASE_MAX_S = 86400 };

/* Spans of nanoseconds by the process's own clock. The defaults are the seed's. */
struct lease_settings {
    /* Lifetime of the lock in the store: 1 ms to a day, 30 s by default. Lower: a leader that hangs
     * or is cut off is replaced sooner, but a shorter outage of the store ends a leadership. */
    span lease;
    /* How often a leader renews, 10 s by default. Lower: more failed renewals in a row are
     * survived, for more commands. Must fit twice into the lease that is left after drift. */
    span renew_interval;
    /* How often a follower looks if it expects no change, 5 s by default. It asks when the lock
     * ends and at each release anyway; lower values only help where notices are lost, or other
     * programs write the key. */
    span check_interval;
    /* A command without a reply by then has failed, and is repeated. Lower: a lost command is
     * repeated sooner. It should exceed the slowest round trip to the store. */
    span answer_timeout;
    /* Followers that may ask at once spread over this time for each other contender, at most over
     * spread_max; a spread below a millisecond is none. Higher: less load on the store when a lock
     * ends; the next leader comes later. */
    span spread_each;
    span spread_max;
    /* rho, in 10^-6: no clock, the store's included, runs faster or slower than true time by more.
     * Higher: tolerates worse clocks, for a shorter lease. Too low: two processes may lead. */
    uint32_t clock_drift_ppm;
};

void lease_settings_default(struct lease_settings *ret);
/* BATON_EUNSAFE, BATON_EINVAL: the inequality that fails, with its numbers. */
int lease_settings_check(const struct lease_settings *settings, struct baton_error *reterr);

enum lease_command_type {
    LEASE_TAKE,    /* set if absent; the reply to a failure names the holder */
    LEASE_LOOK,    /* the reply names the holder */
    LEASE_RENEW,   /* if the lock is still ours, in this epoch */
    LEASE_RELEASE, /* if the lock is still ours, in this epoch; the core expects no reply */
};

enum { LEASE_EPOCH_UNKNOWN = 0 };

struct lease_command {
    enum lease_command_type type;
    uint32_t request; /* comes back with the reply */
    /* RENEW, RELEASE: the epoch of the grant.
     * RELEASE with LEASE_EPOCH_UNKNOWN: releases the lock that a TAKE without a reply may have got.
     * Only a driver that never uses this id again may send it, since it could release a later lock;
     * other drivers release when the late reply arrives.
     * TAKE: the new epoch must be above this one, even if the lock is ours according to the store
     * (a reply was lost, or our release has not arrived). */
    uint64_t epoch;
};

enum lease_outcome {
    LEASE_GRANTED, /* .epoch: taken, or renewed */
    LEASE_HELD,    /* by another process: .epoch (0: unknown), .left of its lifetime (0: unknown) */
    LEASE_FREE,    /* no process has it */
    LEASE_NOT_YET, /* the store may have forgotten a lease: it gives none before .left is over */
    LEASE_NO_ANSWER, /* an error, a lost connection */
};

enum lease_input_type {
    LEASE_IN_TICK,
    LEASE_IN_REPLY,     /* .reply */
    LEASE_IN_RELEASED,  /* a notice: the lock was given up, or its holder is proved dead; .wait */
    LEASE_IN_TAKEN,     /* a notice: a process has taken the lock; .epoch */
    LEASE_IN_UP,        /* the store is connected */
    LEASE_IN_DOWN,      /* it is not: no reply comes to the command under way */
    LEASE_IN_ELIGIBLE,  /* .eligible: takes the lock if it is free, or only looks */
    LEASE_IN_RESIGN,    /* give the lock up, and let other processes ask first */
    LEASE_IN_LEAVE,     /* give the lock up for good */
    LEASE_IN_CONTENDERS /* .contenders: how many processes contend, this one included */
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
        span wait; /* RELEASED: another process shall ask first, within this time */
        bool eligible;
        uint32_t contenders;
    };
};

enum lease_event_type {
    LEASE_EV_ACQUIRED, /* .epoch */
    LEASE_EV_LOST,     /* .epoch, .loss */
    LEASE_EV_HOLDER,   /* another holder: .epoch (0: no process holds the lock, as far as known) */
    LEASE_EV_JEOPARDY, /* .left: the lease ends after that unless it is renewed */
    LEASE_EV_STALE_EPOCH, /* .epoch was granted below a higher one seen before: given back */
};

enum lease_loss { LEASE_LOSS_EXPIRED, LEASE_LOSS_SUPERSEDED, LEASE_LOSS_RESIGNED };

struct lease_event {
    enum lease_event_type type;
    enum lease_loss loss;
    uint64_t epoch;
    span left;
};

/* Worst case: an input causes one command, and another is due. One reply yields LOST, ACQUIRED,
 * HOLDER, JEOPARDY, and with a planted bug LOST again. */
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

/* The state: the caller owns the memory, and only the core uses the fields. */
struct lease {
    bool is_up;
    bool eligible;
    bool has_left;
    bool held;
    bool jeopardy_reported;
    bool is_waiting;        /* for a reply */
    bool asks_again;        /* the reply may be out of date when it arrives */
    uint32_t request;       /* number of the latest command of any kind */
    uint32_t asked_request; /* number of the command that waits for its reply */
    uint32_t contenders;
    uint32_t failures; /* in a row */
    uint32_t endless;  /* looks in a row that found a held lock with no lifetime left */
    instant end;
    uint64_t epoch;   /* of the lease that is held, or was held last */
    uint64_t highest; /* the highest epoch seen */
    uint64_t holder;  /* epoch of the process that has the lock; 0: none known */
    instant sent;
    instant next; /* when to ask again */
};

/* `highest`: the core takes no epoch up to this one. */
void lease_init(struct lease *lease, bool eligible, uint64_t highest);
/* `random`: a fresh random number in each call. */
void lease_step(struct lease *lease, const struct lease_settings *settings,
                const struct lease_input *input, instant now, uint64_t random,
                struct lease_update *ret);

#endif
