/* The owners' state, which the files of owners.h work on; not for others.
 *
 *   owners.c        follows `owners` and the state; the queue; the calls from outside
 *   owned.c         one worker: its election, when its link is opened and closed
 *   owned_list.c    one worker: what its link sends
 *   owned_report.c  one worker: what its link tells, published
 *
 * Events only note what has changed and queue the worker; the queue is worked off once in a turn of
 * the loop. But a link is closed at once.
 */
#ifndef FLEET_WORKERS_OWNERS_INT_H
#define FLEET_WORKERS_OWNERS_INT_H

#include "fleet/workers/claim.h"
#include "fleet/workers/link.h"
#include "fleet/workers/owners.h"
#include "fleet/workers/publish.h"
#include "fleet/workers/table.h"
#include "member/candidacy.h"
#include "member/feed.h"

#include <uthash.h>

struct owned {
    UT_hash_handle hh;
    struct owners *owners;
    struct owned *next_queued;
    struct owned *prev, *next; /* in the line for a slot */
    struct candidacy candidacy;
    struct link *link; /* NULL: closed */
    struct claim claim;
    uint64_t epoch;   /* of this process's leadership; 0: it does not lead */
    instant begin_at; /* of campaigning, once it is wanted */
    instant ask_at;   /* next, of asking for it */
    instant asked_at; /* the first has, by name */
    bool is_listed;   /* `owners` has the worker */
    bool is_named;    /* and names this process; */
    bool is_wanted;   /* so did the latest `owners` that was read to its end */
    bool is_queued;
    bool is_link_closing;
    bool is_moved;    /* to another address since it leads: it needs a later epoch */
    bool is_draining; /* leadership is about to go */
    bool is_held;     /* the draining waits for the link's end */
    bool has_slot;    /* it is being given up; */
    bool is_in_line;  /* or it is to be, and waits for a slot */
    bool is_dirty;    /* its list has to be made again */
    bool has_other;   /* since something beside `assigned` has changed */
    char first[BATON_NAME_MAX];
    char worker[WORKER_ID_MAX + 1];
};

struct owners {
    struct owners_config config;
    char *process, *token;
    struct owned *all;
    struct owned *queue;
    struct owned *line; /* for slots: the first one is next */
    unsigned slots_taken;
    size_t leading;
    struct fleet_observer observer;
    struct publisher responses, events, asks;
    struct feed *heard;     /* asks of others */
    uv_timer_t timer, soon; /* what is tried again; the queue */
    uint64_t connections;   /* of all links so far */
    bool is_following;      /* `owners` has been read */
    bool is_closing;
    unsigned handles; /* not closed yet */
    void (*closed)(void *userdata);
    void *userdata;
};

/* ---- owned.c --------------------------------------------------------------------------------- */

/* Does what is to be done next for this worker. False: nothing keeps it any more. */
bool owned_settle(struct owned *owned, instant now);
/* The worker itself has changed: it may have another address, or be gone; then the one that is
 * connected gets an empty list. */
void owned_look(struct owned *owned);

/* The claim's. */
void owned_claimed(struct claim *claim);

/* ---- owned_list.c ---------------------------------------------------------------------------- */

/* Whether the worker was deleted, or is at another address than the link, which is open. */
bool owned_is_left(const struct owned *owned);
/* Makes the list from the state anew; it is sent if it has changed. The link is open. */
void owned_refresh(struct owned *owned);
/* Calls of the link. */
char *owned_list(void *userdata);
void owned_display(void *userdata, const char *display, struct session_id *ret_session,
                   enum stage *ret_stage);

/* ---- owned_report.c -------------------------------------------------------------------------- */

/* Tells the program and, by worker:events, all processes; steals fields. */
void owned_tell(void *userdata, const char *name, json_t *fields);
/* It is in sync at another revision, though nothing had to be sent. */
void owned_synced(struct owned *owned);
/* Calls of the link. */
void owned_report(void *userdata, json_t *report);
void owned_detection(void *userdata, json_t *message);
void owned_patch(void *userdata, json_t *message, uint64_t ticket);
void owned_online(void *userdata, bool is_online, const char *reason);

/* ---- owners.c -------------------------------------------------------------------------------- */

void owned_queue(struct owned *owned);

#endif
