#include "provider/limits.h"

#include <string.h>

int limits_check(const char *name, size_t bytes, struct baton_error *reterr)
{
    if (strlen(name) > PROVIDER_KEY_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "\"%.40s…\": a name has at most %d bytes", name,
                         PROVIDER_KEY_MAX);
    }
    if (bytes > PROVIDER_VALUE_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "\"%.60s\": %zu bytes; at most %d are taken", name,
                         bytes, PROVIDER_VALUE_MAX);
    }
    return BATON_OK;
}
