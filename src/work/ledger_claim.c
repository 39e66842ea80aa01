/* What workers claim, and which of their sessions have ended. */
#include "work/ledger_int.h"

#include "base/invariant.h"
#include "work/mutants.h"

#include <stdlib.h>
#include <string.h>

/* ---- Ended sessions -------------------------------------------------------------------------- */

static struct ledger_ended *find_ended(const struct ledger *ledger, const char *worker)
{
    struct ledger_ended *ended;

    HASH_FIND_STR(ledger->ended, worker, ended);
    return ended;
}

bool ledger_has_ended(const struct ledger *ledger, const char *worker, uint64_t session)
{
    const struct ledger_ended *ended = find_ended(ledger, worker);

    if (ended && WORK_MUTANT(EARLIER_SESSIONS_LIVE)) {
        return session == ended->session;
    }
    return ended && session <= ended->session;
}

static void forget_oldest(struct ledger *ledger)
{
    struct ledger_ended *oldest = ledger->ended;

    HASH_DEL(ledger->ended, oldest);
    free(oldest);
}

int ledger_end_sessions(struct ledger *ledger, const char *worker, uint64_t session)
{
    struct ledger_ended *ended = find_ended(ledger, worker);
    size_t length = strlen(worker);

    if (ended) {
        ended->session = session > ended->session ? session : ended->session;
        return BATON_OK;
    }
    ended = calloc(1, sizeof(*ended) + length + 1);
    if (!ended) {
        return BATON_ENOMEM;
    }
    memcpy(ended->worker, worker, length);
    ended->session = session;
    HASH_ADD_KEYPTR(hh, ledger->ended, ended->worker, length, ended);
    if (!ended->hh.tbl) {
        free(ended);
        return BATON_ENOMEM;
    }
    if (HASH_COUNT(ledger->ended) > LEDGER_ENDED_MAX) {
        forget_oldest(ledger);
    }
    return BATON_OK;
}

/* ---- Claims ---------------------------------------------------------------------------------- */

static bool is_at(const struct ledger_entry *entry, const char *worker, uint64_t session)
{
    return entry->state == WORK_PROCESSING && entry->place->key.session == session &&
           strcmp(entry->place->key.worker, worker) == 0;
}

/* For an entry that is there; changes nothing. */
static enum ledger_verdict judge(const struct ledger_entry *entry, const char *worker,
                                 uint64_t session, const struct work_claim *claim)
{
    bool is_here = is_at(entry, worker, session);

    if (work_state_is_final(entry->state) &&
        !(WORK_MUTANT(FINAL_REVIVED) && claim->epoch > entry->epoch)) {
        return LEDGER_FINAL;
    }
    if (claim->epoch > entry->epoch) {
        return WORK_MUTANT(NEWER_CLAIM_STALE) ? LEDGER_STALE : LEDGER_ADOPTED;
    }
    if (claim->epoch < entry->epoch) {
        return WORK_MUTANT(LOWER_CLAIM_WINS) ? LEDGER_ADOPTED : LEDGER_STALE;
    }
    if (!is_here && WORK_MUTANT(EQUAL_CLAIM_MOVES)) {
        return LEDGER_ADOPTED;
    }
    return is_here ? LEDGER_AGREES : LEDGER_STALE;
}

/* Nothing has changed unless it succeeds. */
static int adopt(struct ledger *ledger, struct ledger_entry *entry, const char *worker,
                 uint64_t session, const struct work_claim *claim, int64_t now_unix_ms)
{
    struct ledger_place *place = ledger_place_add(ledger, worker, session);
    struct ledger_keys *keys = NULL;

    if (!place) {
        return BATON_ENOMEM;
    }
    if (ledger_keys_set(ledger, entry, true, &keys, claim->keys) != BATON_OK ||
        (claim->item && ledger_entry_know(ledger, entry, claim->item) != BATON_OK)) {
        ledger_keys_clear(ledger, &keys);
        ledger_place_drop_if_empty(ledger, place);
        return BATON_ENOMEM;
    }
    if (entry->state == WORK_PROCESSING && !is_at(entry, worker, session)) {
        ledger->found.double_claims++;
    }
    ledger_entry_clear(ledger, entry);
    entry->claimed_keys = keys;
    ledger_entry_set(ledger, entry, WORK_PROCESSING, place);
    entry->attempt += entry->attempt == 0;
    ledger_entry_begin(entry, claim->epoch);
    entry->since_unix_ms = entry->began_unix_ms = now_unix_ms;
    entry->progress_permille = claim->progress_permille;
    ledger_entry_touch(ledger, entry);
    ledger->found.adopted++;
    return BATON_OK;
}

static int agree(struct ledger *ledger, struct ledger_entry *entry, const struct work_claim *claim)
{
    if (ledger_keys_set(ledger, entry, true, &entry->claimed_keys, claim->keys) != BATON_OK ||
        (claim->item && ledger_entry_know(ledger, entry, claim->item) != BATON_OK)) {
        return BATON_ENOMEM;
    }
    entry->progress_permille = claim->progress_permille;
    return BATON_OK;
}

static int adopt_unknown(struct ledger *ledger, const char *worker, uint64_t session,
                         const struct work_claim *claim, int64_t now_unix_ms)
{
    struct ledger_entry *entry;
    int code = ledger_entry_add(ledger, claim->id, now_unix_ms, &entry);

    if (code == BATON_OK) {
        code = adopt(ledger, entry, worker, session, claim, now_unix_ms);
        if (code != BATON_OK) {
            ledger_entry_drop(ledger, entry);
        }
    }
    return code;
}

static void count_stale(struct ledger *ledger, const struct ledger_entry *entry, const char *worker,
                        uint64_t session)
{
    if (entry && entry->state == WORK_PROCESSING && !is_at(entry, worker, session) &&
        !ledger_has_ended(ledger, worker, session)) {
        ledger->found.double_claims++;
    } else {
        ledger->found.stale_claims++;
    }
}

int ledger_claim(struct ledger *ledger, const char *worker, uint64_t session,
                 const struct work_claim *claim, bool is_rebuilt, int64_t now_unix_ms,
                 enum ledger_verdict *ret)
{
    struct ledger_entry *entry = ledger_find(ledger, claim->id);
    enum ledger_verdict verdict;
    int code = BATON_OK;

    INVARIANT(session != 0 && claim->epoch != 0);
    INVARIANT(!claim->item || strcmp(claim->item->id, claim->id) == 0);
    if (ledger_has_ended(ledger, worker, session) && !WORK_MUTANT(ENDED_SESSION_CLAIMS)) {
        verdict = LEDGER_STALE;
    } else if (entry) {
        verdict = judge(entry, worker, session, claim);
    } else {
        bool is_adopted = claim->item && (is_rebuilt || WORK_MUTANT(UNKNOWN_ADOPTED));
        verdict = is_adopted ? LEDGER_ADOPTED : LEDGER_UNKNOWN;
    }
    if (verdict == LEDGER_STALE) {
        count_stale(ledger, entry, worker, session);
    } else if (verdict == LEDGER_AGREES) {
        code = agree(ledger, entry, claim);
    } else if (verdict == LEDGER_ADOPTED) {
        code = entry ? adopt(ledger, entry, worker, session, claim, now_unix_ms)
                     : adopt_unknown(ledger, worker, session, claim, now_unix_ms);
    }
    if (code == BATON_OK) {
        *ret = verdict;
    }
    return code;
}
