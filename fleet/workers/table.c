#include "fleet/workers/table.h"

#include "base/json_read.h"
#include "base/log.h"
#include "member/feed.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

enum { SILENCE_S = 15, LOOK_MS = 500, DEPTH_MAX = 16 };

struct entry {
    UT_hash_handle hh;
    struct entry *prev, *next;
    struct worker_live live;
    char process[BATON_NAME_MAX];
    char id[WORKER_ID_MAX + 1];
};

struct worker_table {
    struct worker_table_config config;
    struct entry *entries;
    struct entry *online,
        *offline; /* lists; the one that was heard the longest time ago is first */
    struct worker_observer *observers;
    struct feed *responses, *events;
    uv_timer_t timer;
    uint64_t refused; /* lines */
};

enum word_type { WORD_REPORT, WORD_IN_SYNC, WORD_OFFLINE, WORD_TYPES };

static const char *const word_names[] = {[WORD_REPORT] = "stateReport",
                                         [WORD_IN_SYNC] = "workerInSync",
                                         [WORD_OFFLINE] = "workerOffline"};

/* What a line says of a worker, beside its report. */
struct word {
    enum word_type type;
    const char *worker, *process;
    int64_t epoch, revision;
    int64_t detections, reconnects, stalls, refused;
    bool is_in_sync;
};

/* ---- Observers ------------------------------------------------------------------------------- */

static void tell(struct worker_table *table, const struct entry *entry, enum worker_change change)
{
    for (struct worker_observer *at = table->observers; at != NULL; at = at->next) {
        at->on_change(at, &entry->live, change);
    }
}

void worker_table_observe(struct worker_table *table, struct worker_observer *observer)
{
    struct worker_observer **last = &table->observers;

    while (*last != NULL) {
        last = &(*last)->next;
    }
    observer->next = NULL;
    *last = observer;
}

void worker_table_ignore(struct worker_table *table, const struct worker_observer *observer)
{
    struct worker_observer **at = &table->observers;

    while (*at && *at != observer) {
        at = &(*at)->next;
    }
    *at = *at ? observer->next : NULL;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static struct entry *find(const struct worker_table *table, const char *id)
{
    struct entry *entry;

    HASH_FIND_STR(table->entries, id, entry);
    return entry;
}

static struct entry **list_of(struct worker_table *table, const struct entry *entry)
{
    return entry->live.is_online ? &table->online : &table->offline;
}

static void remove_entry(struct worker_table *table, struct entry *entry)
{
    struct entry **list = list_of(table, entry);

    DL_DELETE(*list, entry);
    HASH_DEL(table->entries, entry); /* NOLINT(clang-analyzer-unix.Malloc): each once */
    json_decref(entry->live.report);
    free(entry);
}

/* With too many, the offline one that was heard the longest time ago makes room. */
static struct entry *add(struct worker_table *table, const char *id, instant now)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    if (entry != NULL && HASH_COUNT(table->entries) >= WORKER_TABLE_MAX && table->offline != NULL) {
        remove_entry(table, table->offline);
    }
    if (entry == NULL || HASH_COUNT(table->entries) >= WORKER_TABLE_MAX) {
        free(entry);
        return NULL;
    }
    memcpy(entry->id, id, strlen(id) + 1);
    entry->live = (struct worker_live){
        .id = entry->id, .process = entry->process, .since = now, .heard = now};
    HASH_ADD_STR(table->entries, id, entry);
    if (entry->hh.tbl == NULL) {
        free(entry);
        return NULL;
    }
    DL_APPEND(table->offline, entry);
    return entry;
}

/* Moves it to the end of its list, which may be the other one. */
static bool move(struct worker_table *table, struct entry *entry, bool is_online, instant now)
{
    struct entry **from = list_of(table, entry);
    bool is_change = entry->live.is_online != is_online;
    struct entry **to = is_online ? &table->online : &table->offline;

    DL_DELETE(*from, entry);
    DL_APPEND(*to, entry);
    entry->live.is_online = is_online;
    if (is_change) {
        entry->live.since = now;
    }
    return is_change;
}

static void go_offline(struct worker_table *table, struct entry *entry, instant now)
{
    entry->live.is_in_sync = false;
    if (move(table, entry, false, now)) {
        tell(table, entry, WORKER_CHANGED_OFFLINE);
    }
}

