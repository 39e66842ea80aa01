#include "detector/model/supply.h"

#include "base/backoff.h"
#include "base/error.h"
#include "detector/model/address.h"
#include "detector/model/question.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

enum {
    WAIT_MS = 200, /* until one that waits looks again */
    RETRY_MIN_MS = 5000,
    RETRY_MAX_MS = 300000,
    RECHECK_FACTOR_MAX = 32,
};

struct order {
    struct source *source;
    unsigned version; /* of what it was told; 0: nothing, or it must be told again */
    order_told on_told;
    void *userdata;
    struct order *prev, *next;
};

struct source {
    struct supply *supply;
    int64_t model_id;
    char key[DIGEST_BYTES]; /* of number and address */
    char *url;              /* of the last try */
    char *fresh_url;        /* of a newer list; NULL: none */
    struct order *orders;   /* NULL: it is ending */
    struct source *prev, *next;

    struct knowledge known;
    struct model *proven;     /* the last that ran; NULL: none */
    struct model *fresh;      /* the server's, until it runs, too: the orders get it; NULL: none */
    struct baton_error doubt; /* why BAD */
    unsigned version;         /* counts the changes that orders must be told */
    unsigned asked_version;   /* when the question began */
    unsigned fails;           /* in a row */
    bool is_silent;           /* its server, since the last question; this was logged */

    uv_timer_t timer; /* until the next try, of a question or of the next one */
    struct question question;
    bool is_asking;  /* the question has begun, and has no answer yet */
    bool is_at_work; /* a thread has a try of it, or will have it */
    uv_work_t work;
};

struct supply {
    struct supply_config config;
    struct source *sources;
    unsigned asking; /* sources with a question, which has a file and mostly a connection */
    struct supply_counters counters;
    bool is_closing;
};

static bool is_of(const struct model *model, const char *digest)
{
    return model != NULL && strcmp(model->digest, digest) == 0;
}

/* What the orders get; NULL: there is none. */
static struct model *offered(const struct source *source)
{
    return source->fresh != NULL ? source->fresh : source->proven;
}

/* ---- What the orders are told --------------------------------------------------------------- */

/* All orders have what there is: a model, and an ETag that tells whether the server still has the
 * same. */
static bool is_settled(const struct source *source)
{
    bool is_told = true;

    for (const struct order *order = source->orders; order != NULL; order = order->next) {
        is_told = is_told && order->version == source->version;
    }
    return is_told && source->known.state != SOURCE_UNSURE && offered(source) != NULL;
}

static bool is_rechecked(const struct source *source)
{
    return is_settled(source) && source->known.etag[0] != '\0';
}

/* Tells those that do not know it yet. Returns whether there were any. */
static bool tell_all(struct source *source, const struct baton_error *error, bool is_refused)
{
    bool has_told = false;
    struct order *order = NULL;

    DL_FOREACH (source->orders, order) {
        if (order->version != source->version) {
            const struct supplied supplied = {offered(source), error, is_refused};

            has_told = true;
            order->version =
                error == NULL || source->known.state == SOURCE_BAD ? source->version : 0;
            order->on_told(order->userdata, &supplied);
        }
    }
    return has_told;
}

/* The disk gets the model that has run, or its new ETag. */
static void note(const struct source *source)
{
    const struct supply_config *config = &source->supply->config;

    note_origin(config->loop, config->store, source->key, source->proven->digest,
                source->known.etag);
}

static void take_models(struct source *source, struct question *question)
{
    struct model *found = question->found;

    if (offered(source) == NULL && question->model != NULL) {
        memcpy(source->known.etag, question->known.etag, sizeof(source->known.etag));
        source->proven = model_share(question->model);
        source->version++;
    }
    if (found != NULL && !is_of(offered(source), found->digest)) {
        model_release(source->fresh);
        source->fresh = is_of(source->proven, found->digest) ? NULL : model_share(found);
        source->version++;
    }
}

/* The log has one line for each outage; the model in use goes on. */
static void take_silence(struct source *source, const struct question *question)
{
    struct logger *logger = source->supply->config.logger;

    source->fails++;
    if (source->known.state == SOURCE_UNSURE) {
        source->version++;
        if (offered(source) != NULL) {
            log_warning(logger, "model-from-before", LOG_I64("model-id", source->model_id),
                        LOG_STR("error", question->error.message));
        }
    } else if (!source->is_silent) {
        source->is_silent = true;
        log_notice(logger, "model-recheck-failed", LOG_I64("model-id", source->model_id),
                   LOG_STR("error", question->error.message));
    }
    (void)tell_all(source, &question->error, false);
}

