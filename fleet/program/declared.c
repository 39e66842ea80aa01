/* Steps of one reading, each begun when the one before is done:
 *
 *   load the file ─▶ get the note ─▶ apply ─▶ delete what the note has and the file has not ─▶ note
 *                      └── the same hash: nothing to do
 *
 * Once it is closed, no step begins: the state may be gone.
 *
 * The note may be larger than a value of the state: declared:NAME/001, /002, … have its pieces, and
 * declared:NAME/000, which is written last, {"hash": …, "pieces": N}.
 */
#include "fleet/program/declared.h"

#include "base/buffer.h"
#include "base/json_load.h"
#include "base/json_text.h"
#include "fleet/objects/file.h"
#include "fleet/state/state.h"
#include "fleet/workers/record.h"
#include "member/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    LOOK_MS = 100,
    SETTLE_MS = 1500,  /* for so long it must not change */
    AGAIN_FIRST_S = 1, /* after a failure; then twice as long each time, up to */
    AGAIN_MAX_S = 60,
    WORKERS = FLEET_KINDS, /* the list behind the kinds' */
    PIECE_BYTES = 64 * 1024,
    PIECES_MAX = 999,
};

struct declared {
    uv_loop_t *loop;
    struct engine *engine;
    const char *path;
    struct logger *logger;
    uv_timer_t timer; /* looks at the file, and waits for the engine */
    struct fleet_observer observer;
    struct fleet_file file;
    json_t *note;    /* of the file before: {"models": [ids], …, "workers": [ids]}; NULL: none */
    json_t *kept;    /* of this file, while what it has no longer is deleted; NULL: not yet */
    int kind;        /* of the next one to delete, */
    size_t at;       /* and its place in the note */
    bool is_writing; /* it begins writes right now */
    uint64_t revision; /* of the note's head */
    size_t pieces;     /* of the new note */
    size_t waiting;    /* writes under way */
    int code;          /* of the writes */
    bool is_timer_closed;
    bool is_reading;
    bool is_wanted; /* again, once this reading is over */
    struct stat latest;
    instant again_at; /* not before, after a failure or a change */
    int64_t again_s;  /* the latest pause; 0: the latest reading did not fail */
    bool is_closed;
};

static const char *list_name(int kind)
{
    return kind == WORKERS ? "workers" : fleet_kind_plural((enum fleet_kind)kind);
}

static void free_if_done(struct declared *declared)
{
    if (declared->is_closed && !declared->is_reading && declared->is_timer_closed) {
        free(declared);
    }
}

/* on_timer() reads again. */
static void fail(struct declared *declared, const char *problem)
{
    int64_t pause = declared->again_s * 2;

    pause = pause < AGAIN_FIRST_S ? AGAIN_FIRST_S : pause;
    declared->again_s = pause < AGAIN_MAX_S ? pause : AGAIN_MAX_S;
    declared->again_at = instant_add(clock_now(), SPAN_S(declared->again_s));
    declared->is_wanted = true;
    log_error(declared->logger, "declared-not-applied", LOG_STR("file", declared->path),
              LOG_STR("error", problem), LOG_I64("again_s", declared->again_s));
}

static void end_reading(struct declared *declared, const char *problem)
{
    fleet_file_fini(&declared->file);
    json_decref(declared->note);
    json_decref(declared->kept);
    declared->note = declared->kept = NULL;
    declared->is_reading = false;
    if (declared->is_closed) {
        free_if_done(declared);
    } else if (problem) {
        fail(declared, problem);
    }
}

/* ---- The note -------------------------------------------------------------------------------- */

/* The key of a piece; -1: the beginning of all. */
static void note_key(const struct declared *declared, int piece, char ret[static PROVIDER_KEY_MAX])
{
    const char *name = fleet_state_name(engine_state(declared->engine));

    if (piece < 0) {
        (void)snprintf(ret, PROVIDER_KEY_MAX, "declared:%s/", name);
    } else {
        (void)snprintf(ret, PROVIDER_KEY_MAX, "declared:%s/%03d", name, piece);
    }
}

/* NULL: out of memory. */
static json_t *new_note(const struct declared *declared)
{
    json_t *note = json_object();
    int missing = 0;

    for (int kind = 0; kind <= WORKERS; kind++) {
        missing |= json_object_set_new(note, list_name(kind), json_array());
    }
    for (size_t i = 0; i < declared->file.count; i++) {
        const struct fleet_object *object = declared->file.objects[i];

        missing |= json_array_append_new(json_object_get(note, fleet_kind_plural(object->kind)),
                                         json_string(object->id));
    }
    for (size_t i = 0; i < declared->file.worker_count; i++) {
        const char *url = declared->file.workers[i];
        char id[DISCOVERY_ID_MAX];

        discovery_id(url, id);
        missing |= json_array_append_new(json_object_get(note, "workers"), json_string(id));
    }
    if (missing) {
        json_decref(note);
        return NULL;
    }
    return note;
}

