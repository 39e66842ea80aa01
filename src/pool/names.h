/* The names of a pool: of its keys, channels and elections. Pure. */
#ifndef POOL_NAMES_H
#define POOL_NAMES_H

#include "base/error.h"

#include <stdbool.h>

enum {
    POOL_NAME_MAX = 32, /* bytes of a pool's name, without the NUL */
    POOL_KEY_MAX = 192  /* bytes of "work/POOL/KEY", with the NUL */
};

#define POOL_ALL "all" /* the channel of all workers; so no worker has this name */

/* "work/POOL/KEY", also for channels and elections; of a name that was checked. key NULL:
 * "work/POOL". */
void pool_key(char ret[static POOL_KEY_MAX], const char *pool, const char *key);

/* BATON_EINVAL: the pool's name must have 1 to POOL_NAME_MAX of: letters, digits, "-_.:". */
int pool_name_check(const char *pool, struct baton_error *reterr);
/* BATON_EINVAL: likewise of a worker, and that its election's name is not too long. */
int pool_worker_check(const char *pool, const char *worker, struct baton_error *reterr);

#endif
