#include "servers.h"

#include <libwebsockets.h>
#include <stdio.h>
#include <string.h>

struct session {
    size_t bytes;
    unsigned char text[LWS_PRE + ECHO_MAX];
};

static int answer_head(struct lws *wsi)
{
    unsigned char room[LWS_PRE + 512], *begin = room + LWS_PRE, *at = begin,
                                       *end = room + sizeof(room) - 1;

    if (lws_add_http_common_headers(wsi, HTTP_STATUS_OK, "text/plain", PAGE_BYTES, &at, end) ||
        lws_finalize_write_http_header(wsi, begin, &at, end)) {
        return 1;
    }
    lws_callback_on_writable(wsi);
    return 0;
}

static int answer_body(struct lws *wsi)
{
    unsigned char room[LWS_PRE + PAGE_BYTES];

    memcpy(room + LWS_PRE, bench_page, PAGE_BYTES);
    if (lws_write(wsi, room + LWS_PRE, PAGE_BYTES, LWS_WRITE_HTTP_FINAL) != PAGE_BYTES) {
        return 1;
    }
    return lws_http_transaction_completed(wsi) ? -1 : 0;
}

static int receive(struct lws *wsi, struct session *session, const void *data, size_t bytes)
{
    if (lws_is_first_fragment(wsi)) {
        session->bytes = 0;
    }
    if (bytes > ECHO_MAX - session->bytes) {
        return -1;
    }
    memcpy(session->text + LWS_PRE + session->bytes, data, bytes);
    session->bytes += bytes;
    if (lws_is_final_fragment(wsi)) {
        lws_callback_on_writable(wsi);
    }
    return 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t bytes)
{
    struct session *session = user;

    switch (reason) {
    case LWS_CALLBACK_HTTP:
        return answer_head(wsi);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return answer_body(wsi);
    case LWS_CALLBACK_RECEIVE:
        return receive(wsi, session, in, bytes);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return lws_write(wsi, session->text + LWS_PRE, session->bytes, LWS_WRITE_TEXT) < 0 ? -1 : 0;
    default:
        return lws_callback_http_dummy(wsi, reason, user, in, bytes);
    }
}

/* On libuv, as we are: its own loop is faster with few connections, and by poll(2) slow with many.
 */
void serve_libwebsockets(int port_fd)
{
    static const struct lws_protocols protocols[] = {
        {.name = "echo",
         .callback = on_event,
         .per_session_data_size = sizeof(struct session),
         .rx_buffer_size = ECHO_MAX},
        {0},
    };
    struct lws_context_creation_info info = {.port = 0,
                                             .iface = "127.0.0.1",
                                             .protocols = protocols,
                                             .pt_serv_buf_size = ECHO_MAX,
                                             .options = LWS_SERVER_OPTION_VALIDATE_UTF8 |
                                                        LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                                                        LWS_SERVER_OPTION_LIBUV};
    struct lws_context *context;
    struct lws_vhost *vhost;

    lws_set_log_level(LLL_ERR, NULL);
    context = lws_create_context(&info);
    vhost = context != NULL ? lws_create_vhost(context, &info) : NULL;
    if (vhost == NULL) {
        (void)fprintf(stderr, "libwebsockets: cannot listen\n");
        exit(1);
    }
    report_port(port_fd, lws_get_vhost_listen_port(vhost));
    while (lws_service(context, 0) >= 0) {
    }
}
