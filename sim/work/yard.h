/* A pool of workers in one thread: the real work_leader on up to three candidates, the real
 * work_worker on up to six workers, and everything that goes wrong around them.
 *
 *   profile.c    draws from the seed what kind of yard this is: settings, processes, faults
 *   wire.c       the queue of events; messages and requests in flight
 *   store.c      the provider's state: keys with revisions, lifetimes, watches; what it loses
 *   elections.c  who holds the pool's election and each worker's, and until when
 *   lookup.c     where items, keys, copies and elections are found
 *   process.c    a process: starts, stops, is cut off, dies; what happens to it
 *   leading.c    the driver of a work_leader            working.c  the driver of a work_worker
 *   copies.c     the copies of items that run, by true time
 *   clients.c    submissions, requests to cancel and to drain
 *   faults.c     the faults                             checks.c   the rules after every event
 *   goals.c      what must be reached without faults    trace.c    the story of the run
 *   play.c       the run: faults, then none
 *
 * True time is an int64_t of nanoseconds that no process can see. A copy runs from an instant of
 * true time to another one. Its worker's driver ends it before the worker's lease ends.
 */
#ifndef SIM_WORK_YARD_H
#define SIM_WORK_YARD_H

#include "sim/drift.h"
#include "sim/game.h"
#include "sim/random.h"
#include "sim/story.h"
#include "work/leader.h"
#include "work/mutants.h"
#include "work/worker.h"

#include <setjmp.h>
#include <uthash.h>

enum {
    YARD_CANDIDATES_MAX = 3,
    YARD_WORKERS_MAX = 6,
    YARD_PROCESSES_MAX = YARD_CANDIDATES_MAX + YARD_WORKERS_MAX,
    YARD_ITEMS_MAX = 32,
    YARD_SUBMISSIONS_MAX = 24,
    YARD_OF_SUBMISSION_MAX = 3,
    YARD_PLACINGS_MAX = 24, /* of one item that are kept */
    YARD_COPIES_MAX = 128,  /* that run, or whose end is not reported yet */
    YARD_EVENTS_MAX = 8192, /* scheduled at once */
    YARD_UNDO_MAX = 6,      /* the latest writes, which the store may take back */
    YARD_KEY_MAX = WORK_ID_MAX + 8,
    YARD_POOL = 0, /* number of the pool's election; that of a worker is its process's plus 1 */
    YARD_ELECTIONS = 1 + YARD_PROCESSES_MAX,
    YARD_NOBODY = -1,
};

#define YARD_UNIX_MS 1700000000000 /* that a true wall clock shows at the beginning */

/* ---- Planted bugs of the model; those of the core are in work/mutants.h ---------------------- */

/* X(name, description) */
#define YARD_MUTANTS(X)                                                                            \
    X(COPIES_OUTLIVE_LEASE, "a worker's driver does not end its copies before the lease ends")     \
    X(STOPPED_IS_DEAD, "the election takes a stopped worker for a dead one")                       \
    X(PUT_UNCONDITIONAL, "the store does not compare revisions")                                   \
    X(REVISION_TWICE, "a store that lost writes gives their revisions to others")                  \
    X(HEARD_NOT_PASSED_ON, "a new leader does not know which workers were heard before")

enum yard_mutant {
    YARD_MUTANT_NONE,
#define YARD_MUTANT_ENUM(name, text) YARD_MUTANT_##name,
    YARD_MUTANTS(YARD_MUTANT_ENUM)
#undef YARD_MUTANT_ENUM
        YARD_MUTANT_COUNT
};

extern _Thread_local enum yard_mutant yard_mutant;
#define YARD_MUTANT(name) (yard_mutant == YARD_MUTANT_##name)

/* ---- The profile ----------------------------------------------------------------------------- */

