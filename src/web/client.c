#include "web/client.h"

#include "web/socket_int.h"
#include "web/url.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_BYTES = 16,
    HEAD_ROOM = WEB_URL_MAX + 1024,
    HEADERS_MAX = 16384,
    QUEUE_ROOM = 256 << 10
};

/*   WAITS ──response──▶ ENDS            the connection is closed at once
 *     └────101────▶ SOCKET ──closed by both──▶ ENDS, until the server hangs up or the time is over
 */
enum phase { PHASE_WAITS, PHASE_SOCKET, PHASE_ENDS };

struct web_client {
    struct web_client_callbacks callbacks;
    void *userdata;
    struct web_url url;
    struct web_socket_options socket_options;
    bool wants_socket;
    char accept[WEB_KEY_ROOM]; /* the answer to our key */
    struct buffer request;
    struct web_response response;
    struct stream *stream;
    struct web_socket *socket; /* NULL: it is none */
    enum phase phase;
    uint64_t within_ms;
    bool limits_lookup;
    unsigned linger_ticks;
    uv_timer_t timer, soon; /* the time limit, later the ticks; web_socket_drain() */
    unsigned timers;        /* that are not closed */
    struct baton_error error;
};

/* The first failure counts. */
static void fail(struct web_client *client, int code, const char *reason)
{
    if (client->phase != PHASE_ENDS && client->error.code == 0) {
        (void)error_set(&client->error, code, "%s: %s", client->url.shown, reason);
    }
    if (client->stream != NULL) {
        stream_close(client->stream);
    }
}

