/* The fields of a worker that people write: url, labels, maxSubscriptions, cordoned, draining. */
#ifndef FLEET_HTTP_WORKER_FIELDS_H
#define FLEET_HTTP_WORKER_FIELDS_H

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Puts what the body has into `json`, a worker as the state has it; labels that are null go.
 * `may_name`: also the URL, which is then required. BATON_EINVAL, BATON_EPROTO: "FIELD: what is
 * wrong"; then `json` may have some of the fields. */
int worker_fields_take(json_t *json, const json_t *body, bool may_name, struct baton_error *reterr);

#endif
