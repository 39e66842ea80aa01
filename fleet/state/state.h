/* The shared state of a fleet as this process knows it: a cache of the provider's keys, and writes.
 *
 *   NAME/model/ID  NAME/camera/ID  NAME/display/ID  NAME/subscription/DISPLAY;CAMERA    objects
 *   NAME/data/DISPLAY      DisplayPersistentData            NAME/worker/WORKER   fleet_worker
 *   NAME/assigned/WORKER   fleet_assigned                   NAME/owners, NAME/unplaced   JSON
 *   NAME/move/SUBSCRIPTION fleet_move
 *
 *   opened ── the feed's values, and one list of all keys ──▶ ready ── changes are told ──▶ closed
 *
 * Reading is from the cache: at once, and perhaps a moment old. An own write is in the cache when
 * its `done` comes, and stays there although older news may follow. A write that fails with
 * BATON_ECONFLICT has read its key again before its `done` comes: so the caller looks into the
 * cache, decides anew, and writes again.
 *
 * A value that is none of ours (foreign, torn) counts as absent. It is told and counted, is listed
 * by fleet_state_next_foreign(), and no write of this layer replaces it: a person deletes it. But
 * the keys that the master makes, `assigned`, `owners` and `unplaced`, are made anew.
 *
 * All on the thread of the member's loop. Texts and structs that are handed out are borrowed until
 * the loop's next callback; of an object the caller may take a reference.
 */
#ifndef FLEET_STATE_STATE_H
#define FLEET_STATE_STATE_H

#include "fleet/objects/file.h"
#include "fleet/state/entities.h"
#include "member/member.h"

struct fleet_state; /* opaque */

enum { FLEET_NAME_MAX = 32 }; /* bytes of a fleet's name: letters, digits, "-_.:" */

/* BATON_EINVAL says what a fleet's name is made of. */
int fleet_name_check(const char *name, struct baton_error *reterr);

/* ---- Life ------------------------------------------------------------------------------------ */

enum fleet_change {
    FLEET_CHANGED_OBJECT,
    FLEET_CHANGED_WORKER,
    FLEET_CHANGED_ASSIGNED,
    FLEET_CHANGED_MARK, /* of an `assigned`, perhaps; its lists are as before */
    FLEET_CHANGED_DATA,
    FLEET_CHANGED_MOVE,
    FLEET_CHANGED_OWNERS,
    FLEET_CHANGED_UNPLACED,
    FLEET_FOREIGN, /* the only one that is told while the state loads, too */
};

struct fleet_state_event {
    enum fleet_change change;
    enum fleet_kind kind; /* of an object */
    const char *id; /* object, worker, display; FLEET_FOREIGN: the key without "NAME/"; else "" */
    const struct fleet_object *before; /* of an object; NULL: it is new */
    const char *reason;                /* FLEET_FOREIGN */
};

/* Its memory is its owner's, and stays until the state is closed or ignores it. on_change comes
 * after the cache has changed, in the order of the changes, to all observers in their order; it may
 * read and write, and close the state. */
struct fleet_observer {
    void (*on_change)(struct fleet_observer *observer, const struct fleet_state_event *event);
    struct fleet_observer *next; /* the state's */
};

/* Begins to load in the loop's next turn: so observers that are added now miss nothing. Tries again
 * until the provider can be reached. `on_ready` comes once. BATON_EINVAL: the name; BATON_ENOTSUP:
 * the provider keeps no state; BATON_ENOMEM. */
int fleet_state_open(struct fleet_state **ret, struct member *member, const char *name,
                     void (*on_ready)(void *userdata), void *userdata, struct baton_error *reterr);
void fleet_state_observe(struct fleet_state *state, struct fleet_observer *observer);
/* Nothing more comes to it, and its memory may end. It may be the one that is called right now. */
void fleet_state_ignore(struct fleet_state *state, const struct fleet_observer *observer);
/* No callback comes after it, but those of writes under way: with BATON_ECANCELED, before it
 * returns. Before member_close(); the loop runs once more before member_free(). NULL is nothing. */
