#include "work/worker.h"

#include "work/mutants.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum held_state {
    HELD_RUNNING, /* a copy of it runs, or is about to start */
    HELD_HALTING, /* its copy is to end */
    HELD_ENDED,   /* its result waits for the leader's ack */
    HELD_GONE,    /* its copy was ended without a result; so does this */
};

/* A placing. */
struct placing {
    struct work_item *item; /* NULL: none */
    uint64_t epoch;
    uint32_t attempt;
};

struct held {
    struct placing now;
    struct placing then; /* starts when the present copy has ended */
    uint64_t session;    /* in which it was placed */
    enum held_state state;
    bool is_started; /* its WORK_START was given out */
    bool is_order;   /* in the queue of orders */
    bool is_unsent;  /* in the queue of results */
    uint16_t progress_permille;
    char **keys; /* NULL: those of the item */
    struct work_result result;
    struct held *order_prev, *order_next;   /* in the queue of orders */
    struct held *unsent_prev, *unsent_next; /* in the queue of results */
    UT_hash_handle hh;
    char id[];
};

struct work_worker {
    struct work_worker_options options;
    uint64_t session; /* 0: none */
    uint64_t ledger;
    struct work_number seen;
    struct held *held;
    struct held *orders;
    struct held *unsent;
    uint32_t cpu_permille;
    size_t results, gone; /* of those that are held */
    bool is_leaving, is_report_due, is_asked;
    instant next_report;
};

struct work_worker *work_worker_new(const struct work_worker_options *options)
{
    struct work_worker *worker = calloc(1, sizeof(*worker));

    if (worker) {
        worker->options = *options;
        worker->next_report = INSTANT_NEVER;
    }
    return worker;
}

static void unsent_set(struct work_worker *worker, struct held *held, bool is_unsent)
{
    if (is_unsent && !held->is_unsent) {
        DL_APPEND2(worker->unsent, held, unsent_prev, unsent_next);
    } else if (!is_unsent && held->is_unsent) {
        DL_DELETE2(worker->unsent, held, unsent_prev, unsent_next);
    }
    held->is_unsent = is_unsent;
}

static void held_free(struct work_worker *worker, struct held *held)
{
    if (held->is_order) {
        DL_DELETE2(worker->orders, held, order_prev, order_next);
    }
    unsent_set(worker, held, false);
    worker->results -= held->state == HELD_ENDED;
    worker->gone -= held->state == HELD_GONE;
    HASH_DEL(worker->held, held);
    work_item_unref(held->now.item);
    work_item_unref(held->then.item);
    work_result_fini(&held->result);
    work_keys_free(held->keys);
    free(held);
}

void work_worker_free(struct work_worker *worker)
{
    struct held *held, *next;

    if (!worker) {
        return;
    }
    for (held = worker->held; held; held = next) {
        next = held->hh.next;
        held_free(worker, held);
    }
    free(worker);
}

static void report_at_once(struct work_worker *worker)
{
    worker->is_report_due = worker->session != 0;
}

/* ---- What runs ------------------------------------------------------------------------------- */

static void order_due(struct work_worker *worker, struct held *held)
{
    if (!held->is_order) {
        held->is_order = true;
        DL_APPEND2(worker->orders, held, order_prev, order_next);
    }
}

static void begin_placing(struct work_worker *worker, struct held *held, struct placing placing)
{
    worker->results -= held->state == HELD_ENDED;
    worker->gone -= held->state == HELD_GONE;
    work_result_fini(&held->result);
    held->result = (struct work_result){0};
    work_keys_free(held->keys);
    held->keys = NULL;
    work_item_unref(held->now.item);
    held->now = placing;
    held->session = worker->session;
    held->state = HELD_RUNNING;
    held->is_started = false;
    unsent_set(worker, held, false);
    held->progress_permille = 0;
    order_due(worker, held);
}

