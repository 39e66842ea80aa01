/* Finds the model of a subscription (modelId, modelUrl) on the disk, or fetches it.
 *
 *   order ─▶ known? ─▶ request to its address ──304───────────────────▶ the known one
 *              (thread)   │  (loop)     ──200──▶ by digest (thread) ───▶ the same, or a new one
 *                         └─ no reply, or one that is no model ────────▶ the one from before, with
 *                                                                        the error; or the error
 *
 * An order with a model at work only asks whether the server has another one: by ETag, and if that
 * is new, by digest. The model at work is neither read from the disk nor unpacked.
 *
 * A model that arrived whole may fail to run. The user then calls supply_reject(), and until the
 * server has another model, the one that ran before it is given with the error.
 *
 * A pre-signed address is a different one in every list; a model is identified by its number and
 * the address without its signature. Orders of the same model that come while it is fetched share
 * one job, which goes on with the newest address. The loop's thread only; libuv's threads use the
 * disk.
 */
#ifndef DETECTOR_MODEL_SUPPLY_H
#define DETECTOR_MODEL_SUPPLY_H

#include "detector/model/fetch.h"

struct supply; /* opaque */
struct order;  /* opaque */

struct supply_config {
    uv_loop_t *loop;
    struct store *store; /* borrowed until it is closed */
    struct archive_rules archive;
    struct fetch_rules fetch; /* its bytes_max is the archive's */
};

int supply_new(struct supply **ret, const struct supply_config *config, struct baton_error *reterr);

/* Counts of all jobs so far. */
struct supply_counters {
    uint64_t fetched;       /* archives that arrived whole */
    uint64_t unchanged;     /* replies that the known archive is still right */
    uint64_t fetch_fails;   /* no archive arrived */
    uint64_t refused;       /* an archive arrived that holds no model, or finds no room */
    uint64_t from_before;   /* of these two: the one from before was given */
    uint64_t rechecks;      /* orders with a model at work (their jobs count as the others) */
    uint64_t recheck_fails; /* those without a reply, or with a refusal; `fetch_fails` has none of
                               them */
};

struct supply_counters supply_counters(const struct supply *supply);

/* Cancels every order. `on_closed` (NULL: none) is called when no thread is at work any more, and
 * the supply is freed. NULL is allowed, and without a call. */
void supply_close(struct supply *supply, void (*on_closed)(void *userdata), void *userdata);

struct supplied {
    struct model *model;             /* the receiver releases it; NULL: none */
    const struct baton_error *error; /* NULL: none. With a model, that one is from before */
    const char *key;                 /* of number and address, for supply_prove() */
    const char *etag; /* of the server's archive; "": it has none, or has not replied */
    bool is_unproven; /* another one ran before, and is remembered */
    bool is_bad; /* the error: the archive with that ETag is no model or cannot run, however often
                    it is requested */
};

/* Called once. With neither model nor error the model at work is still right. */
typedef void (*order_end)(void *userdata, const struct supplied *supplied);

/* `at_work` has the digest of the caller's model at work, and the last ETag of the server's, which
 * must not be "" (that of a bad archive, if one came since); NULL: none is at work. It is copied.
 * Returns BATON_EINVAL or BATON_EAUTH if the address is not allowed. The callback comes after it
 * has returned. */
int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 const struct origin *at_work, order_end on_end, void *userdata,
                 struct baton_error *reterr);

/* Cancels the order without a call. The last order of a job ends the job. */
void supply_cancel(struct order *order);

/* The model has run, so the one before it is not needed any more. */
void supply_prove(struct supply *supply, const char *key, const char *digest);
/* The model cannot run, for that reason; it counts as long as this supply exists. */
void supply_reject(struct supply *supply, const char *digest, const struct baton_error *error);

#endif