/* ---- Words ----------------------------------------------------------------------------------- */

static int read_counts(const json_t *line, struct word *word, struct baton_error *reterr)
{
    const struct {
        const char *key;
        int64_t *value;
    } counts[] = {{"revision", &word->revision},     {"detections", &word->detections},
                  {"reconnects", &word->reconnects}, {"stalls", &word->stalls},
                  {"refused", &word->refused},       {"epoch", &word->epoch}};
    int code = BATON_OK;

    for (size_t i = 0; code == BATON_OK && i < sizeof(counts) / sizeof(counts[0]); i++) {
        bool is_given;
        code = json_read_integer(line, "", counts[i].key, 0, INT64_MAX, &is_given, counts[i].value,
                                 reterr);
    }
    return code;
}

static int read_word(const json_t *line, struct word *word, struct baton_error *reterr)
{
    int code = json_read_text(line, "", "worker", true, WORKER_ID_MAX, &word->worker, reterr);

    code = code ? code
                : json_read_text(line, "", "process", true, BATON_NAME_MAX - 1, &word->process,
                                 reterr);
    code = code ? code : read_counts(line, word, reterr);
    if (code == BATON_OK && word->type == WORD_REPORT) {
        code = json_read_flag(line, "", "inSync", &word->is_in_sync, reterr);
    }
    word->is_in_sync |= word->type == WORD_IN_SYNC;
    return code;
}

static void take_owner(struct worker_table *table, struct entry *entry, const struct word *word)
{
    bool is_other =
        strcmp(entry->process, word->process) != 0 || entry->live.epoch != (uint64_t)word->epoch;

    if (is_other) {
        (void)snprintf(entry->process, sizeof(entry->process), "%s", word->process);
        entry->live.epoch = (uint64_t)word->epoch;
        tell(table, entry, WORKER_CHANGED_OWNER);
    }
}

static void take_sync(struct worker_table *table, struct entry *entry, const struct word *word)
{
    struct worker_live *live = &entry->live;
    uint64_t revision = word->is_in_sync ? (uint64_t)word->revision : live->synced_revision;
    bool is_other = live->is_in_sync != word->is_in_sync || live->synced_revision != revision;

    live->is_in_sync = word->is_in_sync;
    live->synced_revision = revision;
    if (is_other) {
        tell(table, entry, WORKER_CHANGED_SYNC);
    }
}

static void take_counters(struct worker_live *live, const struct word *word)
{
    live->detections = (uint64_t)word->detections;
    live->reconnects = (uint64_t)word->reconnects;
    live->stalls = (uint64_t)word->stalls;
    live->refused = (uint64_t)word->refused;
}

static void take_report(struct worker_table *table, struct entry *entry, json_t *line)
{
    struct worker_live *live = &entry->live;

    json_decref(live->report);
    live->report = json_incref(line);
    live->usage = usage_of_report(line);
    tell(table, entry, WORKER_CHANGED_REPORT);
}

/* Whether an owner would have spoken since: then the epoch was another program's, or is that of a
 * group which was made anew. */
static bool is_forgotten(const struct worker_table *table, const struct entry *entry, instant now)
{
    return !instant_before(now, instant_add(entry->live.heard, table->config.silence));
}

