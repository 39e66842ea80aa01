#include "web/upgrade.h"

#include "web/server_int.h"

#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = 24 }; /* sixteen in base64 */

static bool is_key(const char *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return key != NULL && strlen(key) == KEY_BYTES && strspn(key, digits) == KEY_BYTES - 2 &&
           strcmp(key + KEY_BYTES - 2, "==") == 0;
}

const char *web_socket_fault(const struct web_request *request)
{
    const char *version = web_header(&request->head, "sec-websocket-version");
    const char *upgrade = web_header(&request->head, "upgrade");

    if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0) {
        return "only an upgrade to websocket is known";
    }
    if (strcmp(request->method, "GET") != 0) {
        return "a WebSocket begins with a GET";
    }
    if (version == NULL || strcmp(version, "13") != 0) {
        return "only WebSocket version 13 is known: Sec-WebSocket-Version";
    }
    if (request->is_http_1_0 || !request->is_upgrade ||
        !is_key(web_header(&request->head, "sec-websocket-key")) ||
        web_header_count(&request->head, "sec-websocket-key") != 1 ||
        web_header(&request->head, "sec-websocket-protocol") != NULL) {
        return "the WebSocket handshake is not whole: it needs HTTP/1.1, a Host, Connection: "
               "Upgrade and a Sec-WebSocket-Key, and may ask for no subprotocol";
    }
    return NULL;
}

static void end_exchange(void *userdata)
{
    web_exchange_end(userdata);
}

static void drain_exchange_soon(void *userdata)
{
    web_exchange_drain_soon(userdata);
}

struct web_socket *web_socket_open(struct web_exchange *exchange,
                                   const struct web_socket_options *options)
{
    struct web_socket_home home = {.stream = exchange->stream,
                                   .end = end_exchange,
                                   .drain_soon = drain_exchange_soon,
                                   .userdata = exchange};
    struct web_socket *socket = web_socket_new(&home, options);
    char accept[WEB_KEY_ROOM], head[256];
    int bytes;

    if (socket == NULL) {
        stream_close(exchange->stream);
        return NULL;
    }
    web_socket_accept(web_header(&exchange->request.head, "sec-websocket-key"), accept);
    bytes = snprintf(head, sizeof(head),
                     "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"
                     "connection: Upgrade\r\nsec-websocket-accept: %s\r\n\r\n",
                     accept);
    exchange->phase = PHASE_SOCKET;
    exchange->socket = socket;
    exchange->ticks = 0;
    (void)stream_write(exchange->stream, head, (size_t)bytes);
    return socket;
}
