/* For measurements only: the provider below an open baton. Users have <baton.h>. */
#ifndef API_MEASURE_H
#define API_MEASURE_H

#include "provider/provider.h"

#include <baton.h>

/* Its functions belong to the loop's thread. Observers are set before anybody campaigns. */
struct provider *baton_provider(const struct baton *baton);

#endif
