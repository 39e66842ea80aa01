#include "fleet/displays/merge.h"

#include "base/error.h"
#include "base/json_read.h"

#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 128 };

enum kind { TEXT, NUMBER, SESSION, STAGE, FREE, FIELDS };

struct field {
    const char *name;
    enum kind kind;
    bool may_be_null;
    const struct field *fields; /* of an object, ending with a NULL name */
};

static const struct field ads_fields[] = {
    {"playlistSlotOrder", NUMBER, false, NULL},
    {"adsId", NUMBER, true, NULL},
    {"adsUrl", TEXT, true, NULL},
    {NULL, TEXT, false, NULL},
};

/* Optional in the protocol; null is how a patch takes one back. */
static const struct field car_fields[] = {
    {"carModel", TEXT, true, NULL},
    {"carBrand", TEXT, true, NULL},
    {"carYear", NUMBER, true, NULL},
    {"bodyType", TEXT, true, NULL},
    {"licensePlateText", TEXT, true, NULL},
    {"licensePlateType", TEXT, true, NULL},
    {NULL, TEXT, false, NULL},
};

static const struct field data_fields[] = {
    {"progressionStage", STAGE, true, NULL},
    {"qrCode", TEXT, true, NULL},
    {"adsPlayback", FIELDS, true, ads_fields},
    {"currentCar", FIELDS, true, car_fields},
    {"fuelPump", FREE, true, NULL},
    {"weatherData", FREE, true, NULL},
    {"sessionId", SESSION, true, NULL},
    {NULL, TEXT, false, NULL},
};

/* ---- Checks ---------------------------------------------------------------------------------- */

static const char *allowed(const struct field *field)
{
    switch (field->kind) {
    case TEXT:
        return field->may_be_null ? "a string or null" : "a string";
    case NUMBER:
        return field->may_be_null ? "a number or null" : "a number";
    case SESSION:
        return "an integer of 0 to 2^53, or null";
    case STAGE:
        return "welcome, car_fueling, car_waitpayment, car_postpayment or null";
    case FREE:
    case FIELDS:
        break;
    }
    return "an object or null";
}

static enum stage stage_of(const json_t *value)
{
    const char *name = json_string_value(value);

    for (int stage = STAGE_NONE + 1; name != NULL && stage < STAGE_COUNT; stage++) {
        if (strcmp(stage_name((enum stage)stage), name) == 0) {
            return (enum stage)stage;
        }
    }
    return STAGE_NONE;
}

static bool is_session(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= PROTOCOL_INTEGER_MAX;
}

static bool has_type(const struct field *field, const json_t *value)
{
    if (json_is_null(value)) {
        return field->may_be_null;
    }
    switch (field->kind) {
    case TEXT:
        return json_is_string(value);
    case NUMBER:
        return json_is_number(value);
    case SESSION:
        return is_session(value);
    case STAGE:
        return stage_of(value) != STAGE_NONE;
    case FREE:
    case FIELDS:
        break;
    }
    return json_is_object(value);
}

static const struct field *find(const struct field *fields, const char *name)
{
    while (fields->name != NULL && strcmp(fields->name, name) != 0) {
        fields++;
    }
    return fields->name != NULL ? fields : NULL;
}

/* "carModel, carBrand, …" */
static void list(char *ret, size_t ret_bytes, const struct field *fields)
{
    size_t used = 0;

    for (const struct field *field = fields; field->name != NULL && used < ret_bytes; field++) {
        used += (size_t)snprintf(ret + used, ret_bytes - used, "%s%s", field == fields ? "" : ", ",
                                 field->name);
    }
}

static int refuse_unknown(const struct field *fields, const char *path, const char *key,
                          struct baton_error *reterr)
{
    char names[256] = "";

    list(names, sizeof(names), fields);
    return error_set(reterr, BATON_EINVAL, "%s%.64s is no field that a display has: it has %s",
                     path, key, names);
}

static int refuse_type(const struct field *field, const char *path, const json_t *value,
                       struct baton_error *reterr)
{
    if (field->kind == STAGE && json_is_string(value)) {
        return error_set(reterr, BATON_EINVAL, "%s%s is \"%.64s\": must be %s", path, field->name,
                         json_string_value(value), allowed(field));
    }
    if (field->kind == SESSION && json_is_integer(value)) {
        return error_set(reterr, BATON_EINVAL, "%s%s is %lld: must be %s", path, field->name,
                         (long long)json_integer_value(value), allowed(field));
    }
    return error_set(reterr, BATON_EINVAL, "%s%s is %s: must be %s", path, field->name,
                     json_type_name(json_typeof(value)), allowed(field));
}

static int check_fields(const struct field *fields, const char *path, const json_t *object,
                        struct baton_error *reterr)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)object, key, value)
    {
        const struct field *field = find(fields, key);
        char inner[PATH_MAX_BYTES];
        int code = BATON_OK;

        if (field == NULL) {
            return refuse_unknown(fields, path, key, reterr);
        }
        if (!has_type(field, value)) {
            return refuse_type(field, path, value, reterr);
        }
        if (field->kind == FIELDS && json_is_object(value)) {
            (void)snprintf(inner, sizeof(inner), "%s%s.", path, key);
            code = check_fields(field->fields, inner, value, reterr);
        }
        if (code != BATON_OK) {
            return code;
        }
    }
    return BATON_OK;
}

