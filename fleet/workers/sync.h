/* The messages that one worker has yet to be sent, and whether it has confirmed its list. Pure.
 *
 *   sync_set_list ──▶ SYNC_LIST, SYNC_SESSION …, SYNC_STAGE … ──report shows the list──▶ in sync
 *                        ▲                     │ not within 250 ms: SYNC_REQUEST            │
 *                        │                     │ not within 30 s: SYNC_ALARM                │
 *                        └── 2, 4, 8 … 30 s ◀──┴──────────report shows another one──────────┘
 *
 * A new connection begins anew: the list, the session of each display in it, the stage of each.
 * From then on only changes are sent. A display that never had a session or stage is left out.
 *
 * A report has no number. If a list equals one from before an unconfirmed one, a report may be from
 * before both. So a report is requested between the two, and the second list counts as confirmed
 * only once a report has shown the first one, or after 10 s. If it shows as the one before does, as
 * with other URLs, it is confirmed by the report that is requested after it.
 */
#ifndef FLEET_WORKERS_SYNC_H
#define FLEET_WORKERS_SYNC_H

#include "base/clock.h"
#include "protocol/protocol.h"

enum {
    SYNC_RESEND_FIRST_S = 2,
    SYNC_RESEND_MAX_S = 30,
    SYNC_REQUEST_MS = 250,
    SYNC_ALARM_S = 30,
    SYNC_LATE_S = 10, /* who takes longer for a list disobeys */
};

enum sync_output_type {
    SYNC_NOTHING,
    SYNC_LIST,    /* send the whole list, with fresh URLs */
    SYNC_SESSION, /* send display, session */
    SYNC_STAGE,   /* send display, stage */
    SYNC_REQUEST, /* send requestState */
    SYNC_ALARM,   /* not in sync for 30 s; once, until it is in sync or connected again */
};

struct sync_output {
    enum sync_output_type type;
    const char *display; /* borrowed until the next call */
    struct session_id session;
    enum stage stage;
};

struct sync_calls {
    /* The display's session and stage as they are to be. One without any is told so: the worker
     * may have those of a display of its name that was deleted. */
    void (*display)(void *userdata, const char *display, struct session_id *ret_session,
                    enum stage *ret_stage);
    /* A camera of the list went online or offline. The first report of all makes none. */
    void (*camera)(void *userdata, const char *identifier, bool is_online);
    void *userdata;
};

struct sync; /* opaque */

/* NULL: out of memory. */
struct sync *sync_new(const struct sync_calls *calls);
void sync_free(struct sync *sync); /* NULL allowed */

/* A connection is open: everything is to be sent. Nothing is before sync_set_list(). */
void sync_connected(struct sync *sync, instant now);
void sync_disconnected(struct sync *sync);

/* The list as it is to be, at this revision; identifiers are unique. It is sent if identifiers,
 * models or crops differ from the list before, or if something else of it does (`is_other`).
 * BATON_ENOMEM: call again. */
int sync_set_list(struct sync *sync, const struct subscription *list, size_t count,
                  uint64_t revision, bool is_other, instant now);
/* Nothing is sent until the next sync_set_list(). */
void sync_forget_list(struct sync *sync);
bool sync_has_list(const struct sync *sync);
/* Ignored for a display that has no subscription in the list. */
void sync_display_changed(struct sync *sync, const char *display);

/* A stateReport that worker_message_parse() has checked. */
void sync_report(struct sync *sync, const json_t *report, instant now);

/* The next output, which counts as carried out; SYNC_NOTHING until the deadline or a call. */
struct sync_output sync_next(struct sync *sync, instant now);
instant sync_deadline(const struct sync *sync);

/* Whether the latest report shows the list, and nothing was sent since that it may not show. */
bool sync_is_in_sync(const struct sync *sync);
/* SYNC_ALARM was given, and it has not been in sync since. */
bool sync_is_alarmed(const struct sync *sync);
uint64_t sync_revision(const struct sync *sync);

#endif
