#include "fleet/workers/sync.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

struct item {
    UT_hash_handle hh;
    int64_t model;
    struct crop crop;
    unsigned shown; /* by the report of that number */
    bool is_listed;
    bool is_online;
    char identifier[];
};

struct display;

/* A display waits to be sent: its session in one queue, its stage in the other. */
struct due {
    struct due *prev, *next;
    struct display *display;
    bool is_queued;
};

struct display {
    UT_hash_handle hh;
    struct due session_due, stage_due;
    struct session_id session; /* as sent */
    enum stage stage;
    bool has_session, has_stage; /* sent on this connection */
    bool is_listed;
    char name[];
};

enum { PRINTS_MAX = 8 };

struct sync {
    struct sync_calls calls;
    struct item *items;
    struct display *displays;
    struct due *sessions, *stages; /* queues */
    uint64_t revision;
    unsigned reports;
    bool has_list, is_connected, is_in_sync, is_alarmed;
    bool is_list_due;
    bool wants_report; /* SYNC_REQUEST is to come at request_at */
    instant sent_at;   /* the latest list */
    /* What the worker may still show, by prints: the list that it confirmed last on this
     * connection, and all since. Neighbours differ. */
    uint64_t prints[PRINTS_MAX];
    unsigned print_count;
    bool has_lost_prints; /* there were more */
    instant count_at;     /* reports before this confirm nothing */
    instant trust_at;     /* then a report of the latest list is not from before the others */
    instant request_at, resend_at;
    instant differs_since;
    span resend_after;
};

struct sync *sync_new(const struct sync_calls *calls)
{
    struct sync *sync = calloc(1, sizeof(*sync));

    if (sync != NULL) {
        sync->calls = *calls;
    }
    return sync;
}

/* ---- Items and displays ---------------------------------------------------------------------- */

static void item_remove(struct sync *sync, struct item *item)
{
    HASH_DEL(sync->items, item); /* NOLINT(clang-analyzer-unix.Malloc): each is removed once */
    free(item);
}

static struct item *item_find(const struct sync *sync, const char *identifier)
{
    struct item *item;

    HASH_FIND_STR(sync->items, identifier, item);
    return item;
}

static struct item *item_add(struct sync *sync, const char *identifier)
{
    size_t bytes = strlen(identifier) + 1;
    struct item *item = calloc(1, sizeof(*item) + bytes);

    if (item == NULL) {
        return NULL;
    }
    memcpy(item->identifier, identifier, bytes);
    HASH_ADD_KEYPTR(hh, sync->items, item->identifier, bytes - 1, item);
    if (item->hh.tbl == NULL) {
        free(item);
        return NULL;
    }
    return item;
}

static void enqueue(struct due **queue, struct due *due)
{
    if (!due->is_queued) {
        due->is_queued = true;
        DL_APPEND(*queue, due);
    }
}

static void dequeue(struct due **queue, struct due *due)
{
    if (due->is_queued) {
        due->is_queued = false;
        DL_DELETE(*queue, due);
    }
}

static void display_enqueue(struct sync *sync, struct display *display)
{
    enqueue(&sync->sessions, &display->session_due);
    enqueue(&sync->stages, &display->stage_due);
}

static void display_remove(struct sync *sync, struct display *display)
{
    dequeue(&sync->sessions, &display->session_due);
    dequeue(&sync->stages, &display->stage_due);
    HASH_DEL(sync->displays, display);
    free(display);
}

static struct display *display_add(struct sync *sync, const char *name, size_t bytes)
{
    struct display *display = calloc(1, sizeof(*display) + bytes + 1);

    if (display == NULL) {
        return NULL;
    }
    memcpy(display->name, name, bytes);
    display->session_due.display = display->stage_due.display = display;
    HASH_ADD_KEYPTR(hh, sync->displays, display->name, bytes, display);
    if (display->hh.tbl == NULL) {
        free(display);
        return NULL;
    }
    display_enqueue(sync, display);
    return display;
}

void sync_free(struct sync *sync)
{
    struct item *item = NULL, *next_item = NULL;
    struct display *display = NULL, *next_display = NULL;

    if (sync == NULL) {
        return;
    }
    HASH_ITER (hh, sync->items, item, next_item) {
        item_remove(sync, item);
    }
    HASH_ITER (hh, sync->displays, display, next_display) {
        display_remove(sync, display);
    }
    free(sync);
}

