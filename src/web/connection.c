/* One connection of a server, from its accept to its close: reads requests, and keeps the limits.
 */
#include "web/server_int.h"

#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

enum {
    AHEAD_MAX = 65536,
    READ_MAX = 65536,
    BODY_SMALL = 1 << 20, /* bytes; one of these is never refused for the others */
};

static void wait_for_request(struct web_exchange *exchange)
{
    exchange->phase = PHASE_READS;
    exchange->ticks = exchange->server->config.head_within_s * TICKS_PER_S;
    web_request_next(&exchange->request);
}

/* A client that is closed on while it still sends gets a reset, and loses its answer. So the server
 * sends no more, and drops what comes, until the client hangs up or the time is over. */
void web_exchange_end(struct web_exchange *exchange)
{
    exchange->phase = PHASE_ENDS;
    exchange->ticks = LINGER_S * TICKS_PER_S;
    buffer_fini(&exchange->ahead);
    buffer_fini(&exchange->request.body);
    stream_shutdown(exchange->stream);
    if (exchange->is_paused) {
        exchange->is_paused = false;
        stream_pause(exchange->stream, false);
    }
}

void web_exchange_over(struct web_exchange *exchange)
{
    exchange->userdata = NULL;
    if (exchange->is_last) {
        web_exchange_end(exchange);
        return;
    }
    wait_for_request(exchange);
    web_exchange_parse(exchange, NULL, 0);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void send_continue(struct web_exchange *exchange)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (exchange->request.expects_bytes) {
        exchange->request.expects_bytes = false;
        (void)stream_write(exchange->stream, go_on, sizeof(go_on) - 1);
    }
}

/* Whether there is no room for more of this body. */
static bool is_crowded(const struct web_exchange *exchange)
{
    const struct web_server *server = exchange->server;
    const struct web_exchange *other;
    size_t bytes = 0;

    if (server->config.bodies_max == 0 || exchange->request.body.bytes <= BODY_SMALL) {
        return false;
    }
    for (other = server->exchanges; other != NULL; other = other->next) {
        bytes += other->request.body.bytes;
    }
    return bytes > server->config.bodies_max;
}

static void refuse_request(struct web_exchange *exchange, unsigned status, const char *reason)
{
    exchange->phase = PHASE_ANSWERS;
    exchange->is_last = true;
    web_refuse(exchange, status, reason);
}

/* Reads one request from the bytes; how many it took. */
static size_t read_one(struct web_exchange *exchange, const uint8_t *data, size_t bytes)
{
    struct web_server *server = exchange->server;
    struct web_request *request = &exchange->request;
    size_t taken = 0;

    switch (web_request_read(request, data, bytes, &taken)) {
    case WEB_READ_MORE:
        if (is_crowded(exchange)) {
            refuse_request(exchange, 503, "too many large requests at once");
        } else {
            send_continue(exchange);
        }
        return bytes;
    case WEB_READ_REFUSED:
        refuse_request(exchange, request->status, request->reason);
        return bytes;
    case WEB_READ_WHOLE:
    default:
        exchange->phase = PHASE_ANSWERS;
        exchange->is_last = request->is_last || web_header(&request->head, "upgrade") != NULL;
        exchange->ticks = server->config.answer_within_s * TICKS_PER_S;
        server->config.callbacks.on_request(server->config.userdata, exchange);
        return taken;
    }
}

/* Keeps what cannot be read yet. */
static void keep_ahead(struct web_exchange *exchange, const uint8_t *data, size_t bytes)
{
    struct buffer *ahead = &exchange->ahead;
    bool is_full;

    if (exchange->phase == PHASE_ENDS) {
        return;
    }
    buffer_put(ahead, data, bytes);
    if (ahead->failed) {
        stream_close(exchange->stream);
        return;
    }
    is_full = ahead->bytes >= AHEAD_MAX;
    if (is_full != exchange->is_paused) {
        exchange->is_paused = is_full;
        stream_pause(exchange->stream, is_full);
    }
}

void web_exchange_parse(struct web_exchange *exchange, const void *data, size_t bytes)
{
    struct buffer waiting;
    const uint8_t *at = data;

    if (exchange->is_parsing || exchange->server->is_closing) {
        return; /* the caller below goes on */
    }
    if (data == NULL) { /* what came ahead; put back below, as far as it is not read */
        waiting = exchange->ahead;
        buffer_init(&exchange->ahead, waiting.max_bytes);
        at = waiting.data;
        bytes = waiting.bytes;
    } else {
        buffer_init(&waiting, 0);
    }
    exchange->is_parsing = true;
    while (bytes > 0 && exchange->phase == PHASE_READS) {
        size_t taken = read_one(exchange, at, bytes);
        at += taken;
        bytes -= taken;
    }
    exchange->is_parsing = false;
    if (exchange->phase == PHASE_SOCKET && bytes > 0) { /* frames behind the handshake */
        web_socket_read(exchange->socket, at, bytes);
        bytes = 0;
    }
    keep_ahead(exchange, at, bytes);
    buffer_fini(&waiting);
}

