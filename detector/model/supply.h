/* Finds the model of a subscription (modelId, modelUrl) on the disk, or fetches it.
 *
 * A model is identified by its number and its address without the signature. What is known of it:
 *
 *   NOTHING ── a model came ──▶ ARRIVED ──supply_prove()──▶ PROVEN
 *                               ▲  │ ▲                        │
 *        another model came ────┘  │ └── another model came ──┘ and the proven one is `before`
 *                                  └──supply_reject()──▶ REJECTED: `before` is given, with the
 *                                                        reason, until another model comes
 *
 * In each state the server may say that nothing has changed (304, or the same digest), send what is
 * no model (it is remembered by its ETag), or not reply: the known model is given, with the error.
 *
 * The disk has this as the model's origin (store.h): `digest`, its `etag`, and `before`, which is
 * empty once `digest` is proven. Rejections are kept in memory: another process may have an engine
 * that can run the model.
 *
 * Every move but the two calls above is made by a job: one thread that asks the server, unpacks
 * what came and writes the origin. Orders of the same model share one job, which goes on with the
 * newest address. An order with a model at work only asks whether the server has another one: by
 * ETag, and if that is new, by digest. The model at work is neither read from the disk nor
 * unpacked.
 *
 * The calls are for the loop's thread only.
 */
#ifndef DETECTOR_MODEL_SUPPLY_H
#define DETECTOR_MODEL_SUPPLY_H

#include "detector/model/fetch.h"

#include <uv.h>

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
/* The model cannot run, for that reason; the last REJECTS_MAX count, as long as this supply exists.
 */
enum { REJECTS_MAX = 16 };
void supply_reject(struct supply *supply, const char *digest, const struct baton_error *error);

#endif
