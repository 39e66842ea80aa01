/* The thread that calls baton_dispatch(). */
#ifndef API_DISPATCH_H
#define API_DISPATCH_H

#include "api/object.h"

/* Whether the calling thread is the one that dispatched last. */
bool dispatch_is_here_locked(const struct baton *baton);

#endif
