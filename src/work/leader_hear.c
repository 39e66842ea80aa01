#include "work/leader_int.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    BALANCE_SOON_MS = 200,
    TIMED_OUT = 124, /* as timeout(1) ends */
    EARLY_CLAIMS_MAX = WORK_CLAIMS_MAX,
};

/* ---- Reports --------------------------------------------------------------------------------- */

static void take_report(struct work_leader *leader, struct leader_known *known,
                        const struct work_report *report, instant now)
{
    bool was_leaving = known->is_leaving;
    bool is_new = !known->is_heard || known->is_silent || known->slots != report->slots;

    known->seen = report->seen;
    known->heard = now;
    known->slots = report->slots;
    known->gpus = report->gpus;
    known->cpu_permille = report->cpu_permille;
    known->memory_mib = report->memory_mib;
    memcpy(known->labels, report->labels, sizeof(known->labels));
    known->is_leaving = report->is_leaving;
    known->is_heard = true;
    known->is_silent = false;
    if (!leader->is_rebuilt || report->is_reply || leader->is_ready) {
        known->is_awaited = false;
    }
    leader->was_lost = leader->was_lost || (!leader->is_complete && report->ledger != 0 &&
                                            report->ledger != leader->chosen);
    leader->is_place_due = leader->is_place_due || is_new;
    leader->is_balance_due = leader->is_balance_due || was_leaving != known->is_leaving;
    if (is_new) { /* others may come with it, and to balance is to look at everything */
        leader->next_balance =
            instant_min(leader->next_balance, instant_add(now, SPAN_MS(BALANCE_SOON_MS)));
    }
}

/* NULL: the report is of a session that is over, or older than one that we have had. */
static struct leader_known *reporter(struct work_leader *leader, const struct work_report *report,
                                     int64_t now_unix_ms)
{
    struct leader_known *known = leader_know(leader, report->worker);

    if (!known || report->session < known->session ||
        ledger_has_ended(leader->ledger, report->worker, report->session)) {
        return NULL;
    }
    if (report->session > known->session) {
        leader_know_session(known, report->session);
        leader_sessions_end(leader, known, report->session - 1, now_unix_ms);
    }
    if (work_number_before(report->seen, known->seen)) {
        return NULL;
    }
    leader_enter(leader, known);
    return known;
}

span leader_backoff(const struct ledger_entry *entry)
{
    enum { BACKOFF_MAX_S = 300, SERVICE_BACKOFF_MS = 1000 };
    span wait = entry->item ? entry->item->backoff : SPAN_NS(0);

    if (entry->failures == 0) {
        return SPAN_NS(0);
    }
    if (wait.ns == 0 && entry->item && entry->item->kind == WORK_SERVICE) {
        wait = SPAN_MS(SERVICE_BACKOFF_MS);
    }
    for (uint32_t i = 1; i < entry->failures && wait.ns < SPAN_S(BACKOFF_MAX_S).ns; i++) {
        wait.ns *= 2;
    }
    return wait.ns < SPAN_S(BACKOFF_MAX_S).ns ? wait : SPAN_S(BACKOFF_MAX_S);
}

/* The attempt failed, or a service ended: it is tried again. */
static void try_again(struct work_leader *leader, struct ledger_entry *entry, int32_t code,
                      instant now, int64_t now_unix_ms)
{
    if (!entry->item) { /* its submission is gone: it is to be cancelled */
        leader->counters.cancelled++;
        ledger_finish(leader->ledger, entry, WORK_CANCELLED, code, now_unix_ms);
        return;
    }
    ledger_fail(leader->ledger, entry, code, now_unix_ms);
    entry->not_before = instant_add(now, leader_backoff(entry));
    leader->counters.retried += entry->state == WORK_IDLE;
    leader->counters.failed += entry->state == WORK_FAILED;
    leader->is_place_due = true;
}

/* The worker has no such copy, and no message that is still under way can start one. */
static void take_absence(struct work_leader *leader, struct ledger_entry *entry, instant now,
                         int64_t now_unix_ms)
{
    switch (entry->wish) {
    case WORK_STAY: /* it has ended there, as another leader knows, or it never came there */
        if (WORK_MUTANT(SENT_AGAIN)) {
            entry->told = (struct work_number){0};
            entry->is_ours = true;
            break;
        }
        ledger_release(leader->ledger, entry, now_unix_ms);
        break;
    case WORK_MOVE:
        leader->counters.migrations++;
        leader->is_balance_due = /* by the same reasons as it was moved */
            leader->is_balance_due || !WORK_MUTANT(MOVED_WITHOUT_BALANCE);
        ledger_release(leader->ledger, entry, now_unix_ms);
        break;
    case WORK_CANCEL:
        leader->counters.cancelled++;
        ledger_finish(leader->ledger, entry, WORK_CANCELLED, 0, now_unix_ms);
        break;
    case WORK_TIME_OUT:
        leader->counters.timeouts++;
        try_again(leader, entry, TIMED_OUT, now, now_unix_ms);
        break;
    }
    leader->is_place_due = true;
}

