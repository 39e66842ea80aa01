/* The keys of an item that is to be forgotten: its result, and what it has stored for its next
 * attempt.
 *
 *   read ─┬─▶ of no later epoch ──▶ deleted at that revision ─┬─▶ the entry is removed
 *    ▲    └─▶ absent, or a later item's ──────────────────────┘
 *    └─ another write came before, or there was no reply
 *
 * The leader may have been replaced, and its requests may be carried out long after it gave them
 * up, when a later item of the same id has ended: so it deletes nothing but what it has read. The
 * entry goes last, so that the next leader deletes the keys that this one leaves. */
#include "work/leader_int.h"

#include <stdio.h>

/* Bits of ledger_entry.rest. */
enum { RESULT_LEFT = 1, CHECKPOINT_LEFT = 2 };

static uint8_t bit_of(char kind)
{
    return kind == 'r' ? RESULT_LEFT : CHECKPOINT_LEFT;
}

static void read_rest(struct work_leader *leader, struct ledger_entry *entry, char kind)
{
    char key[LEADER_KEY_MAX];

    entry->rest |= bit_of(kind);
    leader->rests++;
    (void)snprintf(key, sizeof(key), "%c/%s", kind, entry->id);
    if (WORK_MUTANT(REST_DELETED_UNREAD)) {
        leader_queue(leader, WORK_PUT, key, UINT64_MAX);
    } else {
        leader_queue(leader, WORK_READ, key, 0);
    }
}

/* A result is dropped by the state in its time, unless a later item may have the same id. */
void leader_remove_entry(struct work_leader *leader, struct ledger_entry *entry)
{
    if (entry->rest != 0) {
        return;
    }
    if (!entry->item || !entry->item->is_unique) {
        read_rest(leader, entry, 'r');
    }
    read_rest(leader, entry, 'k');
}

/* One of its keys is gone, or is another item's. It may have been submitted again meanwhile. */
static void lose_rest(struct work_leader *leader, struct ledger_entry *entry, char kind)
{
    entry->rest &= (uint8_t)~bit_of(kind);
    if (entry->rest == 0 &&
        (!entry->item || entry->item->references == 1 || WORK_MUTANT(SHARED_FORGOTTEN))) {
        ledger_remove(leader->ledger, entry);
    }
}

/* A key is done with. Where there was no room for some items, there is now. */
static void count_down(struct work_leader *leader, int64_t now_unix_ms)
{
    leader->rests -= leader->rests > 0;
    if (leader->rests == 0 && leader->is_crowded) {
        leader_submit_all(leader, now_unix_ms);
    }
}

/* The entry of the key, if it is to be forgotten and the key is still to be deleted; or NULL. */
static struct ledger_entry *entry_with_rest(const struct work_leader *leader, const char *key)
{
    struct ledger_entry *entry = ledger_find(leader->ledger, key + 2);

    return entry && (entry->rest & bit_of(key[0])) != 0 ? entry : NULL;
}

/* Of the attempt that has written the value; 0: it cannot be read. */
static uint64_t epoch_in(struct work_leader *leader, char kind, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    struct work_result result = {0};
    uint64_t epoch;

    if (kind == 'k') {
        return reader_u64(&reader);
    }
    if (work_result_read(&result, data, bytes, NULL) == BATON_ENOMEM) {
        leader->is_over = true;
    }
    epoch = result.epoch;
    work_result_fini(&result);
    return epoch;
}

void leader_take_rest(struct work_leader *leader, const char *key, const void *data, size_t bytes,
                      uint64_t revision, int64_t now_unix_ms)
{
    struct ledger_entry *entry = entry_with_rest(leader, key);

    if (entry && data && epoch_in(leader, key[0], data, bytes) <= entry->epoch) {
        leader_queue(leader, WORK_PUT, key, revision);
        return;
    }
    if (entry) {
        lose_rest(leader, entry, key[0]);
    }
    count_down(leader, now_unix_ms);
}

void leader_rest_deleted(struct work_leader *leader, const char *key, int code, int64_t now_unix_ms)
{
    struct ledger_entry *entry = entry_with_rest(leader, key);

    if (entry && code == BATON_OK) {
        lose_rest(leader, entry, key[0]);
    } else if (entry) {
        read_rest(leader, entry, key[0]);
    }
    count_down(leader, now_unix_ms);
}
