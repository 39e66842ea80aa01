/* A patch of a display's data, as a worker or a client sends it: the first line is the data before,
 * the second the patch. Whatever is merged is within its limits, and merging it again changes
 * nothing. */
#include "base/json_read.h"
#include "fleet/displays/merge.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void expect(bool holds)
{
    if (!holds) {
        abort();
    }
}

static json_t *read_line(const uint8_t **data, size_t *bytes)
{
    const uint8_t *end = memchr(*data, '\n', *bytes);
    size_t line = end != NULL ? (size_t)(end - *data) : *bytes;
    json_t *object = NULL;

    (void)json_read_object((const char *)*data, line, PROTOCOL_MESSAGE_MAX, 64, &object, NULL);
    *data += line + (end != NULL);
    *bytes -= line + (end != NULL);
    return object;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *before = bytes > 0 ? read_line(&data, &bytes) : NULL;
    json_t *patch = bytes > 0 ? read_line(&data, &bytes) : NULL;
    json_t *merged, *again, *car;

    if (display_merge(&merged, before, patch, NULL) == BATON_OK) {
        expect(json_dumpb(merged, NULL, 0, JSON_COMPACT) <= DISPLAY_BYTES_MAX);
        expect(display_merge(&again, merged, patch, NULL) == BATON_OK);
        expect(json_equal(merged, again));
        car = display_car_patch(merged, patch);
        expect(car == NULL || display_patch_check(car, NULL) == BATON_OK);
        json_decref(car);
        json_decref(again);
        json_decref(merged);
    }
    json_decref(before);
    json_decref(patch);
    return 0;
}