/* The copy has ended, and this placing starts no other. */
static void take_gone(struct work_leader *leader, struct ledger_entry *entry, instant now,
                      int64_t now_unix_ms)
{
    if (entry->wish != WORK_STAY) {
        take_absence(leader, entry, now, now_unix_ms);
        return;
    }
    leader->counters.lost++;
    ledger_lose(leader->ledger, entry, now_unix_ms);
    leader->is_place_due = true;
}

/* False: the ledger has no room for it. Without memory the leader is over: it would take the copy
 * for one that is not there. */
static bool judge_claim(struct work_leader *leader, const char *worker, uint64_t session,
                        const struct work_claim *claim, bool is_rebuilt, int64_t now_unix_ms,
                        enum ledger_verdict *ret)
{
    int code = ledger_claim(leader->ledger, worker, session, claim, is_rebuilt, now_unix_ms, ret);

    leader->is_over = leader->is_over || code == BATON_ENOMEM;
    leader->counters.adopted_claims += code == BATON_OK && *ret == LEDGER_ADOPTED;
    return code == BATON_OK;
}

/* A copy of an earlier placing runs: the leader did not know of it when it rebuilt the ledger and
 * placed the item anew. Before its worker has stopped it, or could not be heard for a lease, the
 * item starts nowhere else. */
static void wait_for_copy(struct work_leader *leader, struct ledger_entry *entry, instant now,
                          int64_t now_unix_ms)
{
    if (entry->state == WORK_PROCESSING && entry->is_ours && entry->told.epoch == 0 &&
        entry->wish == WORK_STAY) {
        ledger_release(leader->ledger, entry, now_unix_ms);
        leader->is_place_due = true;
    }
    if (entry->state == WORK_IDLE) {
        entry->not_before = instant_add(now, leader->options.worker_lease);
    }
}

static void take_claim(struct work_leader *leader, struct leader_known *known,
                       const struct work_claim *claim, instant now, int64_t now_unix_ms)
{
    bool is_rebuilt = leader->is_rebuilt && !leader->is_ready;
    struct ledger_entry *entry;
    enum ledger_verdict verdict;

    if (!judge_claim(leader, known->name, known->session, claim, is_rebuilt, now_unix_ms,
                     &verdict)) {
        return;
    }
    entry = ledger_find(leader->ledger, claim->id);
    if ((verdict == LEDGER_AGREES || verdict == LEDGER_ADOPTED) && claim->is_gone) {
        take_gone(leader, entry, now, now_unix_ms);
        return;
    }
    if (verdict == LEDGER_AGREES || verdict == LEDGER_ADOPTED) {
        if (!claim->is_ended && known->seen.epoch == leader->options.epoch) {
            entry->ran = claim->epoch;
        }
        entry->report = leader->reports;
        entry->progress_permille = claim->progress_permille;
        if (entry->told.epoch == 0 && entry->wish == WORK_STAY) {
            entry->told.epoch = leader->options.epoch; /* by an earlier leader */
        } else if (entry->wish != WORK_STAY && !WORK_MUTANT(STOP_SENT_ONCE) &&
                   entry->told.epoch != 0 && work_number_before(entry->told, known->seen)) {
            entry->told = (struct work_number){0}; /* perhaps a later message overtook it */
        }
        return;
    }
    if (is_rebuilt && verdict == LEDGER_UNKNOWN) {
        return; /* its item may come with the reply to the ask */
    }
    if (!entry && !leader_is_unknown(leader, claim->id)) {
        return;
    }
    leader->counters.stale_claims++;
    if (!claim->is_ended && !claim->is_gone) {
        leader_note(&known->stops, claim->id, claim->epoch);
        if (entry && leader->is_rebuilt && !WORK_MUTANT(KNOWN_COPY_IGNORED)) {
            wait_for_copy(leader, entry, now, now_unix_ms);
        }
    } else if (!entry || leader_is_stored(leader, entry)) {
        leader_note(&known->acks, claim->id, claim->epoch);
    }
    known->is_due = true;
}

