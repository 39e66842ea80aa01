/* From what a subscription says of its model (modelId, modelUrl) to that model on the disk.
 *
 *   order ─▶ known? ─▶ ask its address ──304──────────────────────────▶ the one that is there
 *              (thread)   │  (loop)     ──200──▶ by digest (thread) ───▶ the same, or a new one
 *                         └─ cannot be asked, or what came is no model ▶ the one from before, with
 *                                                                        the error; or the error
 *
 * An order of whoever has a model at work already asks only whether there is another by now: by
 * ETag, and if that is new, by digest. Neither is it read from the disk nor unpacked.
 *
 * A model that came whole may be one that cannot be run. Who finds that out says so, and until the
 * server has another, the one that ran before it is given with the error.
 *
 * A pre-signed address is another one in every list; what counts is the model's number and the
 * address without its signature. Orders of one and the same that come while it is fetched share
 * one job, which goes on with the newest address. The loop's thread only; the disk is left to
 * libuv's threads.
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

/* Of all jobs, so far. */
struct supply_counters {
    uint64_t fetched;     /* archives that came whole */
    uint64_t unchanged;   /* the one that is there is still right, said who has it */
    uint64_t fetch_fails; /* none came */
    uint64_t refused;     /* one came that is no archive of a model, or finds no room */
    uint64_t from_before; /* of the two: the one from before was given */
    uint64_t rechecks;    /* orders of one that is at work: asked (its jobs count as the others) */
    uint64_t recheck_fails; /* … and there was no answer, or a refusal; `fetch_fails` has none */
};

struct supply_counters supply_counters(const struct supply *supply);

/* Cancels every order. `on_closed` (NULL: nobody) is told when no thread is at work any more; the
 * supply is gone then. NULL allowed, and told nothing. */
void supply_close(struct supply *supply, void (*on_closed)(void *userdata), void *userdata);

struct supplied {
    struct model *model;             /* to be released by who is told; NULL: none */
    const struct baton_error *error; /* NULL: none. With a model: it is the one from before */
    const char *key;                 /* of number and address, for supply_prove() */
    const char *etag;                /* of what the server has; "": none, or it has not said */
    bool is_unproven;                /* another ran before this one, and is kept in mind */
    bool is_bad; /* the error: what the server has by that ETag is no model or of no use, however
                    often it is asked for */
};

/* Told once. Neither model nor error: what is at work is still right. */
typedef void (*order_end)(void *userdata, const struct supplied *supplied);

/* `at_work`: the digest that the one who asks has at work, and the ETag by which the server's was
 * seen last, which must not be "" (of what was bad, if that came since); NULL: nothing. Copied.
 * BATON_EINVAL, BATON_EAUTH: an address that is not allowed. Nothing is told before it returns. */
int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 const struct origin *at_work, order_end on_end, void *userdata,
                 struct baton_error *reterr);

/* Nothing is told. The last order of a job ends the job. */
void supply_cancel(struct order *order);

/* It has run; what was before it is not needed any more. */
void supply_prove(struct supply *supply, const char *key, const char *digest);
/* It cannot be run, for that reason; as long as this supply is there. */
void supply_reject(struct supply *supply, const char *digest, const struct baton_error *error);

#endif
