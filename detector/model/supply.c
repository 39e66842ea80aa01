#include "detector/model/supply.h"

#include "base/error.h"
#include "detector/model/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

enum { THREADS_MAX = 32 }; /* further jobs wait; most of them would wait for the same server */

struct order {
    struct job *job;
    order_end on_end;
    void *userdata;
    struct order *prev, *next;
};

enum job_state { JOB_WAITS, JOB_RUNS, JOB_ENDED };

/* One question to the server of a model. */
struct job {
    struct supply *supply;
    char key[DIGEST_BYTES]; /* of number and address */
    struct origin at_work;  /* the model that the asker runs; without a digest: none */
    struct fetch *fetch;
    struct order *orders;
    struct job *prev, *next;
    atomic_int state; /* enum job_state */
    uv_thread_t thread;

    /* Of the thread while it runs. */
    struct model *before, *found; /* the earlier model; the result */
    struct origin origin;         /* as stored for the address, then of the new archive */
    bool is_rejected; /* the last archive was rejected; `before` is the one that ran before it */
    bool has_arrived, is_same; /* an archive came; the known one is still right */
    bool is_bad;
    int code;
    struct baton_error error, why_rejected;
};

/* A model has run; a thread notes it on the disk. */
struct proof {
    struct supply *supply;
    char key[DIGEST_BYTES], digest[DIGEST_BYTES];
    uv_work_t work;
};

struct supply {
    struct supply_config config;
    struct job *jobs;
    unsigned running, proofs; /* threads of jobs; proofs under way */
    struct supply_counters counters;
    uv_async_t ended; /* a job's thread has ended */
    bool is_closing;
    void (*on_closed)(void *userdata);
    void *userdata;

    uv_mutex_t adding; /* one archive is unpacked at a time */
    uv_mutex_t lock;   /* of the rejections */
    struct {
        char digest[DIGEST_BYTES];
        struct baton_error error;
    } rejects[REJECTS_MAX];
    unsigned reject_count; /* so far */
};

/* ---- Rejections ----------------------------------------------------------------------------- */

/* Returns the digest's place, or the place where it would be added. */
static unsigned place_of(const struct supply *supply, const char *digest)
{
    for (unsigned i = 0; i < REJECTS_MAX; i++) {
        if (strcmp(supply->rejects[i].digest, digest) == 0) {
            return i;
        }
    }
    return supply->reject_count % REJECTS_MAX;
}

void supply_reject(struct supply *supply, const char *digest, const struct baton_error *error)
{
    unsigned place;

    uv_mutex_lock(&supply->lock);
    place = place_of(supply, digest);
    supply->reject_count += strcmp(supply->rejects[place].digest, digest) != 0;
    (void)snprintf(supply->rejects[place].digest, DIGEST_BYTES, "%s", digest);
    supply->rejects[place].error = *error;
    uv_mutex_unlock(&supply->lock);
}

/* `ret` gets the reason. Any thread. */
static bool is_rejected(struct supply *supply, const char *digest, struct baton_error *ret)
{
    unsigned place;
    bool is_there;

    uv_mutex_lock(&supply->lock);
    place = place_of(supply, digest);
    is_there = digest[0] != '\0' && strcmp(supply->rejects[place].digest, digest) == 0;
    if (is_there) {
        *ret = supply->rejects[place].error;
    }
    uv_mutex_unlock(&supply->lock);
    return is_there;
}

/* ---- A job, on its thread ------------------------------------------------------------------- */

static bool is_recheck(const struct job *job)
{
    return job->at_work.digest[0] != '\0';
}

