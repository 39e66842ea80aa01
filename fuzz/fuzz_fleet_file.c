/* The file of a fleet: what is taken is a whole fleet, and the error names the file. */
#include "fleet/objects/file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7 forgets a buffer of its own when it gives a text up. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

/* Printed and read again it is the same; so are its parts. */
static void check_object(const struct fleet_object *object)
{
    struct fleet_object *again = NULL;
    json_t *json = fleet_object_json(object, false);
    struct baton_error error;

    assert(json && fleet_object_read(&again, object->kind, object->id, json, &error) == 0);
    assert(fleet_object_equal(object, again));
    fleet_object_unref(again);
    json_decref(json);
    if (object->kind == FLEET_SUBSCRIPTION) {
        assert(identifier_is_valid(object->id));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fleet_file file = {0};
    struct baton_error error = {0};
    int code = fleet_file_read(&file, "fuzz", (const char *)data, size, &error);

    if (code != 0) {
        assert(error.code == code && strncmp(error.message, "fuzz:", 5) == 0);
        assert(!file.objects);
        return 0;
    }
    for (size_t i = 0; i < file.count; i++) {
        check_object(file.objects[i]);
        assert(i == 0 || file.objects[i - 1]->kind <= file.objects[i]->kind);
    }
    fleet_file_fini(&file);
    return 0;
}
