#include "detector/model/supply.h"

#include "base/error.h"
#include "detector/model/address.h"
#include "detector/model/rejects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

struct order {
    struct job *job;
    order_end on_end;
    void *userdata;
    struct order *prev, *next;
};

enum step { STEP_LOOK, STEP_FETCH, STEP_ADD, STEP_TELL };

/* One model that is being fetched. */
struct job {
    struct supply *supply;
    char key[DIGEST_BYTES]; /* of number and address */
    struct origin at_work;  /* the model that the asker runs; without a digest: none */
    char *url;
    struct order *orders;
    struct job *prev, *next;

    enum step step;
    uv_work_t work;
    struct fetch *fetch;
    atomic_bool is_canceled;

    /* Only the thread uses these while it works. */
    struct archive_rules rules;
    struct model *before, *found; /* the earlier model; the result */
    struct origin origin;         /* as stored for the address, then of the new archive */
    bool is_rejected; /* the last archive was rejected; `before` is the one that ran before it */
    bool is_bad;
    struct baton_error why_rejected;
    int fd, code;
    struct baton_error error;
};

/* A model has run; a thread notes it on the disk. */
struct proof {
    struct supply *supply;
    char key[DIGEST_BYTES], digest[DIGEST_BYTES];
    struct proof *prev, *next;
    uv_work_t work;
};

struct supply {
    struct supply_config config;
    struct transfers *transfers;
    struct job *jobs;
    struct proof *proofs;
    struct rejects rejects;
    struct supply_counters counters;
    bool is_closing;
    uv_check_t end; /* ends jobs from the loop, so that no callback runs within a call */
    void (*on_closed)(void *userdata);
    void *userdata;
};

/* ---- The end of a job ----------------------------------------------------------------------- */

static void on_end_closed(uv_handle_t *handle)
{
    struct supply *supply = handle->data;
    void (*on_closed)(void *userdata) = supply->on_closed;
    void *userdata = supply->userdata;

    rejects_fini(&supply->rejects);
    free(supply);
    if (on_closed != NULL) {
        on_closed(userdata);
    }
}

static void close_when_done(struct supply *supply)
{
    if (supply->is_closing && supply->jobs == NULL && supply->proofs == NULL &&
        !uv_is_closing((uv_handle_t *)&supply->end)) {
        transfers_close(supply->transfers);
        uv_close((uv_handle_t *)&supply->end, on_end_closed);
    }
}

static void free_job(struct job *job)
{
    struct supply *supply = job->supply;

    DL_DELETE(supply->jobs, job);
    if (job->fd >= 0) {
        close(job->fd);
    }
    model_release(job->before);
    model_release(job->found);
    free(job->url);
    free(job);
    close_when_done(supply);
}

static bool is_recheck(const struct job *job)
{
    return job->at_work.digest[0] != '\0';
}

/* Ends every order. Its callback may order, cancel or close the supply. */
static void finish(struct job *job)
{
    struct model *model = job->found != NULL ? job->found : job->before;
    struct supplied supplied = {.error = job->code != 0 ? &job->error : NULL,
                                .key = job->key,
                                .etag = job->origin.etag,
                                .is_unproven = job->origin.before[0] != '\0',
                                .is_bad = job->is_bad};
    struct order *order;

    job->step = STEP_TELL;
    job->supply->counters.from_before += job->code != 0 && model != NULL;
    while ((order = job->orders) != NULL) {
        order_end on_end = order->on_end;
        void *userdata = order->userdata;

        DL_DELETE(job->orders, order);
        free(order);
        supplied.model = model != NULL ? model_share(model) : NULL;
        on_end(userdata, &supplied);
    }
    free_job(job);
}

static void finish_unfetched(struct job *job)
{
    uint64_t *fails =
        is_recheck(job) ? &job->supply->counters.recheck_fails : &job->supply->counters.fetch_fails;

    *fails += 1;
    finish(job);
}

/* ---- The steps of a job --------------------------------------------------------------------- */

