#include "work/leader_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { GATHER_MS = 100, SETTLE_MS = 20 };

struct work_leader *work_leader_new(const struct work_leader_options *options, instant now)
{
    struct work_leader *leader = calloc(1, sizeof(*leader));

    if (!leader || !(leader->ledger = ledger_new())) {
        free(leader);
        return NULL;
    }
    leader->options = *options;
    ledger_set_writer(leader->ledger, options->epoch);
    leader->began = now;
    leader->chosen = (options->random & WORK_NUMBER_MAX) | 1; /* 0 stands for none */
    leader->place_at = leader->settle_by = INSTANT_NEVER;
    leader->next_tick = leader->next_balance = leader->next_purge = INSTANT_NEVER;
    buffer_init(&leader->out, WORK_MESSAGE_MAX); /* a bucket is shorter */
    return leader;
}

void work_leader_free(struct work_leader *leader)
{
    struct leader_known *known, *next;
    struct leader_result *result, *after;

    if (!leader) {
        return;
    }
    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        leader_forget(leader, known);
    }
    for (result = leader->results; result; result = after) {
        after = result->hh.next;
        leader_result_free(leader, result);
    }
    leader_early_free(leader);
    leader_clients_free(leader);
    leader_store_free(leader);
    ledger_free(leader->ledger);
    buffer_fini(&leader->out);
    free(leader->given);
    free(leader);
}

/* A failed attempt's wait goes on under another leader, by the wall clock. */
static void restore_waits(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    for (struct ledger_entry *entry = ledger_idle(leader->ledger); entry; entry = entry->next) {
        span wait = leader_backoff(entry);
        int64_t passed_ms = now_unix_ms - entry->since_unix_ms;

        if (passed_ms > 0 && wait.ns > 0) {
            wait =
                passed_ms < wait.ns / 1000000 ? SPAN_NS(wait.ns - passed_ms * 1000000) : SPAN_NS(0);
        }
        entry->not_before = instant_add(now, wait);
    }
}

void work_leader_loaded(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    leader->is_loaded = true;
    if (leader->is_complete && !leader_has_all_buckets(leader)) {
        leader_lose_ledger(leader); /* a part of it was lost */
    }
    leader->is_rebuilt = !leader->is_complete;
    leader->is_ask_due =
        leader->asked == 0 || leader->asked_ledger != leader_complete_ledger(leader);
    leader->gather_until =
        instant_add(now, leader->is_rebuilt ? leader->options.collect : SPAN_MS(GATHER_MS));
    leader->settle_by = instant_add(now, SPAN_MS(SETTLE_MS));
    leader->next_tick = instant_add(now, leader->options.report_interval);
    leader->next_purge = instant_add(now, SPAN_S(LEADER_PURGE_S));
    if (leader->options.rebalance_every.ns > 0) {
        leader->next_balance = instant_add(now, leader->options.rebalance_every);
    }
    leader_submit_all(leader, now_unix_ms);
    leader_cancel_orphans(leader);
    leader_know_places(leader);
    leader_lose_ended(leader, now_unix_ms);
    restore_waits(leader, now, now_unix_ms);
    leader->is_place_due = true;
    leader_hear_early(leader, now, now_unix_ms);
}

/* ---- From loaded to ready -------------------------------------------------------------------- */

static bool is_anybody_awaited(const struct work_leader *leader)
{
    const struct leader_known *known;

    for (known = leader->known; known; known = known->hh.next) {
        if (known->is_awaited) {
            return true;
        }
    }
    return false;
}

static void gather(struct work_leader *leader, instant now)
{
    struct leader_known *known, *next;

    if (!leader->is_loaded || leader->is_ready ||
        leader->mark == 0 || /* what is placed without a mark could be lost unnoticed */
        (is_anybody_awaited(leader) && instant_before(now, leader->gather_until))) {
        return;
    }
    if (leader->is_rebuilt) {
        /* A worker that has not replied may have got items of a ledger since it was heard. */
        leader->was_lost =
            leader->was_lost || (is_anybody_awaited(leader) && !WORK_MUTANT(SILENT_HAD_NOTHING));
        leader_make_buckets(leader);
    }
    leader->is_ready = leader->is_place_due = true;
    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        known->is_due = true;
    }
}

/* What waited for a leader comes first: elections of many workers are many requests, too. */
static void settle(struct work_leader *leader, instant now)
{
    leader->is_settled = leader->is_settled || !instant_before(now, leader->settle_by) ||
                         (leader->is_ready && leader_is_all_stored(leader));
}