void web_client_close(struct web_client *client)
{
    fail(client, BATON_ECANCELED, "given up");
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void limit_waiting(struct web_client *client);

static void on_timer(uv_timer_t *timer)
{
    struct web_client *client = timer->data;

    if (client->stream != NULL && stream_is_resolving(client->stream) && !client->limits_lookup) {
        limit_waiting(client);
    } else if (client->phase == PHASE_WAITS) {
        char reason[80];
        (void)snprintf(reason, sizeof(reason), "timeout: no whole response within %.3f s",
                       (double)client->within_ms / 1000);
        fail(client, BATON_ETIMEDOUT, reason);
    } else if (client->phase == PHASE_SOCKET) {
        web_socket_tick(client->socket);
    } else if (++client->linger_ticks == LINGER_S * TICKS_PER_S) {
        stream_close(client->stream);
    }
}

/* Mostly the time of a look-up does not count: the resolver has limits of its own. */
static void limit_waiting(struct web_client *client)
{
    (void)uv_timer_start(&client->timer, on_timer, client->within_ms, 0);
}

static void on_soon(uv_timer_t *timer)
{
    struct web_client *client = timer->data;

    if (client->phase == PHASE_SOCKET) {
        web_socket_drain(client->socket);
    }
}

static void on_timer_close(uv_handle_t *handle)
{
    struct web_client *client = handle->data;

    if (--client->timers > 0) {
        return;
    }
    client->callbacks.on_close(client->userdata, &client->error);
    web_response_fini(&client->response);
    buffer_fini(&client->request);
    free(client);
}

static void start_timers(struct web_client *client, uv_loop_t *loop)
{
    (void)uv_timer_init(loop, &client->timer); /* these cannot fail */
    (void)uv_timer_init(loop, &client->soon);
    client->timer.data = client->soon.data = client;
    client->timers = 2;
    limit_waiting(client);
}

/* ---- The WebSocket --------------------------------------------------------------------------- */

static void end_socket(void *userdata)
{
    struct web_client *client = userdata;

    client->phase = PHASE_ENDS;
    stream_shutdown(client->stream);
}

static void drain_soon(void *userdata)
{
    struct web_client *client = userdata;

    (void)uv_timer_start(&client->soon, on_soon, 0, 0);
}

static void open_socket(struct web_client *client)
{
    struct web_socket_home home = {.stream = client->stream,
                                   .is_client = true,
                                   .end = end_socket,
                                   .drain_soon = drain_soon,
                                   .userdata = client};
    const char *fault = client->wants_socket
                            ? web_socket_answer_fault(&client->response, client->accept)
                            : "the server changes the protocol, which was not asked for";

    if (fault != NULL) {
        fail(client, BATON_EPROTO, fault);
        return;
    }
    client->socket = web_socket_new(&home, &client->socket_options);
    if (client->socket == NULL) {
        fail(client, BATON_ENOMEM, "out of memory");
        return;
    }
    client->phase = PHASE_SOCKET;
    (void)uv_timer_start(&client->timer, on_timer, TICK_MS, TICK_MS);
    client->callbacks.on_open(client->userdata, client->socket);
}

/* ---- The response ---------------------------------------------------------------------------- */

static void finish(struct web_client *client)
{
    unsigned status = client->response.status;
    char reason[64];

    if (client->wants_socket) {
        (void)snprintf(reason, sizeof(reason), "no WebSocket: refused with status %u", status);
        fail(client, status == 401 || status == 403 ? BATON_EAUTH : BATON_EPROTO, reason);
    }
    client->phase = PHASE_ENDS;
    stream_close(client->stream);
    client->callbacks.on_response(client->userdata, &client->response);
}

static void pass_part(struct web_client *client)
{
    struct buffer *body = &client->response.body;

    if (client->callbacks.on_part == NULL || client->response.status != 200 || body->bytes == 0) {
        return;
    }
    limit_waiting(client);
    client->callbacks.on_part(client->userdata, body->data, body->bytes);
    buffer_clear(body);
}

static void read_response(struct web_client *client, const uint8_t *data, size_t bytes)
{
    size_t taken;

    switch (web_response_read(&client->response, data, bytes, &taken)) {
    case WEB_READ_REFUSED:
        fail(client, client->response.code, client->response.reason);
        break;
    case WEB_READ_WHOLE:
        if (client->response.status != 101) {
            finish(client);
            break;
        }
        open_socket(client);
        if (client->phase == PHASE_SOCKET && taken < bytes) { /* frames behind the handshake */
            web_socket_read(client->socket, data + taken, bytes - taken);
        }
        break;
    case WEB_READ_MORE:
    default:
        pass_part(client);
        break;
    }
}

/* ---- The stream ------------------------------------------------------------------------------ */

static void on_open(struct stream *stream, void *userdata)
{
    struct web_client *client = userdata;

    (void)stream_write(stream, client->request.data, client->request.bytes);
    buffer_fini(&client->request);
}

static void on_data(struct stream *stream, const void *data, size_t bytes, void *userdata)
{
    struct web_client *client = userdata;

    (void)stream;
    if (client->phase == PHASE_WAITS) {
        read_response(client, data, bytes);
    } else if (client->phase == PHASE_SOCKET) {
        web_socket_read(client->socket, data, bytes);
    }
}

static void on_drain(struct stream *stream, void *userdata)
{
    struct web_client *client = userdata;

    (void)stream;
    if (client->phase == PHASE_SOCKET) {
        drain_soon(client);
    }
}

static void on_closing(struct stream *stream, void *userdata)
{
    struct web_client *client = userdata;

    (void)stream;
    if (client->socket != NULL) {
        web_socket_closing(client->socket);
    }
}

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct web_client *client = userdata;

    (void)stream;
    if (code == BATON_EIO) { /* of the network, not of a disk */
        code = BATON_ECLOSED;
    } else if (code == BATON_OK || code == BATON_ECANCELED) { /* the latter: of a WebSocket's own */
        code = BATON_ECLOSED;
        reason = client->socket != NULL ? "the connection ended without a closing handshake"
                                        : "the connection ended before the response was whole";
    }
    fail(client, code, reason);
    client->stream = NULL;
    if (client->socket != NULL) {
        web_socket_free(client->socket);
    }
    uv_close((uv_handle_t *)&client->timer, on_timer_close);
    uv_close((uv_handle_t *)&client->soon, on_timer_close);
}

/* ---- The request ----------------------------------------------------------------------------- */