/* Finds the last model of the address; if that was rejected, the one that ran before it. */
static void find_before(struct job *job)
{
    struct store *store = job->supply->config.store;
    struct origin *origin = &job->origin;
    struct baton_error why;

    if (store_origin(store, job->key, origin, NULL) != 0) {
        *origin = (struct origin){0};
        return;
    }
    job->is_rejected = is_rejected(job->supply, origin->digest, &job->why_rejected) &&
                       !is_rejected(job->supply, origin->before, &why) &&
                       store_find(store, origin->before, &job->before, NULL) == 0;
    if (!job->is_rejected && store_find(store, origin->digest, &job->before, NULL) != 0) {
        origin->digest[0] = origin->etag[0] = '\0'; /* so the whole archive is fetched */
        (void)store_find(store, origin->before, &job->before, NULL);
    }
}

static bool is_at_work(const struct job *job, int fd)
{
    char digest[DIGEST_BYTES];

    return is_recheck(job) && digest_file(fd, digest) == 0 &&
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

/* The last archive was rejected: gives the model before it, with the error of the rejection. */
static void give_before(struct job *job)
{
    model_release(job->found);
    job->found = NULL;
    job->is_bad = true;
    job->error = job->why_rejected;
    job->code = job->error.code;
}

static void add(struct job *job, int fd)
{
    struct supply *supply = job->supply;
    struct archive_rules rules = supply->config.archive;
    const char *digest = job->at_work.digest;

    rules.is_canceled = fetch_is_stopped(job->fetch);
    if (!is_at_work(job, fd)) {
        uv_mutex_lock(&supply->adding);
        job->code = store_add(supply->config.store, fd, &rules, &job->found, &job->error);
        uv_mutex_unlock(&supply->adding);
        job->is_bad = job->code == BATON_EPROTO || job->code == BATON_ETOOBIG;
        digest = job->found != NULL ? job->found->digest : NULL;
    }
    if (digest != NULL) {
        remember(job, digest);
    }
    if (job->code != 0) {
        (void)error_wrap(&job->error, "model from %s", fetch_shown(job->fetch));
    } else if (job->is_rejected && job->found != NULL &&
               is_rejected(supply, job->found->digest, &job->why_rejected)) {
        give_before(job);
    }
}

static void ask(struct job *job, int fd)
{
    struct fetch_result result = {.etag = ""};

    job->code = fetch_run(job->fetch, job->origin.etag, fd, &result, &job->error);
    job->is_bad = job->code == BATON_ETOOBIG && result.etag[0] != '\0';
    job->is_same = result.is_same;
    job->has_arrived = job->code == 0 && !job->is_same;
    if (job->code == 0 || job->is_bad) {
        memcpy(job->origin.etag, result.etag, sizeof(job->origin.etag));
    }
    if (job->has_arrived) {
        add(job, fd);
    } else if (job->is_same && job->is_rejected) {
        give_before(job);
    }
}

static void run(void *userdata)
{
    struct job *job = userdata;
    struct supply *supply = job->supply;
    int fd;

    if (is_recheck(job)) {
        job->origin = job->at_work;
    } else {
        find_before(job);
    }
    fd = store_file(supply->config.store, &job->error);
    if (fd < 0) {
        job->code = fd;
    } else {
        ask(job, fd);
        close(fd);
    }
    atomic_store(&job->state, JOB_ENDED);
    (void)uv_async_send(&supply->ended);
}

/* ---- The end of a job ----------------------------------------------------------------------- */

static void on_ended_closed(uv_handle_t *handle)
{
    struct supply *supply = handle->data;
    void (*on_closed)(void *userdata) = supply->on_closed;
    void *userdata = supply->userdata;

    uv_mutex_destroy(&supply->adding);
    uv_mutex_destroy(&supply->lock);
    free(supply);
    if (on_closed != NULL) {
        on_closed(userdata);
    }
}

static void close_when_done(struct supply *supply)
{
    if (supply->is_closing && supply->jobs == NULL && supply->proofs == 0 &&
        !uv_is_closing((uv_handle_t *)&supply->ended)) {
        uv_close((uv_handle_t *)&supply->ended, on_ended_closed);
    }
}

static void job_free(struct job *job)
{
    model_release(job->before);
    model_release(job->found);
    fetch_free(job->fetch);
    free(job);
}

static void count(struct supply_counters *counters, const struct job *job)
{
    counters->fetched += job->has_arrived;
    counters->unchanged += job->is_same;
    if (job->has_arrived) {
        counters->refused += job->code != 0;
    } else if (job->code != 0 && !job->is_same) {
        *(is_recheck(job) ? &counters->recheck_fails : &counters->fetch_fails) += 1;
    }
    counters->from_before += job->code != 0 && job->before != NULL;
}

/* Ends every order. Its callback may order, cancel or close the supply; that cancels the rest. */
static void finish(struct job *job)
{
    struct supply *supply = job->supply;
    struct model *model = job->found != NULL ? job->found : job->before;
    struct supplied supplied = {.error = job->code != 0 ? &job->error : NULL,
                                .key = job->key,
                                .etag = job->origin.etag,
                                .is_unproven = job->origin.before[0] != '\0',
                                .is_bad = job->is_bad};
    struct order *order;

    if (job->orders != NULL) { /* else it was canceled */
        count(&supply->counters, job);
    }
    while ((order = job->orders) != NULL) {
        order_end on_end = order->on_end;
        void *userdata = order->userdata;

        DL_DELETE(job->orders, order);
        free(order);
        if (!supply->is_closing) {
            supplied.model = model != NULL ? model_share(model) : NULL;
            on_end(userdata, &supplied);
        }
    }
    job_free(job);
}

static struct job *first_in(const struct supply *supply, enum job_state state)
{
    struct job *job = supply->jobs;

    while (job != NULL && atomic_load(&job->state) != (int)state) {
        job = job->next;
    }
    return job;
}

static void start_jobs(struct supply *supply)
{
    struct job *job;

    while (supply->running < THREADS_MAX && (job = first_in(supply, JOB_WAITS)) != NULL) {
        atomic_store(&job->state, JOB_RUNS);
        if (uv_thread_create(&job->thread, run, job) != 0) {
            atomic_store(&job->state, JOB_WAITS); /* the end of another job starts it */
            return;
        }
        supply->running++;
    }
}

static void on_ended(uv_async_t *async)
{
    struct supply *supply = async->data;
    struct job *job;

    while ((job = first_in(supply, JOB_ENDED)) != NULL) {
        (void)uv_thread_join(&job->thread);
        supply->running--;
        DL_DELETE(supply->jobs, job);
        finish(job);
    }
    start_jobs(supply);
    close_when_done(supply);
}

/* ---- Orders --------------------------------------------------------------------------------- */

static int identify(char key[DIGEST_BYTES], int64_t model_id, const char *url,
                    struct baton_error *reterr)
{
    char *identity = NULL;
    int rc = address_identity(&identity, model_id, url, reterr);

    if (rc == 0 && digest_of(identity, strlen(identity), key) != 0) {
        rc = error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    free(identity);
    return rc;
}

/* Returns the job that fetches this model already; NULL: none. */
static struct job *job_of(const struct supply *supply, const char *key,
                          const struct origin *at_work)
{
    for (struct job *job = supply->jobs; job != NULL; job = job->next) {
        if (job->orders != NULL && strcmp(job->key, key) == 0 &&
            strcmp(job->at_work.digest, at_work->digest) == 0 &&
            strcmp(job->at_work.etag, at_work->etag) == 0) {
            return job;
        }
    }
    return NULL;
}

static int job_new(struct job **ret, struct supply *supply, const char *key, const char *url,
                   const struct origin *at_work, struct baton_error *reterr)
{
    struct job *job = calloc(1, sizeof(*job));
    int rc = job != NULL ? fetch_new(&job->fetch, &supply->config.fetch, url, reterr)
                         : error_set(reterr, BATON_ENOMEM, "out of memory");

    if (rc != 0) {
        free(job);
        return rc;
    }
    memcpy(job->key, key, sizeof(job->key));
    job->at_work = *at_work;
    job->supply = supply;
    supply->counters.rechecks += is_recheck(job);
    DL_APPEND(supply->jobs, job);
    start_jobs(supply);
    *ret = job;
    return 0;
}

int supply_order(struct order **ret, struct supply *supply, int64_t model_id, const char *url,
                 const struct origin *at_work, order_end on_end, void *userdata,
                 struct baton_error *reterr)
{
    const struct origin nothing = {0};
    struct url address;
    char key[DIGEST_BYTES];
    struct order *order = calloc(1, sizeof(*order));
    int rc = order != NULL ? address_parse(&address, url, supply->config.fetch.hosts, reterr)
                           : error_set(reterr, BATON_ENOMEM, "out of memory");

    at_work = at_work != NULL ? at_work : &nothing;
    rc = rc ? rc : identify(key, model_id, url, reterr);
    if (rc == 0 && supply->is_closing) {
        rc = error_set(reterr, BATON_ECLOSED, "models are not fetched any more");
    }
    if (rc == 0 && (order->job = job_of(supply, key, at_work)) != NULL) {
        fetch_renew(order->job->fetch, url); /* the address that will be valid for longest */
    } else if (rc == 0) {
        rc = job_new(&order->job, supply, key, url, at_work, reterr);
    }
    if (rc != 0) {
        free(order);
        return rc;
    }
    order->on_end = on_end;
    order->userdata = userdata;
    DL_APPEND(order->job->orders, order);
    *ret = order;
    return 0;
}

/* A job that has lost its last order. */
static void give_up(struct job *job)
{
    if (atomic_load(&job->state) == JOB_WAITS) {
        DL_DELETE(job->supply->jobs, job);
        job_free(job);
    } else {
        fetch_stop(job->fetch);
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

/* ---- Proofs --------------------------------------------------------------------------------- */

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
    free(proof);
    supply->proofs--;
    close_when_done(supply);
}

void supply_prove(struct supply *supply, const char *key, const char *digest)
{
    struct proof *proof = calloc(1, sizeof(*proof));

    if (proof == NULL) {
        return; /* the next start of the model reports it */
    }
    proof->supply = supply;
    proof->work.data = proof;
    (void)snprintf(proof->key, sizeof(proof->key), "%s", key);
    (void)snprintf(proof->digest, sizeof(proof->digest), "%s", digest);
    supply->proofs++;
    (void)uv_queue_work(supply->config.loop, &proof->work, prove, on_proved);
}

/* ---- The supply ----------------------------------------------------------------------------- */

int supply_new(struct supply **ret, const struct supply_config *config, struct baton_error *reterr)
{
    struct supply *supply = calloc(1, sizeof(*supply));

    if (supply == NULL || uv_async_init(config->loop, &supply->ended, on_ended) != 0) {
        free(supply);
        return error_set(reterr, BATON_ENOMEM, "out of memory or descriptors");
    }
    /* Neither fails on Linux. */
    (void)uv_mutex_init(&supply->adding);
    (void)uv_mutex_init(&supply->lock);
    supply->config = *config;
    supply->config.fetch.bytes_max = config->archive.archive_bytes_max;
    supply->ended.data = supply;
    *ret = supply;
    return 0;
}

struct supply_counters supply_counters(const struct supply *supply)
{
    return supply->counters;
}

void supply_close(struct supply *supply, void (*on_closed)(void *userdata), void *userdata)
{
    struct order *order = NULL, *next_order = NULL;
    struct job *job = NULL, *next = NULL;

    if (supply == NULL) {
        return;
    }
    supply->on_closed = on_closed;
    supply->userdata = userdata;
    supply->is_closing = true;
    DL_FOREACH_SAFE (supply->jobs, job, next) {
        DL_FOREACH_SAFE (job->orders, order, next_order) {
            free(order);
        }
        job->orders = NULL;
        give_up(job);
    }
    close_when_done(supply);
}