bool work_leader_is_settled(const struct work_leader *leader)
{
    return leader->is_settled;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void find_silent(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    struct leader_known *known, *next;

    for (known = leader->known; known; known = next) {
        next = known->hh.next;
        bool is_silent = leader_is_reachable(known) &&
                         instant_before(instant_add(known->heard, leader->options.silence), now);

        if (is_silent && !known->is_silent) {
            known->is_silent = true;
            if (WORK_MUTANT(SILENCE_IS_DEATH)) {
                leader_sessions_end(leader, known, known->session, now_unix_ms);
            }
        }
    }
}

static void find_overdue(struct work_leader *leader, instant now)
{
    struct ledger_entry *entry;

    for (entry = ledger_next(leader->ledger, NULL); entry;
         entry = ledger_next(leader->ledger, entry)) {
        if (entry->state != WORK_PROCESSING || !entry->item || entry->item->timeout.ns == 0 ||
            entry->told.epoch == 0) {
            continue;
        }
        if (entry->deadline.ns == 0) { /* an earlier leader told its worker */
            entry->deadline = instant_add(now, entry->item->timeout);
        } else if (entry->wish == WORK_STAY && instant_before(entry->deadline, now)) {
            leader_wish(leader, entry, WORK_TIME_OUT);
        }
    }
}

void work_leader_tick(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    settle(leader, now);
    if (!instant_before(now, leader->next_tick)) {
        leader->next_tick = instant_add(now, leader->options.report_interval);
        leader->is_ask_due = leader->is_ask_due || !leader->is_ready || leader->is_ask_wanted;
        leader->is_ask_wanted = false;
        find_silent(leader, now, now_unix_ms);
        find_overdue(leader, now);
    }
    if (!instant_before(now, leader->next_balance)) {
        leader->next_balance = leader->options.rebalance_every.ns > 0
                                   ? instant_add(now, leader->options.rebalance_every)
                                   : INSTANT_NEVER;
        leader->is_balance_due = true;
    }
    if (!instant_before(now, leader->next_purge)) {
        leader->next_purge = instant_add(now, SPAN_S(LEADER_PURGE_S));
        leader_purge(leader, now_unix_ms);
    }
    if (!instant_before(now, leader->place_at)) {
        leader->place_at = INSTANT_NEVER;
        leader->is_place_due = true;
    }
}

instant work_leader_deadline(const struct work_leader *leader)
{
    instant next = instant_min(leader->next_tick, leader->next_purge);

    if (leader->is_over) {
        return INSTANT_NEVER;
    }
    next = instant_min(next, leader->next_balance);
    if (leader->is_loaded && !leader->is_ready && leader->mark != 0) {
        next = instant_min(next, leader->gather_until);
    }
    if (leader->is_loaded && !leader->is_settled) {
        next = instant_min(next, leader->settle_by);
    }
    return leader->is_ready ? instant_min(next, leader->place_at) : next;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static bool is_election(const struct leader_queued *queued)
{
    return queued->type == WORK_ENTER || queued->type == WORK_LEAVE;
}

static bool next_queued(struct work_leader *leader, struct work_output *ret)
{
    struct leader_queued *queued = leader->queue;

    while (queued && is_election(queued) && !leader->is_settled) {
        queued = queued->next;
    }
    free(leader->given);
    leader->given = queued;
    if (!queued) {
        return false;
    }
    DL_DELETE(leader->queue, queued);
    *ret = (struct work_output){.type = queued->type, .revision = queued->revision};
    if (is_election(queued)) {
        ret->worker = queued->text;
    } else {
        ret->key = queued->text;
    }
    return true;
}

bool work_leader_next_output(struct work_leader *leader, instant now, int64_t now_unix_ms,
                             struct work_output *ret)
{
    if (leader->is_over) {
        *ret = (struct work_output){.type = WORK_RESIGN, .is_lost = leader->is_lost};
        return !leader->has_resigned && (leader->has_resigned = true);
    }
    if (!leader->is_loaded) {
        return leader_next_message(leader, now, ret);
    }
    gather(leader, now);
    leader_cancel_due(leader, now_unix_ms);
    leader_place(leader, now, now_unix_ms);
    settle(leader, now);
    return next_queued(leader, ret) || leader_next_put(leader, now, ret) ||
           leader_next_message(leader, now, ret);
}

const struct work_counters *work_leader_counters(const struct work_leader *leader)
{
    return &leader->counters;
}

const struct ledger *work_leader_ledger(const struct work_leader *leader)
{
    return leader->ledger;
}

bool work_leader_is_ready(const struct work_leader *leader)
{
    return leader->is_ready;
}
