/* Entries, their moves, and the places in which they are. */
#include "work/ledger_int.h"

#include "base/invariant.h"
#include "work/mutants.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A claim that is adopted takes an item from one place to another. */
static const bool is_allowed[WORK_STATE_COUNT][WORK_STATE_COUNT] = {
    [WORK_IDLE] = {[WORK_PROCESSING] = true, [WORK_CANCELLED] = true},
    [WORK_PROCESSING] = {[WORK_IDLE] = true,
                         [WORK_PROCESSING] = true,
                         [WORK_COMPLETED] = true,
                         [WORK_FAILED] = true,
                         [WORK_CANCELLED] = true},
};

const char *work_state_name(enum work_state state)
{
    static const char *const names[] = {
#define NAME_OF_STATE(symbol, name) [symbol] = (name),
        WORK_STATES(NAME_OF_STATE)
#undef NAME_OF_STATE
    };

    return names[state];
}

struct ledger *ledger_new(void)
{
    return calloc(1, sizeof(struct ledger));
}

void ledger_free(struct ledger *ledger)
{
    if (!ledger) {
        return;
    }
    for (struct ledger_entry *at = ledger->entries, *next; at; at = next) {
        next = at->hh.next;
        ledger_entry_drop(ledger, at);
    }
    for (struct ledger_ended *at = ledger->ended, *next; at; at = next) {
        next = at->hh.next;
        HASH_DEL(ledger->ended, at); /* NOLINT(clang-analyzer-unix.Malloc) */
        free(at);
    }
    free(ledger);
}

/* ---- Idle ones ------------------------------------------------------------------------------- */

/* The list of idle entries is sorted up to `fresh`. An entry is appended, and what is not in its
 * order is sorted in when the list is asked for: so many entries that become idle at once, as at a
 * takeover, cost no search each. */

static int32_t priority_of(const struct ledger_entry *entry)
{
    return entry->item ? entry->item->priority : 0;
}

/* Above 0: `b` is before `a`. */
static int compare_idle(const struct ledger_entry *a, const struct ledger_entry *b)
{
    int32_t of_a = priority_of(a), of_b = priority_of(b);

    return of_a != of_b
               ? (of_a < of_b) - (of_a > of_b)
               : (a->since_unix_ms > b->since_unix_ms) - (a->since_unix_ms < b->since_unix_ms);
}

static void idle_append(struct ledger *ledger, struct ledger_entry *entry)
{
    const struct ledger_entry *last = ledger->idle ? ledger->idle->prev : NULL;

    DL_APPEND(ledger->idle, entry);
    if (!ledger->fresh && last && compare_idle(last, entry) > 0) {
        ledger->fresh = entry;
    }
}

static void idle_remove(struct ledger *ledger, struct ledger_entry *entry)
{
    if (ledger->fresh == entry) {
        ledger->fresh = entry->next;
    }
    DL_DELETE(ledger->idle, entry);
}

static void idle_sort(struct ledger *ledger)
{
    struct ledger_entry *fresh = ledger->fresh, *last = fresh->prev, *at, *entry;

    ledger->fresh = NULL;
    if (fresh == ledger->idle) {
        DL_SORT(ledger->idle, compare_idle);
        return;
    }
    fresh->prev = ledger->idle->prev;
    last->next = NULL;
    ledger->idle->prev = last;
    DL_SORT(fresh, compare_idle);
    at = ledger->idle;
    while ((entry = fresh)) {
        while (at && compare_idle(at, entry) <= 0) {
            at = at->next;
        }
        if (!at) {
            DL_CONCAT(ledger->idle, fresh);
            return;
        }
        DL_DELETE(fresh, entry);
        DL_PREPEND_ELEM(ledger->idle, at, entry);
    }
}

struct ledger_entry *ledger_idle(const struct ledger *ledger)
{
    if (ledger->fresh) {
        idle_sort((struct ledger *)ledger); /* what it has does not change, but for the order */
    }
    return ledger->idle;
}

/* ---- Places ---------------------------------------------------------------------------------- */

