/* Bodies that register a worker or change one: what is taken is a worker that the shared state
 * takes too, and no message quotes a URL. */
#include "base/json_read.h"
#include "fleet/http/worker_fields.h"
#include "fleet/state/value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 65536, DEPTH_MAX = 16 };

static void take(const json_t *body, bool may_name)
{
    json_t *json = json_pack("{s:s, s:s}", "url", "ws://worker:8000", "source", "registered");
    struct baton_error error = {0};
    struct value *value = NULL;
    int code = worker_fields_take(json, body, may_name, &error);

    if (code == 0) {
        code = value_of_json(&value, "worker/w1", json, &error);
        assert(code == 0);
        value_free(value);
    } else {
        assert(strstr(error.message, "://") == NULL || strstr(error.message, "ws://") != NULL);
    }
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *body = NULL;

    if (json_read_object((const char *)data, size, BODY_MAX, DEPTH_MAX, &body, NULL) == 0) {
        take(body, true);
        take(body, false);
        json_decref(body);
    }
    return 0;
}