/* ---- The stream ------------------------------------------------------------------------------ */

static void on_open(struct stream *stream, void *userdata)
{
    (void)stream;
    (void)userdata;
}

static void on_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
    struct web_exchange *exchange = userdata;

    if (exchange->phase == PHASE_ENDS) {
        exchange->dropped += bytes;
        if (exchange->dropped > LINGER_BYTES) {
            stream_close(stream);
        }
    } else if (exchange->phase == PHASE_READS) {
        web_exchange_parse(exchange, data, bytes);
    } else if (exchange->phase == PHASE_SOCKET) {
        web_socket_read(exchange->socket, data, bytes);
    } else {
        keep_ahead(exchange, data, bytes);
    }
}

static void on_drain(struct stream *stream, void *userdata)
{
    struct web_exchange *exchange = userdata;

    (void)stream;
    if (exchange->phase == PHASE_DRAINS) {
        web_exchange_over(exchange);
    } else if (exchange->phase == PHASE_STREAMS || exchange->phase == PHASE_SOCKET) {
        exchange->ticks = 0;
        web_exchange_drain_soon(exchange);
    }
}

static void on_closing(struct stream *stream, void *userdata)
{
    struct web_exchange *exchange = userdata;

    (void)stream;
    if (exchange->socket != NULL) {
        web_socket_closing(exchange->socket);
    }
}

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct web_exchange *exchange = userdata;
    struct web_server *server = exchange->server;
    const struct web_callbacks *callbacks = &server->config.callbacks;

    (void)stream;
    (void)code;
    (void)reason;
    if ((exchange->phase == PHASE_ANSWERS || exchange->phase == PHASE_STREAMS) &&
        callbacks->on_gone != NULL) {
        callbacks->on_gone(server->config.userdata, exchange);
    }
    if (exchange->socket != NULL) {
        web_socket_free(exchange->socket);
    }
    DL_DELETE(server->exchanges, exchange);
    if (exchange->wants_drain) {
        DL_DELETE2(server->draining, exchange, drain_prev, drain_next);
    }
    server->count--;
    web_request_fini(&exchange->request);
    buffer_fini(&exchange->ahead);
    free(exchange);
}

/* ---- Limits ---------------------------------------------------------------------------------- */

/* The oldest connection that waits for a request, or ends, makes room; but not one whose request is
 * here and not read: the loop accepts many new connections before it reads from any. */
static void make_room(struct web_server *server)
{
    struct web_exchange *exchange;

    for (exchange = server->exchanges; exchange != NULL; exchange = exchange->next) {
        bool is_idle = exchange->phase == PHASE_READS || exchange->phase == PHASE_ENDS;
        if (is_idle && !exchange->is_leaving && !stream_has_unread(exchange->stream)) {
            exchange->is_leaving = true; /* it is in the list until the loop has closed it */
            stream_close(exchange->stream);
            return;
        }
    }
}

void web_exchange_accept(struct web_server *server, int fd)
{
    const struct web_config *config = &server->config;
    struct stream_options options = {.loop = config->loop,
                                     .callbacks = {.on_open = on_open,
                                                   .on_data = on_data,
                                                   .on_drain = on_drain,
                                                   .on_closing = on_closing,
                                                   .on_close = on_close},
                                     .queue_bytes_max = config->answer_max,
                                     .tls = server->tls};
    struct web_exchange *exchange = calloc(1, sizeof(*exchange));
    struct baton_error error;

    if (exchange == NULL) {
        (void)close(fd);
        return;
    }
    exchange->server = server;
    web_request_init(&exchange->request, config->head_max, config->body_max);
    exchange->request.limit = config->callbacks.body_limit;
    exchange->request.limit_userdata = config->userdata;
    buffer_init(&exchange->ahead, AHEAD_MAX + READ_MAX);
    wait_for_request(exchange);
    DL_APPEND(server->exchanges, exchange);
    options.userdata = exchange;
    if (stream_accept(&exchange->stream, &options, fd, false, &error) != 0) {
        DL_DELETE(server->exchanges, exchange);
        web_request_fini(&exchange->request);
        free(exchange);
        return;
    }
    if (++server->count > config->connections_max) {
        make_room(server);
    }
}

/* The program has not answered; it may not do so any more. */
static void give_up(struct web_exchange *exchange)
{
    const struct web_config *config = &exchange->server->config;

    if (config->callbacks.on_gone != NULL) {
        config->callbacks.on_gone(config->userdata, exchange);
    }
    exchange->is_last = true;
    web_refuse(exchange, 503, "the answer was not ready in time");
}

void web_exchange_tick(struct web_exchange *exchange)
{
    if (exchange->ticks > 0 && --exchange->ticks == 0) {
        if (exchange->phase == PHASE_ANSWERS) {
            give_up(exchange);
        } else {
            stream_close(exchange->stream);
        }
    } else if (exchange->phase == PHASE_SOCKET) {
        web_socket_tick(exchange->socket);
    }
}
