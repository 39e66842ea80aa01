/* memory:NAME: an election within this process, between all that open the same NAME; without a name
 * it is between its own elections only. For tests, and for programs that run alone.
 *
 * It lives as long as it is open. The leader's lease has no end: only the process itself can fail.
 * The layers above use it through provider/provider.h. */
#ifndef PROVIDER_MEMORY_MEMORY_PROVIDER_H
#define PROVIDER_MEMORY_MEMORY_PROVIDER_H

#include "provider/provider.h"

extern const struct provider_ops memory_provider_ops;

#endif
