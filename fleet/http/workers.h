/* Workers as the API shows them, for the handlers. */
#ifndef FLEET_HTTP_WORKERS_H
#define FLEET_HTTP_WORKERS_H

#include "fleet/http/call.h"
#include "fleet/http/inside.h"

json_t *worker_json(const struct fleet_http *http, const struct fleet_worker *worker);
json_t *worker_texts(const char *const *texts, size_t count);

/* The worker that the path names. NULL: refused. */
const struct fleet_worker *worker_of(struct call *call);

#endif
