#include "fleet/displays/displays.h"

#include "base/error.h"
#include "fleet/displays/displays_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- Records --------------------------------------------------------------------------------- */

struct record *record_find(const struct displays *displays, const char *id)
{
    struct record *record;

    HASH_FIND_STR(displays->records, id, record);
    return record;
}

struct record *record_need(struct displays *displays, const char *id)
{
    size_t bytes = strlen(id) + 1;
    struct record *record = record_find(displays, id);

    if (record != NULL || (record = calloc(1, sizeof(*record) + bytes)) == NULL) {
        return record;
    }
    memcpy(record->id, id, bytes);
    record->displays = displays;
    HASH_ADD_KEYPTR(hh, displays->records, record->id, bytes - 1, record);
    if (record->hh.tbl == NULL) {
        free(record);
        return NULL;
    }
    return record;
}

static void leave_session(struct record *record)
{
    struct displays *displays = record->displays;
    struct holding *holding;

    HASH_FIND(hh, displays->holdings, &record->session.id, sizeof(record->session.id), holding);
    if (record->session.is_set && holding != NULL) {
        DL_DELETE(holding->records, record);
        if (holding->records == NULL) {
            HASH_DEL(displays->holdings, holding);
            free(holding);
        }
    }
    record->session.is_set = false;
}

static void enter_session(struct record *record, struct session_id session)
{
    struct displays *displays = record->displays;
    struct holding *holding;

    HASH_FIND(hh, displays->holdings, &session.id, sizeof(session.id), holding);
    if (holding == NULL && (holding = calloc(1, sizeof(*holding))) != NULL) {
        holding->session = session.id;
        HASH_ADD(hh, displays->holdings, session, sizeof(holding->session), holding);
        if (holding->hh.tbl == NULL) {
            free(holding);
            holding = NULL;
        }
    }
    if (holding != NULL) { /* else out of memory: no patch finds the session */
        DL_APPEND(holding->records, record);
        record->session = session;
    }
}

static void record_free(struct record *record)
{
    leave_session(record);
    car_forget(record);
    HASH_DEL(record->displays->records, record);
    free(record);
}

void record_settle(struct record *record)
{
    struct displays *displays = record->displays;

    if (record->busy == 0 && record->change_count == 0 && !record->is_dirty &&
        !displays->is_closed &&
        fleet_state_data(displays->config.state, record->id, NULL) == NULL) {
        record_free(record);
    }
}

/* ---- Life ------------------------------------------------------------------------------------ */

bool displays_has(const struct displays *displays, const char *id)
{
    return fleet_state_object(displays->config.state, FLEET_DISPLAY, id, NULL) != NULL;
}

void displays_hold(struct displays *displays)
{
    displays->holds++;
}

void displays_release(struct displays *displays)
{
    struct record *next;

    if (--displays->holds > 0) {
        return;
    }
    for (struct record *record = displays->records; record != NULL; record = next) {
        next = record->hh.next;
        record_free(record);
    }
    free(displays);
}

static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event);
static void note_data(struct displays *displays, const char *id, bool is_new);

int displays_open(struct displays **ret, const struct displays_config *config,
                  struct baton_error *reterr)
{
    struct displays *displays = calloc(1, sizeof(*displays));

    if (displays == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for displays");
    }
    displays->config = *config;
    displays->holds = 1; /* the timer's */
    car_open(displays);
    for (const char *id = ""; (id = fleet_state_next_data(config->state, id)) != NULL;) {
        note_data(displays, id, false);
    }
    displays->observer.on_change = on_change;
    fleet_state_observe(config->state, &displays->observer);
    *ret = displays;
    return BATON_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    displays_release(handle->data);
}

void displays_close(struct displays *displays)
{
    if (displays == NULL || displays->is_closed) {
        return;
    }
    displays->is_closed = true;
    fleet_state_ignore(displays->config.state, &displays->observer);
    displays_hold(displays);
    for (struct record *record = displays->records; record != NULL; record = record->hh.next) {
        changes_cancel(record);
    }
    uv_close((uv_handle_t *)&displays->settle, on_timer_closed);
    displays_release(displays);
}

const struct displays_counters *displays_counters(const struct displays *displays)
{
    return &displays->counters;
}

/* ---- What the state says --------------------------------------------------------------------- */

static json_t *session_json(struct session_id session)
{
    return session.is_set ? json_integer(session.id) : json_null();
}

static json_t *stage_json(enum stage stage)
{
    return stage != STAGE_NONE ? json_string(stage_name(stage)) : json_null();
}

static void tell(struct displays *displays, const char *name, json_t *fields)
{
    if (fields == NULL || displays->config.on_event == NULL) { /* out of memory, or unwanted */
        json_decref(fields);
        return;
    }
    displays->config.on_event(displays->config.userdata, name, fields);
}

static void note_session(struct record *record, struct session_id session, bool is_new)
{
    const struct session_id before = record->session;

    if (session.is_set == before.is_set && (!session.is_set || session.id == before.id)) {
        return;
    }
    leave_session(record);
    if (session.is_set) {
        enter_session(record, session);
    }
    car_forget(record); /* it was the other session's */
    if (is_new) {
        tell(record->displays, "session-changed",
             json_pack("{s:s, s:o, s:o}", "display", record->id, "sessionId", session_json(session),
                       "before", session_json(before)));
    }
}