static void start_work(struct job *job, enum step step, uv_work_cb work, uv_after_work_cb after)
{
    job->step = step;
    job->work.data = job;
    /* It fails only for want of a callback. */
    (void)uv_queue_work(job->supply->config.loop, &job->work, work, after);
}

static bool is_at_work(const struct job *job)
{
    char digest[DIGEST_BYTES];

    return is_recheck(job) && digest_file(job->fd, digest) == 0 &&
           strcmp(digest, job->at_work.digest) == 0;
}

/* Stores the new archive as the address's last one; the one before it stays noted if it has run. */
static void remember(struct job *job, const char *digest)
{
    struct origin *origin = &job->origin;
    bool has_proof = origin->before[0] == '\0';

    if (has_proof && strcmp(origin->digest, digest) != 0) {
        memcpy(origin->before, origin->digest, sizeof(origin->before));
    } else if (strcmp(origin->before, digest) == 0) {
        origin->before[0] = '\0';
    }
    (void)snprintf(origin->digest, sizeof(origin->digest), "%s", digest);
    /* If this fails, the archive is fetched again another time. */
    (void)store_origin_set(job->supply->config.store, job->key, origin, NULL);
}

static void add(uv_work_t *work)
{
    struct job *job = work->data;
    struct store *store = job->supply->config.store;
    const char *digest = job->at_work.digest;

    if (!is_at_work(job)) {
        job->code = store_add(store, job->fd, &job->rules, &job->found, &job->error);
        job->is_bad = job->code == BATON_EPROTO || job->code == BATON_ETOOBIG;
        digest = job->found != NULL ? job->found->digest : NULL;
    }
    if (digest != NULL) {
        remember(job, digest);
    }
}

/* The last archive was rejected: gives the model before it, with the error of the rejection. */
static void give_before(struct job *job)
{
    model_release(job->found);
    job->found = NULL;
    job->is_bad = true;
    job->error = job->why_rejected;
    job->code = job->error.code;
}

static void on_added(uv_work_t *work, int status)
{
    struct job *job = work->data;

    (void)status;
    job->supply->counters.refused += job->code != 0;
    if (job->code != 0) {
        struct address address;
        if (address_parse(&address, job->url, NULL, NULL) == 0) {
            (void)error_wrap(&job->error, "model from %s", address.url.masked);
        }
    } else if (job->is_rejected && job->found != NULL &&
               rejects_have(&job->supply->rejects, job->found->digest, &job->why_rejected)) {
        give_before(job);
    }
    finish(job);
}

static void on_fetched(void *userdata, const struct fetch_result *result,
                       const struct baton_error *error)
{
    struct job *job = userdata;

    job->fetch = NULL;
    if (result != NULL) {
        memcpy(job->origin.etag, result->etag, sizeof(job->origin.etag));
    }
    if (error != NULL) {
        job->code = error->code;
        job->error = *error;
        job->is_bad = result != NULL;
        finish_unfetched(job);
    } else if (result->outcome == FETCH_SAME) {
        job->supply->counters.unchanged++;
        if (job->is_rejected) {
            give_before(job);
        }
        finish(job);
    } else {
        job->supply->counters.fetched++;
        start_work(job, STEP_ADD, add, on_added);
    }
}

/* Finds the last model of the address; if that was rejected, the one that ran before it. */
static void find_before(struct job *job)
{
    struct store *store = job->supply->config.store;
    struct rejects *rejects = &job->supply->rejects;
    struct origin *origin = &job->origin;

    if (store_origin(store, job->key, origin, NULL) != 0) {
        *origin = (struct origin){0};
        return;
    }
    job->is_rejected = rejects_have(rejects, origin->digest, &job->why_rejected) &&
                       !rejects_have(rejects, origin->before, NULL) &&
                       store_find(store, origin->before, &job->before, NULL) == 0;
    if (!job->is_rejected && store_find(store, origin->digest, &job->before, NULL) != 0) {
        origin->digest[0] = origin->etag[0] = '\0'; /* so the whole archive is fetched */
        (void)store_find(store, origin->before, &job->before, NULL);
    }
}

