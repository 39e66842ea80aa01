/* The displays' sessions, stages and data, on the fleet's shared state. Loop's thread only.
 *
 *   patch, session, stage, car ──▶ the display's queue ──▶ merge ──▶ put at its revision
 *                                         ▲                              │ conflict: read
 *                                         └──────────────────────────────┘
 *
 * A change is a patch (merge.h). One write of a display is under way at a time, and has all changes
 * that waited; it is compared and set, so that of concurrent changes of any number of processes
 * none is lost: a later one is merged into what the earlier one left.
 *
 * A session is at one display. If a change sets a session that another display has, it moves: the
 * other display's becomes null first.
 */
#ifndef FLEET_DISPLAYS_DISPLAYS_H
#define FLEET_DISPLAYS_DISPLAYS_H

#include "fleet/displays/merge.h"
#include "fleet/state/state.h"

enum {
    DISPLAY_WAITING_MAX = 64,   /* changes of one display that wait for its write */
    DISPLAY_TRIES_MAX = 64,     /* writes of one change, each before another process's */
    DISPLAY_CAR_SETTLE_MS = 250 /* for which detections of the current car are collected */
};

struct displays; /* opaque */

/* X(field, what it counts) */
#define DISPLAYS_COUNTERS(X)                                                                       \
    X(changes, "changes of displays' data that were asked for here")                               \
    X(writes, "writes of displays' data")                                                          \
    X(conflicts, "writes that came after another process's, and were merged again")                \
    X(failures, "changes that were refused or could not be written")                               \
    X(cars, "changes of the current car by detections")

#define DISPLAYS_COUNTER(field, text) uint64_t field;
struct displays_counters {
    DISPLAYS_COUNTERS(DISPLAYS_COUNTER)
};
#undef DISPLAYS_COUNTER

struct displays_config {
    struct fleet_state *state; /* ready; outlives the displays */
    /* "session-changed" {"display","sessionId","before"}, "stage-changed" {"display",
     * "progressionStage","before"}: by any process. Steals `fields`. NULL: unwanted. */
    void (*on_event)(void *userdata, const char *name, json_t *fields);
    void *userdata;
};

/* BATON_ENOMEM. */
int displays_open(struct displays **ret, const struct displays_config *config,
                  struct baton_error *reterr);
/* Before fleet_state_close(). Changes that wait get BATON_ECANCELED before it returns; those that
 * are being written end with their write, at the latest when the state is closed. Nothing else
 * comes. The loop frees the rest. NULL is nothing. */
void displays_close(struct displays *displays);

/* Changes the data of a display that the fleet knows. A reference of `patch` is kept: it must not
 * change any more. `done` (NULL: unwanted)
 * comes once, perhaps before this returns: BATON_EINVAL, BATON_ETOOBIG of the merged data;
 * BATON_ENOENT: the display was deleted, or the session ended, meanwhile; BATON_EBUSY: others
 * changed it at every try; what the provider says. Errors: BATON_ENOENT: no such display;
 * BATON_EINVAL, BATON_ETOOBIG: of the patch; BATON_EBUSY: too many wait; BATON_ENOMEM. */
int displays_patch(struct displays *displays, const char *display, const json_t *patch,
                   provider_done_cb done, void *userdata, struct baton_error *reterr);
/* The same of the display that has the session. BATON_ENOENT: none has it. */
int displays_patch_session(struct displays *displays, int64_t session, const json_t *patch,
                           provider_done_cb done, void *userdata, struct baton_error *reterr);
/* The patches {"sessionId":…} and {"progressionStage":…}. */
int displays_set_session(struct displays *displays, const char *display, struct session_id session,
                         provider_done_cb done, void *userdata, struct baton_error *reterr);
int displays_set_stage(struct displays *displays, const char *display, enum stage stage,
                       provider_done_cb done, void *userdata, struct baton_error *reterr);

/* Notes a detection's attributes: those of the current car that are new are merged into the data,
 * of many detections the latest, if the display has a session. Borrowed. */
void displays_detected(struct displays *displays, const char *display, const json_t *attributes);

/* The display of the session; NULL: none. If two got it in the same moment, the first by name.
 * Borrowed until the loop's next callback. */
const char *displays_of_session(const struct displays *displays, int64_t session);

/* The text of a patchSessionResult after `done`, or after an error. */
const char *displays_result_text(int code, const struct baton_error *error);

const struct displays_counters *displays_counters(const struct displays *displays);

#endif