/* X(name, text) */
#define YARD_FAULTS(X)                                                                             \
    X(CRASH_WORKER, "crash-worker")                                                                \
    X(CRASH_LEADER, "crash-leader")                                                                \
    X(CRASH_ALL, "crash-all")                                                                      \
    X(STOP_WORKER, "stop-worker")                                                                  \
    X(STOP_LEADER, "stop-leader")                                                                  \
    X(CUT_WORKER, "cut-worker")                                                                    \
    X(CUT_LEADER, "cut-leader")                                                                    \
    X(DEPOSE, "depose")                                                                            \
    X(LEAVE, "leave")                                                                              \
    X(LOSE_DATA, "lose-data")                                                                      \
    X(ROLL_BACK, "roll-back")                                                                      \
    X(STALL, "stall")                                                                              \
    X(CLOCK_RATE, "clock-rate")                                                                    \
    X(WALL_CLOCK, "wall-clock")

enum yard_fault {
#define YARD_FAULT_ENUM(name, text) YARD_FAULT_##name,
    YARD_FAULTS(YARD_FAULT_ENUM)
#undef YARD_FAULT_ENUM
        YARD_FAULT_COUNT
};

struct yard_profile {
    const char *name;
    struct work_leader_options options; /* without epoch and random */
    span lease;                         /* of every election */
    size_t candidates, workers;
    size_t both;          /* processes that are candidates and workers */
    bool settings_differ; /* between processes, and between lives of one */
    bool walls_differ;    /* wall clocks show different times, and jump */
    bool may_forget;      /* the store is one that may lose data: its epochs are times */
    uint32_t events;      /* of the phase with faults */
    int64_t delay;        /* of a message, at least, in ns */
    int64_t jitter;       /* on top, at most */
    int64_t tail;         /* a straggler's, at most */
    int64_t lag;          /* of notices, at most */
    unsigned buckets;     /* in which items are */
    int64_t timeout;      /* of a request to the store */
    int64_t denial;       /* for which a leader acts on after its lease has ended, at most */
    int64_t down_time, halt_time, job_time; /* at most */
    int64_t drift_ppm;
    uint32_t loss_ppm, tail_ppm, twice_ppm;
    uint32_t proof_ppm; /* of deaths that are proved at once */
    uint32_t fail_ppm;  /* of attempts */
    uint32_t service_ppm, together_ppm;
    uint32_t slots; /* of each worker, at least */
    uint32_t job_weight;
    size_t services_max, items_max;
    uint32_t again_ppm; /* of what clients do: an earlier submission's items, submitted anew */
    uint32_t more_ppm;  /* of those: with a further item */
    uint32_t late_ppm;  /* of what leaders put: carried out long after it was given up */
    int64_t late;       /* how long after, at most */
    int64_t client_every, fault_every;
    uint32_t fault_weight[YARD_FAULT_COUNT];
    uint32_t fault_weight_sum;
};

/* ---- The state ------------------------------------------------------------------------------- */

/* Bytes that keys, requests and notices share. */
struct yard_value {
    size_t references;
    size_t bytes;
    uint8_t data[];
};

struct yard_key {
    struct yard_value *value;                /* NULL: it is not there */
    uint64_t revision;                       /* 0: it is not there */
    int64_t noticed_at[YARD_CANDIDATES_MAX]; /* the latest notice of it arrives */
    UT_hash_handle hh;
    char name[YARD_KEY_MAX];
};

/* A write that may be taken back: the key before it. */
struct yard_undo {
    struct yard_key *key;
    struct yard_value *value;
    uint64_t revision;
};

struct yard_store {
    struct yard_key *keys;
    uint64_t revision;
    int64_t stalled_until;
    struct yard_undo undo[YARD_UNDO_MAX];
    size_t undo_count;
    struct ledger *truth; /* as stored */
};

/* ---- What was submitted ---------------------------------------------------------------------- */

/* A placing that the store has had. */
struct yard_placing {
    uint64_t epoch, session;
    int process;
    bool has_begun, has_succeeded;
    bool is_blind;    /* its leader could not know of the copy that ran when it was sent */
    int64_t ended_at; /* its copy ended by itself; 0: it did not */
};

/* What the store has of an item. */
struct yard_stored {
    bool is_there;
    enum work_state state;
    uint64_t epoch, session;
    uint32_t failures;
    int process; /* PROCESSING: there */
    int64_t since_unix_ms;
};

