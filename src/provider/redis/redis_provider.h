/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]?…: elections, registry, channels and state in Redis or
 * Valkey, in the key layout of the seed's MasterElection. What stands above uses it through
 * provider/provider.h; docs/redis.md is the guide. */
#ifndef PROVIDER_REDIS_REDIS_PROVIDER_H
#define PROVIDER_REDIS_REDIS_PROVIDER_H

#include "provider/provider.h"

extern const struct provider_ops redis_provider_ops;

/* For measurements: a lease was renewed, so long after it was asked for. */
typedef void (*redis_renewed_cb)(void *userdata, span took);
void redis_provider_observe(struct provider *provider, redis_renewed_cb on_renewed, void *userdata);

#endif
