/* Where a server of libwebsockets listens: on the address that it was told, and on no other.
 *
 * Two things of release 4.1 are mended here, for every server of ours. It opens IPv6 sockets where
 * it can, and writes an IPv4 address to the wrong place of theirs: told 127.0.0.1, it listens on
 * every address of the machine. And a context on a loop of ours that has no connection at its end
 * is freed while its timers are still being closed.
 */
#ifndef DETECTOR_WEB_LISTEN_H
#define DETECTOR_WEB_LISTEN_H

#include <libwebsockets.h>
#include <uv.h>

/* Makes a context on that loop, which writes no log of its own and listens nowhere yet. `info` has
 * its bounds alone; what else it needs is put there, and web_listen() takes it on. NULL: there is
 * no libwebsockets-evlib-uv, or no memory. */
struct lws_context *web_begin(uv_loop_t *loop, struct lws_context_creation_info *info);

/* Makes a vhost of `info` that listens at `host`, an IPv4 or IPv6 address of this machine,
 * "localhost", or NULL for every address, on the port info->port. `info` changes and may go after
 * the call; `host` stays until the context is gone. NULL: it cannot listen there; then end the
 * context as usual, and call web_finish_closing() before its second half. */
struct lws_vhost *web_listen(struct lws_context *context, struct lws_context_creation_info *info,
                             const char *host);

/* Runs the loop until nothing on it is being closed any more; what is open is not waited for. */
void web_finish_closing(uv_loop_t *loop);

#endif