static struct ledger_place_key key_of(const char *worker, uint64_t session)
{
    struct ledger_place_key key = {.session = session};
    size_t bytes = strlen(worker);

    INVARIANT(bytes < sizeof(key.worker));
    memcpy(key.worker, worker, bytes);
    return key;
}

struct ledger_place *ledger_place_find(const struct ledger *ledger, const char *worker,
                                       uint64_t session)
{
    struct ledger_place_key key = key_of(worker, session);
    struct ledger_place *place;

    HASH_FIND(hh, ledger->places, &key, sizeof(key), place);
    return place;
}

struct ledger_place *ledger_place_add(struct ledger *ledger, const char *worker, uint64_t session)
{
    struct ledger_place *place = ledger_place_find(ledger, worker, session);

    if (place || !(place = calloc(1, sizeof(*place)))) {
        return place;
    }
    place->key = key_of(worker, session);
    HASH_ADD(hh, ledger->places, key, sizeof(place->key), place);
    if (!place->hh.tbl) {
        free(place);
        return NULL;
    }
    return place;
}

void ledger_place_drop_if_empty(struct ledger *ledger, struct ledger_place *place)
{
    if (place->count == 0 && place->awaited == 0) {
        HASH_DEL(ledger->places, place);
        free(place);
    }
}

struct ledger_place *ledger_place_next(const struct ledger *ledger, const struct ledger_place *prev)
{
    return prev ? prev->hh.next : ledger->places;
}

const char *ledger_place_worker(const struct ledger_place *place)
{
    return place->key.worker;
}

uint64_t ledger_place_session(const struct ledger_place *place)
{
    return place->key.session;
}

struct ledger_entry *ledger_place_entries(const struct ledger_place *place)
{
    return place->entries;
}

size_t ledger_place_count(const struct ledger_place *place)
{
    return place->count;
}

/* ---- Entries --------------------------------------------------------------------------------- */

struct ledger_entry *ledger_find(const struct ledger *ledger, const char *id)
{
    struct ledger_entry *entry;

    HASH_FIND_STR(ledger->entries, id, entry);
    return entry;
}

struct ledger_entry *ledger_next(const struct ledger *ledger, const struct ledger_entry *prev)
{
    return prev ? prev->hh.next : ledger->entries;
}

size_t ledger_count(const struct ledger *ledger, enum work_state state)
{
    return ledger->counts[state];
}

uint64_t ledger_change(const struct ledger *ledger)
{
    return ledger->change;
}

void ledger_entry_touch(struct ledger *ledger, struct ledger_entry *entry)
{
    entry->change = ++ledger->change;
    ledger->buckets[entry->bucket].is_changed = true;
}

static void link_in(struct ledger *ledger, struct ledger_entry *entry)
{
    ledger->counts[entry->state]++;
    if (entry->state == WORK_IDLE) {
        idle_append(ledger, entry);
    } else if (entry->state == WORK_PROCESSING) {
        DL_APPEND(entry->place->entries, entry);
        entry->place->count++;
    }
}

static void take_out(struct ledger *ledger, struct ledger_entry *entry)
{
    ledger->counts[entry->state]--;
    if (entry->state == WORK_IDLE) {
        idle_remove(ledger, entry);
    } else if (entry->state == WORK_PROCESSING) {
        DL_DELETE(entry->place->entries, entry);
        entry->place->count--;
    }
}

void ledger_entry_set(struct ledger *ledger, struct ledger_entry *entry, enum work_state state,
                      struct ledger_place *place)
{
    struct ledger_place *before = entry->place;

    INVARIANT((place != NULL) == (state == WORK_PROCESSING));
    take_out(ledger, entry);
    entry->state = state;
    entry->place = place;
    link_in(ledger, entry);
    if (before) {
        ledger_place_drop_if_empty(ledger, before);
    }
}

void ledger_entry_clear(struct ledger *ledger, struct ledger_entry *entry)
{
    entry->progress_permille = 0;
    entry->wish = WORK_STAY;
    entry->is_ours = false;
    entry->told = (struct work_number){0};
    entry->not_before = (instant){0};
    entry->deadline = (instant){0};
    entry->report = 0;
    entry->reason = 0;
    entry->rest = 0;
    ledger_keys_clear(ledger, &entry->claimed_keys);
}

