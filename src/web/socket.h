/* A WebSocket (RFC 6455), which an exchange of a server (upgrade.h) or a client (client.h) becomes:
 * messages come whole, and what is sent waits in the stream's queue until the peer takes it.
 *
 * The other side is pinged, and closed when it answers none; so is one that sends more control
 * frames than any program needs. Either close is a handshake: a close frame with code and reason,
 * the peer's own, and then the end of the connection.
 *
 * The loop's thread only. Callbacks may send and close.
 */
#ifndef WEB_SOCKET_H
#define WEB_SOCKET_H

#include "web/frames.h"

struct web_socket; /* opaque; ends when on_close returns */

struct web_socket_callbacks {
    void (*on_text)(void *userdata, const char *text, size_t bytes);
    /* A message was not given out, or the connection is being closed for what came; `reason` is
     * static or valid during the call. */
    void (*on_refused)(void *userdata, const char *reason);
    /* All that was sent is taken by the system. */
    void (*on_drain)(void *userdata);
    /* The connection is about to be closed: web_socket_arrived() counts for the last time. */
    void (*on_closing)(void *userdata);
    /* The last callback. */
    void (*on_close)(void *userdata);
};

struct web_socket_options {
    size_t message_max;    /* bytes of a text */
    size_t backlog_max;    /* bytes that may wait for the peer */
    unsigned ping_after_s; /* at least 1, since the latest pong; the peer then has ten seconds to
                              answer */
    struct web_socket_callbacks callbacks;
    void *userdata;
};

/* False: it is being closed, or too much waits. */
bool web_socket_send(struct web_socket *socket, const char *text, size_t bytes);
/* Bytes that the system has not taken yet. */
size_t web_socket_backlog(const struct web_socket *socket);
/* A receipt for a message: it is with the peer's system once web_socket_arrived() has reached what
 * web_socket_sent() was when the message had been sent. The second is a system call; no event tells
 * that it has changed. */
uint64_t web_socket_sent(const struct web_socket *socket);
uint64_t web_socket_arrived(const struct web_socket *socket);
/* Whether something waits longer for that than a round trip takes, and 200 ms: it may be lost. */
bool web_socket_is_overdue(const struct web_socket *socket);

/* The code with which the peer has closed; 0: it has not, or without one. *ret: its reason, of
 * *ret_bytes bytes of UTF-8 without a NUL behind them, valid until on_close returns. */
unsigned web_socket_farewell(const struct web_socket *socket, const char **ret, size_t *ret_bytes);

/* The first call counts; reason: at most 123 bytes, the rest is cut off. No text comes after it. */
void web_socket_close(struct web_socket *socket, unsigned code, const char *reason);

#endif