/* ---- Prints ---------------------------------------------------------------------------------- */

/* FNV-1a, mixed. A list's print is the sum over its items, so their order does not matter. */
static uint64_t item_print(const char *identifier, int64_t model)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)model;

    for (const char *at = identifier; *at != '\0'; at++) {
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    }
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

static uint64_t list_print(const struct sync *sync)
{
    uint64_t sum = 0;

    for (const struct item *item = sync->items; item != NULL; item = item->hh.next) {
        sum += item_print(item->identifier, item->model);
    }
    return sum;
}

static void prints_forget(struct sync *sync, unsigned count)
{
    sync->print_count -= count;
    memmove(sync->prints, sync->prints + count, sync->print_count * sizeof(sync->prints[0]));
}

/* Where the print is first; print_count: nowhere. */
static unsigned prints_find(const struct sync *sync, uint64_t print)
{
    unsigned at = 0;

    while (at < sync->print_count && sync->prints[at] != print) {
        at++;
    }
    return at;
}

static void prints_add(struct sync *sync, uint64_t print, instant now)
{
    sync->count_at = now;
    if (sync->print_count > 0 && sync->prints[sync->print_count - 1] == print) {
        sync->count_at = instant_add(now, SPAN_MS(SYNC_REQUEST_MS));
        return;
    }
    if (sync->print_count == PRINTS_MAX) {
        sync->has_lost_prints = true;
        prints_forget(sync, 1);
    }
    sync->prints[sync->print_count++] = print;
    sync->trust_at = instant_add(now, SPAN_S(SYNC_LATE_S));
}

/* ---- The list -------------------------------------------------------------------------------- */

static int list_display(struct sync *sync, const char *identifier)
{
    size_t bytes = strcspn(identifier, ";");
    struct display *display;

    HASH_FIND(hh, sync->displays, identifier, bytes, display);
    if (display == NULL) {
        display = display_add(sync, identifier, bytes);
    }
    if (display == NULL) {
        return BATON_ENOMEM;
    }
    display->is_listed = true;
    return BATON_OK;
}

/* Sets *is_other if the list did not have it, or had it in another form. */
static int list_item(struct sync *sync, const struct subscription *wanted, bool *is_other)
{
    struct item *item = item_find(sync, wanted->identifier);
    bool is_same =
        item != NULL && item->model == wanted->model_id && crop_equal(&item->crop, &wanted->crop);

    if (item == NULL) {
        item = item_add(sync, wanted->identifier);
    }
    if (item == NULL) {
        return BATON_ENOMEM;
    }
    item->model = wanted->model_id;
    item->crop = wanted->crop;
    item->is_listed = true;
    *is_other |= !is_same;
    return list_display(sync, wanted->identifier);
}

/* Removes what is not listed, and takes the marks off the rest. */
static void sweep(struct sync *sync, bool *is_other)
{
    struct item *next_item;
    struct display *next_display;

    for (struct item *item = sync->items; item != NULL; item = next_item) {
        next_item = item->hh.next;
        if (!item->is_listed) {
            item_remove(sync, item);
            *is_other = true;
        } else {
            item->is_listed = false;
        }
    }
    for (struct display *display = sync->displays; display != NULL; display = next_display) {
        next_display = display->hh.next;
        if (!display->is_listed) {
            display_remove(sync, display);
        } else {
            display->is_listed = false;
        }
    }
}

static void doubt(struct sync *sync, instant now)
{
    if (sync->is_in_sync) {
        sync->is_in_sync = false;
        sync->differs_since = now;
    }
    sync->resend_after = SPAN_S(SYNC_RESEND_FIRST_S);
}

int sync_set_list(struct sync *sync, const struct subscription *list, size_t count,
                  uint64_t revision, bool is_other, instant now)
{
    bool is_new = is_other || !sync->has_list;

    for (size_t i = 0; i < count; i++) {
        if (list_item(sync, &list[i], &is_new) != BATON_OK) {
            sync->has_list = false; /* the next call sends it */
            return BATON_ENOMEM;
        }
    }
    sweep(sync, &is_new);
    sync->has_list = true;
    sync->revision = revision;
    if (is_new) {
        sync->is_list_due = true;
        doubt(sync, now);
    }
    return BATON_OK;
}