void ledger_entry_begin(struct ledger_entry *entry, uint64_t epoch)
{
    entry->epoch = epoch;
    if (entry->attempt == 1) {
        entry->first = epoch;
    }
}

uint64_t ledger_entry_first(const struct ledger_entry *entry)
{
    const struct work_item *item = entry->item;

    return entry->first == entry->epoch || (item && (item->is_unique || item->kind != WORK_JOB))
               ? 0
               : entry->first;
}

int ledger_entry_add(struct ledger *ledger, const char *id, int64_t now_unix_ms,
                     struct ledger_entry **ret)
{
    size_t length = strlen(id);
    struct ledger_bucket *bucket = &ledger->buckets[ledger_bucket_of(id)];
    struct ledger_entry *entry;

    if (HASH_COUNT(ledger->entries) >= LEDGER_ENTRIES_MAX ||
        LEDGER_ENTRY_BYTES + length > LEDGER_BUCKET_MAX - LEDGER_ENTRY_BYTES - bucket->bytes) {
        return BATON_EFULL;
    }
    entry = calloc(1, sizeof(*entry) + length + 1);
    if (!entry) {
        return BATON_ENOMEM;
    }
    memcpy(entry->id, id, length);
    HASH_ADD_KEYPTR(hh, ledger->entries, entry->id, length, entry);
    if (!entry->hh.tbl) {
        free(entry);
        return BATON_ENOMEM;
    }
    entry->bucket = (unsigned)(bucket - ledger->buckets);
    entry->since_unix_ms = now_unix_ms;
    bucket->bytes += LEDGER_ENTRY_BYTES + length;
    DL_APPEND2(bucket->entries, entry, bucket_prev, bucket_next);
    link_in(ledger, entry);
    ledger_entry_touch(ledger, entry);
    *ret = entry;
    return BATON_OK;
}

void ledger_entry_drop(struct ledger *ledger, struct ledger_entry *entry)
{
    struct ledger_bucket *bucket = &ledger->buckets[entry->bucket];
    struct ledger_place *place = entry->place;

    ledger_entry_touch(ledger, entry);
    ledger_keys_clear(ledger, &entry->claimed_keys);
    ledger_keys_clear(ledger, &entry->item_keys);
    take_out(ledger, entry);
    if (place) {
        ledger_place_drop_if_empty(ledger, place);
    }
    bucket->bytes -= LEDGER_ENTRY_BYTES + strlen(entry->id);
    DL_DELETE2(bucket->entries, entry, bucket_prev, bucket_next);
    HASH_DEL(ledger->entries, entry); /* NOLINT(clang-analyzer-unix.Malloc) */
    work_item_unref(entry->item);
    free(entry);
}

/* The item's priority says where it stands among the idle ones, and in which order they came. */
int ledger_entry_know(struct ledger *ledger, struct ledger_entry *entry, struct work_item *item)
{
    if (entry->item) {
        return BATON_OK;
    }
    if (ledger_keys_set(ledger, entry, false, &entry->item_keys, item->keys) != BATON_OK) {
        return BATON_ENOMEM;
    }
    if (entry->state == WORK_IDLE) {
        idle_remove(ledger, entry);
    }
    entry->item = work_item_ref(item);
    if (entry->state == WORK_IDLE) {
        idle_append(ledger, entry);
    }
    return BATON_OK;
}

/* ---- Moves ----------------------------------------------------------------------------------- */

int ledger_submit(struct ledger *ledger, struct work_item *item, int64_t now_unix_ms,
                  struct ledger_entry **ret_entry)
{
    struct ledger_entry *entry = ledger_find(ledger, item->id);
    bool is_new = !entry;
    int code = is_new ? ledger_entry_add(ledger, item->id, now_unix_ms, &entry) : BATON_OK;

