/* The record of a worker that a file names: what is to be written so that the state has it. */
#ifndef FLEET_WORKERS_RECORD_H
#define FLEET_WORKERS_RECORD_H

#include "fleet/state/state.h"
#include "fleet/workers/discovery.h"

/* The value of the key worker/ID at *ret_revision. A worker that is there at the same host and
 * port gets this URL (ws:// becomes wss://) and keeps what people have set. NULL: there is nothing
 * to write: the URL is registered, --worker names it, or its id is that of a worker elsewhere; or
 * out of memory. `source`: for a new one. */
json_t *worker_record(const struct fleet_state *state, const char *url, const char *source,
                      char ret_id[static DISCOVERY_ID_MAX], uint64_t *ret_revision);

#endif
