#include "provider/heirs.h"

#include <stdio.h>
#include <string.h>

void heirs_add(struct heirs *heirs, const char *name)
{
    size_t length = strlen(name) + 2;

    if (heirs->more > 0 || heirs->bytes + length >= sizeof(heirs->text)) {
        heirs->more++;
        return;
    }
    heirs->bytes += (size_t)snprintf(heirs->text + heirs->bytes, sizeof(heirs->text) - heirs->bytes,
                                     "%s%s", heirs->bytes > 0 ? ", " : "", name);
}

int heirs_refuse(const struct heirs *heirs, const char *to, struct baton_error *reterr)
{
    char more[32] = "";

    if (heirs->more > 0) {
        (void)snprintf(more, sizeof(more), " and %zu more", heirs->more);
    }
    return error_set(reterr, BATON_EINVAL,
                     "member \"%s\": cannot be handed leadership; these can: %s%s", to,
                     heirs->bytes > 0 ? heirs->text : "none", more);
}
