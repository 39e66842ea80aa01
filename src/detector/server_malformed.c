/* Requests that libwebsockets turns away before we are asked get our answer: 400 and JSON.
 *
 * It does so in two ways, and both are functions that it calls through the dynamic linker, which
 * finds the ones defined here first. A URI that it cannot decode (`%zz`), one that begins with no
 * slash and a method that it does not know it answers by lws_return_http_status(), with 403 and a
 * page of HTML. From what it cannot hold (`%00`, a head above HEADERS_MAX, some hundred parts) and
 * from a WebSocket handshake in which something is missing it hangs up without a word, by
 * lws_close_free_wsi(): the last moment to say one. The former is its interface; the latter it
 * shares with its event loops only. Should a future release hide it, such requests are hung up on
 * without an answer again, and the table of tests/integration/detector/requests.js fails.
 */
#include "base/invariant.h"
#include "detector/server_int.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

enum { REFUSAL_MAX = 768 };

/* How lws says that it gives up what it reads; it has many other reasons to close. */
#define READING_FAILED "lws_read_h1 bail"

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

/* An address of its own for each state: lws keeps a pointer for us, and a number is enough. */
static const char states[] = {REQUEST_READ, REQUEST_UPGRADES, REQUEST_TAKEN, REQUEST_REFUSED};

void server_note(struct lws *wsi, enum request_state state)
{
    lws_set_opaque_user_data(wsi, (void *)&states[state]);
}

enum request_state server_noted(const struct lws *wsi)
{
    const char *state = lws_get_opaque_user_data(wsi);
    return state != NULL ? (enum request_state) * state : REQUEST_READ;
}

int server_refuse(struct lws *wsi, unsigned status, const char *reason)
{
    unsigned char room[LWS_PRE + REFUSAL_MAX];
    int bytes;

    if (lws_get_network_wsi(wsi) != wsi) {
        return -1; /* a stream of HTTP/2, which is not spoken */
    }
    bytes = snprintf((char *)room + LWS_PRE, REFUSAL_MAX,
                     "HTTP/1.1 %u %s\r\n%scontent-type: application/json\r\ncontent-length: %zu\r\n"
                     "x-content-type-options: nosniff\r\ncache-control: no-store\r\n"
                     "connection: close\r\n\r\n{\"error\":\"%s\"}\n",
                     status, phrase(status),
                     status == HTTP_STATUS_METHOD_NOT_ALLOWED ? "allow: GET, HEAD\r\n" : "",
                     strlen(reason) + strlen("{\"error\":\"\"}\n"), reason);
    if (bytes < 0 || bytes >= REFUSAL_MAX) {
        return -1;
    }
    server_note(wsi, REQUEST_REFUSED);
    return lws_write(wsi, room + LWS_PRE, (size_t)bytes, LWS_WRITE_HTTP) == bytes ? 0 : -1;
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

static void say_why(struct lws *wsi)
{
    switch (server_noted(wsi)) {
    case REQUEST_READ:
        (void)server_refuse(wsi, HTTP_STATUS_BAD_REQUEST,
                            "the request is malformed: a second method, a zero in the path, more "
                            "parts than can be told apart, or a head above 64 KiB");
        return;
    case REQUEST_UPGRADES:
        (void)server_refuse(wsi, HTTP_STATUS_BAD_REQUEST,
                            "the WebSocket handshake is not whole: it needs a Host, Connection: "
                            "Upgrade, Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key, and may "
                            "ask for no subprotocol");
        return;
    case REQUEST_TAKEN:
    case REQUEST_REFUSED:
    default:
        return;
    }
}

typedef void close_function(struct lws *wsi, enum lws_close_status code, const char *caller);

/* No header declares it. */
LWS_VISIBLE close_function lws_close_free_wsi;

/* libwebsockets' own comes after ours. */
void lws_close_free_wsi(struct lws *wsi, enum lws_close_status code, const char *caller)
{
    struct server *server = server_of(wsi);
    close_function *close_it = NULL;
    int fd = -1;

    *(void **)&close_it = dlsym(RTLD_NEXT, "lws_close_free_wsi");
    INVARIANT(close_it != NULL);
    if (server != NULL && caller != NULL && strcmp(caller, READING_FAILED) == 0) {
        say_why(wsi);
        if (server_noted(wsi) == REQUEST_REFUSED) {
            fd = fcntl(lws_get_socket_fd(wsi), F_DUPFD_CLOEXEC, 0);
        }
    }
    close_it(wsi, code, caller);
    if (fd >= 0) {
        (void)shutdown(fd, SHUT_WR); /* under TLS lws leaves that to the close */
        server_linger(server, fd);
    }
}