void sync_forget_list(struct sync *sync)
{
    sync->has_list = false;
}

bool sync_has_list(const struct sync *sync)
{
    return sync->has_list;
}

void sync_display_changed(struct sync *sync, const char *name)
{
    struct display *display;

    HASH_FIND_STR(sync->displays, name, display);
    if (display != NULL) {
        display_enqueue(sync, display);
    }
}

/* ---- The connection -------------------------------------------------------------------------- */

void sync_connected(struct sync *sync, instant now)
{
    sync->is_connected = true;
    sync->is_list_due = sync->has_list;
    sync->is_in_sync = sync->is_alarmed = false;
    sync->wants_report = sync->has_lost_prints = false;
    sync->print_count = 0;
    sync->differs_since = now;
    sync->resend_after = SPAN_S(SYNC_RESEND_FIRST_S);
    for (struct display *display = sync->displays; display != NULL; display = display->hh.next) {
        display->has_session = display->has_stage = false;
        display_enqueue(sync, display);
    }
}

void sync_disconnected(struct sync *sync)
{
    sync->is_connected = false;
    sync->is_in_sync = false;
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* A worker may leave the crop out of its report; what it names must be right. */
static bool crop_agrees(const struct crop *crop, const json_t *connection)
{
    static const char *const keys[] = {
        [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

    for (int edge = 0; edge < CROP_EDGES; edge++) {
        const json_t *value = json_object_get(connection, keys[edge]);
        if (json_is_integer(value) &&
            ((crop->given & 1u << edge) == 0 || json_integer_value(value) != crop->at[edge])) {
            return false;
        }
    }
    return true;
}

static void note_online(struct sync *sync, struct item *item, bool is_online)
{
    if (item->is_online != is_online) {
        item->is_online = is_online;
        if (sync->reports > 1) {
            sync->calls.camera(sync->calls.userdata, item->identifier, is_online);
        }
    }
}

static bool connection_agrees(struct sync *sync, const json_t *connection)
{
    struct item *item =
        item_find(sync, json_string_value(json_object_get(connection, "subscriptionIdentifier")));

    if (item == NULL || item->shown == sync->reports) {
        return false;
    }
    item->shown = sync->reports;
    note_online(sync, item, json_is_true(json_object_get(connection, "online")));
    return item->model == json_integer_value(json_object_get(connection, "modelId")) &&
           crop_agrees(&item->crop, connection);
}

static bool report_agrees(struct sync *sync, const json_t *connections)
{
    size_t count = json_array_size(connections);
    bool agrees = count == HASH_COUNT(sync->items);

    sync->reports++;
    for (size_t i = 0; i < count; i++) {
        agrees &= connection_agrees(sync, json_array_get(connections, i));
    }
    return agrees;
}

/* Forgets the lists from before the one that the report shows: of equal ones, before the first. */
static void forget_before(struct sync *sync, const json_t *connections)
{
    uint64_t print = 0;
    unsigned at;

    for (size_t i = 0; i < json_array_size(connections); i++) {
        const json_t *connection = json_array_get(connections, i);
        const json_t *identifier = json_object_get(connection, "subscriptionIdentifier");
        print += item_print(json_string_value(identifier),
                            json_integer_value(json_object_get(connection, "modelId")));
    }
    at = prints_find(sync, print);
    if (at < sync->print_count) {
        prints_forget(sync, at);
    }
}

void sync_report(struct sync *sync, const json_t *report, instant now)
{
    const json_t *connections = json_object_get(report, "cameraConnections");
    bool agrees = report_agrees(sync, connections);
    bool is_latest;

    forget_before(sync, connections);
    is_latest =
        (sync->print_count == 1 && !sync->has_lost_prints) || !instant_before(now, sync->trust_at);
    if (!sync->is_connected || sync->is_list_due || !sync->has_list) {
        return;
    }
    if (agrees && is_latest && !instant_before(now, sync->count_at)) {
        prints_forget(sync, sync->print_count - 1);
        sync->is_in_sync = true;
        sync->is_alarmed = sync->wants_report = sync->has_lost_prints = false;
    } else if (!agrees && sync->is_in_sync) {
        doubt(sync, now);
        sync->resend_at = instant_add(sync->sent_at, sync->resend_after);
    }
}

bool sync_is_in_sync(const struct sync *sync)
{
    return sync->is_in_sync;
}

bool sync_is_alarmed(const struct sync *sync)
{
    return sync->is_alarmed;
}

uint64_t sync_revision(const struct sync *sync)
{
    return sync->revision;
}

/* ---- Outputs --------------------------------------------------------------------------------- */

static span twice(span after)
{
    span longest = SPAN_S(SYNC_RESEND_MAX_S);

    return after.ns * 2 < longest.ns ? SPAN_NS(after.ns * 2) : longest;
}

static struct sync_output send_list(struct sync *sync, instant now)
{
    prints_add(sync, list_print(sync), now);
    sync->is_list_due = false;
    sync->wants_report = true;
    sync->sent_at = now;
    sync->request_at = instant_add(now, SPAN_MS(SYNC_REQUEST_MS));
    sync->resend_at = instant_add(now, sync->resend_after);
    sync->resend_after = twice(sync->resend_after);
    return (struct sync_output){.type = SYNC_LIST};
}

static bool next_session(struct sync *sync, struct sync_output *ret)
{
    while (sync->sessions != NULL) {
        struct display *display = sync->sessions->display;
        struct session_id session = {0};
        enum stage stage = STAGE_NONE;

        sync->calls.display(sync->calls.userdata, display->name, &session, &stage);
        dequeue(&sync->sessions, &display->session_due);
        if (!display->has_session || display->session.is_set != session.is_set ||
            display->session.id != session.id) {
            display->has_session = true;
            display->session = session;
            *ret = (struct sync_output){
                .type = SYNC_SESSION, .display = display->name, .session = session};
            return true;
        }
    }
    return false;
}

static bool next_stage(struct sync *sync, struct sync_output *ret)
{
    while (sync->stages != NULL) {
        struct display *display = sync->stages->display;
        struct session_id session = {0};
        enum stage stage = STAGE_NONE;

        sync->calls.display(sync->calls.userdata, display->name, &session, &stage);
        dequeue(&sync->stages, &display->stage_due);
        if (!display->has_stage || display->stage != stage) {
            display->has_stage = true;
            display->stage = stage;
            *ret =
                (struct sync_output){.type = SYNC_STAGE, .display = display->name, .stage = stage};
            return true;
        }
    }
    return false;
}

/* The list is due, and looks like one from before the latest: a report of that one, which is asked
 * for first, tells the two apart. */
static bool is_ambiguous(const struct sync *sync)
{
    return sync->is_list_due && prints_find(sync, list_print(sync)) + 1 < sync->print_count;
}

static instant alarm_at(const struct sync *sync)
{
    return instant_add(sync->differs_since, SPAN_S(SYNC_ALARM_S));
}

struct sync_output sync_next(struct sync *sync, instant now)
{
    struct sync_output output = {.type = SYNC_NOTHING};

    if (!sync->is_connected || !sync->has_list) {
        return output;
    }
    if (sync->wants_report && is_ambiguous(sync)) {
        sync->wants_report = false;
        return (struct sync_output){.type = SYNC_REQUEST};
    }
    if (sync->is_list_due || (!sync->is_in_sync && !instant_before(now, sync->resend_at))) {
        return send_list(sync, now);
    }
    if (next_session(sync, &output) || next_stage(sync, &output)) {
        return output;
    }
    if (sync->wants_report && !instant_before(now, sync->request_at)) {
        sync->wants_report = false;
        output.type = SYNC_REQUEST;
    } else if (!sync->is_in_sync && !sync->is_alarmed && !instant_before(now, alarm_at(sync))) {
        sync->is_alarmed = true;
        output.type = SYNC_ALARM;
    }
    return output;
}

instant sync_deadline(const struct sync *sync)
{
    instant next = INSTANT_NEVER;

    if (!sync->is_connected || !sync->has_list) {
        return next;
    }
    if (sync->is_list_due || sync->sessions != NULL || sync->stages != NULL) {
        return INSTANT_PAST;
    }
    if (sync->wants_report) {
        next = sync->request_at;
    }
    if (!sync->is_in_sync) {
        next = instant_min(next, sync->resend_at);
        if (!sync->is_alarmed) {
            next = instant_min(next, alarm_at(sync));
        }
    }
    return next;
}
