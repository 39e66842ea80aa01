/* raft://HOST:PORT?peers=…&data=DIR: peers elect a leader without an outside service. Higher layers
 * use it through provider/provider.h; this header has what only this provider offers. */
#ifndef PROVIDER_RAFT_RAFT_PROVIDER_H
#define PROVIDER_RAFT_RAFT_PROVIDER_H

#include "provider/provider.h"

#include <jansson.h>

extern const struct provider_ops raft_provider_ops;

/* A new JSON object with term, log, peers and counters; NULL: out of memory. */
json_t *raft_provider_status(struct provider *provider);

/* For tests and the demo: cuts the node off without root. Connections stay open; nothing is sent or
 * received on them. */
void raft_provider_isolate(struct provider *provider, bool on);

#endif
