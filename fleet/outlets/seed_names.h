/* The fleet's state in Redis under the names that the worker protocol gives it, for other programs
 * to read. Nothing of ours reads it back.
 *
 *   worker:states            hash    WORKER ─▶ {"workerId","online","process","cpuUsage",…}
 *   worker:assignments       hash    DISPLAY;CAMERA ─▶ WORKER
 *   worker:owners:WORKER     string  the owner's process name, for 30 s, renewed every second
 *
 * The master writes them, once a second what has changed; a new master writes all of it. The key of
 * a worker that is offline, or that nobody owns, ends by its time, as its readers expect of a
 * lease.
 */
#ifndef FLEET_OUTLETS_SEED_NAMES_H
#define FLEET_OUTLETS_SEED_NAMES_H

#include "fleet/state/state.h"
#include "fleet/workers/table.h"

struct seed_names; /* opaque */

struct seed_names_config {
    struct fleet_state *state; /* this and the table outlive the names */
    struct worker_table *table;
    const char *url;               /* of the Redis server, as the provider has it */
    struct logger *logger;         /* or NULL */
    bool (*leads)(void *userdata); /* whether this process is the master */
    /* The server refused a write; comes once until all succeed again. NULL: unwanted. */
    void (*on_failed)(void *userdata, const struct baton_error *error);
    void *userdata;
};

/* BATON_EINVAL: the URL; BATON_ENOTSUP: it names Sentinels or several servers; BATON_ENOMEM. */
int seed_names_open(struct seed_names **ret, const struct seed_names_config *config,
                    struct baton_error *reterr);
/* Its memory ends in the loop. NULL is nothing. */
void seed_names_close(struct seed_names *names);

#endif
