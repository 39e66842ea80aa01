/* One key written: by compare and set, and then into the cache.
 *
 *   put ─▶ 0 ──────────────────────────────────▶ own news ─▶ done
 *      └─▶ BATON_ECONFLICT ─▶ the key read again ─▶ news ─▶ done: the caller sees what is there
 */
#include "fleet/state/state_int.h"

#include "base/error.h"
#include "base/json_text.h"
#include "member/store.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct write {
    struct write *prev, *next;
    struct fleet_state *state; /* NULL: it was closed, and `done` has come */
    provider_put_cb done;
    void *userdata;
    struct value *value; /* that is written; NULL: it deletes, or the cache has it */
    uint64_t asked;      /* the cache's revision, when it was written or read again */
    uint64_t revision;   /* for `done` */
    struct baton_error error;
    char key[VALUE_KEY_MAX];
};

static void write_free(struct write *write)
{
    if (write->state) {
        cache_release(&write->state->cache, write->key);
    }
    value_free(write->value);
    free(write);
}

static void finish(struct write *write, int code)
{
    struct fleet_state *state = write->state;

    DL_DELETE(state->writes, write);
    cache_release(&state->cache, write->key);
    write->state = NULL; /* which `done` may close */
    write->done(write->userdata, code, write->revision, &write->error);
    write_free(write);
}

void writes_cancel(struct fleet_state *state)
{
    struct baton_error error = {0};
    struct write *write;

    (void)error_set(&error, BATON_ECANCELED,
                    "fleet \"%s\": the state was closed; the write may still be carried out",
                    state->name);
    while ((write = state->writes)) {
        DL_DELETE(state->writes, write);
        write->state = NULL;
        write->done(write->userdata, BATON_ECANCELED, 0, &error);
    }
}

/* ---- After a conflict ------------------------------------------------------------------------ */

static void on_read(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct write *write = userdata;
    char key[STATE_KEY_MAX];

    if (write->state && code == BATON_OK) {
        struct provider_value value = {.key = state_key(write->state, write->key, key)};
        if (count > 0) {
            value.data = values[0].data;
            value.bytes = values[0].bytes;
            value.revision = values[0].revision;
        }
        state_take(write->state, &value, CACHE_READ, write->asked);
    }
    if (write->state) { /* an observer may have closed it */
        finish(write, BATON_ECONFLICT);
    } else {
        write_free(write);
    }
}