void fleet_state_close(struct fleet_state *state);

bool fleet_state_is_ready(const struct fleet_state *state);
/* Reads all keys from the provider, however late its feed is; tries again until it can. Returns a
 * number: once it is loaded, the cache has what was stored before the call (and may have what was
 * deleted). */
uint64_t fleet_state_load_again(struct fleet_state *state);
bool fleet_state_has_loaded(const struct fleet_state *state, uint64_t number);
struct member *fleet_state_member(const struct fleet_state *state);
const char *fleet_state_name(const struct fleet_state *state);

/* X(field, what it counts) */
#define FLEET_STATE_COUNTERS(X)                                                                    \
    X(changes, "changes of keys that the cache took")                                              \
    X(foreign, "values that are none of ours")                                                     \
    X(writes, "writes that succeeded")                                                             \
    X(conflicts, "writes that failed because the key had changed")                                 \
    X(failures, "writes that failed otherwise")                                                    \
    X(loads, "lists of all keys that were asked for")

struct fleet_state_counters {
#define FLEET_STATE_COUNTER(field, text) uint64_t field;
    FLEET_STATE_COUNTERS(FLEET_STATE_COUNTER)
#undef FLEET_STATE_COUNTER
};

const struct fleet_state_counters *fleet_state_counters(const struct fleet_state *state);

/* ---- Reading --------------------------------------------------------------------------------- */

/* ret_revision may be NULL. NULL: there is none. */
const struct fleet_object *fleet_state_object(const struct fleet_state *state, enum fleet_kind kind,
                                              const char *id, uint64_t *ret_revision);
size_t fleet_state_count(const struct fleet_state *state, enum fleet_kind kind);
/* In the order of the ids' bytes; `cursor` begins as NULL. NULL: the end. */
const struct fleet_object *fleet_state_next(const struct fleet_state *state, enum fleet_kind kind,
                                            const struct fleet_object *cursor);

/* The subscriptions of a display, of a camera, or that use a model: from an index, in any order. */
typedef void (*fleet_each_cb)(void *userdata, const struct fleet_object *subscription);
void fleet_state_each_of(const struct fleet_state *state, enum fleet_kind kind, const char *id,
                         fleet_each_cb each, void *userdata);
/* Whether a subscription uses it; *ret_by (NULL allowed): the id of one. */
bool fleet_state_is_used(const struct fleet_state *state, enum fleet_kind kind, const char *id,
                         const char **ret_by);
/* BATON_EINVAL: "display: …", "camera: …" or "model: …" is not there, so a subscription of it would
 * not be placed. Of other kinds: 0. */
int fleet_state_check_references(const struct fleet_state *state, const struct fleet_object *object,
                                 struct baton_error *reterr);

/* Without those that were deleted, and have not let go of all yet. */
const struct fleet_worker *fleet_state_worker(const struct fleet_state *state, const char *id);
/* The one whose URL leads to the same place (fleet_url_is_same()), of several the one that was
 * written first; NULL: none. Walks through all. */
const struct fleet_worker *fleet_state_worker_at(const struct fleet_state *state, const char *url);
size_t fleet_state_worker_count(const struct fleet_state *state);
const struct fleet_worker *fleet_state_next_worker(const struct fleet_state *state,
                                                   const struct fleet_worker *cursor);
/* With them. */
const struct fleet_worker *fleet_state_worker_key(const struct fleet_state *state, const char *id);
const struct fleet_worker *fleet_state_next_worker_key(const struct fleet_state *state,
                                                       const struct fleet_worker *cursor);
const struct fleet_assigned *fleet_state_assigned(const struct fleet_state *state,
                                                  const char *worker);
const struct fleet_assigned *fleet_state_next_assigned(const struct fleet_state *state,
                                                       const struct fleet_assigned *cursor);