static void take_absences(struct work_leader *leader, struct leader_known *known, instant now,
                          int64_t now_unix_ms)
{
    const struct ledger_place *place =
        ledger_place_find(leader->ledger, known->name, known->session);
    /* A message that has not arrived by now is lost. */
    bool is_late =
        work_number_before(known->seen, known->told) &&
        !instant_before(now, instant_add(known->told_at, leader->options.report_interval));
    struct ledger_entry *entry, *next;

    for (entry = place ? ledger_place_entries(place) : NULL; entry; entry = next) {
        next = entry->next;
        if (entry->told.epoch != 0 && work_number_before(known->seen, entry->told) &&
            !WORK_MUTANT(ABSENT_WITHOUT_SEEN)) {
            if (is_late && (entry->is_ours || entry->wish != WORK_STAY)) {
                entry->told = (struct work_number){0};
            }
            leader->is_ask_wanted = leader->is_ask_wanted || !entry->is_ours;
        } else if (entry->report != leader->reports && entry->told.epoch != 0) {
            take_absence(leader, entry, now, now_unix_ms);
        }
        known->is_due = known->is_due || entry->told.epoch == 0;
    }
}

static void hear_report(struct work_leader *leader, const struct work_report *report, instant now,
                        int64_t now_unix_ms)
{
    struct leader_known *known = reporter(leader, report, now_unix_ms);

    if (!known) {
        return;
    }
    if (report->seen.epoch > leader->options.epoch && !WORK_MUTANT(LATER_LEADER_IGNORED)) {
        leader->is_over = true; /* it hears a later leader */
        return;
    }
    leader->reports++;
    take_report(leader, known, report, now);
    for (size_t i = 0; i < report->claim_count; i++) {
        take_claim(leader, known, &report->claims[i], now, now_unix_ms);
    }
    take_absences(leader, known, now, now_unix_ms);
}

/* ---- Results --------------------------------------------------------------------------------- */

void leader_result_free(struct work_leader *leader, struct leader_result *result)
{
    HASH_DEL(leader->results, result);
    work_result_fini(&result->result);
    free(result);
}

void leader_acknowledge(struct work_leader *leader)
{
    struct leader_result *result, *next;

    for (result = leader->results; result; result = next) {
        next = result->hh.next;
        const struct ledger_entry *entry = ledger_find(leader->ledger, result->id);
        struct leader_known *known = leader_known(leader, result->worker);

        if (result->state != RESULT_WRITTEN ||
            (entry && !leader_is_stored(leader, entry) && !WORK_MUTANT(ACKS_BEFORE_STORED))) {
            continue;
        }
        if (entry && entry->state == WORK_PROCESSING && entry->epoch == result->epoch &&
            !WORK_MUTANT(FAILED_PUT_ACKED)) {
            leader_result_free(leader, result); /* its put failed, and the result comes again */
            continue;
        }
        if (known && known->session == result->session) {
            leader_note(&known->acks, result->id, result->epoch);
            known->is_due = true;
        }
        leader_result_free(leader, result);
    }
}

static void count_time(struct work_leader *leader, const struct work_result *result)
{
    double ms = (double)(result->ended_unix_ms - result->began_unix_ms);
    double above = 1;
    size_t class = 0;

    while (class < LEADER_TIMES - 1 && ms > above) {
        above *= LEADER_TIMES_GROW;
        class ++;
    }
    leader->times[class]++;
    leader->times_count++;
    leader->times_sum_ms += ms > 0 ? ms : 0;
}

static bool is_last(const struct ledger_entry *entry, const struct work_result *result)
{
    return entry->item && entry->item->kind == WORK_JOB &&
           (result->is_success || entry->failures >= entry->item->retries);
}

void leader_result_stored(struct work_leader *leader, struct leader_result *result, instant now,
                          int64_t now_unix_ms)
{
    struct ledger_entry *entry = ledger_find(leader->ledger, result->id);
    const struct work_result *what = &result->result;

    if (!entry || entry->epoch != result->epoch || entry->state != WORK_PROCESSING) {
        /* It comes again, and is judged anew; or its worker's session has ended meanwhile, and the
         * next attempt finds it stored. */
        leader_result_free(leader, result);
        return;
    }
    result->state = RESULT_WRITTEN;
    if (what->is_success) {
        leader->counters.completed++;
        count_time(leader, what);
        ledger_finish(leader->ledger, entry, WORK_COMPLETED, what->code, now_unix_ms);
        leader->is_place_due = true;
    } else {
        try_again(leader, entry, what->code, now, now_unix_ms);
    }
    if (WORK_MUTANT(ACKS_BEFORE_STORED)) {
        leader_acknowledge(leader);
    }
}

