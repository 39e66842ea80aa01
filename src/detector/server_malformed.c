/* Requests that libwebsockets turns away before we are asked get our answer: 400 and JSON.
 *
 * A URI that it cannot decode (`%zz`) or that begins with no slash it answers itself, with 403 and
 * a page of HTML, by lws_return_http_status(). That function is defined here, so that the dynamic
 * linker finds ours first. From what it cannot hold (`%00`, a head above HEADERS_MAX, some hundred
 * semicolons) it hangs up without a word, and nobody is asked: that stays.
 */
#include "detector/server_int.h"

#include <string.h>

enum { REFUSAL_MAX = 512 };

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
    default:
        return "Error";
    }
}

int server_refuse(struct lws *wsi, unsigned status, const char *reason)
{
    unsigned char room[LWS_PRE + REFUSAL_MAX];
    int bytes;

    if (lws_get_network_wsi(wsi) != wsi) {
        return -1; /* a stream of HTTP/2, which is not spoken */
    }
    bytes = snprintf((char *)room + LWS_PRE, REFUSAL_MAX,
                     "HTTP/1.1 %u %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n"
                     "x-content-type-options: nosniff\r\ncache-control: no-store\r\n"
                     "connection: close\r\n\r\n{\"error\":\"%s\"}\n",
                     status, phrase(status), strlen(reason) + strlen("{\"error\":\"\"}\n"), reason);
    if (bytes < 0 || bytes >= REFUSAL_MAX) {
        return -1;
    }
    return lws_write(wsi, room + LWS_PRE, (size_t)bytes, LWS_WRITE_HTTP) == bytes ? 0 : -1;
}

/* libwebsockets' own, replaced. */
int lws_return_http_status(struct lws *wsi, unsigned int code, const char *html_body)
{
    (void)html_body;
    if (code == HTTP_STATUS_FORBIDDEN) {
        return server_refuse(wsi, HTTP_STATUS_BAD_REQUEST,
                             "the request is malformed: its path must begin with a slash, and each "
                             "percent sign be followed by two hexadecimal digits");
    }
    return server_refuse(wsi, code, "this request is not served");
}
