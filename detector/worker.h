/* The worker as a pure state machine: its backend, its subscriptions, its displays' sessions and
 * stages, and the detections that wait for a backend.
 *
 * It does no I/O and reads no clock. Messages and detections come in; messages, closings and events
 * go out through hooks, called from within the call that caused them.
 *
 *   nobody ──worker_connected──▶ owned ──state-changing command of another──▶ owned by that one
 *      ▲                           │                                         (the older is closed)
 *      └──worker_disconnected──────┴──▶ the newest waiting backend, if there is one
 *
 * A backend that connects while another owns the worker waits: it gets state reports and answers,
 * so that it sees a living worker, and takes over with its first setSubscriptionList, setSessionId
 * or setProgressionStage. A silent connection takes nothing over. Nor does a list whose epoch is
 * lower than the highest that was seen: its backend has lost the worker already, and is closed.
 *
 * A detection that cannot be sent at once (no backend, or one that does not read) is queued, the
 * oldest dropped when the queue is full. What was queued is late: it goes out as patchSession to
 * the session it was seen in, or as imageDetection with its old timestamp if there was none.
 * One that was sent is kept until it has arrived, worker_delivered(); if the connection ends
 * before, the detection is queued again, and counts as sent once another one has it.
 *
 * A subscription has one entry, from the list that names it first to the one that does not any
 * more. It stays where it is, so that whatever is known of the subscription is kept in it and found
 * without its identifier.
 */
#ifndef DETECTOR_WORKER_H
#define DETECTOR_WORKER_H

#include "detector/outbox.h"
#include "protocol/protocol.h"

enum {
    WORKER_BACKENDS_MAX = 8,    /* the owner and those that wait; then the oldest waiting goes */
    WORKER_UNKNOWN_MAX = 16,    /* unknown message types that are reported, each once */
    WORKER_DISPLAYS_MAX = 4096, /* that have a session or a stage */
    WORKER_QUEUE_DEFAULT = 1000,
};

/* WebSocket close codes that the worker gives. */
enum { WORKER_CLOSE_SUPERSEDED = 4001, WORKER_CLOSE_CROWDED = 1013 };

/* X(symbol, event name in the log, its level) */
#define WORKER_EVENTS(X)                                                                           \
    X(WORKER_MESSAGE_REFUSED, "message-refused", WARNING)           /* error */                    \
    X(WORKER_MESSAGE_UNKNOWN, "message-unknown", WARNING)           /* text: its type */           \
    X(WORKER_SUBSCRIPTION_REFUSED, "subscription-refused", WARNING) /* identifier, error */        \
    X(WORKER_SUBSCRIPTION_REMOVED, "subscription-removed", INFO)    /* identifier, subscription */ \
    X(WORKER_SUBSCRIPTION_UPDATED, "subscription-updated", INFO)    /* the same, changes */        \
    X(WORKER_SUBSCRIPTION_ADDED, "subscription-added", INFO)        /* identifier, subscription */ \
    X(WORKER_SESSION_CHANGED, "session-changed", DEBUG) /* identifier: display; session */         \
    X(WORKER_STAGE_CHANGED, "stage-changed", DEBUG)     /* identifier: display; text */            \
    X(WORKER_PATCH_ANSWERED, "patch-answered", DEBUG)   /* session, text */                        \
    X(WORKER_PATCH_REFUSED, "patch-refused", WARNING)   /* session, text */                        \
    X(WORKER_OWNER_CHANGED, "owner-changed", INFO)      /* backend: the new one, or 0 */

#define WORKER_EVENT_ENUM(symbol, name, level) symbol,
enum worker_event_type { WORKER_EVENTS(WORKER_EVENT_ENUM) WORKER_EVENT_COUNT };
#undef WORKER_EVENT_ENUM

const char *worker_event_name(enum worker_event_type type);

/* Subscriptions are the same if their identifiers are. A pre-signed model URL is fresh in every
 * list, so a change of it alone has a bit of its own: it is only remembered. */
enum {
    CHANGE_CAMERA = 1 << 0,    /* rtspUrl; if there is none, snapshotUrl */
    CHANGE_SNAPSHOT = 1 << 1,  /* snapshotUrl */
    CHANGE_MODEL = 1 << 2,     /* modelId, modelName */
    CHANGE_MODEL_URL = 1 << 3, /* modelUrl */
    CHANGE_CROP = 1 << 4,
    CHANGE_INTERVAL = 1 << 5, /* snapshotInterval */
};

/* The CHANGE_ bits by which the two differ. */
unsigned subscription_changes(const struct subscription *from, const struct subscription *to);

