/* One election on one server in one thread: real lease cores under a virtual clock, a model of
 * Redis, and everything that goes wrong between them.
 *
 *   profile.c    draws from the seed what kind of contest this is: settings, contenders, faults
 *   server.c     the server: its keys, the scripts of src/provider/redis/scripts.c, its lives
 *   contender.c  a process: the driver's contract of lease.h, as src/provider/redis keeps it
 *   wire.c       the queue of events; requests, replies and notices in flight
 *   faults.c     the faults                           checks.c  the rules after every event
 *   leading.c    which contender leads                trace.c   the story of the run
 *   play.c       the run: faults, then none, then a crash or a resignation
 *
 * True time is an int64_t of nanoseconds that no contender can see.
 */
#ifndef SIM_LEASE_CONTEST_H
#define SIM_LEASE_CONTEST_H

#include "lease/lease.h"
#include "lease/mutants.h"
#include "sim/drift.h"
#include "sim/game.h"
#include "sim/random.h"
#include "sim/story.h"

#include <setjmp.h>

enum {
    CONTENDERS_MAX = 7,
    CONTEST_EVENTS_MAX = 4096, /* scheduled at once */
    CONTEST_WRITES_KEPT = 16,  /* the latest writes of the server */
    CONTEST_REQUESTS_KEPT = 64,
    NOBODY = 0, /* as the id of a process: none */
    CONTEST_ASKS_KEPT = 64,
};

/* ---- Planted bugs of the model; those of the core are in lease/mutants.h --------------------- */

/* X(name, description) */
#define CONTEST_MUTANTS(X)                                                                         \
    X(TAKE_NOT_EXCLUSIVE, "take does not check whether a process has the lock")                    \
    X(LIFETIME_HALVED, "the lock lives for half the lease only")                                   \
    X(RENEW_ANYBODYS, "a renewal does not check whose lock it is")                                 \
    X(RELEASE_ANYBODYS, "a release does not check whose lock it is")                               \
    X(RELEASE_ANY_EPOCH, "a release does not check the epoch")                                     \
    X(NO_WAIT_AFTER_LOSS, "a server that may have forgotten a lease gives one at once")            \
    X(WAITS_ASKERS_LEASE,                                                                          \
      "such a server waits for the lease of the asking process, not the longest")                  \
    X(RECORD_HAS_NO_LONGEST, "the max-lease of the last leader in the record is ignored")          \
    X(REPLICA_COUNTS_FROM_START, "a replica without a record waits from its start on only")        \
    X(PEER_FOLLOWED_AT_ONCE, "a lock that ran out is taken although its holder may renew it late") \
    X(LEADER_NOT_RESTORED, "a leader whose lock the server lost is refused its renewal")           \
    X(RESTORED_AFTER_ANOTHER, "a late renewal gets the lock although another one led since")       \
    X(RESTORED_AFTER_RELEASE, "a late renewal gets the lock although it was released")             \
    X(OWN_LOCK_UNQUESTIONED,                                                                       \
      "a lock that an older copy of the data calls ours is given without a wait")                  \
    X(UPTIME_AT_ITS_WORD, "the server's uptime is used without subtracting a second")              \
    X(EPOCH_NOT_KEPT, "the epoch is the time alone; the epoch before it is not checked")           \
    X(EPOCH_WITHOUT_TIME, "the epoch is a counter alone: a server without data begins anew")       \
    X(PROCESS_FOR_HISTORY,                                                                         \
      "a server is recognised by its process, not by the history of its data")                     \
    X(RENEWAL_IGNORES_HISTORY, "after a renewal, a server goes on waiting")                        \
    X(ID_KEPT, "a process that starts anew has the id of the earlier process")                     \
    X(GUARDIAN_TOO_EARLY, "a guardian releases for a process that is only paused")

#define CONTEST_ALL_MUTANTS(CORE, MODEL) LEASE_MUTANTS(CORE) CONTEST_MUTANTS(MODEL)

enum contest_mutant {
    CONTEST_MUTANT_NONE,
#define CONTEST_MUTANT_ENUM(name, text) CONTEST_MUTANT_##name,
    CONTEST_MUTANTS(CONTEST_MUTANT_ENUM)
#undef CONTEST_MUTANT_ENUM
        CONTEST_MUTANT_COUNT
};

extern _Thread_local enum contest_mutant contest_mutant;
#define CONTEST_MUTANT(name) (contest_mutant == CONTEST_MUTANT_##name)

