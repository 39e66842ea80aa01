/* Answers of server.h: a head, then the body at once or in parts. */
#include "web/server_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_ROOM = 2048, CHUNK_HEAD_ROOM = 24 };

const struct web_request *web_exchange_request(const struct web_exchange *exchange)
{
    return &exchange->request;
}

void web_exchange_set(struct web_exchange *exchange, void *userdata)
{
    exchange->userdata = userdata;
}

void *web_exchange_get(const struct web_exchange *exchange)
{
    return exchange->userdata;
}

const char *web_exchange_address(const struct web_exchange *exchange)
{
    return stream_peer_address(exchange->stream);
}

size_t web_exchange_backlog(const struct web_exchange *exchange)
{
    return stream_backlog(exchange->stream);
}

static const char *phrase(unsigned status)
{
    return status == 101   ? "Switching Protocols"
           : status == 503 ? "Service Unavailable"
                           : http_status_str((enum http_status)status);
}

/* All that stands in front of the body. A body of unknown length comes in chunks, or, in HTTP/1.0,
 * until the connection ends. */
static void put_head(struct buffer *out, const struct web_exchange *exchange,
                     const struct web_answer *answer, bool is_whole)
{
    buffer_printf(out, "HTTP/1.1 %u %s\r\n", answer->status, phrase(answer->status));
    if (answer->type != NULL) {
        buffer_printf(out, "content-type: %s\r\n", answer->type);
    }
    if (is_whole && answer->type != NULL) {
        buffer_printf(out, "content-length: %zu\r\n", answer->bytes);
    } else if (!is_whole && exchange->is_chunked) {
        buffer_put_text(out, "transfer-encoding: chunked\r\n");
    }
    buffer_put_text(out, "x-content-type-options: nosniff\r\n");
    buffer_put_text(out, answer->headers != NULL ? answer->headers : "");
    buffer_put_text(out, exchange->is_last ? "connection: close\r\n\r\n" : "\r\n");
}

/* Sends, and bounds the time in which the client must take it. */
static void send_bytes(struct web_exchange *exchange, const void *data, size_t bytes)
{
    (void)stream_write(exchange->stream, data, bytes); /* a failure closes the stream */
    exchange->ticks = stream_has_backlog(exchange->stream)
                          ? exchange->server->config.read_within_s * TICKS_PER_S
                          : 0;
}

/* All of the answer is handed to the stream. */
static void complete(struct web_exchange *exchange)
{
    exchange->phase = PHASE_DRAINS;
    if (!stream_has_backlog(exchange->stream)) {
        web_exchange_over(exchange);
    }
}

void web_answer(struct web_exchange *exchange, const struct web_answer *answer)
{
    struct buffer out;

    buffer_init(&out, HEAD_ROOM + answer->bytes);
    put_head(&out, exchange, answer, true);
    if (!exchange->request.is_head) {
        buffer_put(&out, answer->body, answer->bytes);
    }
    if (out.failed) {
        stream_close(exchange->stream);
    } else {
        send_bytes(exchange, out.data, out.bytes);
    }
    buffer_fini(&out);
    complete(exchange);
}

/* The way out: the methods that are answered, how to show a token, when to try
 * again, the version of WebSockets. */
static const char *advice(const struct web_exchange *exchange, unsigned status)
{
    if (status == 400 && exchange->request.is_upgrade) {
        return "cache-control: no-store\r\nsec-websocket-version: 13\r\n";
    }
    return status == 405   ? "cache-control: no-store\r\nallow: GET, HEAD\r\n"
           : status == 503 ? "cache-control: no-store\r\nretry-after: 1\r\n"
           : status == 401 ? "cache-control: no-store\r\nwww-authenticate: Bearer\r\n"
                           : "cache-control: no-store\r\n";
}

void web_refuse(struct web_exchange *exchange, unsigned status, const char *reason)
{
    char text[512];
    int bytes = snprintf(text, sizeof(text), "{\"error\":\"%s\"}\n", reason);
    struct web_answer answer = {.status = status,
                                .type = "application/json",
                                .headers = advice(exchange, status),
                                .body = text,
                                .bytes = (size_t)bytes};

    exchange->is_last = exchange->is_last || status == 400;
    web_answer(exchange, &answer);
}

void web_begin(struct web_exchange *exchange, const struct web_answer *answer)
{
    struct buffer out;

    exchange->is_chunked = !exchange->request.is_http_1_0;
    buffer_init(&out, HEAD_ROOM);
    put_head(&out, exchange, answer, false);
    exchange->phase = PHASE_STREAMS;
    send_bytes(exchange, out.data, out.bytes);
    buffer_fini(&out);
    if (exchange->request.is_head) {
        complete(exchange);
    } else if (!stream_has_backlog(exchange->stream)) {
        web_exchange_drain_soon(exchange);
    }
}

void web_part(struct web_exchange *exchange, const void *data, size_t bytes)
{
    char head[CHUNK_HEAD_ROOM];
    int head_bytes = snprintf(head, sizeof(head), "%zx\r\n", bytes);

    if (bytes == 0) { /* it would be the end */
        return;
    }
    if (exchange->is_chunked) {
        send_bytes(exchange, head, (size_t)head_bytes);
    }
    send_bytes(exchange, data, bytes);
    if (exchange->is_chunked) {
        send_bytes(exchange, "\r\n", 2);
    }
    if (!stream_has_backlog(exchange->stream)) {
        web_exchange_drain_soon(exchange);
    }
}

void web_finish(struct web_exchange *exchange)
{
    if (exchange->is_chunked) {
        send_bytes(exchange, "0\r\n\r\n", 5);
    }
    complete(exchange);
}