static void on_noted(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct declared *declared = userdata;
    (void)revision;

    if (code == BATON_OK) {
        declared->again_s = 0;
        log_notice(declared->logger, "declared", LOG_STR("file", declared->path),
                   LOG_U64("objects", declared->file.count));
    }
    /* Another process has applied a file meanwhile: perhaps this one. */
    declared->is_wanted = declared->is_wanted || code == BATON_ECONFLICT;
    end_reading(declared, code == BATON_OK || code == BATON_ECONFLICT ? NULL : error->message);
}

static int put_piece(struct declared *declared, int piece, const char *text, size_t bytes,
                     uint64_t revision, provider_put_cb done, struct baton_error *reterr)
{
    char key[PROVIDER_KEY_MAX];

    note_key(declared, piece, key);
    return store_put(fleet_state_member(engine_state(declared->engine)), key, text, bytes, revision,
                     (span){0}, done, declared, reterr);
}

static void put_head(struct declared *declared)
{
    struct baton_error error = {0};
    char text[FLEET_FILE_HASH_TEXT + 64];
    int bytes = snprintf(text, sizeof(text), "{\"hash\":\"%s\",\"pieces\":%zu}",
                         declared->file.hash, declared->pieces);

    if (put_piece(declared, 0, text, (size_t)bytes, declared->revision, on_noted, &error) !=
        BATON_OK) {
        end_reading(declared, error.message);
    }
}

static void on_piece(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct declared *declared = userdata;
    (void)revision;
    (void)error;

    declared->code = code != BATON_OK ? code : declared->code;
    if (--declared->waiting > 0) {
        return;
    }
    if (declared->code != BATON_OK || declared->is_closed) {
        end_reading(declared, "what it declares could not be noted");
    } else {
        put_head(declared);
    }
}

static void put_note(struct declared *declared)
{
    json_t *note = new_note(declared);
    char *text = json_text(note, JSON_COMPACT);
    size_t bytes = text ? strlen(text) : 0;

    json_decref(note);
    declared->pieces = 0;
    declared->code = text ? BATON_OK : BATON_ENOMEM;
    declared->waiting = 1;
    for (size_t at = 0; at < bytes && declared->pieces < PIECES_MAX; at += PIECE_BYTES) {
        size_t left = bytes - at;

        declared->pieces++;
        declared->waiting++;
        if (put_piece(declared, (int)declared->pieces, text + at,
                      left < PIECE_BYTES ? left : PIECE_BYTES, PROVIDER_ANY_REVISION, on_piece,
                      NULL) != BATON_OK) {
            on_piece(declared, BATON_EIO, 0, NULL);
        }
    }
    free(text);
    on_piece(declared, BATON_OK, 0, NULL);
}

/* Of the values of all keys of the note, in their order. */
static void take_note(struct declared *declared, const struct provider_value *values, size_t count,
                      char ret_hash[static FLEET_FILE_HASH_TEXT])
{
    json_t *head = count > 0 ? json_load_bytes(values[0].data, values[0].bytes, 0, NULL) : NULL;
    const char *hash = json_string_value(json_object_get(head, "hash"));
    json_int_t pieces = json_integer_value(json_object_get(head, "pieces"));
    struct buffer text;

    buffer_init(&text, (size_t)PIECES_MAX * PIECE_BYTES);
    for (size_t i = 1; i < count && (json_int_t)i <= pieces; i++) {
        buffer_put(&text, values[i].data, values[i].bytes);
    }
    declared->revision = head ? values[0].revision : 0;
    declared->note = hash ? json_load_bytes((const char *)text.data, text.bytes, 0, NULL) : NULL;
    (void)snprintf(ret_hash, FLEET_FILE_HASH_TEXT, "%s", hash ? hash : "");
    buffer_fini(&text);
    json_decref(head);
}

/* ---- Workers, and what is declared no longer ------------------------------------------------- */

static void delete_others(struct declared *declared);

static void on_written(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct declared *declared = userdata;
    (void)revision;
    (void)error;

    /* A conflict: somebody changed it at this moment, who may have wanted to. */
    if (code != BATON_OK && code != BATON_ECONFLICT && code != BATON_ENOENT) {
        declared->code = code;
    }
    declared->waiting--;
    delete_others(declared);
}

static void put_worker(struct declared *declared, const char *id, const json_t *record,
                       uint64_t revision)
{
    char suffix[DISCOVERY_ID_MAX + 16];

    (void)snprintf(suffix, sizeof(suffix), "worker/%s", id);
    declared->waiting++;
    if (fleet_state_put_json(engine_state(declared->engine), suffix, record, revision, on_written,
                             declared, NULL) != BATON_OK) {
        declared->waiting--;
        declared->code = BATON_EIO;
    }
}