struct yard_item {
    char id[24];
    unsigned bucket;
    int submission;
    enum work_kind kind;
    uint32_t weight, retries;
    bool is_unique, is_late; /* it outlasts its own timeout */
    bool needs_label, is_together;
    bool is_acked;     /* its submission is stored, and the store has lost nothing since */
    bool is_cancelled; /* and so is a request to cancel it */
    bool may_end;      /* somebody asked to cancel it or deleted its submission */
    bool is_unsure;    /* the store has lost what it had of it, or a part */
    bool is_doubtful;  /* the store took back a write about it */
    bool has_ended;    /* its end was stored */
    bool is_forgotten; /* its last submission was deleted after that: the id is free */
    bool is_parted;    /* a submission was, but perhaps another one came shortly before */
    uint32_t submitted, completed; /* how often */
    uint64_t epoch, session;       /* of the latest copy */
    int process;
    struct yard_stored stored;
    struct yard_placing placings[YARD_PLACINGS_MAX];
    size_t placing_count; /* ever */
};

struct yard_submission {
    char name[16];
    int items[YARD_OF_SUBMISSION_MAX];
    size_t count;
    bool is_deleted; /* by a client */
    struct yard_value *value;
};

/* ---- Copies ---------------------------------------------------------------------------------- */

struct yard_copy {
    bool is_used, is_running;
    bool is_success;
    int32_t code;
    int process;
    uint64_t life, session, epoch;
    uint64_t number; /* of its own, so that events for an earlier one are void */
    struct yard_item *item;
    int64_t began_at, began_unix_ms;
};

/* ---- Elections ------------------------------------------------------------------------------- */

struct yard_election {
    uint64_t epoch;  /* of the latest grant */
    int holder;      /* process, or YARD_NOBODY */
    uint64_t life;   /* of that process */
    bool is_leaders; /* a worker's election that the pool's leader holds */
    int64_t until;   /* the lease ends; INT64_MAX: it is renewed */
    uint64_t number; /* of the valid end */
    bool is_granting;
};

/* What a leader lists when it begins, after the mark of the ledger and in this order. */
enum yard_listed { YARD_LIST_BUCKETS, YARD_LIST_SUBMISSIONS };

/* What a leader watches: requests from the beginning, the rest once it has loaded. */
enum yard_watch { YARD_WATCH_REQUESTS, YARD_WATCH_SUBMISSIONS, YARD_WATCHES };

/* ---- Processes ------------------------------------------------------------------------------- */

/* What a candidate heard of a worker. */
struct yard_heard {
    uint64_t session, ledger;
    instant at;
};

struct yard_leading {
    struct work_leader *core; /* NULL: it does not lead, as far as it knows */
    uint64_t epoch;
    uint64_t number; /* of the core, so that replies to an earlier one are void */
    uint64_t change; /* of its ledger, as last looked at */
    int64_t tick_at; /* INT64_MAX: no tick is scheduled */
    bool is_watching[YARD_WATCHES];
    bool has_mark, is_loaded; /* it has read the ledger's mark; and all the rest */
    size_t under_way;         /* requests */
    bool is_entered[YARD_PROCESSES_MAX];
    struct yard_heard heard[YARD_PROCESSES_MAX];
};

struct yard_working {
    struct work_worker *core; /* NULL: it is down */
    uint64_t session;         /* as it knows; 0: none */
    int64_t session_end;      /* by its own clock, as true time; INT64_MAX: it is renewed */
    int64_t tick_at;
    bool is_leaving;
    uint32_t slots;
    bool has_label;
};

struct yard_process {
    int number;
    bool is_candidate, is_worker;
    bool is_up;
    uint64_t life;
    struct work_leader_options options; /* of this life */
    struct drift_clock clock;
    int64_t wall_offset_ms; /* of its wall clock */
    int64_t started_at, stopped_until, cut_until;
    int64_t lag; /* of notices, at most */
    struct yard_leading leading;
    struct yard_working working;
};

/* ---- Events ---------------------------------------------------------------------------------- */

