#include "base/json_load.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool is_loading, has_failed;

static void *allocate(size_t bytes)
{
    void *ret = has_failed ? NULL : malloc(bytes);

    has_failed = is_loading && ret == NULL;
    return ret;
}

void json_load_guard(void)
{
    json_set_alloc_funcs(allocate, free);
}

json_t *json_load_bytes(const char *bytes, size_t count, size_t flags, json_error_t *reterr)
{
    json_t *ret;

    is_loading = true;
    ret = (json_loadb)(bytes, count, flags, reterr);
    is_loading = has_failed = false;
    return ret;
}

json_t *json_load_text(const char *text, size_t flags, json_error_t *reterr)
{
    return json_load_bytes(text, text != NULL ? strlen(text) : 0, flags, reterr);
}
