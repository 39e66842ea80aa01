#include "fleet/workers/record.h"

#include "fleet/objects/url.h"

#include <string.h>

/* Whether its id comes from its URL: then a URL with the same id leads to the same host and port.
 */
static bool is_named_by_url(const struct fleet_worker *worker)
{
    char id[DISCOVERY_ID_MAX];

    discovery_id(worker->url, id);
    return strcmp(id, worker->id) == 0;
}

json_t *worker_record(const struct fleet_state *state, const char *url, const char *source,
                      char ret_id[static DISCOVERY_ID_MAX], uint64_t *ret_revision)
{
    const struct fleet_worker *worker, *key;
    json_t *record;

    discovery_id(url, ret_id);
    worker = fleet_state_worker(state, ret_id);
    key = fleet_state_worker_key(state, ret_id);
    /* One that was deleted is added again, whether its key is there still or not. */
    *ret_revision = !key ? 0 : key->is_deleted ? PROVIDER_ANY_REVISION : key->revision;
    if (worker && (fleet_url_is_same(worker->url, url) || fleet_worker_is_discovered(worker) ||
                   !is_named_by_url(worker))) {
        return NULL;
    }
    if (fleet_state_worker_at(state, url)) {
        return NULL;
    }
    if (!worker) {
        return json_pack("{s:s, s:s}", "url", url, "source", source);
    }
    record = fleet_worker_json(worker);
    (void)json_object_set_new(record, "url", json_string(url));
    return record;
}