static bool put_upgrade(struct web_client *client)
{
    unsigned char raw[KEY_BYTES];
    char key[WEB_KEY_ROOM];

    if (RAND_bytes(raw, sizeof(raw)) != 1) {
        return false;
    }
    (void)EVP_EncodeBlock((unsigned char *)key, raw, sizeof(raw));
    web_socket_accept(key, client->accept);
    buffer_printf(&client->request,
                  "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
                  "sec-websocket-key: %s\r\n",
                  key);
    return true;
}

static bool put_request(struct web_client *client, const struct web_client_options *options)
{
    struct buffer *out = &client->request;
    bool is_whole = true;

    buffer_init(out, HEAD_ROOM + HEADERS_MAX + options->bytes);
    buffer_printf(out, "%s %s HTTP/1.1\r\nhost: %s\r\n",
                  options->method != NULL ? options->method : "GET", client->url.target,
                  client->url.authority);
    if (client->wants_socket) {
        is_whole = put_upgrade(client);
    } else {
        buffer_put_text(out, "connection: close\r\n");
    }
    buffer_put_text(out, options->headers != NULL ? options->headers : "");
    if (options->body != NULL) {
        buffer_printf(out, "content-length: %zu\r\n", options->bytes);
    }
    buffer_put_text(out, "\r\n");
    if (options->body != NULL) {
        buffer_put(out, options->body, options->bytes);
    }
    return is_whole && !out->failed;
}

static int dial(struct web_client *client, const struct web_client_options *options,
                struct baton_error *reterr)
{
    size_t backlog = client->wants_socket ? client->socket_options.backlog_max : 0;
    struct stream_options wanted = {.loop = options->loop,
                                    .callbacks = {.on_open = on_open,
                                                  .on_data = on_data,
                                                  .on_drain = on_drain,
                                                  .on_closing = on_closing,
                                                  .on_close = on_close},
                                    .userdata = client,
                                    /* encrypted bytes are more */
                                    .queue_bytes_max =
                                        client->request.bytes + backlog + backlog / 8 + QUEUE_ROOM,
                                    .tls = client->url.is_tls ? options->tls : NULL,
                                    .peer_name = client->url.host};

    return stream_connect(&client->stream, &wanted, client->url.host, client->url.port, reterr);
}

static int check(const struct web_url *url, const struct web_client_options *options,
                 struct baton_error *reterr)
{
    if (url->is_socket != (options->socket != NULL)) {
        return error_set(reterr, BATON_EINVAL, "%s: the scheme must be %s", url->shown,
                         options->socket != NULL ? "ws or wss" : "http or https");
    }
    return url->is_tls && options->tls == NULL
               ? error_set(reterr, BATON_EINVAL, "%s: TLS is not set up", url->shown)
               : BATON_OK;
}

int web_client_open(struct web_client **ret, const struct web_client_options *options,
                    struct baton_error *reterr)
{
    struct web_client *client = calloc(1, sizeof(*client));
    bool is_head = options->method != NULL && strcmp(options->method, "HEAD") == 0;
    int code = client != NULL ? BATON_OK : error_set(reterr, BATON_ENOMEM, "out of memory");

    code = code ? code : web_url_parse(&client->url, options->url, reterr);
    code = code ? code : check(&client->url, options, reterr);
    if (code) {
        free(client);
        return code;
    }
    client->callbacks = options->callbacks;
    client->userdata = options->userdata;
    client->within_ms = options->within_ms;
    client->limits_lookup = options->limits_lookup;
    client->wants_socket = options->socket != NULL;
    if (client->wants_socket) {
        client->socket_options = *options->socket;
    }
    web_response_init(&client->response, is_head || options->wants_head_only, options->head_max,
                      options->body_max);
    code = put_request(client, options)
               ? dial(client, options, reterr)
               : error_set(reterr, BATON_ENOMEM, "%s: out of memory, or too many headers",
                           client->url.shown);
    if (code) {
        web_response_fini(&client->response);
        buffer_fini(&client->request);
        free(client);
        return code;
    }
    start_timers(client, options->loop);
    *ret = client;
    return BATON_OK;
}
