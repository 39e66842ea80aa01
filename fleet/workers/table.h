/* The live state of all workers of the fleet, as their owners publish it: in every process, so that
 * a new master knows it at once.
 *
 *   owner ── worker:responses ──▶ table ──▶ on_change
 *         ── worker:events ─────▶       ──▶ on_event
 *
 * A message is lines of JSON objects. Each has type, worker, process (the owner) and epoch (of the
 * ownership); what an owner of an earlier epoch still says is ignored. On worker:responses:
 *
 *   stateReport    the worker's, and of ours: online, inSync, revision (of the assigned list that
 * it is compared with), detections, reconnects, stalls, refused workerOffline  reason, detections,
 * reconnects, stalls, refused others         detections are not read: their lines begin with
 * {"key":
 *
 * On worker:events the type is the event's name. A worker that no owner mentions any more is
 * offline after `silence`.
 *
 * The loop's thread only.
 */
#ifndef FLEET_WORKERS_TABLE_H
#define FLEET_WORKERS_TABLE_H

#include "member/member.h"
#include "protocol/protocol.h"

#define WORKER_RESPONSES "worker:responses"
#define WORKER_EVENTS    "worker:events"

enum { WORKER_ID_MAX = 48, WORKER_TABLE_MAX = 4096 };

struct worker_live {
    const char *id;
    const char *process; /* the owner's name; "": none known */
    bool is_online;
    bool is_in_sync;          /* the latest report shows exactly the list of `assigned` at … */
    uint64_t synced_revision; /* … this revision; 0: none yet */
    uint64_t epoch;           /* of the ownership */
    struct usage usage;
    json_t *report;                                   /* the latest stateReport line; NULL: none */
    instant since;                                    /* it is online or offline */
    instant heard;                                    /* the latest message */
    uint64_t detections, reconnects, stalls, refused; /* of this ownership: link.h */
};

enum worker_change {
    WORKER_CHANGED_ONLINE,
    WORKER_CHANGED_OFFLINE,
    WORKER_CHANGED_OWNER,
    WORKER_CHANGED_SYNC,
    WORKER_CHANGED_REPORT,
};

/* Its memory is its owner's, and stays until worker_table_close(). It must not close the table. */
struct worker_observer {
    /* After the change. One report may bring several, in the order of the enum. */
    void (*on_change)(struct worker_observer *observer, const struct worker_live *worker,
                      enum worker_change change);
    /* An event of any process of the fleet, this one too; borrowed. NULL: not needed. */
    void (*on_event)(struct worker_observer *observer, const char *name, const json_t *fields);
    struct worker_observer *next; /* the table's */
};

struct worker_table; /* opaque */

struct worker_table_config {
    struct member *member; /* outlives the table */
    span silence;          /* 0: 15 s */
    struct logger *logger; /* NULL: silent */
};

/* BATON_ENOTSUP: the provider has no channels; BATON_ENOMEM. */
int worker_table_open(struct worker_table **ret, const struct worker_table_config *config,
                      struct baton_error *reterr);
/* Its memory ends in the loop. NULL allowed. */
void worker_table_close(struct worker_table *table);
void worker_table_observe(struct worker_table *table, struct worker_observer *observer);
/* Nothing more comes to it, and its memory may end. It must not be called right now. */
void worker_table_ignore(struct worker_table *table, const struct worker_observer *observer);

/* NULL: no message of it came yet. Borrowed until the loop's next callback. */
const struct worker_live *worker_table_find(const struct worker_table *table, const char *id);

#endif
