/* Keeps the models that subscriptions name (modelId, modelUrl): fetched, asked for again,
 * exchanged.
 *
 * A source is a number and an address without its signature; its orders are the subscriptions that
 * name it. A question to its server is answered by a fetch, of one try or several (fetch.h). For
 * each try a thread of libuv's pool asks, keeps what comes and reports: give it more than
 * SUPPLY_QUESTIONS_MAX threads (UV_THREADPOOL_SIZE), or slow servers stop all other work.
 * Between two questions a source is in one of these states:
 *
 *   ask ─▶ UNSURE  no reply yet: asks again after 5 s … 5 min, and meanwhile the orders get the
 *             │    model of the disk, if there is one, with the error
 *             │ the server has a model: the orders get it
 *             ▼
 *          CURRENT asks by its ETag every `recheck`, and up to 32 times as seldom while there is no
 *             │ ▲  reply; without an ETag only new orders ask
 *             │ │ the server has a model again
 *             ▼ │
 *            BAD   the server's archive is too large, or cannot run (supply_failed()) although the
 *                  one before it could: the orders keep or get that one, with the error. Asks as
 *                  CURRENT does; as UNSURE, if there is no model or no ETag
 *
 * Nobody looks into an archive here: that it is none is known when it cannot run. A fresh URL is
 * asked at once, or by the next try of a question that is under way. A model that cannot run and
 * has none before it is UNSURE again.
 *
 * The disk knows the last model that ran (supply_ran()) as the origin of the source (store.h), so
 * that the next process has it without a fetch, or without a server. What could not run is known as
 * long as the source has an order: another process may have an engine that can run it.
 *
 * All calls are for the loop's thread.
 */
#ifndef DETECTOR_MODEL_SUPPLY_H
#define DETECTOR_MODEL_SUPPLY_H

#include "base/log.h"
#include "detector/model/fetch.h"

#include <uv.h>

enum { SUPPLY_QUESTIONS_MAX = 32 }; /* for further sources the first of these must be done */

struct supply; /* opaque */
struct order;  /* opaque: one subscription's model, until it is canceled */

struct supply_config {
    uv_loop_t *loop;
    struct logger *logger; /* borrowed; NULL: silent */
    struct store *store;   /* borrowed until the loop has ended */
    struct fetch_rules fetch;
    int retry_ms;       /* the first pause after a failure; 0: 5 s */
    int recheck_ms;     /* between two questions for a model in use; 0: only for fresh URLs */
    struct model *only; /* borrowed: every order gets it, and no server is asked; NULL: none */
};

int supply_new(struct supply **ret, const struct supply_config *config, struct baton_error *reterr);

/* Cancels every order. The loop runs until no thread is at work any more, and the supply is freed.
 * NULL is allowed. */
void supply_close(struct supply *supply);

void supply_set_recheck(struct supply *supply, int recheck_ms); /* from now on */

/* What an order gets: first once, then with every change. */
struct supplied {
    struct model *model;             /* borrowed: share it; NULL: there is none */
    const struct baton_error *error; /* NULL: the model is what the server has */
    bool is_refused; /* the server has just given an archive that is too large, or that one again */
};

/* The callback must not call supply_order() or supply_cancel(). */
typedef void (*order_told)(void *userdata, const struct supplied *supplied);

/* Returns BATON_EINVAL or BATON_EAUTH if the address is not allowed. The callback is never called
 * from within. */
int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 order_told on_told, void *userdata, struct baton_error *reterr);

/* Takes a URL of the newest list: a fresh one is asked at once. False: it is the address of another
 * model, which needs an order of its own. */
bool supply_renew(struct order *order, const char *url);

void supply_cancel(struct order *order); /* NULL is allowed */

/* The model that the order got runs. */
void supply_ran(struct order *order, const struct model *model);
/* It does not. With an error the archive is at fault: it is not given again as long as there is one
 * that ran before. BATON_EPROTO and BATON_ETOOBIG: the archive is none, and leaves the disk.
 * Without an error it is given again later. */
void supply_failed(struct order *order, struct model *model, const struct baton_error *error);

/* Counts so far, and what /metrics says of them. `fetch_failures` has no question with a model in
 * use; the others count these, too. */
#define SUPPLY_COUNTERS(X)                                                                         \
    X(fetched, "Archives that came whole.")                                                        \
    X(unchanged, "Archives that were not sent, because the one in the cache is still right.")      \
    X(fetch_failures, "Archives that could not be fetched.")                                       \
    X(refused, "Archives that came and cannot be used, or found no room.")                         \
    X(from_before, "Times that the archive from before was used, as no new one was to be had.")    \
    X(rechecks, "Times that a server was asked whether the archive at work is still right.")       \
    X(recheck_failures, "Of these, those without an answer, or refused: a signature was too old.")

struct supply_counters {
#define SUPPLY_COUNTER(name, help) uint64_t name;
    SUPPLY_COUNTERS(SUPPLY_COUNTER)
#undef SUPPLY_COUNTER
};

struct supply_counters supply_counters(const struct supply *supply);

#endif
