#include "fleet/objects/object.h"

#include "base/error.h"
#include "base/json_read.h"
#include "fleet/objects/url.h"

#include <stdlib.h>
#include <string.h>

/* ---- Life ------------------------------------------------------------------------------------ */

struct fleet_object *fleet_object_ref(struct fleet_object *object)
{
    object->references++;
    return object;
}

static void free_texts(struct fleet_object *object)
{
    switch (object->kind) {
    case FLEET_MODEL:
        free(object->model.name);
        free(object->model.url);
        break;
    case FLEET_CAMERA:
        free(object->camera.rtsp_url);
        free(object->camera.snapshot_url);
        break;
    case FLEET_DISPLAY:
        free(object->display.name);
        break;
    case FLEET_SUBSCRIPTION:
        free(object->subscription.display);
        free(object->subscription.camera);
        free(object->subscription.needs);
        break;
    case FLEET_KINDS:
        break;
    }
}

void fleet_object_unref(struct fleet_object *object)
{
    if (object && --object->references == 0) {
        free_texts(object);
        free(object->id);
        free(object);
    }
}

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool fleet_object_equal(const struct fleet_object *a, const struct fleet_object *b)
{
    if (a->kind != b->kind || strcmp(a->id, b->id) != 0) {
        return false;
    }
    switch (a->kind) {
    case FLEET_MODEL:
        return is_same(a->model.name, b->model.name) && is_same(a->model.url, b->model.url);
    case FLEET_CAMERA:
        return is_same(a->camera.rtsp_url, b->camera.rtsp_url) &&
               is_same(a->camera.snapshot_url, b->camera.snapshot_url) &&
               a->camera.snapshot_interval_ms == b->camera.snapshot_interval_ms;
    case FLEET_DISPLAY:
        return is_same(a->display.name, b->display.name);
    case FLEET_SUBSCRIPTION:
        return a->subscription.model == b->subscription.model &&
               crop_equal(&a->subscription.crop, &b->subscription.crop) &&
               a->subscription.priority == b->subscription.priority &&
               is_same(a->subscription.needs, b->subscription.needs) &&
               a->subscription.is_paused == b->subscription.is_paused;
    case FLEET_KINDS:
        break;
    }
    return false;
}

/* ---- As JSON --------------------------------------------------------------------------------- */

/* False: out of memory, also if `value` is NULL. */
static bool put(json_t *json, const char *name, json_t *value)
{
    return json_object_set_new(json, name, value) == 0;
}

static bool put_text(json_t *json, const char *name, const char *text)
{
    return !text || put(json, name, json_string(text));
}

static bool put_url(json_t *json, const char *name, const char *url, enum fleet_url_use use,
                    bool is_masked)
{
    char *masked;
    bool is_put;

    if (!url || !is_masked) {
        return put_text(json, name, url);
    }
    masked = fleet_url_masked(url, use);
    is_put = masked && put_text(json, name, masked);
    free(masked);
    return is_put;
}

static bool put_camera(json_t *json, const struct fleet_object *object, bool is_masked)
{
    return put_url(json, "rtspUrl", object->camera.rtsp_url, FLEET_URL_STREAM, is_masked) &&
           put_url(json, "snapshotUrl", object->camera.snapshot_url, FLEET_URL_PICTURE,
                   is_masked) &&
           (object->camera.snapshot_interval_ms == 0 ||
            put(json, "snapshotInterval", json_integer(object->camera.snapshot_interval_ms)));
}

static bool put_crop(json_t *json, const struct crop *crop)
{
    static const char *const names[] = {
        [CROP_X1] = "cropX1", [CROP_Y1] = "cropY1", [CROP_X2] = "cropX2", [CROP_Y2] = "cropY2"};

    for (int edge = 0; edge < CROP_EDGES; edge++) {
        if ((crop->given & 1u << edge) != 0 &&
            !put(json, names[edge], json_integer(crop->at[edge]))) {
            return false;
        }
    }
    return true;
}

static bool put_subscription(json_t *json, const struct fleet_object *object)
{
    return put_text(json, "display", object->subscription.display) &&
           put_text(json, "camera", object->subscription.camera) &&
           put(json, "model", json_integer(object->subscription.model)) &&
           put_crop(json, &object->subscription.crop) &&
           put(json, "priority", json_integer(object->subscription.priority)) &&
           put_text(json, "needs", object->subscription.needs) &&
           put(json, "paused", json_boolean(object->subscription.is_paused));
}

static bool put_fields(json_t *json, const struct fleet_object *object, bool is_masked)
{
    switch (object->kind) {
    case FLEET_MODEL:
        return put(json, "id", json_integer(object->model.number)) &&
               put_text(json, "name", object->model.name) &&
               put_url(json, "url", object->model.url, FLEET_URL_MODEL, is_masked);
    case FLEET_CAMERA:
        return put_text(json, "id", object->id) && put_camera(json, object, is_masked);
    case FLEET_DISPLAY:
        return put_text(json, "id", object->id) && put_text(json, "name", object->display.name);
    case FLEET_SUBSCRIPTION:
        return put_text(json, "id", object->id) && put_subscription(json, object);
    case FLEET_KINDS:
        break;
    }
    return false;
}

json_t *fleet_object_json(const struct fleet_object *object, bool is_masked)
{
    json_t *json = json_object();

    if (json && !put_fields(json, object, is_masked)) {
        json_decref(json);
        json = NULL;
    }
    return json;
}

/* ---- Patches --------------------------------------------------------------------------------- */

/* No field of an object has members of its own, so that the merge is of one level; what a patch
 * nests there is refused when it is read. */
static bool merge(json_t *json, const json_t *patch)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)patch, name, value)
    {
        if (json_is_null(value)) {
            (void)json_object_del(json, name); /* it need not be there */
        } else if (json_object_set(json, name, value) != 0) {
            return false;
        }
    }
    return true;
}

int fleet_object_patch(struct fleet_object **ret, const struct fleet_object *object,
                       const json_t *patch, struct baton_error *reterr)
{
    json_t *json;
    int code;

    if (!json_is_object(patch)) {
        return error_set(reterr, BATON_EINVAL, "id: a patch is an object of JSON, and this is %s",
                         patch ? json_type_name(json_typeof(patch)) : "none");
    }
    json = fleet_object_json(object, false);
    if (!json || !merge(json, patch)) {
        json_decref(json);
        return error_set(reterr, BATON_ENOMEM, "id: out of memory for an object");
    }
    code = fleet_object_read(ret, object->kind, object->id, json, reterr);
    json_decref(json);
    return code;
}