static void take_reply(struct source *source, const struct question *question)
{
    bool is_news = question->outcome != source->known.state ||
                   (question->outcome == SOURCE_BAD && !question->reply.is_same);

    source->known.state = question->outcome;
    source->version += is_news;
    source->is_silent = false;
    memcpy(source->known.etag, question->known.etag, sizeof(source->known.etag));
    if (question->has_arrived && source->known.state == SOURCE_CURRENT && source->fresh == NULL) {
        note(source);
    }
    if (source->known.state == SOURCE_BAD) {
        source->doubt = is_news ? question->error : source->doubt;
        source->fails = is_rechecked(source) ? 0 : source->fails + 1;
        (void)tell_all(source, &source->doubt, !question->reply.is_same);
    } else {
        /* A model that fails again and again is given more and more seldom. */
        source->fails = tell_all(source, NULL, false) ? source->fails : 0;
    }
}

static void count(struct supply_counters *counters, const struct question *question)
{
    bool has_failed = question->code != 0;

    counters->fetched += question->has_arrived;
    counters->unchanged += question->reply.is_same;
    if (question->has_arrived) {
        counters->refused += has_failed;
    } else if (has_failed) {
        *(question->is_recheck ? &counters->recheck_failures : &counters->fetch_failures) += 1;
    }
    counters->from_before += has_failed && question->model != NULL && !question->is_recheck;
}