/* ---- The profile ----------------------------------------------------------------------------- */

/* X(name, text) */
#define CONTEST_FAULTS(X)                                                                          \
    X(CRASH, "crash")                                                                              \
    X(CRASH_LEADER, "crash-leader")                                                                \
    X(PAUSE, "pause")                                                                              \
    X(PAUSE_LEADER, "pause-leader")                                                                \
    X(CUT, "cut")                                                                                  \
    X(CUT_LEADER, "cut-leader")                                                                    \
    X(DISCONNECT, "disconnect")                                                                    \
    X(RESIGN, "resign")                                                                            \
    X(LEAVE, "leave")                                                                              \
    X(CORDON, "cordon")                                                                            \
    X(STALL, "stall")                                                                              \
    X(RESTART, "restart")                                                                          \
    X(FORGET, "forget")                                                                            \
    X(OLD_COPY, "old-copy")                                                                        \
    X(FAILOVER, "failover")                                                                        \
    X(FOREIGN, "foreign")                                                                          \
    X(REPLICA, "replica")                                                                          \
    X(CLOCK_RATE, "clock-rate")                                                                    \
    X(CLOCK_BACK, "clock-back")

enum contest_fault {
#define CONTEST_FAULT_ENUM(name, text) CONTEST_FAULT_##name,
    CONTEST_FAULTS(CONTEST_FAULT_ENUM)
#undef CONTEST_FAULT_ENUM
        CONTEST_FAULT_COUNT
};

struct contest_profile {
    const char *name;
    struct lease_settings settings; /* of each life; if is_mixed, the lower bound */
    struct lease_settings most;     /* if is_mixed, the upper bound */
    span pace;                      /* of faults: one of the two leases */
    span max_lease;                 /* of all contenders, unless max_leases_differ */
    bool is_mixed;                  /* each life has settings of its own */
    bool max_leases_differ;         /* each life has a max-lease of its own, too */
    size_t contenders;
    uint32_t events;   /* of the phase with faults */
    int64_t delay;     /* of a message, at least, in ns */
    int64_t jitter;    /* on top, at most */
    int64_t tail;      /* a straggler's, at most */
    int64_t lateness;  /* of a tick, and of a command after its step, at most */
    int64_t reconnect; /* between two tries, at most */
    int64_t down_time; /* of a process or of the server, at most */
    int64_t
        visitor_interval; /* a visitor renews with GET and EXPIRE, at most so far apart; 0: never */
    int64_t skew;         /* between the clocks of two servers, at most */
    int64_t drift_ppm;    /* the real bound of clocks; above the declared one with --break-drift */
    bool drifts_widely;   /* clocks run at the bound, not anywhere within it */
    bool hangs_up;        /* a connection without a reply in time is closed, as the provider does */
    uint32_t loss_ppm, tail_ppm, notice_loss_ppm;
    uint32_t guardian_ppm; /* chance of a guardian that releases, for each death */
    int64_t fault_every;
    uint32_t fault_weight[CONTEST_FAULT_COUNT];
    uint32_t fault_weight_sum;
};

/* ---- The server ------------------------------------------------------------------------------ */

/* The keys NAME:master and NAME:epoch. Times are the server's, in milliseconds. */
struct contest_keys {
    uint64_t master;  /* NOBODY: no such key */
    int64_t until_ms; /* its last millisecond; INT64_MAX: it has no lifetime */
    uint64_t epoch;   /* 0: no such field, nor `holder` */
    uint64_t holder;
    uint64_t history; /* 0: no such field ("server"), nor `since` */
    int64_t since_ms;
    int64_t foreign_ms; /* end of a foreign peer's lock, as last seen; 0: no such field */
    int64_t most_ms;    /* max-lease of the last process that got it; 0: no such field */
};

struct contest_server {
    struct drift_clock clock; /* its wall clock */
    bool is_up;
    uint64_t boot; /* messages to an earlier boot are lost */
    uint64_t process, other_process;
    uint64_t history; /* name of its data's history: a new one with each start and promotion */
    int64_t started_s;
    bool was_promoted;
    int64_t stalled_until;
    bool visitor_renews; /* the visitor has read its id, and sends EXPIRE next */
    struct contest_keys keys;
    struct contest_keys written[CONTEST_WRITES_KEPT]; /* the keys after each write */
    uint64_t writes;
};

