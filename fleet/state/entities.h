/* What the shared state has besides objects: workers, and what they are assigned. Pure. */
#ifndef FLEET_STATE_ENTITIES_H
#define FLEET_STATE_ENTITIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FLEET_WORKER_ID_MAX = 48, /* bytes of a worker's id: letters, digits, "-_." */
    FLEET_WORKER_SUBSCRIPTIONS_MAX = 1000000,
};

bool fleet_worker_id_is_valid(const char *id);

struct fleet_worker {
    const char *id, *url;
    const char *labels;         /* separated by blanks; NULL: none */
    const char *source;         /* "static", "dns", "declared", "registered" */
    uint32_t subscriptions_max; /* 0: no limit known */
    bool is_cordoned, is_draining;
    bool is_deleted; /* and has not let go of all yet: the master deletes the key then */
    uint64_t revision;
};

/* Whether it comes from --worker, by its URL or by a name server: then it comes back if it is
 * deleted. */
bool fleet_worker_is_discovered(const struct fleet_worker *worker);
/* As the state has it, to be changed and written. NULL: out of memory. */
json_t *fleet_worker_json(const struct fleet_worker *worker);
/* What deletes it. The key stays until the worker has let its subscriptions go: so its owner tells
 * it, and the master gives them to nobody before. NULL: out of memory. */
json_t *fleet_worker_deletion(const struct fleet_worker *worker);

/* The master writes the lists, the worker's owner `is_online` (fleet/workers/claim.h), which the
 * master takes away from a worker that it gives up. */
struct fleet_assigned {
    const char *worker;
    uint64_t epoch, revision;
    const char *const *subscriptions;
    size_t count;
    const char *const *leaving;
    size_t leaving_count;
    bool is_online; /* the worker may be sent the list */
};

/* As the state has it, to be written. NULL: out of memory. */
json_t *fleet_assigned_json(const struct fleet_assigned *assigned);

/* A person moves a subscription to a worker; the master carries it out, and deletes it. */
struct fleet_move {
    const char *subscription, *to;
    uint64_t revision;
};

/* A key whose value is none of ours. */
struct fleet_foreign {
    const char *key;    /* without "NAME/" */
    const char *reason; /* what is wrong with the value; never a secret */
    uint64_t revision;
};

#endif