const struct fleet_move *fleet_state_move(const struct fleet_state *state,
                                          const char *subscription);
const struct fleet_move *fleet_state_next_move(const struct fleet_state *state,
                                               const struct fleet_move *cursor);
/* The worker whose `assigned` has it among its subscriptions; NULL: none. */
const char *fleet_state_worker_of(const struct fleet_state *state, const char *subscription);

/* The following are objects of JSON. */
const json_t *fleet_state_data(const struct fleet_state *state, const char *display,
                               uint64_t *ret_revision);
/* The display of which the data comes after that of `display`, in the order of ids; "" begins. */
const char *fleet_state_next_data(const struct fleet_state *state, const char *display);
const json_t *fleet_state_owners(const struct fleet_state *state, uint64_t *ret_revision);
const json_t *fleet_state_unplaced(const struct fleet_state *state, uint64_t *ret_revision);
/* How many have no worker; the list may be cut. */
size_t fleet_state_unplaced_count(const struct fleet_state *state);

const struct fleet_foreign *fleet_state_next_foreign(const struct fleet_state *state,
                                                     const struct fleet_foreign *cursor);

/* ---- Writing --------------------------------------------------------------------------------- */

/* Compare and set: at `revision` (0: absent; PROVIDER_ANY_REVISION). `done` comes exactly once,
 * perhaps before the function returns. At once: BATON_ECORRUPT: the key has a foreign value;
 * BATON_EINVAL: it would be one; BATON_ETOOBIG; BATON_EUNAVAILABLE; BATON_ENOMEM. */
int fleet_state_put(struct fleet_state *state, const struct fleet_object *object, uint64_t revision,
                    provider_put_cb done, void *userdata, struct baton_error *reterr);
int fleet_state_delete(struct fleet_state *state, enum fleet_kind kind, const char *id,
                       uint64_t revision, provider_put_cb done, void *userdata,
                       struct baton_error *reterr);
/* Of another key than an object's: "worker/w1", "data/d1", "assigned/w1", "move/d;c", "owners",
 * "unplaced". json NULL deletes. A foreign value of a key that the master makes is replaced,
 * whatever the revision. */
int fleet_state_put_json(struct fleet_state *state, const char *key, const json_t *json,
                         uint64_t revision, provider_put_cb done, void *userdata,
                         struct baton_error *reterr);

/* ---- Applying a file ------------------------------------------------------------------------- */

enum { FLEET_APPLY_WINDOW = 64, FLEET_APPLY_TRIES = 10 };

struct fleet_apply_result {
    size_t created, changed, deleted, same;
};
/* `of`: how many keys differed at the beginning. */
typedef void (*fleet_progress_cb)(void *userdata, size_t written, size_t of);
typedef void (*fleet_applied_cb)(void *userdata, int code, const struct fleet_apply_result *result,
                                 const struct baton_error *error);

/* Makes the objects what the file says; `prunes`: and deletes those that are not in it. Only what
 * differs is written, at most FLEET_APPLY_WINDOW keys at once, kind after kind: models, cameras,
 * displays, subscriptions; deletions in the opposite order, after all else. A key that changes
 * meanwhile is read again and written anew, at most FLEET_APPLY_TRIES times. `done` comes once,
 * perhaps before the function returns; after a failure the result says what was written, and the
 * same file can be applied again. The file's objects are referenced; the file may go.
 * progress: NULL allowed. BATON_EBUSY: the state is not ready; BATON_ENOMEM. */
int fleet_state_apply(struct fleet_state *state, const struct fleet_file *file, bool prunes,
                      fleet_progress_cb progress, fleet_applied_cb done, void *userdata,
                      struct baton_error *reterr);
/* Says what it would do. BATON_EBUSY, BATON_ENOMEM. */
int fleet_state_compare(const struct fleet_state *state, const struct fleet_file *file, bool prunes,
                        struct fleet_apply_result *ret, struct baton_error *reterr);

#endif
