/* The pool's state, for the files that work on it; not for others.
 *
 *   status.c       the leader's status, for whoever asks
 *   work.c         this process's worker: its session and copies
 *   checkpoint.c   what attempts store for the next one
 *   contend.c      workers' elections, in which the leader waits for ends
 *   lead.c         this process as the leader: keys and messages
 *   reports.c      what workers report
 *   request.c      reads and writes of the pool's keys
 *   pool.c         opening, time, closing; what they share
 */
#ifndef POOL_POOL_INT_H
#define POOL_POOL_INT_H

#include "member/candidacy.h"
#include "pool/heard.h"
#include "pool/pool.h"

struct feed;
struct request;   /* request.c */
struct batch;     /* request.c */
struct unread;    /* reports.c */
struct lead;      /* lead.c */
struct contender; /* contend.c */
struct worker;    /* work.c */

struct pool {
    struct member *member;
    struct pool_calls calls;
    struct work_leader_options leader_options;
    uv_timer_t timer;
    bool is_ticking;          /* within its callback */
    struct request *requests; /* that wait for their replies */
    struct batch *gathered;   /* of them, those that were not asked yet; or NULL */
    instant complained;       /* when an error was told last */
    instant wait_told;        /* the same of a failed election that has to wait */

    struct candidacy leadership;
    struct feed *reports;  /* the channel to the leader, if this process may lead */
    struct unread *unread; /* reports (reports.c) */
    size_t unread_bytes;
    instant read_at; /* INSTANT_NEVER: there are none */
    struct heard *heard;
    struct lead *lead; /* NULL: this process does not lead */
    uint64_t leads;    /* its leaderships so far, and the tag of their requests */
    struct contender *contenders;

    struct worker *worker; /* NULL: it runs nothing */

    unsigned open; /* what has not ended yet, of a pool that closes */
    bool is_closing;
    void (*closed)(void *userdata);
    void *closed_userdata;
    char name[POOL_NAME_MAX + 1];
};

/* ---- pool.c ---------------------------------------------------------------------------------- */

/* Read once for each step. */
struct moment {
    instant now;
    int64_t unix_ms; /* by the wall clock: for people, and for what is kept for days */
};
struct moment pool_now(void);

/* Sets the timer for what is due next. */
void pool_rearm(struct pool *pool);
void pool_tell(struct pool *pool, const struct pool_event *event);
/* Tells of an error that may come a thousand times a second: but not that often. */
void pool_complain(struct pool *pool, const struct baton_error *error);
/* Tells of an election that failed because all have to wait; no more often either. */
void pool_tell_wait(struct pool *pool, const struct baton_event *event);
/* Sends a message on "work/POOL/NAME", or (NULL) on "work/POOL". It may be lost: reports show that.
 */
void pool_publish(struct pool *pool, const char *name, const void *data, size_t bytes);
/* Gives the leadership up, and campaigns again. */
void pool_resign(struct pool *pool);
/* Something that a closing pool waits for has ended. */
void pool_release(struct pool *pool);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Borrowed during the call. */
struct reply {
    int code;
    const struct baton_error *error; /* of a failure */
    uint64_t revision;               /* of the key */
    const void *data;                /* of a read; NULL: the key is absent */
    size_t bytes;                    /* of that; of a write or message, what was sent */
};

/* `key` and `tag` are those of the request. */
typedef void (*reply_cb)(struct pool *pool, const char *key, uint64_t tag,
                         const struct reply *reply);

/* Keys without "work/POOL/". `done` comes exactly once, perhaps before this returns, and also if
 * nothing could be asked; not after requests_drop(). */
void request_get(struct pool *pool, const char *key, uint64_t tag, reply_cb done);
/* The same, but asked by requests_flush(), many at once. */
void request_gather(struct pool *pool, const char *key, uint64_t tag, reply_cb done);
void requests_flush(struct pool *pool);
/* As store_put(). */
void request_put(struct pool *pool, const char *key, uint64_t tag, const void *data, size_t bytes,
                 uint64_t revision, span lifetime, reply_cb done);
/* A message on "work/POOL/NAME". */
void request_publish(struct pool *pool, const char *name, uint64_t tag, const void *data,
                     size_t bytes, reply_cb done);
void requests_drop(struct pool *pool);

/* ---- reports.c ------------------------------------------------------------------------------- */

/* A message on the leader's channel. */
void reports_take(struct pool *pool, const void *data, size_t bytes);
/* Reads so many of those that wait, if this process does not lead. */
void reports_read(struct pool *pool, size_t most);
void reports_tick(struct pool *pool, instant now);
void reports_drop(struct pool *pool);

/* ---- lead.c ---------------------------------------------------------------------------------- */

void lead_begin(struct pool *pool, uint64_t epoch);
/* Each of these does nothing if this process does not lead. */
void lead_end(struct pool *pool);
void lead_hear(struct pool *pool, const struct work_message *message);
void lead_session(struct pool *pool, const char *worker, uint64_t epoch, bool is_ours);
void lead_tick(struct pool *pool);
instant lead_deadline(const struct pool *pool);

/* ---- status.c -------------------------------------------------------------------------------- */

/* Replies until feed_stop(*ret). BATON_ENOMEM, or what the provider says. */
int status_serve(struct feed **ret, struct pool *pool, struct baton_error *reterr);

/* ---- contend.c ------------------------------------------------------------------------------- */

void contend_enter(struct pool *pool, const char *worker);
void contend_leave(struct pool *pool, const char *worker);
void contend_leave_all(struct pool *pool);
/* Tries again what failed. */
void contend_tick(struct pool *pool, instant now);
instant contend_deadline(const struct pool *pool); /* INSTANT_NEVER: none */

/* ---- work.c ---------------------------------------------------------------------------------- */

/* A copy of an item in this process. */
struct copy {
    struct work_item *item; /* a reference */
    uint64_t epoch;
    uint32_t attempt;
    uint64_t serial; /* of all copies here: the tag of its requests */
    bool is_started; /* on_start was called */
    bool is_halted;  /* so was on_halt, */
    instant halt_by; /* with this deadline */

    /* Its checkpoint (checkpoint.c). */
    uint64_t revision; /* 0: none */
    instant read_at;   /* after a failure; INSTANT_NEVER: nothing failed */
    uint8_t *storing;  /* the value that is being stored; NULL: none */
    size_t storing_bytes;
    provider_done_cb done;
    void *userdata;
    UT_hash_handle hh;
    char id[WORK_ID_MAX];
};

/* BATON_ENOMEM, or what the provider says. */
int worker_begin(struct pool *pool, const struct pool_config *config, struct baton_error *reterr);
/* Leaves its election, of a pool that closes; pool_release() follows. NULL allowed. */
void worker_end(struct pool *pool);
void worker_free(struct worker *worker); /* NULL allowed */
void worker_tick(struct pool *pool);
instant worker_deadline(const struct pool *pool);

bool worker_is_named(const struct worker *worker, const char *name);
/* Tells the leader in this process which sessions of the worker are over. */
void worker_tell_lead(struct pool *pool);

/* The copy of this item, begun or about to; NULL: there is none. */
struct copy *worker_copy(const struct pool *pool, const char *id);
void worker_start(struct pool *pool, struct copy *copy, const void *checkpoint, size_t bytes);
/* By the deadline of all that is halted now. */
void worker_halt(struct pool *pool, struct copy *copy);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

/* Reads it at the next requests_flush(), and then starts the copy. */
void checkpoint_read(struct pool *pool, const struct copy *copy);
/* The copy has ended: a checkpoint that is being stored gets its reply. */
void checkpoint_drop(struct copy *copy);

#endif