/* Fields that the type does not name are zero. Borrowed during the call. */
struct worker_event {
    enum worker_event_type type;
    uint64_t backend; /* the sender of the message; 0: none */
    const char *identifier;
    struct subscription *subscription; /* its entry; holds secrets: its URLs */
    unsigned changes;
    struct session_id session;
    const char *text;
    const struct baton_error *error;
};

struct worker_hooks {
    /* Hands one message to a backend; false: it does not read fast enough, nothing was taken.
     * ret_end: with how many bytes of the connection it has arrived, for worker_delivered();
     * NULL: nobody asks. */
    bool (*send)(void *userdata, uint64_t backend, const char *text, size_t bytes,
                 uint64_t *ret_end);
    /* The worker has forgotten this backend already; worker_disconnected() may still be called, and
     * worker_delivered() from within this. */
    void (*close)(void *userdata, uint64_t backend, int code, const char *reason);
    void (*event)(void *userdata, const struct worker_event *event); /* must not call back in */
    void *userdata;
    /* Of an entry: a struct that begins with a struct subscription. The rest is the caller's, and 0
     * when the subscription is added. */
    size_t entry_bytes;
};

/* X(field, its name in /status, what /metrics says of it) */
#define WORKER_COUNTERS(X)                                                                         \
    X(messages, "messages", "Messages of backends.")                                               \
    X(messages_refused, "messagesRefused", "Messages that were not valid.")                        \
    X(subscriptions_refused, "subscriptionsRefused", "Subscriptions that were not valid.")         \
    X(detections_sent, "detectionsSent", "imageDetection messages.")                               \
    X(detections_dropped, "detectionsDropped", "Detections that a full queue lost.")               \
    X(patches_sent, "patchesSent", "patchSession messages.")                                       \
    X(patches_refused, "patchesRefused", "patchSession messages that the backend did not accept.") \
    X(takeovers, "takeovers", "Backends that another one superseded.")

#define WORKER_COUNTER_FIELD(field, name, help) uint64_t field;
struct worker_counters {
    WORKER_COUNTERS(WORKER_COUNTER_FIELD)
};
#undef WORKER_COUNTER_FIELD

/* One thread. All is the worker's, but that others read it, and say whether a subscription's frames
 * arrive: `is_online`. */
struct worker {
    struct worker_hooks hooks;
    uint64_t backends[WORKER_BACKENDS_MAX]; /* in order of arrival */
    size_t backend_count;
    uint64_t owner; /* one of them, or 0 */
    uint64_t epoch; /* the highest in a list; 0: none */

    struct subscription **subscriptions; /* the entries, in the order of the list */
    size_t subscription_count;

    struct display *displays;
    struct outbox outbox; /* while any is handed over, worker_delivered() is wanted */

    json_t *unknown; /* types that were reported; an object of them */

    struct usage usage; /* of the last tick */
    struct worker_counters counters;
};

/* `queue_max`: detections that may wait, 1 or more. */
void worker_init(struct worker *worker, const struct worker_hooks *hooks, size_t queue_max);
void worker_fini(struct worker *worker);
/* Another bound from now on: the oldest above it are dropped. */
void worker_set_queue(struct worker *worker, size_t queue_max);

/* A backend (any number but 0, never used again) is there; it is sent a stateReport at once, and
 * what was queued if it becomes the owner. */
void worker_connected(struct worker *worker, uint64_t backend);
void worker_disconnected(struct worker *worker, uint64_t backend); /* unknown ones are ignored */

/* One whole message of a backend. 0, or the error that was also given as an event: then nothing
 * has changed, but that BATON_ECONFLICT (its epoch is too low) has closed the backend. */
int worker_receive(struct worker *worker, uint64_t backend, const char *bytes, size_t count);

/* A backend's message cannot be given to worker_receive(): counts and reports it. */
void worker_refuse(struct worker *worker, uint64_t backend, const char *reason);

/* The heartbeat is due: a stateReport to every backend, and what is queued to the owner. */
void worker_tick(struct worker *worker, const struct usage *usage);

/* What is queued goes to the owner, as far as it reads: for when it reads again. */
void worker_flush(struct worker *worker);

/* So many bytes of the connection are with the backend's system: what was sent up to there is out
 * of our hands. */
void worker_delivered(struct worker *worker, uint64_t backend, uint64_t arrived);

/* Takes the detection of a subscription (always: it is released by the worker, also on failure) and
 * fills in the display's session. 0; BATON_EINVAL if it is not flat. */
int worker_detected(struct worker *worker, struct detection *detection, struct baton_error *reterr);

/* The session and stage of the display of a subscription. */
struct session_id worker_session(const struct worker *worker, const char *identifier);
enum stage worker_stage(const struct worker *worker, const char *identifier);

struct subscription *worker_find(const struct worker *worker, const char *identifier);
size_t worker_queued(const struct worker *worker); /* detections that are not delivered */

#endif