/* ---- When it asks --------------------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);
static void on_done(uv_work_t *work, int status);

static void ask_after(struct source *source, span pause)
{
    (void)uv_timer_start(&source->timer, on_due, (uint64_t)(pause.ns / 1000000), 0);
}

/* Plans the next question; there is none if each would be a download for nothing. */
static void plan(struct source *source)
{
    const struct supply_config *config = &source->supply->config;
    int64_t least = config->retry_ms ? config->retry_ms : RETRY_MIN_MS, most = RETRY_MAX_MS;
    unsigned fails = source->fails > 0 ? source->fails : 1;
    uint32_t random = 0;

    if (source->is_asking) {
        return; /* its answer plans */
    }
    if (is_rechecked(source)) {
        least = config->recheck_ms;
        most = least * RECHECK_FACTOR_MAX;
        fails = source->fails + 1;
    } else if (source->known.state == SOURCE_CURRENT && is_settled(source)) {
        least = 0;
    }
    (void)uv_timer_stop(&source->timer);
    if (least > 0) {
        (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* else without spread */
        ask_after(source, backoff_after(fails, SPAN_MS(least), SPAN_MS(most), random));
    }
}

static void begin_question(struct source *source)
{
    const struct supply_config *config = &source->supply->config;
    struct question *question = &source->question;
    struct model *model = offered(source);

    *question = (struct question){.store = config->store,
                                  .rules = config->fetch,
                                  .key = source->key,
                                  .url = source->url,
                                  .known = source->known,
                                  .model = model != NULL ? model_share(model) : NULL,
                                  .is_recheck = model != NULL,
                                  .fd = -1};
    question->rules.is_canceled = &question->is_canceled;
    source->asked_version = source->version;
    source->is_asking = true;
    source->supply->asking++;
    source->supply->counters.rechecks += question->is_recheck;
}

static void run(uv_work_t *work)
{
    struct source *source = work->data;

    question_try(&source->question);
}

/* The next try of the question, or the first one of another. */
static void ask(struct source *source)
{
    struct supply *supply = source->supply;
    struct question *question = &source->question;

    if (!source->is_asking && supply->asking >= SUPPLY_QUESTIONS_MAX) {
        ask_after(source, SPAN_MS(WAIT_MS));
        return;
    }
    question->url = NULL;
    if (source->fresh_url != NULL) {
        free(source->url);
        question->url = source->url = source->fresh_url;
        source->fresh_url = NULL;
    }
    if (!source->is_asking) {
        begin_question(source);
    }
    source->is_at_work = true;
    (void)uv_queue_work(supply->config.loop, &source->work, run, on_done); /* never fails */
}

static void on_due(uv_timer_t *timer)
{
    struct source *source = timer->data;

    if (source->supply->config.only == NULL) {
        ask(source);
        return;
    }
    source->known.state = SOURCE_CURRENT;
    if (source->proven == NULL) {
        source->proven = model_share(source->supply->config.only);
    }
    (void)tell_all(source, NULL, false);
}

/* A question that is under way goes on with a fresh URL. */
static void ask_soon(struct source *source)
{
    if (!source->is_at_work && (!source->is_asking || source->fresh_url != NULL)) {
        ask_after(source, SPAN_MS(0));
    }
}

void supply_set_recheck(struct supply *supply, int recheck_ms)
{
    struct source *source = NULL;

    if (supply != NULL) {
        supply->config.recheck_ms = recheck_ms;
        DL_FOREACH (supply->sources, source) {
            if (source->known.state != SOURCE_UNSURE && source->orders != NULL) {
                plan(source);
            }
        }
    }
}

/* ---- The end of a question, and of a source ------------------------------------------------- */

static void free_when_done(struct supply *supply)
{
    if (supply->is_closing && supply->sources == NULL) {
        free(supply);
    }
}

static void end_question(struct source *source)
{
    if (source->is_asking) {
        source->is_asking = false;
        source->supply->asking--;
        question_fini(&source->question);
    }
}

static void on_source_closed(uv_handle_t *handle)
{
    struct source *source = handle->data;
    struct supply *supply = source->supply;

    DL_DELETE(supply->sources, source);
    end_question(source);
    model_release(source->proven);
    model_release(source->fresh);
    free(source->url);
    free(source->fresh_url);
    free(source);
    free_when_done(supply);
}

/* The source has lost its last order. */
static void give_up(struct source *source)
{
    (void)uv_timer_stop(&source->timer);
    if (!source->is_at_work) {
        uv_close((uv_handle_t *)&source->timer, on_source_closed);
    } else {
        atomic_store(&source->question.is_canceled, true);
    }
}

/* What has changed meanwhile makes the answer stale. */
static void take_answer(struct source *source)
{
    struct question *question = &source->question;
    bool is_stale = source->asked_version != source->version;
    bool has_failed = question->outcome == SOURCE_UNSURE;

    count(&source->supply->counters, question);
    if (!is_stale) {
        take_models(source, question);
        if (has_failed) {
            take_silence(source, question);
        } else {
            take_reply(source, question);
        }
    }
    end_question(source);
    if (is_stale || (has_failed && source->fresh_url != NULL)) {
        ask(source);
    } else {
        plan(source);
    }
}

static void on_done(uv_work_t *work, int status)
{
    struct source *source = work->data;
    const struct question *question = &source->question;

    (void)status;
    source->is_at_work = false;
    if (source->orders == NULL) {
        uv_close((uv_handle_t *)&source->timer, on_source_closed);
    } else if (question->outcome == SOURCE_UNSURE && !question->has_arrived &&
               source->fresh_url != NULL) {
        ask(source); /* what the old URL was refused, the fresh one may get */
    } else if (question->reply.pause.ns > 0) {
        ask_after(source, question->reply.pause);
    } else {
        take_answer(source);
    }
}

/* ---- Orders --------------------------------------------------------------------------------- */

/* With one model for all, all orders have one source. */
static int identify(char key[DIGEST_BYTES], const struct supply *supply, int64_t model_id,
                    const char *url, struct baton_error *reterr)
{
    struct url address;
    char *identity = NULL;
    int rc = 0;

    key[0] = '\0';
    if (supply->config.only == NULL) {
        rc = address_parse(&address, url, supply->config.fetch.hosts, reterr);
        rc = rc ? rc : address_identity(&identity, model_id, url, reterr);
        if (rc == 0 && digest_of(identity, strlen(identity), key) != 0) {
            rc = error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        free(identity);
    }
    return rc;
}

static struct source *find_source(const struct supply *supply, const char *key)
{
    struct source *source = NULL;

    DL_FOREACH (supply->sources, source) {
        if (source->orders != NULL && strcmp(source->key, key) == 0) {
            return source;
        }
    }
    return NULL;
}

/* Takes a URL of the newest list. False: it is the same as before, or memory is short. */
static bool take_url(struct source *source, const char *url)
{
    const char *latest = source->fresh_url != NULL ? source->fresh_url : source->url;
    char *copy = latest == NULL || strcmp(latest, url) != 0 ? strdup(url) : NULL;

    if (copy != NULL) {
        free(source->fresh_url);
        source->fresh_url = copy;
    }
    return copy != NULL;
}

static struct source *source_new(struct supply *supply, int64_t model_id, const char *key,
                                 const char *url)
{
    struct source *source = calloc(1, sizeof(*source));

    if (source == NULL || !take_url(source, url)) {
        free(source);
        return NULL;
    }
    source->supply = supply;
    source->model_id = model_id;
    source->version = 1;
    memcpy(source->key, key, sizeof(source->key));
    (void)uv_timer_init(supply->config.loop, &source->timer); /* it never fails */
    source->timer.data = source->work.data = source;
    DL_APPEND(supply->sources, source);
    return source;
}

int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 order_told on_told, void *userdata, struct baton_error *reterr)
{
    char key[DIGEST_BYTES];
    int rc = identify(key, supply, model_id, url, reterr);
    struct source *source = rc == 0 ? find_source(supply, key) : NULL;
    struct order *order = rc == 0 ? calloc(1, sizeof(*order)) : NULL;

    if (rc != 0) {
        return rc;
    }
    if (order != NULL && source == NULL) {
        source = source_new(supply, model_id, key, url);
    }
    if (order == NULL || source == NULL) {
        free(order);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    *order = (struct order){.source = source, .on_told = on_told, .userdata = userdata};
    (void)take_url(source, url);
    DL_APPEND(source->orders, order);
    ask_soon(source);
    *ret = order;
    return 0;
}

bool supply_renew(struct order *order, const char *url)
{
    struct source *source = order->source;
    bool is_asked = source->known.state != SOURCE_CURRENT || source->known.etag[0] != '\0';
    char key[DIGEST_BYTES];

    if (identify(key, source->supply, source->model_id, url, NULL) != 0 ||
        strcmp(key, source->key) != 0) {
        return false;
    }
    if (take_url(source, url) && is_asked) {
        ask_soon(source);
    }
    return true;
}

void supply_cancel(struct order *order)
{
    if (order != NULL) {
        struct source *source = order->source;

        DL_DELETE(source->orders, order);
        free(order);
        if (source->orders == NULL) {
            give_up(source);
        }
    }
}

void supply_ran(struct order *order, const struct model *model)
{
    struct source *source = order->source;

    if (!is_of(offered(source), model->digest) || source->known.state != SOURCE_CURRENT) {
        return;
    }
    if (source->fails > 0) {
        source->fails = 0;
        plan(source);
    }
    if (source->fresh != NULL) {
        model_release(source->proven);
        source->proven = source->fresh;
        source->fresh = NULL;
        note(source);
    }
}

void supply_failed(struct order *order, struct model *model, const struct baton_error *error)
{
    struct source *source = order->source;

    if (error != NULL && (error->code == BATON_EPROTO || error->code == BATON_ETOOBIG)) {
        source->supply->counters.refused += model_forget(model); /* several orders may tell it */
    }
    order->version = 0;
    if (!is_of(offered(source), model->digest) || source->known.state != SOURCE_CURRENT) {
        plan(source); /* another order has told it, or it is the one from before */
        return;
    }
    source->version++;
    if (error == NULL || source->fresh == NULL || source->proven == NULL) {
        source->known.state = SOURCE_UNSURE;
        source->fails++;
        plan(source);
        return;
    }
    source->known.state = SOURCE_BAD;
    source->doubt = source->known.why_rejected = *error;
    memcpy(source->known.rejected, model->digest, sizeof(source->known.rejected));
    model_release(source->fresh);
    source->fresh = NULL;
    ask_soon(source); /* the answer gives the one from before to those that do not run it */
}

/* ---- The supply ----------------------------------------------------------------------------- */

int supply_new(struct supply **ret, const struct supply_config *config, struct baton_error *reterr)
{
    struct supply *supply = calloc(1, sizeof(*supply));

    if (supply == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* else the first threads would race for it */
    supply->config = *config;
    *ret = supply;
    return 0;
}

struct supply_counters supply_counters(const struct supply *supply)
{
    return supply->counters;
}

void supply_close(struct supply *supply)
{
    struct source *source = NULL, *next = NULL;
    struct order *order = NULL, *next_order = NULL;

    if (supply == NULL) {
        return;
    }
    supply->is_closing = true;
    DL_FOREACH_SAFE (supply->sources, source, next) {
        DL_FOREACH_SAFE (source->orders, order, next_order) {
            supply_cancel(order);
        }
    }
    free_when_done(supply);
}
