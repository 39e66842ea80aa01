/* What all listeners on libuv share. */
#ifndef BATON_NET_LISTENER_H
#define BATON_NET_LISTENER_H

#include <unistd.h>
#include <uv.h>

/* In each on_connection: hangs up on a connection that was not taken, as memory is short.
 * libuv would keep it, and look for no other one until it is taken; it has no call for this, so its
 * own field is emptied. */
static inline void listener_done(uv_stream_t *listener)
{
    if (listener->accepted_fd >= 0) {
        (void)close(listener->accepted_fd);
        listener->accepted_fd = -1;
    }
}

#endif
