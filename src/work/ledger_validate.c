/* What is wrong in the ledger, and whether two of them are the same. */
#include "work/ledger_int.h"

#include <string.h>

void ledger_validate(const struct ledger *ledger,
                     bool (*is_known)(void *userdata, const char *worker, uint64_t session),
                     void *userdata, struct ledger_findings *ret)
{
    struct ledger_findings found = ledger->found;

    for (const struct ledger_place *at = ledger->places; at; at = at->hh.next) {
        if (ledger_has_ended(ledger, at->key.worker, at->key.session) ||
            !is_known(userdata, at->key.worker, at->key.session)) {
            found.orphans += at->count;
        }
    }
    for (const struct ledger_entry *at = ledger->entries; at; at = at->hh.next) {
        found.without_item += !at->item && !work_state_is_final(at->state);
    }
    found.lost_mappings = ledger_keys_lost(ledger);
    *ret = found;
}

static bool is_same_entry(const struct ledger_entry *a, const struct ledger_entry *b)
{
    return b && a->state == b->state && a->epoch == b->epoch &&
           ledger_entry_first(a) == ledger_entry_first(b) && a->attempt == b->attempt &&
           a->failures == b->failures && a->losses == b->losses && a->code == b->code &&
           a->since_unix_ms == b->since_unix_ms && a->began_unix_ms == b->began_unix_ms &&
           (!a->place || memcmp(&a->place->key, &b->place->key, sizeof(a->place->key)) == 0);
}

bool ledger_equal(const struct ledger *a, const struct ledger *b)
{
    if (HASH_COUNT(a->entries) != HASH_COUNT(b->entries)) {
        return false;
    }
    for (const struct ledger_entry *at = a->entries; at; at = at->hh.next) {
        if (!is_same_entry(at, ledger_find(b, at->id))) {
            return false;
        }
    }
    return true;
}