static bool is_deeper(const json_t *value, int depth_max)
{
    const char *key;
    json_t *inner;
    size_t index;

    if (!json_is_object(value) && !json_is_array(value)) {
        return false;
    }
    if (depth_max == 0) {
        return true;
    }
    json_object_foreach((json_t *)value, key, inner)
    {
        if (is_deeper(inner, depth_max - 1)) {
            return true;
        }
    }
    json_array_foreach(value, index, inner)
    {
        if (is_deeper(inner, depth_max - 1)) {
            return true;
        }
    }
    return false;
}

static int check_depth(const json_t *patch, struct baton_error *reterr)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)patch, key, value)
    {
        if (is_deeper(value, DISPLAY_DEPTH_MAX - 1)) {
            return error_set(reterr, BATON_ETOOBIG,
                             "%s is nested too deep: a display's data has at most %d levels", key,
                             DISPLAY_DEPTH_MAX);
        }
    }
    return BATON_OK;
}

int display_patch_check(const json_t *patch, struct baton_error *reterr)
{
    int code;

    if (!json_is_object(patch)) {
        return error_set(reterr, BATON_EINVAL, "the patch is %s: must be an object",
                         patch != NULL ? json_type_name(json_typeof(patch)) : "missing");
    }
    code = check_fields(data_fields, "", patch, reterr);
    return code == BATON_OK ? check_depth(patch, reterr) : code;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* As deep as the patch, which has been checked. */
static bool merge(json_t *into, const json_t *patch)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)patch, key, value)
    {
        json_t *before = json_object_get(into, key);
        bool is_done = json_is_object(before) && json_is_object(value)
                           ? merge(before, value)
                           : json_object_set_new(into, key, json_deep_copy(value)) == 0;

        if (!is_done) {
            return false;
        }
    }
    return true;
}

/* Null for each field that may be null and is missing. */
static bool complete(json_t *object, const struct field *fields)
{
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (field->may_be_null && json_object_get(object, field->name) == NULL &&
            json_object_set_new(object, field->name, json_null()) != 0) {
            return false;
        }
    }
    return true;
}

static int check_merged(const json_t *merged, struct baton_error *reterr)
{
    const json_t *ads = json_object_get(merged, "adsPlayback");
    size_t bytes = json_dumpb(merged, NULL, 0, JSON_COMPACT);

    if (json_is_object(ads) && json_object_get(ads, "playlistSlotOrder") == NULL) {
        return error_set(reterr, BATON_EINVAL,
                         "adsPlayback.playlistSlotOrder is missing: must be a number, as the "
                         "display has no adsPlayback yet");
    }
    if (bytes > DISPLAY_BYTES_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "the display's data would have %zu bytes: must be at most %d", bytes,
                         DISPLAY_BYTES_MAX);
    }
    return BATON_OK;
}

int display_merge(json_t **ret, const json_t *data, const json_t *patch, struct baton_error *reterr)
{
    int code = display_patch_check(patch, reterr);
    json_t *merged, *ads;

    if (code != BATON_OK) {
        return code;
    }
    merged = json_is_object(data) ? json_deep_copy(data) : json_object();
    if (merged == NULL || !merge(merged, patch) || !complete(merged, data_fields) ||
        ((ads = json_object_get(merged, "adsPlayback")) != NULL && json_is_object(ads) &&
         !complete(ads, ads_fields))) {
        json_decref(merged);
        return error_set(reterr, BATON_ENOMEM, "out of memory for a display's data");
    }
    code = check_merged(merged, reterr);
    if (code != BATON_OK) {
        json_decref(merged);
        return code;
    }
    *ret = merged;
    return BATON_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct session_id display_session_of(const json_t *data)
{
    const json_t *value = json_object_get(data, "sessionId");

    return is_session(value) ? (struct session_id){.is_set = true, .id = json_integer_value(value)}
                             : (struct session_id){0};
}

enum stage display_stage_of(const json_t *data)
{
    return stage_of(json_object_get(data, "progressionStage"));
}

json_t *display_car_patch(const json_t *data, const json_t *attributes)
{
    const json_t *before = json_object_get(data, "currentCar");
    json_t *car = NULL;

    for (const struct field *field = car_fields; field->name != NULL; field++) {
        json_t *value = json_object_get(attributes, field->name);

        if (value == NULL || json_is_null(value) || !has_type(field, value) ||
            json_equal(json_object_get(before, field->name), value)) {
            continue;
        }
        if (car == NULL && (car = json_object()) == NULL) {
            return NULL;
        }
        if (json_object_set(car, field->name, value) != 0) {
            json_decref(car);
            return NULL;
        }
    }
    return car != NULL ? json_pack("{s:o}", "currentCar", car) : NULL;
}
