/* This process as the pool's leader: the core work/leader.h, on the member's keys and channels.
 *
 *   acquired ─▶ lead_begin ─▶ the keys are read, workers asked ─▶ work_leader_loaded ─▶ ready
 *                                │ failed: again after a moment
 *   lost, stopped ─▶ lead_end: nothing of this leadership has an effect any more
 */
#include "pool/pool_int.h"

#include "member/feed.h"
#include "pool/load.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    UNDER_WAY_MAX = 64,      /* reads, writes and messages; and of these, */
    BYTES_MAX = 1024 * 1024, /* so much: an agent closes a client with 4 MiB that wait */
    RETRY_MS = 300,
    WATCHES = 4
};

/* What clients write, and the mark of the ledger: its loss is that of the state. */
static const char *const watched[WATCHES] = {"c/", "d/", "s/", "ledger"};
enum { EARLY_WATCHES = 2 }; /* the first ones, before the rest is read */

/* A request that failed: the core hears of it, or it is made again, after a moment. */
struct failed {
    struct failed *prev, *next;
    instant retry_at;
    int code;
    bool is_read;
    char key[POOL_KEY_MAX];
};

struct lead {
    struct work_leader *core;
    uint64_t epoch;
    struct load *load;
    struct feed *watches[WATCHES];
    struct feed *questions;
    struct failed *failed;
    size_t under_way;
    size_t bytes;      /* of the writes and messages among them */
    instant load_at;   /* INSTANT_NEVER: it was begun */
    instant resign_at; /* INSTANT_NEVER: it leads on */
    instant watch_at;  /* the rest of what is watched, once it is settled; INSTANT_NEVER: it is */
    bool is_giving;    /* outputs are being carried out */
    bool is_due;       /* perhaps there are some */
    bool is_ready;
};

static void give(struct pool *pool, struct moment moment);

/* In the next turn of the loop: what comes in this one is carried out together, as one message to a
 * worker and not as one for each bucket that was stored. */
