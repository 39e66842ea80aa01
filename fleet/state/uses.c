#include "fleet/state/uses.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct used {
    struct use *first;
    char key[];
};

void uses_init(struct uses *uses)
{
    names_init(&uses->by_key, offsetof(struct used, key));
}

void uses_fini(struct uses *uses)
{
    names_fini(&uses->by_key);
}

static struct used *used_new(struct uses *uses, const char *key)
{
    size_t bytes = strlen(key) + 1;
    struct used *used = calloc(1, sizeof(*used) + bytes);

    if (used) {
        memcpy(used->key, key, bytes);
        if (names_add(&uses->by_key, used) != BATON_OK) {
            free(used);
            used = NULL;
        }
    }
    return used;
}

int uses_add(struct uses *uses, struct use *use, const char *key, const void *by)
{
    struct used *used = uses->by_key.count > 0 ? names_find(&uses->by_key, key) : NULL;

    if (!used && !(used = used_new(uses, key))) {
        return BATON_ENOMEM;
    }
    use->of = used;
    use->by = by;
    DL_APPEND(used->first, use);
    return BATON_OK;
}

void uses_remove(struct uses *uses, struct use *use)
{
    struct used *used = use->of;

    if (!used) {
        return;
    }
    DL_DELETE(used->first, use);
    use->of = NULL;
    if (!used->first) {
        names_remove(&uses->by_key, used);
        free(used);
    }
}

const struct use *uses_of(const struct uses *uses, const char *key)
{
    const struct used *used = names_find(&uses->by_key, key);

    return used ? used->first : NULL;
}
