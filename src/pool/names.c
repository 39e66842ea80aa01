#include "pool/names.h"

#include <baton/types.h>
#include <stdio.h>
#include <string.h>

static const char characters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";

void pool_key(char ret[static POOL_KEY_MAX], const char *pool, const char *key)
{
    (void)snprintf(ret, POOL_KEY_MAX, "work/%s%s%s", pool, key ? "/" : "", key ? key : "");
}

static bool is_name(const char *name)
{
    return name[0] != '\0' && name[strspn(name, characters)] == '\0';
}

int pool_name_check(const char *pool, struct baton_error *reterr)
{
    if (is_name(pool) && strlen(pool) <= POOL_NAME_MAX) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EINVAL,
                     "pool \"%.60s\": must have 1 to %d letters, digits and characters of \"-_.:\"",
                     pool, POOL_NAME_MAX);
}

int pool_worker_check(const char *pool, const char *worker, struct baton_error *reterr)
{
    size_t room = BATON_NAME_MAX - 1 - strlen("work//") - strlen(pool);

    if (is_name(worker) && strlen(worker) <= room && strcmp(worker, POOL_ALL) != 0) {
        return BATON_OK;
    }
    return error_set(reterr, BATON_EINVAL,
                     "worker \"%.80s\": in pool \"%s\" it must have 1 to %zu letters, digits and "
                     "characters of \"-_.:\", and not be \"" POOL_ALL "\"",
                     worker, pool, room);
}