/* The copy is gone: the next placing starts. The present one never does again, whichever leader
 * assigns it: each start has an epoch of its own. */
static void held_ended(struct work_worker *worker, struct held *held)
{
    struct placing then = held->then;

    held->then = (struct placing){0};
    if (then.item) {
        begin_placing(worker, held, then);
    } else if (held->is_started && (worker->session == 0 || worker->session == held->session)) {
        held->state = HELD_GONE;
        worker->gone++;
    } else {
        held_free(worker, held);
    }
    report_at_once(worker);
}

static void halt(struct work_worker *worker, struct held *held)
{
    if (held->state != HELD_RUNNING) {
        return;
    }
    if (!held->is_started) {
        held_ended(worker, held);
        return;
    }
    held->state = HELD_HALTING;
    order_due(worker, held);
}

static void forget_next(struct held *held)
{
    work_item_unref(held->then.item);
    held->then = (struct placing){0};
}

void work_worker_session(struct work_worker *worker, uint64_t session, instant now)
{
    struct held *held, *next;

    if (session == worker->session) {
        return;
    }
    worker->session = session;
    for (held = worker->held; held; held = next) {
        next = held->hh.next;
        forget_next(held);
        if (!WORK_MUTANT(RUNS_WITHOUT_SESSION)) {
            halt(worker, held);
        }
        if (held->state == HELD_GONE && session != 0 && held->session != session) {
            held_free(worker, held);
        }
    }
    worker->is_asked = false;
    worker->is_report_due = session != 0;
    worker->next_report =
        session != 0 ? instant_add(now, worker->options.report_interval) : INSTANT_NEVER;
}

/* NULL: that copy is not there. */
static struct held *find_copy(const struct work_worker *worker, const char *id, uint64_t epoch)
{
    struct held *held;

    HASH_FIND_STR(worker->held, id, held);
    return held && held->now.epoch == epoch && held->state != HELD_ENDED && held->state != HELD_GONE
               ? held
               : NULL;
}

void work_worker_gave_up(struct work_worker *worker, const char *id, uint64_t epoch)
{
    struct held *held = find_copy(worker, id, epoch);

    if (held) {
        held_ended(worker, held);
    }
}

void work_worker_ended(struct work_worker *worker, const struct work_result *result, instant now)
{
    struct held *held = find_copy(worker, result->id, result->epoch);

    (void)now;
    if (!held) {
        return;
    }
    if (held->state == HELD_HALTING || work_result_copy(&held->result, result) != BATON_OK) {
        held_ended(worker, held); /* without memory the leader starts it anew */
        return;
    }
    held->state = HELD_ENDED;
    unsent_set(worker, held, true);
    worker->results++;
}

bool work_worker_progress(struct work_worker *worker, const char *id, int permille,
                          const char *const *keys)
{
    struct held *held;
    char **copy;

    HASH_FIND_STR(worker->held, id, held);
    if (!held || held->state != HELD_RUNNING) {
        return false;
    }
    if (permille >= 0) {
        held->progress_permille = (uint16_t)(permille > 1000 ? 1000 : permille);
    }
    if (keys) {
        if (work_keys_copy(&copy, keys) != BATON_OK) {
            return false;
        }
        work_keys_free(held->keys);
        held->keys = copy;
    }
    return true;
}

/* ---- The leader's messages ------------------------------------------------------------------- */

static struct held *held_new(struct work_worker *worker, const char *id)
{
    size_t bytes = strlen(id) + 1;
    struct held *held = calloc(1, sizeof(*held) + bytes);

    if (held) {
        memcpy(held->id, id, bytes);
        HASH_ADD_STR(worker->held, id, held);
        if (!held->hh.tbl) {
            free(held);
            return NULL;
        }
    }
    return held;
}

