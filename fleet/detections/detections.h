/* Detections: accepted from the workers that this process owns, and known in every process.
 *
 *   worker ──▶ detections_take ──▶ refused: what is wrong, by on_refused
 *                   │          └─▶ known already: counted
 *                   ▼
 *              history, on_line ◀── lines of other processes
 *                   │                   ▲
 *                   └── batch ── worker:responses
 *
 * A detection that a worker sends twice, to the same process or to another one after a failover,
 * comes to on_line once in each process (line.h: its key). What is published while the provider is
 * unavailable is lost to the other processes, not to this one.
 *
 * Loop's thread only.
 */
#ifndef FLEET_DETECTIONS_DETECTIONS_H
#define FLEET_DETECTIONS_DETECTIONS_H

#include "fleet/state/state.h"

struct detections; /* opaque */

/* X(field, what it counts) */
#define DETECTIONS_COUNTERS(X)                                                                     \
    X(accepted, "detections of this process's workers")                                            \
    X(duplicates, "detections that a worker sent again")                                           \
    X(refused, "detections that were not valid")                                                   \
    X(heard, "detections of other processes' workers")                                             \
    X(foreign, "messages that looked like a detection and were none")                              \
    X(unpublished, "detections that other processes did not get")

#define DETECTIONS_COUNTER(field, text) uint64_t field;
struct detections_counters {
    DETECTIONS_COUNTERS(DETECTIONS_COUNTER)
};
#undef DETECTIONS_COUNTER

/* Each NULL: unwanted. Everything is borrowed during the call; none may close the detections. */
struct detections_config {
    struct fleet_state *state; /* outlives the detections */
    const char *process;       /* this process's name; copied */
    /* A new detection of this process's workers or another's: one line of JSON (line.h),
     * NUL-terminated. */
    void (*on_line)(void *userdata, const char *line, size_t bytes, bool is_own);
    /* A new one of this process's workers: its display and its attributes. */
    void (*on_accepted)(void *userdata, const char *display, const json_t *attributes);
    void (*on_refused)(void *userdata, const char *worker, const struct baton_error *error);
    void *userdata;
};

/* Listens on worker:responses. BATON_ENOTSUP: the provider has no channels; BATON_ENOMEM. */
int detections_open(struct detections **ret, const struct detections_config *config,
                    struct baton_error *reterr);
/* Publishes what waits. Before fleet_state_close(), whose member's loop frees the rest. NULL is
 * nothing. */
void detections_close(struct detections *detections);

/* Takes an imageDetection that worker_message_parse() has checked, of a worker that this process
 * owns. Its subscription must be one that the fleet knows. A detection without a sessionId gets
 * that of its display. */
void detections_take(struct detections *detections, const char *worker, const json_t *message);

/* New array of the latest, the last one first, at most `limit`, of this display and this camera
 * (NULL: of any). NULL: out of memory. */
json_t *detections_list(const struct detections *detections, const char *display,
                        const char *camera, size_t limit);

const struct detections_counters *detections_counters(const struct detections *detections);

#endif
