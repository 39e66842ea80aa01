/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]?…: elections, registry, channels and state in Redis or
 * Valkey, in the key layout of the seed's MasterElection. Higher layers use it through
 * provider/provider.h; docs/redis.md is the guide. */
#ifndef PROVIDER_REDIS_REDIS_PROVIDER_H
#define PROVIDER_REDIS_REDIS_PROVIDER_H

#include "provider/provider.h"

extern const struct provider_ops redis_provider_ops;

/* For measurements: a lease was renewed, `took` after the request. */
typedef void (*redis_renewed_cb)(void *userdata, span took);
void redis_provider_observe(struct provider *provider, redis_renewed_cb on_renewed, void *userdata);

#endif