static void give_soon(struct pool *pool)
{
    pool->lead->is_due = true;
    pool_rearm(pool);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void take_value(struct pool *pool, const char *key, const struct provider_value *value)
{
    struct moment moment = pool_now();

    work_leader_value(pool->lead->core, key, value->data, value->bytes, value->revision, moment.now,
                      moment.unix_ms);
    give(pool, moment);
}

static void take_read(struct pool *pool, const char *key, const struct provider_value *value)
{
    struct moment moment = pool_now();

    work_leader_read(pool->lead->core, key, value->data, value->bytes, value->revision, moment.now,
                     moment.unix_ms);
    give(pool, moment);
}

static void on_read(struct pool *pool, const char *key, uint64_t tag, const struct reply *reply);

static void read_key(struct pool *pool, const char *key)
{
    pool->lead->under_way++;
    request_get(pool, key, pool->leads, on_read);
}

/* A deletion cancels what was submitted, and a watch on Redis may report one that never was: of a
 * key that is newer than the list which lacks it. */
static void on_change(void *userdata, const struct provider_value *value)
{
    struct pool *pool = userdata;
    char prefix[POOL_KEY_MAX];
    const char *key;

    if (strlen(value->key) >= POOL_KEY_MAX) {
        return; /* none of ours */
    }
    pool_key(prefix, pool->name, "");
    key = value->key + strlen(prefix);
    if (value->data) {
        take_value(pool, key, value);
    } else {
        read_key(pool, key);
    }
}

static int watch(struct pool *pool, size_t from, size_t to, struct baton_error *reterr)
{
    struct lead *lead = pool->lead;
    char prefix[POOL_KEY_MAX];
    int code = BATON_OK;

    for (size_t i = from; i < to && code == BATON_OK && pool->lead == lead; i++) {
        pool_key(prefix, pool->name, watched[i]);
        feed_stop(lead->watches[i]);
        lead->watches[i] = NULL;
        code = feed_watch(&lead->watches[i], pool->member, prefix, on_change, pool, reterr);
    }
    return code;
}

static void load_later(struct pool *pool, const struct baton_error *error)
{
    pool->lead->load_at = instant_add(clock_now(), SPAN_MS(RETRY_MS));
    pool_complain(pool, error);
    pool_rearm(pool);
}

static void on_value(void *userdata, const char *key, const struct provider_value *value)
{
    take_read(userdata, key, value);
}

static void on_loaded(void *userdata, int code, const struct baton_error *error)
{
    struct pool *pool = userdata;
    struct moment moment = pool_now();

    if (code != BATON_OK) {
        load_later(pool, error);
        return;
    }
    work_leader_loaded(pool->lead->core, moment.now, moment.unix_ms);
    give(pool, moment);
}

/* The first values of a watch are all that were read a moment ago. */
static void watch_the_rest(struct pool *pool)
{
    struct lead *lead = pool->lead;
    struct baton_error error;

    if (!work_leader_is_settled(lead->core) || instant_before(clock_now(), lead->watch_at)) {
        return;
    }
    lead->watch_at = INSTANT_NEVER;
    if (watch(pool, EARLY_WATCHES, WATCHES, &error) != BATON_OK && pool->lead == lead) {
        lead->watch_at = instant_add(clock_now(), SPAN_MS(RETRY_MS));
        pool_complain(pool, &error);
    }
}

static void load(struct pool *pool)
{
    const struct load_calls calls = {.on_value = on_value, .done = on_loaded, .userdata = pool};
    struct lead *lead = pool->lead;
    struct baton_error error;
    int code;

    lead->load_at = INSTANT_NEVER;
    code = watch(pool, 0, EARLY_WATCHES, &error);
    if (code == BATON_OK) {
        code = load_begin(&lead->load, pool->member, pool->name, &calls, &error);
    }
    if (code != BATON_OK) {
        load_later(pool, &error);
    }
}

/* ---- Reads and writes that the core wants ---------------------------------------------------- */

static bool is_present(const struct pool *pool, uint64_t tag)
{
    return pool->lead && tag == pool->leads;
}

/* A refusal may last, and what timed out may still be carried out: neither is looked into at
 * once. */
static void fail(struct pool *pool, const char *key, bool is_read, const struct reply *reply)
{
    struct failed *failed = calloc(1, sizeof(*failed));

    if (!failed) {
        pool->lead->resign_at = INSTANT_PAST; /* another process may have memory */
        return;
    }
    failed->code = reply->code;
    failed->is_read = is_read;
    failed->retry_at = instant_add(clock_now(), SPAN_MS(RETRY_MS));
    memcpy(failed->key, key, strlen(key) + 1);
    DL_APPEND(pool->lead->failed, failed);
    pool_rearm(pool);
    pool_complain(pool, reply->error);
}

static void on_read(struct pool *pool, const char *key, uint64_t tag, const struct reply *reply)
{
    const struct provider_value value = {
        .data = reply->data, .bytes = reply->bytes, .revision = reply->revision};

    if (!is_present(pool, tag)) {
        return;
    }
    if (reply->code != BATON_OK) {
        fail(pool, key, true, reply);
    } else {
        pool->lead->under_way--;
        take_read(pool, key, &value);
    }
}

static void on_stored(struct pool *pool, const char *key, uint64_t tag, const struct reply *reply)
{
    struct moment moment = pool_now();

    if (!is_present(pool, tag)) {
        return;
    }
    pool->lead->bytes -= reply->bytes;
    if (reply->code != BATON_OK && reply->code != BATON_ECONFLICT) {
        fail(pool, key, false, reply);
        return;
    }
    pool->lead->under_way--;
    work_leader_stored(pool->lead->core, key, reply->code, reply->revision, moment.now,
                       moment.unix_ms);
    give_soon(pool);
}

static void take_up(struct pool *pool, struct moment moment)
{
    struct failed *next;

    for (struct failed *failed = pool->lead->failed; failed; failed = next) {
        struct failed now = *failed;

        next = now.next;
        if (instant_before(moment.now, now.retry_at)) {
            continue;
        }
        DL_DELETE(pool->lead->failed, failed);
        free(failed);
        if (now.is_read) {
            request_get(pool, now.key, pool->leads, on_read);
        } else {
            pool->lead->under_way--;
            work_leader_stored(pool->lead->core, now.key, now.code, 0, moment.now, moment.unix_ms);
        }
    }
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static void tell_of(struct pool *pool, enum pool_event_type type, const char *name, uint64_t epoch)
{
    pool_tell(pool, &(struct pool_event){.type = type, .name = name, .epoch = epoch});
}

/* A message may be lost: reports show that. */
static void on_sent(struct pool *pool, const char *name, uint64_t tag, const struct reply *reply)
{
    (void)name;
    if (!is_present(pool, tag)) {
        return;
    }
    pool->lead->bytes -= reply->bytes;
    pool->lead->under_way--;
    give_soon(pool);
    if (reply->code != BATON_OK) {
        pool_complain(pool, reply->error);
    }
}

/* The next leader rebuilds the ledger, in another epoch: workers take no notice of numbers that
 * begin again. */
static void tell_of_loss(struct pool *pool)
{
    struct baton_error error;

    (void)error_set(
        &error, BATON_ECORRUPT,
        "pool \"%s\": its ledger is gone from the state, and is rebuilt from the workers",
        pool->name);
    pool_tell(pool, &(struct pool_event){.type = POOL_ERROR, .error = error});
}

static void carry_out(struct pool *pool, const struct work_output *output)
{
    struct lead *lead = pool->lead;
    char worker[BATON_NAME_MAX] = "";

    if (output->type == WORK_ENTER || output->type == WORK_LEAVE) {
        memcpy(worker, output->worker, strlen(output->worker) + 1); /* what it causes comes back */
    }
    switch (output->type) {
    case WORK_PUT:
        lead->under_way++;
        lead->bytes += output->bytes;
        request_put(pool, output->key, pool->leads, output->data, output->bytes, output->revision,
                    output->lifetime, on_stored);
        break;
    case WORK_READ:
        read_key(pool, output->key);
        break;
    case WORK_SEND:
        lead->under_way++;
        lead->bytes += output->bytes;
        request_publish(pool, output->worker ? output->worker : POOL_ALL, pool->leads, output->data,
                        output->bytes, on_sent);
        break;
    case WORK_ENTER:
        tell_of(pool, POOL_WORKER_USED, worker, 0);
        contend_enter(pool, worker);
        break;
    case WORK_LEAVE:
        contend_leave(pool, worker);
        break;
    case WORK_RESIGN:
        if (output->is_lost) {
            tell_of_loss(pool);
        }
        pool_resign(pool);
        break;
    }
}

/* Carries out what the core wants by now. A reply may come inside, and the leadership end. */
static void give(struct pool *pool, struct moment moment)
{
    struct lead *lead = pool->lead;
    struct work_output output;
    uint64_t leads = pool->leads;

    if (!lead || lead->is_giving) {
        return;
    }
    lead->is_giving = true;
    lead->is_due = false;
    while (is_present(pool, leads) && lead->under_way < UNDER_WAY_MAX && lead->bytes < BYTES_MAX &&
           election_is_leader(pool->leadership.election, NULL) &&
           work_leader_next_output(lead->core, moment.now, moment.unix_ms, &output)) {
        carry_out(pool, &output);
    }
    if (!is_present(pool, leads)) {
        return;
    }
    lead->is_giving = false;
    if (!lead->is_ready && work_leader_is_ready(lead->core)) {
        lead->is_ready = true;
        tell_of(pool, POOL_READY, NULL, lead->epoch);
    }
    if (is_present(pool, leads)) {
        watch_the_rest(pool);
    }
    pool_rearm(pool);
}

/* ---- What comes ------------------------------------------------------------------------------ */

void lead_hear(struct pool *pool, const struct work_message *message)
{
    struct moment moment = pool_now();

    if (pool->lead) {
        work_leader_hear(pool->lead->core, message, moment.now, moment.unix_ms);
        give_soon(pool);
    }
}

void lead_session(struct pool *pool, const char *worker, uint64_t epoch, bool is_ours)
{
    struct moment moment = pool_now();

    if (pool->lead && is_ours) {
        tell_of(pool, POOL_WORKER_GONE, worker, epoch);
    }
    if (pool->lead) {
        work_leader_session(pool->lead->core, worker, epoch, is_ours, moment.now, moment.unix_ms);
        give(pool, moment);
    }
}

void lead_tick(struct pool *pool)
{
    struct moment moment = pool_now();

    if (!pool->lead) {
        return;
    }
    if (!instant_before(moment.now, pool->lead->resign_at)) {
        pool_resign(pool);
        return;
    }
    if (!instant_before(moment.now, pool->lead->load_at)) {
        load(pool);
        return;
    }
    take_up(pool, moment);
    work_leader_tick(pool->lead->core, moment.now, moment.unix_ms);
    give(pool, moment);
}

instant lead_deadline(const struct pool *pool)
{
    const struct lead *lead = pool->lead;
    instant next;

    if (!lead) {
        return INSTANT_NEVER;
    }
    if (lead->is_due) {
        return INSTANT_PAST;
    }
    next =
        instant_min(instant_min(lead->load_at, lead->resign_at), work_leader_deadline(lead->core));
    if (work_leader_is_settled(lead->core)) {
        next = instant_min(next, lead->watch_at);
    }
    for (const struct failed *failed = lead->failed; failed; failed = failed->next) {
        next = instant_min(next, failed->retry_at);
    }
    return next;
}

const struct work_leader *pool_leader(const struct pool *pool)
{
    return pool->lead ? pool->lead->core : NULL;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void discard(struct lead *lead)
{
    struct failed *next;

    load_stop(lead->load);
    for (size_t i = 0; i < WATCHES; i++) {
        feed_stop(lead->watches[i]);
    }
    feed_stop(lead->questions);
    for (struct failed *failed = lead->failed; failed; failed = next) {
        next = failed->next;
        free(failed);
    }
    work_leader_free(lead->core);
    free(lead);
}

void lead_begin(struct pool *pool, uint64_t epoch)
{
    struct work_leader_options options = pool->leader_options;
    struct moment moment = pool_now();
    struct lead *lead = calloc(1, sizeof(*lead));
    struct baton_error error;

    options.epoch = epoch;
    (void)RAND_bytes((unsigned char *)&options.random, sizeof(options.random));
    options.random &= WORK_NUMBER_MAX;
    if (!lead || !(lead->core = work_leader_new(&options, moment.now))) {
        free(lead);
        pool_complain(pool, &(struct baton_error){BATON_ENOMEM, "out of memory"});
        pool_resign(pool);
        return;
    }
    reports_read(pool, SIZE_MAX);
    lead->epoch = epoch;
    lead->resign_at = INSTANT_NEVER;
    lead->watch_at = INSTANT_PAST;
    pool->lead = lead;
    pool->leads++;
    heard_pass(&pool->heard, lead->core, options.worker_lease, moment.now);
    tell_of(pool, POOL_LEADS, NULL, epoch);
    if (status_serve(&lead->questions, pool, &error) != BATON_OK) {
        pool_complain(pool, &error);
    }
    load(pool);
}

void lead_end(struct pool *pool)
{
    struct lead *lead = pool->lead;
    uint64_t epoch = lead ? lead->epoch : 0;

    if (!lead) {
        return;
    }
    pool->lead = NULL;
    contend_leave_all(pool);
    discard(lead);
    tell_of(pool, POOL_LEADS_NO_MORE, NULL, epoch);
}
