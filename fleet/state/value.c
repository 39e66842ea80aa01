#include "fleet/state/value.h"

#include "base/error.h"
#include "base/json_read.h"
#include "fleet/objects/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool has_id;
} sections[] = {
#define SECTION_OBJECT(symbol, name, plural) [symbol] = {(name), true},
    FLEET_KIND_LIST(SECTION_OBJECT)
#undef SECTION_OBJECT
#define SECTION_OTHER(symbol, name, has_id) [symbol] = {(name), (has_id)},
        SECTION_LIST(SECTION_OTHER)
#undef SECTION_OTHER
};

/* ---- Keys ------------------------------------------------------------------------------------ */

bool value_key(const char *key, enum section *ret, const char **ret_id)
{
    size_t bytes = strcspn(key, "/");
    bool has_id = key[bytes] == '/';
    const char *id = has_id ? key + bytes + 1 : key + bytes;

    for (int section = 0; section < SECTIONS; section++) {
        if (strlen(sections[section].name) == bytes && has_id == sections[section].has_id &&
            memcmp(sections[section].name, key, bytes) == 0) {
            *ret = (enum section)section;
            *ret_id = id;
            return has_id ? id[0] != '\0' && strlen(id) <= FLEET_ID_MAX : true;
        }
    }
    return false;
}

const char *value_key_of(char ret[static VALUE_KEY_MAX], enum section section, const char *id)
{
    int bytes = snprintf(ret, VALUE_KEY_MAX, "%s%s%s", sections[section].name,
                         sections[section].has_id ? "/" : "", id);

    if (bytes >= VALUE_KEY_MAX) {
        ret[0] = '\0';
    }
    return ret;
}

bool fleet_worker_id_is_valid(const char *id)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    size_t bytes = strspn(id, allowed);

    return bytes > 0 && bytes <= FLEET_WORKER_ID_MAX && id[bytes] == '\0' && strcmp(id, ".") != 0 &&
           strcmp(id, "..") != 0;
}

bool fleet_worker_is_discovered(const struct fleet_worker *worker)
{
    return strcmp(worker->source, "static") == 0 || strcmp(worker->source, "dns") == 0;
}

json_t *fleet_worker_json(const struct fleet_worker *worker)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:b, s:b}", "url", worker->url, "source", worker->source,
                  "maxSubscriptions", (json_int_t)worker->subscriptions_max, "cordoned",
                  (int)worker->is_cordoned, "draining", (int)worker->is_draining);

    if (json && worker->labels) {
        (void)json_object_set_new(json, "labels", json_string(worker->labels));
    }
    return json;
}

