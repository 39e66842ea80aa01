/* redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]?…: elections, registry, channels and state in Redis or
 * Valkey, in the key layout of the seed's MasterElection. What stands above uses it through
 * provider/provider.h; docs/redis.md is the guide. */
#ifndef PROVIDER_REDIS_REDIS_PROVIDER_H
#define PROVIDER_REDIS_REDIS_PROVIDER_H

#include "provider/provider.h"

extern const struct provider_ops redis_provider_ops;

#endif
