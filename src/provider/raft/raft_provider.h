/* raft://HOST:PORT?peers=…&data=DIR: peers elect among themselves, with no outside service.
 * What stands above uses it through provider/provider.h; here is only what is its own. */
#ifndef PROVIDER_RAFT_RAFT_PROVIDER_H
#define PROVIDER_RAFT_RAFT_PROVIDER_H

#include "provider/provider.h"

#include <jansson.h>

extern const struct provider_ops raft_provider_ops;

/* Term, log, peers and counters, as a new JSON object; NULL when out of memory. */
json_t *raft_provider_status(struct provider *provider);

/* For tests and the demo: as if every cable were pulled, without root. Connections stay, nothing
 * is sent or heard on them. */
void raft_provider_isolate(struct provider *provider, bool on);

#endif
