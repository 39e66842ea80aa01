/* Reads several keys of the state by one request, where a provider can do that.
 */
#ifndef PROVIDER_GET_EACH_H
#define PROVIDER_GET_EACH_H

#include "provider/provider.h"

/* `done` gets those of the keys that are there, each as get() would read it; or a code, if one of
 * them could not be read. At most PROVIDER_EACH_MAX keys. A provider without a function for it gets
 * a request for each key. */
int provider_get_each(struct provider *provider, const char *const *keys, size_t count,
                      provider_values_cb done, void *userdata, struct baton_error *reterr);

#endif
