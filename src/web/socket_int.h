/* Between a WebSocket and the connection that became one: a server's or a client's. */
#ifndef WEB_SOCKET_INT_H
#define WEB_SOCKET_INT_H

#include "net/stream.h"
#include "web/response.h"
#include "web/socket.h"

enum {
    TICK_MS = 250,
    TICKS_PER_S = 1000 / TICK_MS,
    LINGER_S = 2,
    LINGER_BYTES = 16 << 20,
    WEB_KEY_ROOM = 32, /* a key or its answer in base64, and a NUL */
};

struct web_socket_home {
    struct stream *stream;
    bool is_client;
    /* Both sides are done, or the peer is refused. */
    void (*end)(void *userdata);
    /* web_socket_drain() is due, outside of the caller's functions. */
    void (*drain_soon)(void *userdata);
    void *userdata;
};

/* NULL: out of memory. */
struct web_socket *web_socket_new(const struct web_socket_home *home,
                                  const struct web_socket_options *options);

/* For the connection's events: bytes have come; the system has taken all; a tick has passed; the
 * connection is about to be closed; it is gone, and the WebSocket's memory with it. */
void web_socket_read(struct web_socket *socket, const void *data, size_t bytes);
void web_socket_drain(struct web_socket *socket);
void web_socket_tick(struct web_socket *socket);
void web_socket_closing(struct web_socket *socket);
void web_socket_free(struct web_socket *socket);

/* What a server answers to the key of a client. */
void web_socket_accept(const char *key, char ret[static WEB_KEY_ROOM]);
/* NULL if the response opens a WebSocket with that answer, or why it does not. */
const char *web_socket_answer_fault(const struct web_response *response, const char *accept);

#endif
