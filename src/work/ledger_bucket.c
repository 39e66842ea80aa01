/* Buckets as JSON. Two passes read one: the first checks the whole value and allocates what it
 * needs, the second cannot fail. */
#include "work/ledger_int.h"

#include "base/error.h"
#include "work/mutants.h"

#include <string.h>

/* In this order; the second and the third only if they are known. */
static const char format[] = "{\"format\":1";
static const char leader[] = ",\"leader\":";
static const char floor_of[] = ",\"floor\":";
static const char opening[] = ",\"items\":[";

unsigned ledger_bucket_of(const char *id)
{
    uint64_t hash = 14695981039346656037u;

    for (; *id; id++) {
        hash = (hash ^ (uint8_t)*id) * 1099511628211u;
    }
    hash ^= hash >> 32; /* the low bits of an FNV-1a depend on the low bits of the text alone */
    return (unsigned)((hash ^ hash >> 16) % LEDGER_BUCKETS);
}

void ledger_set_writer(struct ledger *ledger, uint64_t leader_epoch)
{
    ledger->writer = leader_epoch;
}

uint64_t ledger_writer(const struct ledger *ledger, unsigned bucket)
{
    return ledger->buckets[bucket].writer;
}

int ledger_changed_bucket(const struct ledger *ledger, unsigned from)
{
    for (unsigned i = from; i < LEDGER_BUCKETS; i++) {
        if (ledger->buckets[i].is_changed) {
            return (int)i;
        }
    }
    return -1;
}

void ledger_touch(struct ledger *ledger, unsigned bucket)
{
    ledger->buckets[bucket].is_changed = true;
}

/* ---- Encoding -------------------------------------------------------------------------------- */