static void add_workers(struct declared *declared)
{
    const struct fleet_state *state = engine_state(declared->engine);

    for (size_t i = 0; i < declared->file.worker_count; i++) {
        char id[DISCOVERY_ID_MAX];
        uint64_t revision;
        json_t *record = worker_record(state, declared->file.workers[i], "declared", id, &revision);

        if (record) {
            put_worker(declared, id, record, revision);
        }
        json_decref(record);
    }
}

static void delete_one(struct declared *declared, int kind, const char *id)
{
    struct fleet_state *state = engine_state(declared->engine);
    const struct fleet_worker *worker;
    uint64_t revision;

    if (kind == WORKERS) {
        worker = fleet_state_worker(state, id);
        if (worker && strcmp(worker->source, "declared") == 0) {
            json_t *deletion = fleet_worker_deletion(worker);
            if (deletion) {
                put_worker(declared, id, deletion, worker->revision);
            } else {
                declared->code = BATON_ENOMEM;
            }
            json_decref(deletion);
        }
    } else if (fleet_state_object(state, (enum fleet_kind)kind, id, &revision)) {
        declared->waiting++;
        if (fleet_state_delete(state, (enum fleet_kind)kind, id, revision, on_written, declared,
                               NULL) != BATON_OK) {
            declared->waiting--;
            declared->code = BATON_EIO;
        }
    }
}

/* What the file has: {"models": {ID: true, …}, …}. NULL: out of memory, else what is missing here
 * would be deleted. */