static void assign(struct work_worker *worker, const struct work_assignment *assignment)
{
    struct placing placing = {assignment->item, assignment->epoch, assignment->attempt};
    struct held *held;

    HASH_FIND_STR(worker->held, assignment->item->id, held);
    if (held && placing.epoch <= held->now.epoch && held->session == worker->session) {
        if (held->state == HELD_ENDED && placing.epoch == held->now.epoch) {
            unsent_set(worker, held, true);
        } else if (held->state == HELD_GONE) {
            report_at_once(worker);
        }
        return;
    }
    if (!held && !(held = held_new(worker, assignment->item->id))) {
        return; /* the next report lacks it, and the leader assigns it again */
    }
    (void)work_item_ref(placing.item);
    if (!held->now.item || held->state == HELD_ENDED || held->state == HELD_GONE ||
        WORK_MUTANT(TWO_COPIES)) {
        begin_placing(worker, held, placing);
        return;
    }
    forget_next(held);
    held->then = placing;
    halt(worker, held);
}

static void stop(struct work_worker *worker, const struct work_claim *stopped)
{
    struct held *held;

    HASH_FIND_STR(worker->held, stopped->id, held);
    if (!held || held->state == HELD_GONE) {
        report_at_once(worker); /* it is not here: that is the reply */
        return;
    }
    if (held->then.item && held->then.epoch <= stopped->epoch) {
        forget_next(held);
    }
    if (held->now.epoch <= stopped->epoch) {
        halt(worker, held);
    }
}

static void acknowledged(struct work_worker *worker, const struct work_claim *acked)
{
    struct held *held;

    HASH_FIND_STR(worker->held, acked->id, held);
    if (held && (held->state == HELD_ENDED || held->state == HELD_GONE) &&
        held->now.epoch <= acked->epoch) {
        held_free(worker, held);
    }
}

static void send_results(struct work_worker *worker)
{
    struct held *held, *next;

    for (held = worker->held; held; held = next) {
        next = held->hh.next;
        if (held->state == HELD_ENDED) {
            unsent_set(worker, held, true);
        }
    }
}

static bool is_new(struct work_worker *worker, const struct work_message *message)
{
    bool is_for_us = message->session == worker->session || WORK_MUTANT(ANY_SESSION) ||
                     (message->type == WORK_ASK && message->session == 0);

    return worker->session != 0 && is_for_us &&
           (work_number_before(worker->seen, message->number) || WORK_MUTANT(TAKES_OLD_MESSAGES));
}

void work_worker_hear(struct work_worker *worker, const struct work_message *message, instant now)
{
    (void)now;
    if (message->type == WORK_REPORT || message->type == WORK_DONE || !is_new(worker, message)) {
        return;
    }
    if (work_number_before(worker->seen, message->number)) {
        worker->seen = message->number;
    }
    worker->ledger = message->ledger ? message->ledger : worker->ledger;
    for (size_t i = 0; i < message->count; i++) {
        if (message->type == WORK_ASSIGN) {
            assign(worker, &message->assignments[i]);
        } else if (message->type == WORK_STOP) {
            stop(worker, &message->ids[i]);
        } else {
            acknowledged(worker, &message->ids[i]);
        }
    }
    if (message->type == WORK_ASK) {
        send_results(worker);                    /* the leader before may have had them */
        worker->is_asked = message->ledger == 0; /* it has the items otherwise */
        report_at_once(worker);
    }
}

/* ---- Time and what it tells ------------------------------------------------------------------ */

void work_worker_load(struct work_worker *worker, uint32_t cpu_permille)
{
    worker->cpu_permille = cpu_permille;
}

void work_worker_leave(struct work_worker *worker, instant now)
{
    (void)now;
    worker->is_leaving = true;
    report_at_once(worker);
}

void work_worker_tick(struct work_worker *worker, instant now)
{
    if (worker->session == 0 || instant_before(now, worker->next_report)) {
        return;
    }
    worker->next_report = instant_add(now, worker->options.report_interval);
    worker->is_report_due = true;
    if (!WORK_MUTANT(RESULT_SENT_ONCE)) {
        send_results(worker);
    }
}

