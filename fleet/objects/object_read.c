/* An object from JSON: first each field by the table, then what fields mean together. */
#include "base/error.h"
#include "base/json_read.h"
#include "base/text.h"
#include "fleet/objects/object.h"
#include "fleet/objects/url.h"
#include "work/item.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 24 };

/* ---- Identifiers and labels ------------------------------------------------------------------ */

bool fleet_part_is_valid(const char *id)
{
    char whole[FLEET_ID_MAX + 1];
    size_t bytes = strlen(id);

    if (bytes == 0 || bytes > FLEET_ID_MAX - 2 || id[0] == '/' || id[bytes - 1] == '/') {
        return false;
    }
    (void)snprintf(whole, sizeof(whole), "%s;x", id);
    return identifier_is_valid(whole);
}

bool fleet_labels_are_valid(const char *labels)
{
    char label[WORK_ID_MAX];

    if (strlen(labels) >= FLEET_LABELS_MAX) {
        return false;
    }
    for (;;) {
        size_t bytes = strcspn(labels, " ");
        if (bytes == 0 || bytes >= sizeof(label)) {
            return false;
        }
        memcpy(label, labels, bytes);
        label[bytes] = '\0';
        if (!work_id_is_valid(label) || labels[bytes] == '\0') {
            return work_id_is_valid(label);
        }
        labels += bytes + 1;
    }
}

/* ---- Fields, by the table -------------------------------------------------------------------- */

static bool has_type(const json_t *value, enum fleet_field_type type)
{
    switch (type) {
    case FLEET_TEXT:
    case FLEET_URL:
        return json_is_string(value);
    case FLEET_INTEGER:
        return json_is_integer(value);
    case FLEET_BOOLEAN:
        return json_is_boolean(value);
    }
    return false;
}

static const char *type_name(enum fleet_field_type type)
{
    return type == FLEET_INTEGER   ? "a whole number"
           : type == FLEET_BOOLEAN ? "true or false"
                                   : "a string";
}

/* As a message may quote it: of a URL only that it is a string. */
static const char *shown(const json_t *value, const struct fleet_field *field,
                         char ret[static FLEET_SHOWN_MAX + 2])
{
    char text[FLEET_SHOWN_MAX];

    if (json_is_string(value) && field->type != FLEET_URL) {
        (void)snprintf(ret, FLEET_SHOWN_MAX + 2, "\"%s\"",
                       fleet_text_shown(json_string_value(value), text));
    } else {
        (void)snprintf(ret, FLEET_SHOWN_MAX + 2, "%s", json_type_name(json_typeof(value)));
    }
    return ret;
}

static int check_text(const struct fleet_field *field, const json_t *value,
                      struct baton_error *reterr)
{
    size_t bytes = json_string_length(value);

    if (bytes == 0 && !field->is_required) {
        return error_set(reterr, BATON_EINVAL, "%s: is empty: leave the field out", field->name);
    }
    if ((int64_t)bytes < field->low || (int64_t)bytes > field->high) {
        return error_set(reterr, BATON_EINVAL, "%s: is %zu bytes long: must be %lld to %lld",
                         field->name, bytes, (long long)field->low, (long long)field->high);
    }
    if (text_has_control(json_string_value(value), bytes)) {
        return error_set(reterr, BATON_EINVAL, "%s: holds control characters: none are allowed",
                         field->name);
    }
    return BATON_OK;
}

static int check_field(const struct fleet_field *field, const json_t *value,
                       struct baton_error *reterr)
{
    char text[FLEET_SHOWN_MAX + 2];
    int64_t number = json_integer_value(value);

    if (!value || json_is_null(value)) {
        return field->is_required
                   ? error_set(reterr, BATON_EINVAL, "%s: is missing: must be %s, %s", field->name,
                               type_name(field->type), field->summary)
                   : BATON_OK;
    }
    if (!has_type(value, field->type)) {
        return error_set(reterr, BATON_EINVAL, "%s: is %s: must be %s", field->name,
                         shown(value, field, text), type_name(field->type));
    }
    if (field->type == FLEET_INTEGER && (number < field->low || number > field->high)) {
        return error_set(reterr, BATON_EINVAL, "%s: is %lld: must be %lld to %lld", field->name,
                         (long long)number, (long long)field->low, (long long)field->high);
    }
    return json_is_string(value) ? check_text(field, value, reterr) : BATON_OK;
}