static void look(uv_work_t *work)
{
    struct job *job = work->data;
    struct store *store = job->supply->config.store;

    if (is_recheck(job)) {
        job->origin = job->at_work;
    } else {
        find_before(job);
    }
    job->fd = store_file(store, &job->error);
    job->code = job->fd < 0 ? job->fd : 0;
}

static void on_looked(uv_work_t *work, int status)
{
    struct job *job = work->data;
    const struct supply_config *config = &job->supply->config;

    (void)status;
    if (atomic_load(&job->is_canceled)) {
        finish(job);
        return;
    }
    job->step = STEP_FETCH;
    if (job->code == 0) {
        job->code = fetch_start(&job->fetch, job->supply->transfers, config->loop, &config->fetch,
                                job->url, job->origin.etag, job->fd, on_fetched, job, &job->error);
    }
    if (job->code != 0) {
        finish_unfetched(job);
    }
}

/* ---- Orders --------------------------------------------------------------------------------- */

static int identify(char key[DIGEST_BYTES], const struct supply *supply, int64_t model_id,
                    const char *url, struct baton_error *reterr)
{
    struct address address;
    char *identity = NULL;
    int rc = address_parse(&address, url, supply->config.fetch.hosts, reterr);

    rc = rc ? rc : address_identity(&identity, model_id, url, reterr);
    if (rc == 0 && digest_of(identity, strlen(identity), key) != 0) {
        rc = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    free(identity);
    return rc;
}

static bool may_join(const struct job *job)
{
    return job->step != STEP_TELL && !atomic_load(&job->is_canceled);
}

static bool is_same_origin(const struct origin *a, const struct origin *b)
{
    return strcmp(a->digest, b->digest) == 0 && strcmp(a->etag, b->etag) == 0;
}

/* Returns the job that fetches this model already; NULL: none. */
static struct job *job_of(const struct supply *supply, const char *key,
                          const struct origin *at_work)
{
    for (struct job *job = supply->jobs; job != NULL; job = job->next) {
        if (strcmp(job->key, key) == 0 && is_same_origin(&job->at_work, at_work) && may_join(job)) {
            return job;
        }
    }
    return NULL;
}

/* The fresh address is the one that will be valid for longest. */
static void renew(struct job *job, const char *url)
{
    char *copy = strcmp(job->url, url) != 0 ? strdup(url) : NULL;

    if (copy == NULL) {
        return; /* the same address, or out of memory: keep the old one */
    }
    free(job->url);
    job->url = copy;
    if (job->step == STEP_FETCH) {
        fetch_renew(job->fetch, url);
    }
}

static struct job *job_new(struct supply *supply, const char *key, const char *url,
                           const struct origin *at_work)
{
    struct job *job = calloc(1, sizeof(*job));

    if (job == NULL || (job->url = strdup(url)) == NULL) {
        free(job);
        return NULL;
    }
    memcpy(job->key, key, sizeof(job->key));
    job->at_work = *at_work;
    job->supply = supply;
    supply->counters.rechecks += is_recheck(job);
    job->fd = -1;
    atomic_init(&job->is_canceled, false);
    job->rules = supply->config.archive;
    job->rules.is_canceled = &job->is_canceled;
    DL_APPEND(supply->jobs, job);
    start_work(job, STEP_LOOK, look, on_looked);
    return job;
}

int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 const struct origin *at_work, order_end on_end, void *userdata,
                 struct baton_error *reterr)
{
    const struct origin nothing = {0};
    char key[DIGEST_BYTES];
    struct order *order;
    int rc = identify(key, supply, model_id, url, reterr);