static json_t *new_kept(const struct declared *declared)
{
    json_t *note = new_note(declared), *kept = json_object();
    int missing = note ? 0 : -1;

    for (int kind = 0; kind <= WORKERS; kind++) {
        json_t *ids = json_object();
        const json_t *id;
        size_t index;

        json_array_foreach(json_object_get(note, list_name(kind)), index, id)
        {
            missing |= json_object_set_new(ids, json_string_value(id), json_true());
        }
        missing |= json_object_set_new(kept, list_name(kind), ids);
    }
    json_decref(note);
    if (missing) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

/* The next one, of declared->kind, that the file before had and this one has not. Subscriptions
 * first, since the others are used by them. */
static const char *next_other(struct declared *declared)
{
    for (; declared->kind >= 0; declared->kind--, declared->at = 0) {
        const json_t *before = json_object_get(declared->note, list_name(declared->kind));
        const json_t *kept = json_object_get(declared->kept, list_name(declared->kind));

        while (declared->at < json_array_size(before)) {
            const char *id = json_string_value(json_array_get(before, declared->at++));

            if (id && !json_object_get(kept, id)) {
                return id;
            }
        }
    }
    return NULL;
}

/* So many at once; in the end, the note. */
static void delete_others(struct declared *declared)
{
    const char *id;

    if (declared->is_writing) {
        return; /* the call that is under way goes on */
    }
    declared->is_writing = true;
    while (!declared->is_closed && declared->waiting < FLEET_APPLY_WINDOW &&
           (id = next_other(declared))) {
        delete_one(declared, declared->kind, id);
    }
    declared->is_writing = false;
    if (declared->waiting > 0) {
        return;
    }
    if (declared->code != BATON_OK || declared->is_closed) {
        end_reading(declared, "not everything could be written");
    } else {
        put_note(declared);
    }
}

static void on_applied(void *userdata, int code, const struct fleet_apply_result *result,
                       const struct baton_error *error)
{
    struct declared *declared = userdata;

    (void)result;
    if (code != BATON_OK || declared->is_closed) {
        end_reading(declared, code == BATON_OK ? NULL : error->message);
        return;
    }
    declared->kept = new_kept(declared);
    if (!declared->kept) {
        end_reading(declared, "out of memory");
        return;
    }
    declared->code = BATON_OK;
    declared->waiting = 0;
    declared->kind = WORKERS;
    declared->at = 0;
    declared->is_writing = true;
    add_workers(declared);
    declared->is_writing = false;
    delete_others(declared);
}

/* ---- The file -------------------------------------------------------------------------------- */

static void on_note(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct declared *declared = userdata;
    struct baton_error error = {0};
    char hash[FLEET_FILE_HASH_TEXT];

    if (code != BATON_OK || declared->is_closed) {
        end_reading(declared, code == BATON_OK ? NULL : "the state cannot be read");
        return;
    }
    take_note(declared, values, count, hash);
    if (strcmp(hash, declared->file.hash) == 0) {
        end_reading(declared, NULL);
        return;
    }
    code = fleet_state_apply(engine_state(declared->engine), &declared->file, false, NULL,
                             on_applied, declared, &error);
    if (code != BATON_OK) {
        end_reading(declared, error.message);
    }
}

/* A name that stands for several workers is resolved again and again, which --worker does. */
static int load(struct fleet_file *ret, const char *path, struct baton_error *reterr)
{
    int code = fleet_file_load(ret, path, reterr);

    for (size_t i = 0; code == BATON_OK && i < ret->worker_count; i++) {
        if (strncmp(ret->workers[i], "ws", 2) != 0) {
            code = error_set(reterr, BATON_EINVAL,
                             "%s: workers[%zu]: %s stands for several workers: give it as --worker",
                             path, i, ret->workers[i]);
            fleet_file_fini(ret);
        }
    }
    return code;
}

int declared_check(const char *path, struct baton_error *reterr)
{
    struct fleet_file file;
    int code = load(&file, path, reterr);

    if (code == BATON_OK) {
        fleet_file_fini(&file);
    }
    return code;
}

void declared_read(struct declared *declared)
{
    struct baton_error error = {0};
    char key[PROVIDER_KEY_MAX];
    int code;

    if (declared->is_reading || !engine_is_ready(declared->engine)) {
        declared->is_wanted = true;
        return;
    }
    code = load(&declared->file, declared->path, &error);
    if (code == BATON_EIO || code == BATON_ENOMEM) { /* nothing is wrong with what is in it */
        fail(declared, error.message);
        return;
    }
    if (code != BATON_OK) {
        log_error(declared->logger, "declared-refused", LOG_STR("error", error.message),
                  LOG_STR("advice", "what was declared before stays"));
        return;
    }
    declared->is_reading = true;
    note_key(declared, -1, key);
    code = store_list(fleet_state_member(engine_state(declared->engine)), key, on_note, declared,
                      &error);
    if (code != BATON_OK) {
        end_reading(declared, error.message);
    }
}

/* It may be half written, and valid all the same: it is read once it has been the same for a while.
 * Not by uv_fs_poll_t, which ends the process when memory is short. */
static bool has_changed(struct declared *declared)
{
    const struct stat *latest = &declared->latest;
    struct stat now;

    if (stat(declared->path, &now) != 0 ||
        (now.st_ino == latest->st_ino && now.st_size == latest->st_size &&
         now.st_ctim.tv_sec == latest->st_ctim.tv_sec &&
         now.st_ctim.tv_nsec == latest->st_ctim.tv_nsec)) {
        return false;
    }
    declared->latest = now;
    declared->is_wanted = true;
    declared->again_at = instant_add(clock_now(), SPAN_MS(SETTLE_MS));
    return true;
}

static bool has_objects(const struct fleet_state *state)
{
    size_t count = 0;

    for (int kind = 0; kind < FLEET_KINDS; kind++) {
        count += fleet_state_count(state, (enum fleet_kind)kind);
    }
    return count > 0;
}

/* When all is gone, the provider may have lost its data: then the note is gone, too, and the file
 * is applied again. */
static void on_change(struct fleet_observer *observer, const struct fleet_state_event *event)
{
    struct declared *declared =
        (struct declared *)((char *)observer - offsetof(struct declared, observer));

    if ((event->change == FLEET_CHANGED_OBJECT || event->change == FLEET_CHANGED_WORKER) &&
        !has_objects(engine_state(declared->engine))) {
        declared->is_wanted = true;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct declared *declared = timer->data;

    if (!has_changed(declared) && declared->is_wanted && !declared->is_reading &&
        engine_is_ready(declared->engine) && !instant_before(clock_now(), declared->again_at)) {
        declared->is_wanted = false;
        declared_read(declared);
    }
}

int declared_open(struct declared **ret, struct engine *engine, const char *path,
                  struct logger *logger, struct baton_error *reterr)
{
    struct declared *declared = calloc(1, sizeof(*declared));

    *ret = declared;
    if (!declared) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    declared->engine = engine;
    declared->path = path;
    declared->logger = logger;
    declared->is_wanted = true;
    declared->loop = member_loop(fleet_state_member(engine_state(engine)));
    (void)uv_timer_init(declared->loop, &declared->timer);
    declared->timer.data = declared;
    (void)stat(path, &declared->latest);
    declared->observer.on_change = on_change;
    fleet_state_observe(engine_state(engine), &declared->observer);
    (void)uv_timer_start(&declared->timer, on_timer, 10, LOOK_MS);
    return BATON_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct declared *declared = handle->data;

    declared->is_timer_closed = true;
    free_if_done(declared);
}

void declared_close(struct declared *declared)
{
    if (declared) {
        declared->is_closed = true;
        fleet_state_ignore(engine_state(declared->engine), &declared->observer);
        uv_close((uv_handle_t *)&declared->timer, on_timer_closed);
    }
}