static int refuse_unknown(enum fleet_kind kind, const char *name, struct baton_error *reterr)
{
    const struct fleet_field *meant = fleet_field_meant(kind, name);
    char list[BATON_ERROR_MESSAGE_MAX / 2] = "", text[FLEET_SHOWN_MAX];
    size_t used = 0;

    (void)fleet_text_shown(name, text);
    if (meant) {
        return error_set(reterr, BATON_EINVAL, "%s: no such field of a %s; %s is meant?", text,
                         fleet_kind_name(kind), meant->name);
    }
    for (const struct fleet_field *field = fleet_fields(kind); field->name; field++) {
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "",
                                 field->name);
    }
    return error_set(reterr, BATON_EINVAL, "%s: no such field of a %s; it has %s", text,
                     fleet_kind_name(kind), list);
}

static int check_fields(enum fleet_kind kind, const json_t *json, bool is_stored,
                        struct baton_error *reterr)
{
    const char *name;
    json_t *value;
    int code = BATON_OK;

    /* The macro's loop only reads, but wants a pointer that could be written by. */
    json_object_foreach((json_t *)json, name, value)
    {
        if (!is_stored && !fleet_field_find(kind, name)) {
            return refuse_unknown(kind, name, reterr);
        }
    }
    for (const struct fleet_field *field = fleet_fields(kind); field->name && code == BATON_OK;
         field++) {
        code = check_field(field, json_object_get(json, field->name), reterr);
    }
    return code;
}

/* ---- What is read of them -------------------------------------------------------------------- */

/* Of fields that were checked. NULL: not given. */
static const char *text_of(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

static int64_t number_of(const json_t *json, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(json, name));
}

/* NULL stays NULL. False: out of memory. */
static bool copy(char **ret, const char *text)
{
    *ret = text ? strdup(text) : NULL;
    return *ret || !text;
}

static int refuse_memory(struct baton_error *reterr)
{
    return error_set(reterr, BATON_ENOMEM, "id: out of memory for an object");
}

static int read_url(char **ret, const json_t *json, const char *name, enum fleet_url_use use,
                    struct baton_error *reterr)
{
    const char *url = text_of(json, name);
    int code = url ? fleet_url_check(url, use, name, reterr) : BATON_OK;

    return code == BATON_OK && !copy(ret, url) ? refuse_memory(reterr) : code;
}

static int read_model(struct fleet_object *object, const json_t *json, struct baton_error *reterr)
{
    object->model.number = number_of(json, "id");
    return copy(&object->model.name, text_of(json, "name"))
               ? read_url(&object->model.url, json, "url", FLEET_URL_MODEL, reterr)
               : refuse_memory(reterr);
}

static int read_camera(struct fleet_object *object, const json_t *json, struct baton_error *reterr)
{
    int code = read_url(&object->camera.rtsp_url, json, "rtspUrl", FLEET_URL_STREAM, reterr);

    if (code == BATON_OK) {
        code =
            read_url(&object->camera.snapshot_url, json, "snapshotUrl", FLEET_URL_PICTURE, reterr);
    }
    object->camera.snapshot_interval_ms = number_of(json, "snapshotInterval");
    if (code == BATON_OK && !object->camera.rtsp_url && !object->camera.snapshot_url) {
        return error_set(reterr, BATON_EINVAL,
                         "rtspUrl: is missing: a camera has an rtspUrl, a snapshotUrl, or both");
    }
    return code;
}

