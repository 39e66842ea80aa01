/* How an exchange of a server becomes a WebSocket. */
#ifndef WEB_UPGRADE_H
#define WEB_UPGRADE_H

#include "web/server.h"
#include "web/socket.h"

/* NULL if the request opens a WebSocket as it must, or why it does not: refuse it with 400. */
const char *web_socket_fault(const struct web_request *request);

/* Answers a request without such a fault, and takes its connection. NULL: out of memory; the
 * connection ends. */
struct web_socket *web_socket_open(struct web_exchange *exchange,
                                   const struct web_socket_options *options);

#endif