/* A result of a placing that the ledger does not know yet: a claim like others. */
static void adopt_result(struct work_leader *leader, const struct work_message *message,
                         int64_t now_unix_ms)
{
    struct work_claim claim = {.id = message->result.id, .epoch = message->result.epoch};
    enum ledger_verdict verdict;

    (void)judge_claim(leader, message->worker, message->session, &claim, false, now_unix_ms,
                      &verdict); /* the entry says what came of it */
}

/* A result that changes nothing: its worker may forget it once that is certain. */
static void refuse_result(struct work_leader *leader, struct leader_known *known,
                          const struct ledger_entry *entry, const struct work_message *message)
{
    bool is_repeated = entry && entry->epoch == message->result.epoch;

    leader->counters.refused_results += !is_repeated;
    if (entry ? leader_is_stored(leader, entry) : leader_is_unknown(leader, message->result.id)) {
        leader_note(&known->acks, message->result.id, message->result.epoch);
        known->is_due = true;
    }
}

static void keep_result(struct work_leader *leader, struct ledger_entry *entry,
                        const struct work_message *message, instant now, int64_t now_unix_ms)
{
    struct leader_result *result;
    bool is_kept = is_last(entry, &message->result); /* others leave no key */

    HASH_FIND_STR(leader->results, entry->id, result);
    if (result || !(result = calloc(1, sizeof(*result)))) {
        return; /* under way, or it comes again */
    }
    if (work_result_copy(&result->result, &message->result) != BATON_OK) {
        free(result);
        return;
    }
    memcpy(result->id, entry->id, strlen(entry->id) + 1);
    memcpy(result->worker, message->worker, sizeof(result->worker));
    result->session = message->session;
    result->epoch = entry->epoch;
    result->state = is_kept ? RESULT_WAITS : RESULT_WRITTEN;
    HASH_ADD_STR(leader->results, id, result);
    if (!result->hh.tbl) {
        work_result_fini(&result->result);
        free(result);
    } else if (!is_kept) {
        try_again(leader, entry, result->result.code, now, now_unix_ms);
    }
}

/* Another leader placed it, and its submission is not reported yet. */
static bool is_submitted_late(const struct ledger_entry *entry)
{
    return entry->state == WORK_PROCESSING && !entry->item && entry->wish != WORK_CANCEL;
}

static void hear_done(struct work_leader *leader, const struct work_message *message, instant now,
                      int64_t now_unix_ms)
{
    struct leader_known *known = leader_known(leader, message->worker);
    struct ledger_entry *entry = ledger_find(leader->ledger, message->result.id);

    if (!known || !leader->is_ready || (entry && is_submitted_late(entry))) {
        return; /* it comes again */
    }
    if (entry && message->result.epoch > entry->epoch) {
        adopt_result(leader, message, now_unix_ms);
    }
    if (entry && entry->state == WORK_PROCESSING &&
        (message->result.epoch == entry->epoch || WORK_MUTANT(TAKES_OLD_RESULTS))) {
        keep_result(leader, entry, message, now, now_unix_ms);
    } else {
        refuse_result(leader, known, entry, message);
    }
}

/* ---- Before all is loaded -------------------------------------------------------------------- */

/* Of what is too much the next report has it again. */
static void keep_report(struct work_leader *leader, const struct work_report *report)
{
    struct leader_early *early = leader->early_claims + report->claim_count < EARLY_CLAIMS_MAX
                                     ? calloc(1, sizeof(*early))
                                     : NULL;

    if (!early || work_report_copy(&early->report, report) != BATON_OK) {
        free(early);
        return;
    }
    leader->early_claims += report->claim_count + 1;
    LL_PREPEND(leader->early, early);
}

void leader_hear_early(struct work_leader *leader, instant now, int64_t now_unix_ms)
{
    for (const struct leader_early *early = leader->early; early; early = early->next) {
        hear_report(leader, &early->report, now, now_unix_ms);
    }
    leader_early_free(leader);
}

void leader_early_free(struct work_leader *leader)
{
    while (leader->early) {
        struct leader_early *early = leader->early;

        LL_DELETE(leader->early, early);
        work_report_fini(&early->report);
        free(early);
    }
    leader->early_claims = 0;
}

void work_leader_hear(struct work_leader *leader, const struct work_message *message, instant now,
                      int64_t now_unix_ms)
{
    if (!leader->is_loaded) {
        if (message->type == WORK_REPORT) {
            keep_report(leader, &message->report);
        }
        return;
    }
    leader->is_cancel_due = true;
    if (message->type == WORK_REPORT) {
        hear_report(leader, &message->report, now, now_unix_ms);
    } else if (message->type == WORK_DONE) {
        hear_done(leader, message, now, now_unix_ms);
    }
}
