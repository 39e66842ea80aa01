#include "detector/camera/tunnel.h"

#include "detector/camera/dial.h"
#include "detector/camera/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PIECE = 1 << 14, /* the largest record of TLS */
};

static void close_tunnel(struct tunnel *tunnel)
{
    curl_easy_cleanup(tunnel->curl);
    if (tunnel->inner >= 0) {
        (void)close(tunnel->inner);
    }
    *tunnel = TUNNEL_NONE;
}

static curl_socket_t open_socket(void *userdata, curlsocktype purpose, struct curl_sockaddr *to)
{
    (void)userdata;
    (void)purpose;
    return dial_is_allowed(&to->addr, to->addrlen)
               ? socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol)
               : CURL_SOCKET_BAD;
}

static CURLcode handshake(CURL *curl, const struct camera_config *config, char *details)
{
    const struct url *url = &config->parts;
    bool is_v6 = strchr(url->host, ':') != NULL;
    char text[URL_HOST_MAX + 32];
    CURLcode rc = trust_set_up(curl, config, details);

    (void)snprintf(text, sizeof(text), "https://%s%s%s:%u", is_v6 ? "[" : "", url->host,
                   is_v6 ? "]" : "", (unsigned)url->port);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_URL, text);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_SSL_ENABLE_ALPN, 0L); /* it is not HTTP */
    rc = rc ? rc : curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    return rc ? rc : curl_easy_perform(curl);
}

/* FFmpeg has set how it wants to wait. */
static int put_in_place(struct tunnel *tunnel, int fd)
{
    curl_socket_t outer;
    int ends[2], flags = fcntl(fd, F_GETFL);

    if (flags < 0 || curl_easy_getinfo(tunnel->curl, CURLINFO_ACTIVESOCKET, &outer) != CURLE_OK ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return -EIO;
    }
    tunnel->inner = ends[0];
    tunnel->outer = outer;
    flags = fcntl(ends[1], F_SETFL, flags) == 0 && dup3(ends[1], fd, O_CLOEXEC) == fd ? 0 : -EIO;
    (void)close(ends[1]);
    return flags;
}

int tunnel_open(struct tunnel *tunnel, const struct camera_config *config, int fd,
                struct baton_error *fault)
{
    char details[CURL_ERROR_SIZE] = "";
    CURLcode code;
    int rc;

    close_tunnel(tunnel);
    tunnel->curl = curl_easy_init();
    code = tunnel->curl != NULL ? handshake(tunnel->curl, config, details) : CURLE_OUT_OF_MEMORY;
    if (code == CURLE_SSL_CONNECT_ERROR) {
        (void)error_set(fault, BATON_EIO, "TLS failed; is that the camera's port for rtsps? (%s)",
                        details);
    } else if (code != CURLE_OK) {
        (void)trust_failed(code, details, fault);
    }
    rc = code == CURLE_OK ? put_in_place(tunnel, fd) : -ECONNREFUSED;
    if (rc != 0) {
        close_tunnel(tunnel);
    }
    return rc;
}

static bool send_inside(const struct tunnel *tunnel, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(tunnel->inner, bytes, count, MSG_NOSIGNAL);
        if (sent < 0) {
            return false;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

static bool send_outside(const struct tunnel *tunnel, const char *bytes, size_t count)
{
    while (count > 0) {
        size_t sent = 0;
        CURLcode rc = curl_easy_send(tunnel->curl, bytes, count, &sent);
        if (rc == CURLE_AGAIN) {
            (void)poll(&(struct pollfd){.fd = tunnel->outer, .events = POLLOUT}, 1, -1);
        } else if (rc != CURLE_OK) {
            return false;
        }
        bytes += sent;
        count -= sent;
    }
    return true;
}

/* What TLS has decrypted already makes no descriptor readable, so it is asked until it has none. */
void tunnel_pump(struct tunnel *tunnel, bool is_inner_readable)
{
    char bytes[PIECE];
    size_t count = 0;
    ssize_t got = is_inner_readable ? read(tunnel->inner, bytes, sizeof(bytes)) : 0;
    bool is_open = !is_inner_readable || (got > 0 && send_outside(tunnel, bytes, (size_t)got));
    CURLcode rc = CURLE_OK;

    while (is_open && rc == CURLE_OK) {
        rc = curl_easy_recv(tunnel->curl, bytes, sizeof(bytes), &count);
        is_open =
            rc == CURLE_AGAIN || (rc == CURLE_OK && count > 0 && send_inside(tunnel, bytes, count));
    }
    if (!is_open) {
        close_tunnel(tunnel);
    }
}