instant work_worker_deadline(const struct work_worker *worker)
{
    return worker->next_report;
}

bool work_worker_next_order(struct work_worker *worker, struct work_order *ret)
{
    struct held *held = worker->orders;

    if (!held) {
        return false;
    }
    DL_DELETE2(worker->orders, held, order_prev, order_next);
    held->is_order = false;
    *ret = (struct work_order){.type = held->state == HELD_RUNNING ? WORK_START : WORK_HALT,
                               .id = held->id,
                               .item = held->now.item,
                               .epoch = held->now.epoch,
                               .attempt = held->now.attempt};
    held->is_started = true;
    return true;
}

static void write_done(struct work_worker *worker, struct held *held, struct buffer *buffer)
{
    struct work_message message = {
        .type = WORK_DONE, .session = held->session, .result = held->result};

    memcpy(message.worker, worker->options.name, sizeof(message.worker));
    work_message_write(&message, buffer);
    unsent_set(worker, held, false);
}

/* Items come with their claims as far as a message has room: the rest of them is adopted by no
 * leader that has lost the ledger. */
enum { REPLY_BYTES_MAX = WORK_MESSAGE_MAX / 2 };

static bool fill_claims(struct work_worker *worker, struct work_report *report)
{
    size_t bytes = 0;
    struct held *held, *next;

    report->claims = calloc(HASH_COUNT(worker->held) + 1, sizeof(*report->claims));
    if (!report->claims) {
        return false;
    }
    for (held = worker->held; held; held = next) {
        next = held->hh.next;
        bool has_next = held->then.item;
        const struct placing *placing = has_next ? &held->then : &held->now;

        if (!has_next && held->session != worker->session) {
            continue;
        }
        bytes += placing->item->body_bytes + WORK_NEEDS_MAX;
        report->claims[report->claim_count++] = (struct work_claim){
            .id = held->id,
            .epoch = placing->epoch,
            .is_ended = !has_next && held->state == HELD_ENDED,
            .is_gone = !has_next && held->state == HELD_GONE,
            .progress_permille = has_next ? 0 : held->progress_permille,
            .keys = has_next ? NULL : held->keys,
            .item = worker->is_asked && bytes < REPLY_BYTES_MAX ? placing->item : NULL,
        };
    }
    return true;
}

static void write_report(struct work_worker *worker, struct buffer *buffer)
{
    struct work_message message = {.type = WORK_REPORT};
    struct work_report *report = &message.report;

    *report = (struct work_report){
        .session = worker->session,
        .ledger = worker->ledger,
        .seen = worker->seen,
        .slots = worker->options.slots,
        .gpus = worker->options.gpus,
        .memory_mib = worker->options.memory_mib,
        .cpu_permille = worker->cpu_permille,
        .is_leaving = worker->is_leaving,
        .is_reply = worker->is_asked,
    };
    memcpy(report->worker, worker->options.name, sizeof(report->worker));
    memcpy(report->labels, worker->options.labels, sizeof(report->labels));
    if (fill_claims(worker, report)) {
        work_message_write(&message, buffer);
        free(report->claims);
    }
}

bool work_worker_next_message(struct work_worker *worker, struct buffer *buffer)
{
    if (worker->session == 0) {
        return false;
    }
    if (worker->unsent) {
        write_done(worker, worker->unsent, buffer);
        return true;
    }
    if (!worker->is_report_due) {
        return false;
    }
    write_report(worker, buffer);
    worker->is_report_due = worker->is_asked = false;
    return true;
}

size_t work_worker_running(const struct work_worker *worker)
{
    return HASH_COUNT(worker->held) - worker->results - worker->gone;
}

size_t work_worker_results(const struct work_worker *worker)
{
    return worker->results;
}

uint64_t work_worker_session_of(const struct work_worker *worker)
{
    return worker->session;
}
