/* Functions that hear of a channel or of keys. */
#ifndef API_SUBSCRIPTION_H
#define API_SUBSCRIPTION_H

#include "api/object.h"

/* All that are left; after the loop has ended. */
void subscriptions_free(struct baton *baton);

#endif