static void take_word(struct worker_table *table, json_t *line, const struct word *word)
{
    instant now = clock_now();
    struct entry *entry = find(table, word->worker);

    if (entry == NULL && (entry = add(table, word->worker, now)) == NULL) {
        return; /* the next report finds room */
    }
    if ((uint64_t)word->epoch < entry->live.epoch && !is_forgotten(table, entry, now)) {
        return;
    }
    entry->live.heard = now;
    if (word->type == WORD_REPORT) {
        take_counters(&entry->live, word);
    }
    if (word->type == WORD_OFFLINE) {
        go_offline(table, entry, now);
    } else if (move(table, entry, true, now)) {
        tell(table, entry, WORKER_CHANGED_ONLINE);
    }
    take_owner(table, entry, word);
    if (word->type != WORD_OFFLINE) {
        take_sync(table, entry, word);
    }
    if (word->type == WORD_REPORT) {
        take_report(table, entry, line);
    }
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void refuse(struct worker_table *table, const char *channel, const struct baton_error *error)
{
    uint64_t count = ++table->refused;

    if ((count & (count - 1)) == 0) {
        log_warning(table->config.logger, "message-refused", LOG_STR("channel", channel),
                    LOG_STR("error", error->message), LOG_U64("count", count));
    }
}

static int take_line(struct worker_table *table, json_t *line, struct baton_error *reterr)
{
    const char *type;
    struct word word = {.type = WORD_REPORT};
    int code = json_read_text(line, "", "type", true, PROTOCOL_NAME_MAX, &type, reterr);

    if (code != BATON_OK) {
        return code;
    }
    while (word.type < WORD_TYPES && strcmp(type, word_names[word.type]) != 0) {
        word.type++;
    }
    if (word.type == WORD_TYPES) {
        return BATON_OK;
    }
    code = read_word(line, &word, reterr);
    if (code == BATON_OK) {
        take_word(table, line, &word);
    }
    return code;
}

static int take_event(struct worker_table *table, const json_t *line, struct baton_error *reterr)
{
    const char *name;
    int code = json_read_text(line, "", "type", true, PROTOCOL_NAME_MAX, &name, reterr);

    for (struct worker_observer *at = table->observers; code == BATON_OK && at; at = at->next) {
        if (at->on_event != NULL) {
            at->on_event(at, name, line);
        }
    }
    return code;
}

static void read_line(struct worker_table *table, const char *channel, const char *text,
                      size_t bytes)
{
    static const char detection[] = "{\"key\":";
    bool is_event = strcmp(channel, WORKER_EVENTS) == 0;
    struct baton_error error = {0};
    json_t *line = NULL;
    int code;

    if (!is_event && bytes >= sizeof(detection) - 1 &&
        memcmp(text, detection, sizeof(detection) - 1) == 0) {
        return;
    }
    code = json_read_object(text, bytes, PROVIDER_VALUE_MAX, DEPTH_MAX, &line, &error);
    if (code == BATON_OK) {
        code = is_event ? take_event(table, line, &error) : take_line(table, line, &error);
        json_decref(line);
    }
    if (code != BATON_OK) {
        refuse(table, channel, &error);
    }
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const char *end = memchr(at, '\n', bytes);
        size_t line = end != NULL ? (size_t)(end - at) : bytes;

        if (line > 0) {
            read_line(userdata, channel, at, line);
        }
        at += line + (end != NULL);
        bytes -= line + (end != NULL);
    }
}

/* ---- Silence --------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct worker_table *table = timer->data;
    instant now = clock_now();

    while (table->online != NULL && is_forgotten(table, table->online, now)) {
        go_offline(table, table->online, now);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void on_timer_closed(uv_handle_t *timer)
{
    free(timer->data);
}

void worker_table_close(struct worker_table *table)
{
    struct entry *next;

    if (table == NULL) {
        return;
    }
    feed_stop(table->responses);
    feed_stop(table->events);
    for (struct entry *entry = table->entries; entry != NULL; entry = next) {
        next = entry->hh.next;
        remove_entry(table, entry);
    }
    uv_close((uv_handle_t *)&table->timer, on_timer_closed);
}

const struct worker_live *worker_table_find(const struct worker_table *table, const char *id)
{
    const struct entry *entry = find(table, id);

    return entry != NULL ? &entry->live : NULL;
}

int worker_table_open(struct worker_table **ret, const struct worker_table_config *config,
                      struct baton_error *reterr)
{
    struct worker_table *table = calloc(1, sizeof(*table));
    int code;

    if (table == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the workers' state");
    }
    table->config = *config;
    if (table->config.silence.ns == 0) {
        table->config.silence = SPAN_S(SILENCE_S);
    }
    (void)uv_timer_init(member_loop(config->member), &table->timer); /* cannot fail */
    table->timer.data = table;
    (void)uv_timer_start(&table->timer, on_timer, LOOK_MS, LOOK_MS);
    code = feed_subscribe(&table->responses, config->member, WORKER_RESPONSES, on_message, table,
                          reterr);
    code = code ? code
                : feed_subscribe(&table->events, config->member, WORKER_EVENTS, on_message, table,
                                 reterr);
    if (code != BATON_OK) {
        worker_table_close(table);
        return code;
    }
    *ret = table;
    return BATON_OK;
}