json_t *fleet_worker_deletion(const struct fleet_worker *worker)
{
    json_t *json = fleet_worker_json(worker);

    if (json && json_object_set_new(json, "deleted", json_true()) != 0) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static json_t *texts_json(const char *const *texts, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        if (json_array_append_new(list, json_string(texts[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *fleet_assigned_json(const struct fleet_assigned *assigned)
{
    return json_pack("{s:I, s:o, s:o, s:b}", "epoch", (json_int_t)assigned->epoch, "subscriptions",
                     texts_json(assigned->subscriptions, assigned->count), "leaving",
                     texts_json(assigned->leaving, assigned->leaving_count), "online",
                     (int)assigned->is_online);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static int read_worker(struct fleet_worker *worker, const char *id, const json_t *json,
                       struct baton_error *reterr)
{
    int64_t most = 0;
    bool is_given;
    int code;

    if (!fleet_worker_id_is_valid(id)) {
        return error_set(reterr, BATON_EPROTO, "worker \"%.60s\": no id of a worker", id);
    }
    (void)((code = json_read_text(json, "", "url", true, PROTOCOL_URL_MAX, &worker->url, reterr)) !=
               0 ||
           (code = json_read_text(json, "", "source", false, PROTOCOL_NAME_MAX, &worker->source,
                                  reterr)) != 0 ||
           (code = json_read_text(json, "", "labels", false, FLEET_LABELS_MAX - 1, &worker->labels,
                                  reterr)) != 0 ||
           (code = json_read_integer(json, "", "maxSubscriptions", 0,
                                     FLEET_WORKER_SUBSCRIPTIONS_MAX, &is_given, &most, reterr)) !=
               0 ||
           (code = json_read_flag(json, "", "cordoned", &worker->is_cordoned, reterr)) != 0 ||
           (code = json_read_flag(json, "", "draining", &worker->is_draining, reterr)) != 0 ||
           (code = json_read_flag(json, "", "deleted", &worker->is_deleted, reterr)) != 0);
    if (code == 0 && worker->labels && !fleet_labels_are_valid(worker->labels)) {
        return error_set(reterr, BATON_EPROTO,
                         "labels is \"%.60s\": must be labels with one blank between two",
                         worker->labels);
    }
    if (code == 0 && fleet_url_check(worker->url, FLEET_URL_WORKER, "url", reterr) != BATON_OK) {
        return BATON_EPROTO;
    }
    worker->id = id;
    worker->source = worker->source ? worker->source : "registered";
    worker->subscriptions_max = (uint32_t)most;
    return code;
}

/* *ret is owned, its texts are the JSON's. */
static int read_list(const char *const **ret, size_t *ret_count, const json_t *json,
                     const char *key, struct baton_error *reterr)
{
    json_t *list = NULL;
    const char **texts;
    int code = json_read_field(json, "", key, false, JSON_ARRAY, &list, reterr);
    size_t count = json_array_size(list);

    if (code != 0) {
        return code;
    }
    texts = calloc(count + 1, sizeof(*texts));
    for (size_t i = 0; texts && i < count; i++) {
        texts[i] = json_string_value(json_array_get(list, i));
        if (!texts[i] || !identifier_is_valid(texts[i])) {
            free((void *)texts);
            return error_set(reterr, BATON_EPROTO, "%s[%zu] is no DISPLAY;CAMERA", key, i);
        }
    }
    *ret = texts;
    *ret_count = count;
    return texts ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory for %s", key);
}

static int read_assigned(struct fleet_assigned *assigned, const char *id, const json_t *json,
                         struct baton_error *reterr)
{
    int64_t epoch = 0;
    int code;

    if (!fleet_worker_id_is_valid(id)) {
        return error_set(reterr, BATON_EPROTO, "worker \"%.60s\": no id of a worker", id);
    }
    assigned->worker = id;
    (void)((code = json_read_integer(json, "", "epoch", 0, INT64_MAX, NULL, &epoch, reterr)) != 0 ||
           (code = read_list(&assigned->subscriptions, &assigned->count, json, "subscriptions",
                             reterr)) != 0 ||
           (code = read_list(&assigned->leaving, &assigned->leaving_count, json, "leaving",
                             reterr)) != 0 ||
           (code = json_read_flag(json, "", "online", &assigned->is_online, reterr)) != 0);
    assigned->epoch = (uint64_t)epoch;
    return code;
}

static int read_move(struct fleet_move *move, const char *id, const json_t *json,
                     struct baton_error *reterr)
{
    int code = json_read_text(json, "", "to", true, FLEET_WORKER_ID_MAX, &move->to, reterr);

    if (code == 0 && (!identifier_is_valid(id) || !fleet_worker_id_is_valid(move->to))) {
        return error_set(reterr, BATON_EPROTO, "no move of a DISPLAY;CAMERA to a worker");
    }
    move->subscription = id;
    return code;
}

static int read_object(struct fleet_object **ret, enum section section, const char *id,
                       const json_t *json, struct baton_error *reterr)
{
    int code = fleet_object_read_stored(ret, (enum fleet_kind)section, id, json, reterr);

    return code == BATON_EINVAL ? BATON_EPROTO : code; /* the value is wrong, not an argument */
}

/* Takes the JSON's reference. */
static int read_json(struct value **ret, enum section section, const char *id, json_t *json,
                     struct baton_error *reterr)
{
    struct value *value = calloc(1, sizeof(*value));
    int code = BATON_OK;

    if (!value) {
        json_decref(json);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a value");
    }
    value->section = section;
    value->json = json;
    if (section <= SECTION_SUBSCRIPTION) {
        code = read_object(&value->object, section, id, json, reterr);
        json_decref(json);
        value->json = NULL;
    } else if (section == SECTION_WORKER) {
        code = read_worker(&value->worker, id, json, reterr);
    } else if (section == SECTION_ASSIGNED) {
        code = read_assigned(&value->assigned, id, json, reterr);
    } else if (section == SECTION_MOVE) {
        code = read_move(&value->move, id, json, reterr);
    }
    if (code != BATON_OK) {
        value_free(value);
        return code;
    }
    *ret = value;
    return BATON_OK;
}

int value_read(struct value **ret, const char *key, const void *data, size_t bytes,
               struct baton_error *reterr)
{
    enum section section;
    const char *id;
    json_t *json;
    int code;

    if (!value_key(key, &section, &id)) {
        return error_set(reterr, BATON_EPROTO, "no key of this version");
    }
    code = json_read_object(data, bytes, VALUE_BYTES_MAX, VALUE_DEPTH_MAX, &json, reterr);
    if (code == BATON_ENOMEM) {
        return code;
    }
    return code == BATON_OK ? read_json(ret, section, id, json, reterr) : BATON_EPROTO;
}

int value_of_json(struct value **ret, const char *key, const json_t *json,
                  struct baton_error *reterr)
{
    enum section section;
    const char *id;
    json_t *copy;

    if (!value_key(key, &section, &id) || section <= SECTION_SUBSCRIPTION ||
        !json_is_object(json)) {
        return error_set(reterr, BATON_EPROTO, "no object of JSON, or no key for one");
    }
    copy = json_deep_copy(json);
    return copy ? read_json(ret, section, id, copy, reterr)
                : error_set(reterr, BATON_ENOMEM, "out of memory for a value");
}

struct value *value_of_object(const struct fleet_object *object)
{
    struct value *value = calloc(1, sizeof(*value));

    if (value) {
        value->section = (enum section)object->kind;
        value->object = fleet_object_ref((struct fleet_object *)object);
    }
    return value;
}

static bool texts_equal(const char *const *texts, size_t count, const char *const *others,
                        size_t other_count)
{
    for (size_t i = 0; count == other_count && i < count; i++) {
        if (strcmp(texts[i], others[i]) != 0) {
            return false;
        }
    }
    return count == other_count;
}

bool value_has_same_lists(const struct value *value, const struct value *other)
{
    const struct fleet_assigned *left = &value->assigned, *right = &other->assigned;

    return value->section == SECTION_ASSIGNED && other->section == SECTION_ASSIGNED &&
           left->epoch == right->epoch &&
           texts_equal(left->subscriptions, left->count, right->subscriptions, right->count) &&
           texts_equal(left->leaving, left->leaving_count, right->leaving, right->leaving_count);
}

void value_free(struct value *value)
{
    if (value) {
        fleet_object_unref(value->object);
        json_decref(value->json);
        free((void *)value->assigned.subscriptions);
        free((void *)value->assigned.leaving);
        free(value);
    }
}
