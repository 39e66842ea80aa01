/* Listening sockets on a libuv loop, TCP and Unix.
 *
 * In place of uv_listen(): as long as the system has no descriptor or memory for a connection,
 * libuv calls accept() again and again, and the loop does nothing else. Here such connections wait
 * in the kernel, the loop goes on, and accept() is called again some tenths of a second later.
 *
 * All of it belongs to the loop's thread.
 */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/error.h"

#include <sys/types.h>
#include <uv.h>

struct listener; /* opaque */
struct logger;

struct listener_options {
    uv_loop_t *loop;
    struct logger *logger; /* or NULL */
    int backlog;           /* of connections; the kernel has a limit of its own */
    /* `fd` is the callee's, and does not block. The callee may close the listener. */
    void (*on_connection)(int fd, void *userdata);
    void (*on_closed)(void *userdata); /* last of all; NULL: not needed */
    void *userdata;
};

/* Returns 0, or a negative errno as libuv has them. "::" takes both families, whatever the system's
 * rule. */
int listener_open_tcp(struct listener **ret, const struct listener_options *options,
                      const struct sockaddr *address);

struct listener_place {
    const char *path;
    mode_t mode;      /* of the socket, from its first moment on */
    gid_t group;      /* (gid_t)-1: that of the process */
    const char *hint; /* where the path is too long or taken, of what to do: "; …"; or NULL */
};

/* Replaces a stale socket at the path. BATON_EBUSY: a process listens there; BATON_EEXIST: it is no
 * socket; BATON_ETOOBIG: the path is longer than the kernel allows; BATON_EAUTH, BATON_EIO,
 * BATON_ENOMEM. */
int listener_open_unix(struct listener **ret, const struct listener_options *options,
                       const struct listener_place *place, struct baton_error *reterr);

int listener_fd(const struct listener *listener);
int listener_port(const struct listener *listener); /* 0: it is not known */

/* Removes a Unix socket, unless another listener has replaced it. The memory goes with the loop's
 * close callbacks. NULL allowed. */
void listener_end(struct listener *listener);

#endif