    if (code != BATON_OK) {
        return code;
    }
    code = ledger_entry_know(ledger, entry, item);
    if (code != BATON_OK) {
        if (is_new) {
            ledger_entry_drop(ledger, entry);
        }
        return code;
    }
    *ret_entry = entry;
    return work_item_equal(entry->item, item) ? BATON_OK : BATON_EEXIST;
}

static void move(struct ledger *ledger, struct ledger_entry *entry, enum work_state state,
                 struct ledger_place *place, int64_t now_unix_ms)
{
    INVARIANT(is_allowed[entry->state][state]);
    entry->since_unix_ms = now_unix_ms;
    ledger_entry_clear(ledger, entry);
    ledger_entry_set(ledger, entry, state, place);
    if (state != WORK_PROCESSING || !WORK_MUTANT(CHANGE_NOT_MARKED)) {
        ledger_entry_touch(ledger, entry);
    }
}

static uint64_t highest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int ledger_place(struct ledger *ledger, struct ledger_entry *entry, const char *worker,
                 uint64_t session, uint64_t leader_epoch, int64_t now_unix_ms)
{
    const struct ledger_bucket *bucket = &ledger->buckets[entry->bucket];
    uint64_t before = highest(entry->epoch, highest(bucket->floor, bucket->passed));
    uint64_t epoch = before + !WORK_MUTANT(EPOCH_KEPT);
    struct ledger_place *place;

    INVARIANT(entry->state == WORK_IDLE);
    INVARIANT(session != 0);
    if (!WORK_MUTANT(EPOCH_BELOW_LEADER)) {
        epoch = highest(epoch, leader_epoch);
    }
    if (epoch > WORK_NUMBER_MAX) {
        return BATON_EFULL;
    }
    place = ledger_place_add(ledger, worker, session);
    if (!place) {
        return BATON_ENOMEM;
    }
    move(ledger, entry, WORK_PROCESSING, place, now_unix_ms);
    entry->attempt += entry->attempt < UINT32_MAX;
    ledger_entry_begin(entry, epoch);
    entry->began_unix_ms = now_unix_ms;
    return BATON_OK;
}

void ledger_release(struct ledger *ledger, struct ledger_entry *entry, int64_t now_unix_ms)
{
    move(ledger, entry, WORK_IDLE, NULL, now_unix_ms);
}

void ledger_lose(struct ledger *ledger, struct ledger_entry *entry, int64_t now_unix_ms)
{
    move(ledger, entry, WORK_IDLE, NULL, now_unix_ms);
    entry->losses += entry->losses < UINT32_MAX;
}

/* Without its item there is nothing that could be placed again. */
static bool has_retry(const struct ledger_entry *entry)
{
    return entry->item &&
           (entry->item->kind == WORK_SERVICE ||
            (entry->failures <= entry->item->retries && !WORK_MUTANT(RETRIES_FORGOTTEN)));
}

void ledger_fail(struct ledger *ledger, struct ledger_entry *entry, int32_t code,
                 int64_t now_unix_ms)
{
    INVARIANT(entry->state == WORK_PROCESSING);
    entry->failures += entry->failures < UINT32_MAX;
    entry->code = code;
    move(ledger, entry, has_retry(entry) ? WORK_IDLE : WORK_FAILED, NULL, now_unix_ms);
}

void ledger_finish(struct ledger *ledger, struct ledger_entry *entry, enum work_state state,
                   int32_t code, int64_t now_unix_ms)
{
    INVARIANT(work_state_is_final(state));
    move(ledger, entry, state, NULL, now_unix_ms);
    entry->code = code;
}

void ledger_pass_over(struct ledger *ledger, const struct ledger_entry *entry)
{
    struct ledger_bucket *bucket = &ledger->buckets[entry->bucket];

    bucket->passed = highest(bucket->passed, entry->epoch);
}

void ledger_remove(struct ledger *ledger, struct ledger_entry *entry)
{
    struct ledger_bucket *bucket = &ledger->buckets[entry->bucket];

    INVARIANT(work_state_is_final(entry->state));
    if (!WORK_MUTANT(FLOOR_FORGOTTEN)) {
        bucket->floor = highest(bucket->floor, entry->epoch);
    }
    ledger_entry_drop(ledger, entry);
}
