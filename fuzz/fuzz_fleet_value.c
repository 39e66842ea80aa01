/* Values of the shared state, and the objects of the API: the first line is the key. What is taken
 * is printed and taken again. */
#include "fleet/objects/url.h"
#include "fleet/state/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_masked(const struct fleet_object *object)
{
    json_t *json = fleet_object_json(object, true);
    struct fleet_object *again = NULL;
    struct baton_error error = {0};
    char *text = json_dumps(json, 0);

    assert(json && text);
    if (object->kind == FLEET_CAMERA) { /* its URLs show a host, which may be named so */
        const char *urls[] = {object->camera.rtsp_url, object->camera.snapshot_url};
        for (int i = 0; i < 2; i++) {
            assert(!urls[i] || !fleet_url_has_password(urls[i]) || strstr(text, FLEET_MASK));
        }
    }
    (void)fleet_object_read(&again, object->kind, object->id, json, &error);
    fleet_object_unref(again);
    free(text);
    json_decref(json);
}

static void check_value(const struct value *value)
{
    struct fleet_object *again = NULL;
    struct baton_error error;
    json_t *json;

    if (value->section > SECTION_SUBSCRIPTION) {
        assert(json_is_object(value->json));
        return;
    }
    json = fleet_object_json(value->object, false);
    assert(json &&
           fleet_object_read(&again, value->object->kind, value->object->id, json, &error) == 0);
    assert(fleet_object_equal(value->object, again));
    fleet_object_unref(again);
    json_decref(json);
    check_masked(value->object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    struct value *value = NULL;
    struct baton_error error = {0};
    char key[VALUE_KEY_MAX];
    size_t bytes = line ? (size_t)(line - data) : 0;

    if (!line || bytes >= sizeof(key) || memchr(data, '\0', bytes)) {
        return 0;
    }
    memcpy(key, data, bytes);
    key[bytes] = '\0';
    if (value_read(&value, key, line + 1, size - bytes - 1, &error) == 0) {
        check_value(value);
        value_free(value);
    } else {
        assert(error.message[0]);
    }
    return 0;
}