struct contest_request {
    enum lease_command_type type;
    uint32_t request;
    uint64_t epoch;
    uint64_t id;             /* of the process */
    uint64_t history;        /* RENEW: of the server's data, from the greeting */
    uint64_t heir;           /* RELEASE: the process that shall get it next, or NOBODY */
    int64_t ttl_ms, most_ms; /* TAKE, RENEW: its lease and its max-lease */
    int64_t interval_ms; /* TAKE: of a foreign peer that renews in two commands; 0: there is none */
};

/* ---- Events ---------------------------------------------------------------------------------- */

enum contest_event_kind {
    CONTEST_TICK,     /* .number: of the tick; an older one is void */
    CONTEST_CONNECT,  /* a greeting reaches the server */
    CONTEST_UP,       /* its reply reaches the process; .number: the history */
    CONTEST_DOWN,     /* the process notices that its connection is gone */
    CONTEST_OVERDUE,  /* .number: a request whose reply is overdue */
    CONTEST_REQUEST,  /* .request reaches the server */
    CONTEST_REPLY,    /* .input reaches the process */
    CONTEST_RELEASED, /* a notice: .number: the releasing process, .heir */
    CONTEST_TAKEN,    /* a notice: .number: the epoch */
    CONTEST_GUARDIAN, /* .request of a guardian reaches the server */
    CONTEST_START,    /* a process that was down starts */
    CONTEST_SERVER_UP,
    CONTEST_EXPIRE, /* a visitor renews; .number: when it read its id */
    CONTEST_FAULT,
};

struct contender;

struct contest_event {
    int64_t at;
    uint64_t order; /* equal times: first in, first out */
    enum contest_event_kind kind;
    struct contender *who;
    uint64_t id;         /* of the process that takes it; NOBODY: any */
    uint64_t connection; /* that it belongs to */
    uint64_t boot;       /* server that it was sent to */
    uint64_t number;
    uint64_t heir;
    union {
        struct contest_request request;
        struct lease_input input;
    };
};

/* ---- Contenders ------------------------------------------------------------------------------ */

struct contender {
    unsigned number; /* 1, 2, … */
    bool is_up;
    bool is_leaving;
    uint64_t id; /* of this process; each process has another */
    struct drift_clock clock;
    struct lease_settings settings; /* of this life */
    span max_lease;
    struct lease lease;
    struct lease_update update; /* of the latest step, as published */
    uint64_t tick;              /* number of the valid tick */
    int64_t paused_until;
    int64_t cut_until; /* no message gets through, in one direction or both: */
    bool is_mute, is_deaf;

    bool is_connected;
    uint64_t connection;       /* the latest connection or attempt */
    uint64_t boot;             /* of the server at its other end */
    uint64_t history;          /* of its data, as of the greeting */
    int64_t last_out, last_in; /* arrivals on a connection are in order */
    int64_t pause;             /* before the next attempt */
    bool is_asking_for_it;     /* the outstanding request is a TAKE */
    uint64_t outstanding;      /* request without a reply; 0: none */
    uint64_t heir;             /* while it resigns */

    /* The memory of the checks. */
    int64_t sent_at[CONTEST_REQUESTS_KEPT]; /* true time, by request */
    int64_t covered_until;                  /* true time until which the lock surely lives */
    uint64_t covered_epoch;
    bool leads; /* as its events say */
    bool is_cordoned;
    int64_t asked_at[CONTEST_ASKS_KEPT]; /* without a cause */
    uint64_t asks;
};

/* ---- The run --------------------------------------------------------------------------------- */

enum { CONTEST_COUNT_ACQUIRED, CONTEST_COUNT_SERVED, CONTEST_COUNT_CRASHES, CONTEST_COUNT_LOSSES };

struct contest {
    struct options options;
    struct contest_profile profile;
    struct random random;
    struct contest_server server;
    struct contender contenders[CONTENDERS_MAX];
    struct contest_event queue[CONTEST_EVENTS_MAX];
    size_t queued;
    uint64_t order;
    struct story story;
    int64_t now;
    int64_t wall_base; /* what a perfect wall clock shows at true time 0 */
    uint64_t ids, connections, histories;
    bool is_calm;
    uint64_t highest_epoch; /* ever acquired */
    uint64_t losses;        /* leaderships that ended */
    jmp_buf violated;
    struct result result;
};

#endif