    if (rc != 0) {
        return rc;
    }
    if (supply->is_closing) {
        return error_set(reterr, BATON_ECLOSED, "models are not fetched any more");
    }
    at_work = at_work != NULL ? at_work : &nothing;
    order = calloc(1, sizeof(*order));
    if (order != NULL) {
        order->job = job_of(supply, key, at_work);
        if (order->job != NULL) {
            renew(order->job, url);
        } else {
            order->job = job_new(supply, key, url, at_work);
        }
    }
    if (order == NULL || order->job == NULL) {
        free(order);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    order->on_end = on_end;
    order->userdata = userdata;
    DL_APPEND(order->job->orders, order);
    *ret = order;
    return 0;
}

/* A working thread ends soon by itself: unpacking checks the flag. */
static void give_up(struct job *job)
{
    atomic_store(&job->is_canceled, true);
    if (job->step == STEP_FETCH) {
        fetch_stop(job->fetch);
        free_job(job);
    }
}

void supply_cancel(struct order *order)
{
    struct job *job = order->job;

    DL_DELETE(job->orders, order);
    free(order);
    if (job->orders == NULL) {
        give_up(job);
    }
}

/* ---- Proofs and rejections ------------------------------------------------------------------ */

static void prove(uv_work_t *work)
{
    const struct proof *proof = work->data;
    struct store *store = proof->supply->config.store;
    struct origin origin;

    if (store_origin(store, proof->key, &origin, NULL) == 0 &&
        strcmp(origin.digest, proof->digest) == 0 && origin.before[0] != '\0') {
        origin.before[0] = '\0';
        (void)store_origin_set(store, proof->key, &origin, NULL);
    }
}

static void on_proved(uv_work_t *work, int status)
{
    struct proof *proof = work->data;
    struct supply *supply = proof->supply;

    (void)status;
    DL_DELETE(supply->proofs, proof);
    free(proof);
    close_when_done(supply);
}

void supply_prove(struct supply *supply, const char *key, const char *digest)
{
    struct proof *proof;

    for (proof = supply->proofs; proof != NULL; proof = proof->next) {
        if (strcmp(proof->key, key) == 0 && strcmp(proof->digest, digest) == 0) {
            return; /* another subscription has reported it */
        }
    }
    proof = calloc(1, sizeof(*proof));
    if (proof == NULL) {
        return; /* the next start of the model reports it */
    }
    proof->supply = supply;
    proof->work.data = proof;
    (void)snprintf(proof->key, sizeof(proof->key), "%s", key);
    (void)snprintf(proof->digest, sizeof(proof->digest), "%s", digest);
    DL_APPEND(supply->proofs, proof);
    (void)uv_queue_work(supply->config.loop, &proof->work, prove, on_proved);
}

void supply_reject(struct supply *supply, const char *digest, const struct baton_error *error)
{
    rejects_add(&supply->rejects, digest, error);
}

/* ---- The supply ----------------------------------------------------------------------------- */

int supply_new(struct supply **ret, const struct supply_config *config, struct baton_error *reterr)
{
    struct supply *supply = calloc(1, sizeof(*supply));
    int rc;

    if (supply == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    supply->config = *config;
    supply->config.fetch.bytes_max = config->archive.archive_bytes_max;
    if (rejects_init(&supply->rejects) != 0) {
        free(supply);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = transfers_new(&supply->transfers, config->loop, reterr);
    if (rc != 0) {
        rejects_fini(&supply->rejects);
        free(supply);
        return rc;
    }
    (void)uv_check_init(config->loop, &supply->end); /* it never fails */
    supply->end.data = supply;
    *ret = supply;
    return 0;
}

struct supply_counters supply_counters(const struct supply *supply)
{
    return supply->counters;
}

void supply_close(struct supply *supply, void (*on_closed)(void *userdata), void *userdata)
{
    struct job *job, *next;

    if (supply == NULL) {
        return;
    }
    supply->on_closed = on_closed;
    supply->userdata = userdata;
    for (job = supply->jobs; job != NULL; job = next) {
        next = job->next;
        while (job->orders != NULL) {
            struct order *order = job->orders;
            DL_DELETE(job->orders, order);
            free(order);
        }
        if (!atomic_load(&job->is_canceled)) {
            give_up(job);
        }
    }
    supply->is_closing = true;
    close_when_done(supply);
}