enum yard_event_kind {
    YARD_LEADER_TICK,
    YARD_WORKER_TICK,
    YARD_TO_LEADERS,  /* .letter reaches a candidate */
    YARD_TO_WORKER,   /* .letter reaches a worker */
    YARD_REQUEST,     /* .request reaches the store */
    YARD_REPLY,       /* to .request reaches the leader; .code, .value, .revision */
    YARD_NOTICE,      /* of a changed key reaches the leader; .value, .revision */
    YARD_EXPIRE,      /* .key ends its lifetime, if it is at .revision */
    YARD_GRANT,       /* .election gets a holder */
    YARD_ELECTED,     /* its holder hears of it; .epoch */
    YARD_EPOCH,       /* a leader hears the epoch of a worker's election; .epoch, .is_ours */
    YARD_RELEASE,     /* .election is given up in .epoch */
    YARD_LEASE_END,   /* .election; .number */
    YARD_JEOPARDY,    /* a worker that cannot renew its lease gives its session up; .epoch */
    YARD_RUNS_ON,     /* copies up to .number have had the time to end */
    YARD_SESSION_END, /* a worker's lease ends by its own clock; .epoch */
    YARD_DEPOSED,     /* a leader learns that it leads no more; .epoch */
    YARD_REACHABLE,   /* a process goes on, or is no longer cut off */
    YARD_START,       /* a process that was down starts */
    YARD_QUIT,        /* a worker that is about to leave waits no longer */
    YARD_COPY_END,    /* .copy ends by itself; .number */
    YARD_COPY_HALTED, /* .copy ends because it was to; .number */
    YARD_COPY_TOLD,   /* its worker hears that .copy has ended; .number */
    YARD_CLIENT,
    YARD_FAULT,
};

enum yard_request {
    YARD_PUT,
    YARD_READ,
    YARD_LIST,  /* .revision: enum yard_listed */
    YARD_WATCH, /* .revision: enum yard_watch */
};

/* A message, shared by those who get it. */
struct yard_letter {
    size_t references;
    struct work_message message;
};

struct yard_event {
    int64_t at;
    uint64_t rank; /* equal times: first in, first out */
    enum yard_event_kind kind;
    int process;   /* number, or YARD_NOBODY */
    uint64_t life; /* of it; 0: any */
    uint64_t number;
    uint64_t epoch;
    int election;
    int copy;
    bool is_ours, has_reply;
    enum yard_request request;
    int code;
    struct yard_key *key;
    struct yard_value *value;   /* a reference */
    struct yard_letter *letter; /* a reference */
    uint64_t revision;
    span lifetime;
    int64_t timeout_at;
};

/* ---- The run --------------------------------------------------------------------------------- */

enum { YARD_COUNT_COPIES, YARD_COUNT_ENDED, YARD_COUNT_CRASHES, YARD_COUNT_LEADERS };

struct yard {
    struct options options;
    struct yard_profile profile;
    struct random random;
    struct random late; /* of what is late */
    int64_t now;
    size_t process_count;
    struct yard_process processes[YARD_PROCESSES_MAX];
    struct yard_election elections[YARD_ELECTIONS];
    struct yard_store store;
    struct yard_item items[YARD_ITEMS_MAX];
    size_t item_count;
    struct yard_submission submissions[YARD_SUBMISSIONS_MAX];
    size_t submission_count;
    struct yard_copy copies[YARD_COPIES_MAX];
    uint64_t copy_number;
    struct yard_event queue[YARD_EVENTS_MAX]; /* a heap */
    size_t queued;
    uint64_t ranks;
    struct yard_event event; /* that happens now */
    struct buffer buffer;
    struct work_leader *rebuilt; /* without a ledger, at the end */
    bool is_broken;              /* an invariant of a core failed */
    bool is_calm;
    bool has_lost;      /* the store has lost data in this run, all or some */
    bool is_forgetting; /* and does so now */
    bool has_deleted;   /* a submission was deleted while the ledger was rebuilt */
    char missing[96];   /* the goal that is not reached */
    int64_t spun_at;
    uint32_t spins; /* ticks at one instant */
    struct story story;
    jmp_buf violated;
    struct result result;
};

#endif