static void note_stage(struct record *record, enum stage stage, bool is_new)
{
    const enum stage before = record->stage;

    record->stage = stage;
    if (is_new && stage != before) {
        tell(record->displays, "stage-changed",
             json_pack("{s:s, s:o, s:o}", "display", record->id, "progressionStage",
                       stage_json(stage), "before", stage_json(before)));
    }
}

static void note_data(struct displays *displays, const char *id, bool is_new)
{
    const json_t *data = fleet_state_data(displays->config.state, id, NULL);
    struct record *record = data != NULL ? record_need(displays, id) : record_find(displays, id);
    const struct session_id session = display_session_of(data);
    const enum stage stage = display_stage_of(data);

    if (record == NULL) {
        return;
    }
    record->busy++;
    note_session(record, session, is_new);
    note_stage(record, stage, is_new);
    if (data != NULL && !displays_has(displays, id)) {
        car_settle(record);
    }
    record->busy--;
    record_settle(record);
}

static void on_deleted(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    (void)userdata;
    (void)code; /* BATON_ECONFLICT: another process was first */
    (void)revision;
    (void)error;
}

void displays_delete_data(struct displays *displays, const char *id)
{
    char key[sizeof("data/") + FLEET_ID_MAX];
    uint64_t revision = 0;

    if (fleet_state_data(displays->config.state, id, &revision) != NULL) {
        (void)snprintf(key, sizeof(key), "data/%s", id);
        (void)fleet_state_put_json(displays->config.state, key, NULL, revision, on_deleted, NULL,
                                   NULL);
    }
}

static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct displays *displays =
        (struct displays *)((char *)observer - offsetof(struct displays, observer));

    displays_hold(displays);
    if (event->change == FLEET_CHANGED_DATA) {
        note_data(displays, event->id, true);
    } else if (event->change == FLEET_CHANGED_OBJECT && event->kind == FLEET_DISPLAY &&
               !displays_has(displays, event->id)) {
        displays_delete_data(displays, event->id);
    }
    displays_release(displays);
}

/* ---- Changes --------------------------------------------------------------------------------- */

static int begin(struct displays *displays, const char *display, const struct change *change,
                 struct baton_error *reterr)
{
    const struct session_id session = display_session_of(change->patch);
    struct record *record;

    if (!displays_has(displays, display)) {
        return error_set(reterr, BATON_ENOENT, "display \"%.64s\": the fleet has none of this id",
                         display);
    }
    if (session.is_set) {
        return move_begin(displays, display, session.id, change, reterr);
    }
    record = record_need(displays, display);
    return record != NULL
               ? change_add(record, change, reterr)
               : error_set(reterr, BATON_ENOMEM, "display \"%.64s\": out of memory", display);
}

int displays_patch(struct displays *displays, const char *display, const json_t *patch,
                   provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    const struct change change = {.patch = (json_t *)patch, .done = done, .userdata = userdata};
    int code = display_patch_check(patch, reterr);

    return code == BATON_OK ? begin(displays, display, &change, reterr) : code;
}

int displays_patch_session(struct displays *displays, int64_t session, const json_t *patch,
                           provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    const struct change change = {.patch = (json_t *)patch,
                                  .only_in = {.is_set = true, .id = session},
                                  .otherwise = BATON_ENOENT,
                                  .done = done,
                                  .userdata = userdata};
    const char *display = displays_of_session(displays, session);
    int code = display_patch_check(patch, reterr);

    if (code != BATON_OK) {
        return code;
    }
    if (display == NULL) {
        return error_set(reterr, BATON_ENOENT, "session %lld: no display has it",
                         (long long)session);
    }
    return begin(displays, display, &change, reterr);
}

/* Takes the patch. */
static int set(struct displays *displays, const char *display, json_t *patch, provider_done_cb done,
               void *userdata, struct baton_error *reterr)
{
    int code = patch != NULL
                   ? displays_patch(displays, display, patch, done, userdata, reterr)
                   : error_set(reterr, BATON_ENOMEM, "display \"%.64s\": out of memory", display);

    json_decref(patch);
    return code;
}

int displays_set_session(struct displays *displays, const char *display, struct session_id session,
                         provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    return set(displays, display, json_pack("{s:o}", "sessionId", session_json(session)), done,
               userdata, reterr);
}

int displays_set_stage(struct displays *displays, const char *display, enum stage stage,
                       provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    return set(displays, display, json_pack("{s:o}", "progressionStage", stage_json(stage)), done,
               userdata, reterr);
}

const char *displays_of_session(const struct displays *displays, int64_t session)
{
    const struct holding *holding;
    const struct record *first, *record;

    HASH_FIND(hh, displays->holdings, &session, sizeof(session), holding);
    first = holding != NULL ? holding->records : NULL;
    for (record = first; record != NULL; record = record->next) {
        first = strcmp(record->id, first->id) < 0 ? record : first;
    }
    return first != NULL ? first->id : NULL;
}

const char *displays_result_text(int code, const struct baton_error *error)
{
    return code == BATON_OK ? "Session updated successfully." : error->message;
}