static int read_crop(struct crop *crop, const json_t *json, struct baton_error *reterr)
{
    static const char *const names[] = {
        [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

    for (int edge = 0; edge < CROP_EDGES; edge++) {
        if (json_is_integer(json_object_get(json, names[edge]))) {
            crop->given |= 1u << edge;
            crop->at[edge] = (int32_t)number_of(json, names[edge]);
        }
    }
    for (int low = CROP_X1; low <= CROP_Y1; low++) {
        int high = low + CROP_X2 - CROP_X1;
        unsigned both = 1u << low | 1u << high;
        if ((crop->given & both) == both && crop->at[low] >= crop->at[high]) {
            return error_set(reterr, BATON_EINVAL,
                             "%s: is %d: must be larger than %s, which is %d; leave both out for "
                             "the whole picture",
                             names[high], (int)crop->at[high], names[low], (int)crop->at[low]);
        }
    }
    return BATON_OK;
}

static int read_subscription(struct fleet_object *object, const json_t *json,
                             struct baton_error *reterr)
{
    char text[FLEET_SHOWN_MAX];
    const char *needs = text_of(json, "needs");
    const char *camera = strchr(object->id, ';') + 1;

    if (needs && !fleet_labels_are_valid(needs)) {
        return error_set(reterr, BATON_EINVAL,
                         "needs: is \"%s\": must be labels with one blank between two, each of "
                         "letters, digits and -_.:/{};@+=,",
                         fleet_text_shown(needs, text));
    }
    object->subscription.display = strndup(object->id, (size_t)(camera - 1 - object->id));
    object->subscription.model = number_of(json, "model");
    object->subscription.priority = (int32_t)number_of(json, "priority");
    object->subscription.is_paused = json_is_true(json_object_get(json, "paused"));
    return object->subscription.display && copy(&object->subscription.camera, camera) &&
                   copy(&object->subscription.needs, needs)
               ? read_crop(&object->subscription.crop, json, reterr)
               : refuse_memory(reterr);
}

static int read_kind(struct fleet_object *object, const json_t *json, struct baton_error *reterr)
{
    switch (object->kind) {
    case FLEET_MODEL:
        return read_model(object, json, reterr);
    case FLEET_CAMERA:
        return read_camera(object, json, reterr);
    case FLEET_DISPLAY:
        return copy(&object->display.name, text_of(json, "name")) ? BATON_OK
                                                                  : refuse_memory(reterr);
    case FLEET_SUBSCRIPTION:
        return read_subscription(object, json, reterr);
    case FLEET_KINDS:
        break;
    }
    return BATON_EINVAL;
}

/* ---- The id ---------------------------------------------------------------------------------- */

static int check_part(const char *name, const char *part, struct baton_error *reterr)
{
    char text[FLEET_SHOWN_MAX];

    return fleet_part_is_valid(part)
               ? BATON_OK
               : error_set(reterr, BATON_EINVAL,
                           "%s: is \"%s\": must be 1 to %d bytes without semicolon, and between "
                           "slashes nothing empty, . or ..",
                           name, fleet_text_shown(part, text), FLEET_ID_MAX - 2);
}

/* That of a display and a camera; *ret is for free(), and NULL unless both are given. */
static int join(char **ret, const json_t *json, struct baton_error *reterr)
{
    const char *display = text_of(json, "display"), *camera = text_of(json, "camera");
    size_t bytes = display && camera ? strlen(display) + strlen(camera) + 2 : 0;
    int code = display ? check_part("display", display, reterr) : BATON_OK;

    code = code == BATON_OK && camera ? check_part("camera", camera, reterr) : code;
    if (code != BATON_OK || bytes == 0) {
        return code;
    }
    *ret = malloc(bytes);
    if (!*ret) {
        return refuse_memory(reterr);
    }
    (void)snprintf(*ret, bytes, "%s;%s", display, camera);
    return BATON_OK;
}

static int refuse_other(const char *field, const char *value, const char *id,
                        struct baton_error *reterr)
{
    char text[FLEET_SHOWN_MAX], id_text[FLEET_SHOWN_MAX];

    return error_set(reterr, BATON_EINVAL, "%s: is \"%s\", but the id is \"%s\"", field,
                     fleet_text_shown(value, text), fleet_text_shown(id, id_text));
}

static int check_pair(const json_t *json, const char *id, struct baton_error *reterr)
{
    const char *display = text_of(json, "display"), *camera = text_of(json, "camera");
    const char *semicolon = strchr(id, ';');
    char text[FLEET_SHOWN_MAX];

    if (!identifier_is_valid(id) || !fleet_part_is_valid(semicolon + 1)) {
        return error_set(reterr, BATON_EINVAL,
                         "id: is \"%s\": must be DISPLAY;CAMERA, the ids of both with one "
                         "semicolon, %d bytes at most",
                         fleet_text_shown(id, text), FLEET_ID_MAX);
    }
    if (display && !identifier_has_display(id, display)) {
        return refuse_other("display", display, id, reterr);
    }
    return camera && strcmp(camera, semicolon + 1) != 0 ? refuse_other("camera", camera, id, reterr)
                                                        : BATON_OK;
}

/* By the JSON alone. */
static int read_own_id(char **ret, enum fleet_kind kind, const json_t *json,
                       struct baton_error *reterr)
{
    const char *id = text_of(json, "id");
    char number[NUMBER_MAX];
    int code = BATON_OK;

    if (kind == FLEET_MODEL) {
        (void)snprintf(number, sizeof(number), "%" PRId64, number_of(json, "id"));
        id = number;
    } else if (kind == FLEET_SUBSCRIPTION && !id) {
        code = join(ret, json, reterr);
        return code != BATON_OK || *ret
                   ? code
                   : error_set(reterr, BATON_EINVAL,
                               "id: is missing: a subscription has a display and a camera, or the "
                               "id DISPLAY;CAMERA");
    } else if (kind != FLEET_SUBSCRIPTION) {
        code = check_part("id", id, reterr);
    }
    return code == BATON_OK && !copy(ret, id) ? refuse_memory(reterr) : code;
}

/* The JSON with the id of the path, if it had none; a new reference. NULL: out of memory. */
static json_t *with_id(enum fleet_kind kind, const char *id, const json_t *json)
{
    const json_t *own = json_object_get(json, "id");
    json_t *whole = json_copy((json_t *)json);
    char number[NUMBER_MAX];
    int64_t value = (int64_t)strtoll(id, NULL, 10);

    if (!whole || (own && !json_is_null(own))) {
        return whole;
    }
    (void)snprintf(number, sizeof(number), "%" PRId64, value);
    if (kind == FLEET_MODEL && strcmp(number, id) == 0) {
        own = json_integer(value);
    } else {
        own = json_string(id);
    }
    if (json_object_set_new(whole, "id", (json_t *)own) != 0) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static int read_checked(struct fleet_object *object, const char *id, const json_t *json,
                        struct baton_error *reterr)
{
    char own[FLEET_SHOWN_MAX], other[FLEET_SHOWN_MAX];
    int code = read_own_id(&object->id, object->kind, json, reterr);

    if (code == BATON_OK && object->kind == FLEET_SUBSCRIPTION) {
        code = check_pair(json, object->id, reterr);
    }
    if (code == BATON_OK && id && strcmp(object->id, id) != 0) {
        code = error_set(reterr, BATON_EINVAL,
                         "id: is \"%s\", but the path says \"%s\": an id never changes; write "
                         "a new %s and delete the old one",
                         fleet_text_shown(object->id, own), fleet_text_shown(id, other),
                         fleet_kind_name(object->kind));
    }
    return code == BATON_OK ? read_kind(object, json, reterr) : code;
}

static int read_object(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                       const json_t *json, bool is_stored, struct baton_error *reterr)
{
    struct fleet_object *object = calloc(1, sizeof(*object));
    json_t *whole = NULL;
    int code;

    if (!json_is_object(json)) {
        free(object);
        return error_set(reterr, BATON_EINVAL, "id: a %s is an object of JSON, and this is %s",
                         fleet_kind_name(kind), json ? json_type_name(json_typeof(json)) : "none");
    }
    whole = id ? with_id(kind, id, json) : json_incref((json_t *)json);
    if (!object || !whole) {
        json_decref(whole);
        free(object);
        return refuse_memory(reterr);
    }
    object->kind = kind;
    object->references = 1;
    code = check_fields(kind, whole, is_stored, reterr);
    code = code == BATON_OK ? read_checked(object, id, whole, reterr) : code;
    json_decref(whole);
    if (code != BATON_OK) {
        fleet_object_unref(object);
        return code;
    }
    *ret = object;
    return BATON_OK;
}

int fleet_object_read(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                      const json_t *json, struct baton_error *reterr)
{
    return read_object(ret, kind, id, json, false, reterr);
}

int fleet_object_read_stored(struct fleet_object **ret, enum fleet_kind kind, const char *id,
                             const json_t *json, struct baton_error *reterr)
{
    return read_object(ret, kind, id, json, true, reterr);
}
