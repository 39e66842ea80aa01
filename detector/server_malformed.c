/* Requests that libwebsockets turns away before we are asked get our answer: 400 and JSON.
 *
 * A URI that it cannot decode (`%zz`), one that begins with no slash and a method that it does not
 * know it answers by lws_return_http_status(), with 403 and a page of HTML. That function is of its
 * interface, and it calls it through the dynamic linker, which finds the one defined here first.
 */
#include "detector/server_int.h"

#include <fcntl.h>
#include <string.h>

enum { REFUSAL_MAX = 768 };

static const char *phrase(unsigned status)
{
    switch (status) {
    case HTTP_STATUS_BAD_REQUEST:
        return "Bad Request";
    case HTTP_STATUS_UNAUTHORIZED:
        return "Unauthorized";
    case HTTP_STATUS_FORBIDDEN:
        return "Forbidden";
    case HTTP_STATUS_NOT_FOUND:
        return "Not Found";
    case HTTP_STATUS_METHOD_NOT_ALLOWED:
        return "Method Not Allowed";
    default:
        return "Error";
    }
}

/* The way out: of a WebSocket's 400 it is the version that would do (RFC 6455, 4.4). */
static const char *way_out(struct lws *wsi, unsigned status)
{
    bool is_upgrade = lws_hdr_total_length(wsi, WSI_TOKEN_UPGRADE) > 0;

    return status == HTTP_STATUS_METHOD_NOT_ALLOWED          ? "allow: GET, HEAD\r\n"
           : status == HTTP_STATUS_UNAUTHORIZED              ? "www-authenticate: Bearer\r\n"
           : status == HTTP_STATUS_BAD_REQUEST && is_upgrade ? "sec-websocket-version: 13\r\n"
                                                             : "";
}

int server_refuse(struct lws *wsi, unsigned status, const char *reason)
{
    unsigned char room[LWS_PRE + REFUSAL_MAX];
    struct server *server = server_of(wsi);
    int bytes;

    if (lws_get_network_wsi(wsi) != wsi) {
        return -1; /* a stream of HTTP/2, which is not spoken */
    }
    bytes = snprintf((char *)room + LWS_PRE, REFUSAL_MAX,
                     "HTTP/1.1 %u %s\r\n%scontent-type: application/json\r\ncontent-length: %zu\r\n"
                     "x-content-type-options: nosniff\r\ncache-control: no-store\r\n"
                     "connection: close\r\n\r\n{\"error\":\"%s\"}\n",
                     status, phrase(status), way_out(wsi, status),
                     strlen(reason) + strlen("{\"error\":\"\"}\n"), reason);
    if (bytes < 0 || bytes >= REFUSAL_MAX) {
        return -1;
    }
    if (lws_write(wsi, room + LWS_PRE, (size_t)bytes, LWS_WRITE_HTTP) != bytes) {
        return -1;
    }
    if (server != NULL) {
        server_linger(server, fcntl(lws_get_socket_fd(wsi), F_DUPFD_CLOEXEC, 0));
    }
    return 0;
}

/* libwebsockets' own, replaced. */
int lws_return_http_status(struct lws *wsi, unsigned int code, const char *html_body)
{
    (void)html_body;
    if (code != HTTP_STATUS_FORBIDDEN) {
        return server_refuse(wsi, code, "this request is not served");
    }
    if (lws_hdr_total_length(wsi, WSI_TOKEN_UPGRADE) > 0) {
        return server_refuse(wsi, HTTP_STATUS_BAD_REQUEST, "only an upgrade to websocket is known");
    }
    return server_refuse(wsi, HTTP_STATUS_BAD_REQUEST,
                         "the request is malformed: its method must be a known one, its path begin "
                         "with a slash, and each percent sign be followed by two hexadecimal "
                         "digits");
}