static void read_again(struct write *write)
{
    char key[STATE_KEY_MAX];

    write->asked = cache_revision(&write->state->cache, write->key);
    if (store_get(write->state->member, state_key(write->state, write->key, key), on_read, write,
                  NULL) != BATON_OK) {
        finish(write, BATON_ECONFLICT); /* the feed will have it */
    }
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void take_own(struct write *write)
{
    const struct cache_news news = {.source = CACHE_OWN,
                                    .key = write->key,
                                    .revision = write->revision,
                                    .value = write->value,
                                    .asked = write->asked};

    write->value = NULL; /* the cache takes it */
    write->state->counters.writes++;
    state_take_news(write->state, &news);
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct write *write = userdata;

    if (!write->state) {
        write_free(write);
        return;
    }
    write->revision = revision;
    if (code != BATON_OK && error) {
        write->error = *error;
    }
    if (code == BATON_ECONFLICT) {
        write->state->counters.conflicts++;
        read_again(write);
        return;
    }
    if (code == BATON_OK) {
        take_own(write);
    } else {
        write->state->counters.failures++;
    }
    if (write->state) {
        finish(write, code);
    } else {
        write_free(write);
    }
}

/* ---- Its begin ------------------------------------------------------------------------------- */

static int check(const struct fleet_state *state, const char *key, struct baton_error *reterr)
{
    const char *foreign = cache_foreign(&state->cache, key);

    if (state->is_closed) {
        return error_set(reterr, BATON_ECLOSED, "fleet \"%s\": the state is closed", state->name);
    }
    if (!key[0]) {
        return error_set(reterr, BATON_ETOOBIG, "an id of more than %d bytes", FLEET_ID_MAX);
    }
    return foreign ? error_set(reterr, BATON_ECORRUPT,
                               "key \"%s/%.100s\" has a value that is none of a fleet's (%.100s): "
                               "look at it, and delete it: baton state delete %s/%.100s",
                               state->name, key, foreign, state->name, key)
                   : BATON_OK;
}

/* Takes the value, also after a failure; value and text NULL: a deletion. */
static int begin(struct fleet_state *state, const char *key, struct value *value, const char *text,
                 uint64_t revision, provider_put_cb done, void *userdata,
                 struct baton_error *reterr)
{
    struct write *write = calloc(1, sizeof(*write));
    char full[STATE_KEY_MAX];
    int code;

    if (!write || cache_hold(&state->cache, key) != BATON_OK) {
        free(write);
        value_free(value);
        return error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", key);
    }
    write->state = state;
    write->done = done;
    write->userdata = userdata;
    write->value = value;
    write->asked = cache_revision(&state->cache, key);
    memcpy(write->key, key, strlen(key) + 1);
    DL_APPEND(state->writes, write);
    code = store_put(state->member, state_key(state, key, full), text, text ? strlen(text) : 0,
                     revision, (span){0}, on_put, write, reterr);
    if (code != BATON_OK) { /* nothing was begun, so no callback comes */
        DL_DELETE(state->writes, write);
        write_free(write);
    }
    return code;
}

/* Takes the value and the JSON, which is its text. */
static int begin_json(struct fleet_state *state, const char *key, struct value *value, json_t *json,
                      uint64_t revision, provider_put_cb done, void *userdata,
                      struct baton_error *reterr)
{
    char *text = json ? json_text(json, JSON_COMPACT) : NULL;
    int code;

    json_decref(json);
    if (!value || !text) {
        free(text);
        value_free(value);
        return error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", key);
    }
    code = begin(state, key, value, text, revision, done, userdata, reterr);
    free(text);
    return code;
}

int fleet_state_put(struct fleet_state *state, const struct fleet_object *object, uint64_t revision,
                    provider_put_cb done, void *userdata, struct baton_error *reterr)
{
    char key[VALUE_KEY_MAX];
    int code = check(state, value_key_of(key, (enum section)object->kind, object->id), reterr);

    return code ? code
                : begin_json(state, key, value_of_object(object), fleet_object_json(object, false),
                             revision, done, userdata, reterr);
}

int fleet_state_delete(struct fleet_state *state, enum fleet_kind kind, const char *id,
                       uint64_t revision, provider_put_cb done, void *userdata,
                       struct baton_error *reterr)
{
    char key[VALUE_KEY_MAX];
    int code = check(state, value_key_of(key, (enum section)kind, id), reterr);

    return code ? code : begin(state, key, NULL, NULL, revision, done, userdata, reterr);
}

/* Whether the key is the master's own and has a value of another program, or a torn one. */
static bool is_made_anew(const struct fleet_state *state, const char *key)
{
    enum section section;
    const char *id;

    return !state->is_closed && cache_foreign(&state->cache, key) &&
           value_key(key, &section, &id) &&
           (section == SECTION_ASSIGNED || section == SECTION_OWNERS ||
            section == SECTION_UNPLACED);
}

int fleet_state_put_json(struct fleet_state *state, const char *key, const json_t *json,
                         uint64_t revision, provider_put_cb done, void *userdata,
                         struct baton_error *reterr)
{
    struct value *value = NULL;
    struct baton_error error = {0};
    enum section section;
    const char *id;
    int code = BATON_OK;

    if (is_made_anew(state, key)) {
        revision = cache_revision(&state->cache, key);
    } else {
        code = check(state, key, reterr);
    }
    if (code != BATON_OK) {
        return code;
    }
    if (!value_key(key, &section, &id) || section <= SECTION_SUBSCRIPTION) {
        return error_set(reterr, BATON_EINVAL, "key \"%.60s\": no key of this function", key);
    }
    if (!json) {
        return begin(state, key, NULL, NULL, revision, done, userdata, reterr);
    }
    code = value_of_json(&value, key, json, &error);
    if (code != BATON_OK) {
        return error_set(reterr, code == BATON_EPROTO ? BATON_EINVAL : code,
                         "key \"%.60s\": %.300s", key, error.message);
    }
    return begin_json(state, key, value, json_incref(value->json), revision, done, userdata,
                      reterr);
}