static char *put_text(char *at, const char *text)
{
    size_t length = strlen(text);

    memcpy(at, text, length); /* NOLINT(bugprone-not-null-terminated-result): it goes on */
    return at + length;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

static char *put_signed(char *at, int64_t number)
{
    if (number < 0) {
        *at++ = '-';
    }
    return put_number(at, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

static void put_entry(struct buffer *buffer, const struct ledger_entry *entry, bool is_first)
{
    uint8_t *room = buffer_reserve(buffer, LEDGER_ENTRY_BYTES + strlen(entry->id));
    char *at = (char *)room;

    if (!room) {
        return;
    }
    at = put_text(at, is_first ? "[\"" : ",[\"");
    at = put_text(at, entry->id);
    at = put_text(at, "\",\"");
    at = put_text(at, work_state_name(entry->state));
    at = put_text(at, "\",\"");
    at = put_text(at, entry->place ? entry->place->key.worker : "");
    at = put_text(at, "\",");
    at = put_number(at, entry->place ? entry->place->key.session : 0);
    at = put_text(at, ",");
    at = put_number(at, entry->epoch);
    at = put_text(at, ",");
    at = put_number(at, entry->attempt);
    at = put_text(at, ",");
    at = put_number(at, entry->failures);
    at = put_text(at, ",");
    at = put_number(at, entry->losses);
    at = put_text(at, ",");
    at = put_signed(at, entry->code);
    at = put_text(at, ",");
    at = put_signed(at, entry->since_unix_ms);
    at = put_text(at, ",");
    at = put_signed(at, entry->began_unix_ms);
    if (ledger_entry_first(entry) != 0) {
        at = put_text(at, ",");
        at = put_number(at, entry->first);
    }
    at = put_text(at, "]");
    buffer->bytes += (size_t)(at - (char *)room);
}

static void put_known(struct buffer *buffer, const char *name, uint64_t number)
{
    if (number != 0) {
        buffer_printf(buffer, "%s%llu", name, (unsigned long long)number);
    }
}

void ledger_encode(struct ledger *ledger, unsigned bucket, struct buffer *buffer)
{
    const struct ledger_entry *first = ledger->buckets[bucket].entries;

    buffer_put_text(buffer, format);
    put_known(buffer, leader, ledger->writer);
    put_known(buffer, floor_of, ledger->buckets[bucket].floor);
    buffer_put_text(buffer, opening);
    for (const struct ledger_entry *at = first; at; at = at->bucket_next) {
        put_entry(buffer, at, at == first);
    }
    buffer_put_text(buffer, "]}");
    if (!buffer->failed) {
        ledger->buckets[bucket].is_changed = false;
    }
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct row {
    char id[WORK_ID_MAX];
    char worker[BATON_NAME_MAX];
    enum work_state state;
    uint64_t session, epoch, first, attempt, failures, losses;
    int64_t code, since_unix_ms, began_unix_ms;
};

struct cursor {
    const char *at, *end;
    const char *why; /* it failed; NULL: it did not */
};

static void fail(struct cursor *cursor, const char *why)
{
    cursor->why = cursor->why ? cursor->why : why;
}

static bool sees(const struct cursor *cursor, char byte)
{
    return !cursor->why && cursor->at < cursor->end && *cursor->at == byte;
}

static void take(struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);

    if (!cursor->why && (size_t)(cursor->end - cursor->at) >= length &&
        memcmp(cursor->at, text, length) == 0) {
        cursor->at += length;
    } else {
        fail(cursor, "it is not of the form that is written");
    }
}

/* Up to the next quotation mark. */
static void take_text(struct cursor *cursor, char *ret, size_t size)
{
    size_t length = 0;

    while (!cursor->why && cursor->at < cursor->end && *cursor->at != '"') {
        if (*cursor->at == '\0' || length + 1 >= size) {
            fail(cursor, "a text is too long");
            break;
        }
        ret[length++] = *cursor->at++;
    }
    ret[length] = '\0';
}

static uint64_t take_number(struct cursor *cursor, uint64_t most)
{
    const char *first = cursor->at;
    uint64_t number = 0;

    while (!cursor->why && cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        uint64_t digit = (uint64_t)(*cursor->at++ - '0');
        if (number > (most - digit) / 10) {
            fail(cursor, "a number is too large");
        }
        number = number * 10 + digit;
    }
    if (cursor->at == first || (*first == '0' && cursor->at - first > 1)) {
        fail(cursor, "a number is missing");
    }
    return number;
}

static int64_t take_signed(struct cursor *cursor, int64_t least, int64_t most)
{
    bool is_negative = sees(cursor, '-');
    uint64_t number;

    cursor->at += is_negative;
    number = take_number(cursor, is_negative ? -(uint64_t)least : (uint64_t)most);
    if (is_negative && number == 0) {
        fail(cursor, "a number is missing");
    }
    return is_negative ? (int64_t) - (uint64_t)number : (int64_t)number;
}

static enum work_state take_state(struct cursor *cursor)
{
    char name[16];

    take_text(cursor, name, sizeof(name));
    for (int state = 0; state < WORK_STATE_COUNT; state++) {
        if (strcmp(name, work_state_name((enum work_state)state)) == 0) {
            return (enum work_state)state;
        }
    }
    fail(cursor, "there is no such state");
    return WORK_IDLE;
}

static void check(struct cursor *cursor, const struct row *row, unsigned bucket)
{
    bool is_placed = row->worker[0] && row->session != 0 && row->epoch != 0 && row->attempt != 0;
    bool has_place = row->worker[0] || row->session != 0;

    if (cursor->why) {
        return;
    }
    if (!work_id_is_valid(row->id) ||
        (ledger_bucket_of(row->id) != bucket && !WORK_MUTANT(FOREIGN_BUCKET_READ))) {
        fail(cursor, "an id is none, or of another bucket");
    } else if (row->worker[0] && !work_id_is_valid(row->worker)) {
        fail(cursor, "a worker's name is none");
    } else if (row->state == WORK_PROCESSING ? !is_placed : has_place) {
        fail(cursor, "its state and its place do not agree");
    }
}

/* Without the column it is known of a first attempt only. */
static uint64_t take_first(struct cursor *cursor, const struct row *row)
{
    uint64_t first;

    if (!sees(cursor, ',')) {
        return row->attempt == 1 ? row->epoch : 0;
    }
    take(cursor, ",");
    first = take_number(cursor, WORK_NUMBER_MAX);
    if (first == 0 || first >= row->epoch) {
        fail(cursor, "its first epoch is not below its latest one");
    }
    return first;
}

static void take_row(struct cursor *cursor, struct row *ret, unsigned bucket)
{
    take(cursor, "[\"");
    take_text(cursor, ret->id, sizeof(ret->id));
    take(cursor, "\",\"");
    ret->state = take_state(cursor);
    take(cursor, "\",\"");
    take_text(cursor, ret->worker, sizeof(ret->worker));
    take(cursor, "\",");
    ret->session = take_number(cursor, WORK_NUMBER_MAX);
    take(cursor, ",");
    ret->epoch = take_number(cursor, WORK_NUMBER_MAX);
    take(cursor, ",");
    ret->attempt = take_number(cursor, UINT32_MAX);
    take(cursor, ",");
    ret->failures = take_number(cursor, UINT32_MAX);
    take(cursor, ",");
    ret->losses = take_number(cursor, UINT32_MAX);
    take(cursor, ",");
    ret->code = take_signed(cursor, INT32_MIN, INT32_MAX);
    take(cursor, ",");
    ret->since_unix_ms = take_signed(cursor, INT64_MIN, INT64_MAX);
    take(cursor, ",");
    ret->began_unix_ms = take_signed(cursor, INT64_MIN, INT64_MAX);
    ret->first = take_first(cursor, ret);
    take(cursor, "]");
    check(cursor, ret, bucket);
}

/* The next row; false: there is none, or the value is wrong. */
static bool next_row(struct cursor *cursor, struct row *ret, unsigned bucket, bool is_first)
{
    if (cursor->why || sees(cursor, ']')) {
        return false;
    }
    if (!is_first) {
        take(cursor, ",");
    }
    take_row(cursor, ret, bucket);
    return !cursor->why;
}

/* ---- The first pass -------------------------------------------------------------------------- */

static int allocate(struct ledger *ledger, struct cursor *cursor, const struct row *row)
{
    struct ledger_entry *entry = ledger_find(ledger, row->id);
    struct ledger_place *place;
    int code = entry ? BATON_OK : ledger_entry_add(ledger, row->id, row->since_unix_ms, &entry);

    if (code != BATON_OK) {
        return code;
    }
    if (entry->is_listed) {
        fail(cursor, "an id is there twice");
        return BATON_ECORRUPT;
    }
    entry->is_listed = true;
    if (row->state == WORK_PROCESSING) {
        place = ledger_place_add(ledger, row->worker, row->session);
        if (!place) {
            return BATON_ENOMEM;
        }
        place->awaited++;
    }
    return BATON_OK;
}

static int allocate_all(struct ledger *ledger, unsigned bucket, struct cursor *cursor)
{
    struct row row;
    int code = BATON_OK;

    for (bool is_first = true; code == BATON_OK && next_row(cursor, &row, bucket, is_first);
         is_first = false) {
        code = allocate(ledger, cursor, &row);
    }
    if (code == BATON_OK) {
        take(cursor, "]}");
        if (cursor->at != cursor->end) {
            fail(cursor, "something follows its end");
        }
    }
    return cursor->why ? BATON_ECORRUPT : code;
}

/* What the first pass has added, since the ledger's change `before`. */
static void undo(struct ledger *ledger, unsigned bucket, uint64_t before)
{
    for (struct ledger_entry *at = ledger->buckets[bucket].entries, *next; at; at = next) {
        next = at->bucket_next;
        at->is_listed = false;
        if (at->change > before) {
            ledger_entry_drop(ledger, at);
        }
    }
    for (struct ledger_place *at = ledger->places, *next; at; at = next) {
        next = at->hh.next;
        at->awaited = 0;
        ledger_place_drop_if_empty(ledger, at);
    }
}

/* ---- The second pass ------------------------------------------------------------------------- */

static bool is_as_before(const struct ledger_entry *entry, const struct row *row,
                         const struct ledger_place *place)
{
    return entry->state == row->state && entry->epoch == row->epoch && entry->place == place &&
           entry->attempt == row->attempt && entry->failures == row->failures &&
           entry->losses == row->losses && entry->code == row->code &&
           entry->since_unix_ms == row->since_unix_ms && entry->began_unix_ms == row->began_unix_ms;
}

static void replace(struct ledger *ledger, const struct row *row)
{
    struct ledger_entry *entry = ledger_find(ledger, row->id);
    struct ledger_place *place =
        row->state == WORK_PROCESSING ? ledger_place_find(ledger, row->worker, row->session) : NULL;

    if (place) {
        place->awaited--;
    }
    if (is_as_before(entry, row, place)) {
        return;
    }
    if ((entry->state != row->state || entry->epoch != row->epoch || entry->place != place) &&
        !WORK_MUTANT(TOLD_KEPT)) {
        ledger_entry_clear(ledger, entry);
    }
    if (WORK_MUTANT(ITEM_FORGOTTEN)) {
        work_item_unref(entry->item);
        entry->item = NULL;
    }
    entry->epoch = row->epoch;
    entry->first = row->first;
    entry->attempt = (uint32_t)row->attempt;
    entry->failures = (uint32_t)row->failures;
    entry->losses = (uint32_t)row->losses;
    entry->code = (int32_t)row->code;
    entry->since_unix_ms = row->since_unix_ms;
    entry->began_unix_ms = row->began_unix_ms;
    ledger_entry_set(ledger, entry, row->state, place);
    ledger_entry_touch(ledger, entry);
}

static void replace_all(struct ledger *ledger, unsigned bucket, struct cursor cursor)
{
    struct row row;

    for (bool is_first = true; next_row(&cursor, &row, bucket, is_first); is_first = false) {
        replace(ledger, &row);
    }
    for (struct ledger_entry *at = ledger->buckets[bucket].entries, *next; at; at = next) {
        next = at->bucket_next;
        if (!at->is_listed && !WORK_MUTANT(REMOVED_ENTRY_STAYS)) {
            ledger_entry_drop(ledger, at);
        } else {
            at->is_listed = false;
        }
    }
}

static bool starts_with(const struct cursor *cursor, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(cursor->end - cursor->at) >= length && memcmp(cursor->at, text, length) == 0;
}

static uint64_t take_known(struct cursor *cursor, const char *name)
{
    if (cursor->why || !starts_with(cursor, name)) {
        return 0;
    }
    take(cursor, name);
    return take_number(cursor, WORK_NUMBER_MAX);
}

/* Behind the opening, if the format is ours. */
static int open_value(struct cursor *ret, uint64_t *ret_leader, uint64_t *ret_floor,
                      unsigned bucket, const void *data, size_t bytes, struct baton_error *reterr)
{
    static const char none[] = "{\"format\":1,\"items\":[]}";
    struct cursor cursor = {.at = data ? data : none, .why = NULL};
    struct cursor version;
    uint64_t number;

    cursor.end = cursor.at + (data ? bytes : sizeof(none) - 1);
    version = cursor;
    take(&version, "{\"format\":");
    number = take_number(&version, UINT32_MAX);
    if (!version.why && number > LEDGER_FORMAT) {
        return error_set(reterr, BATON_ENOTSUP,
                         "bucket %u of the ledger has format %llu: this program reads %d; let the "
                         "newer version lead",
                         bucket, (unsigned long long)number, LEDGER_FORMAT);
    }
    if (bytes > LEDGER_BUCKET_MAX) {
        fail(&cursor, "it is too long");
    }
    take(&cursor, format);
    *ret_leader = take_known(&cursor, leader);
    *ret_floor = take_known(&cursor, floor_of);
    take(&cursor, opening);
    *ret = cursor;
    return BATON_OK;
}

int ledger_decode(struct ledger *ledger, unsigned bucket, const void *data, size_t bytes,
                  struct baton_error *reterr)
{
    struct ledger_bucket *of = &ledger->buckets[bucket];
    bool was_changed = of->is_changed;
    uint64_t before = ledger->change;
    uint64_t writer = 0, floor = 0;
    struct cursor first, cursor;
    int code = open_value(&first, &writer, &floor, bucket, data, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    cursor = first;
    code = allocate_all(ledger, bucket, &cursor);
    if (code != BATON_OK) {
        undo(ledger, bucket, before);
        of->is_changed = was_changed;
        return error_set(reterr, code, "bucket %u of the ledger, at byte %zu: %s", bucket,
                         (size_t)(cursor.at - (cursor.end - (data ? bytes : 0))),
                         cursor.why ? cursor.why : baton_strerror(code));
    }
    replace_all(ledger, bucket, first);
    of->writer = writer;
    of->floor = floor;
    of->is_changed = WORK_MUTANT(DECODED_MARK_KEPT) && was_changed;
    return BATON_OK;
}
