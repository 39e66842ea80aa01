#include "guardian/line.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { OUT_MAX = 256 * 1024 };

/* The shared memory may be damaged, or even change: the address is copied first, then checked. */
int line_dial(const struct commands_server *server)
{
    struct sockaddr_storage address = server->address;
    socklen_t bytes = server->address_bytes;
    int one = 1;
    int fd = -1;

    if (bytes > 0 && bytes <= sizeof(address)) {
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only for speed */
    if (connect(fd, (const struct sockaddr *)&address, bytes) != 0 && errno != EINPROGRESS) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

void line_drop(struct line *line)
{
    if (line->fd >= 0) {
        (void)close(line->fd);
    }
    line->fd = -1;
    secure_end(line->session);
    line->session = NULL;
    buffer_fini(&line->out);
}

/* Waits for the socket until the deadline. False: the deadline is over, or poll failed. */
static bool wait_for(const struct line *line, short events)
{
    struct pollfd look = {.fd = line->fd, .events = events};
    int64_t left_ms = (instant_since(line->end, clock_now()).ns + 999999) / 1000000;

    return left_ms > 0 && poll(&look, 1, (int)left_ms) == 1 && look.revents & events;
}

static bool send_all(const struct line *line, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t sent = send(line->fd, data, bytes, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            bytes -= (size_t)sent;
        } else {
            bool may_come = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
            if (!may_come || !wait_for(line, POLLOUT)) {
                return false;
            }
        }
    }
    return true;
}

/* Waits for some bytes. 0: end of the stream; -1: failed, or the deadline is over. */
static ssize_t receive(const struct line *line, char *ret, size_t ret_bytes)
{
    for (;;) {
        ssize_t bytes = recv(line->fd, ret, ret_bytes, 0);
        if (bytes >= 0) {
            return bytes;
        }
        if ((errno != EAGAIN && errno != EINTR && errno != ENOTCONN) || !wait_for(line, POLLIN)) {
            return -1;
        }
    }
}

static bool flush(struct line *line)
{
    bool is_sent = send_all(line, (const char *)line->out.data, line->out.bytes);

    buffer_clear(&line->out);
    return is_sent;
}

static bool greet(struct line *line)
{
    char name[COMMANDS_HOST_MAX];
    char bytes[4096];

    memcpy(name, line->server->name, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    line->session = line->secure ? secure_begin(line->secure, name) : NULL;
    buffer_init(&line->out, OUT_MAX);
    if (!line->session || !secure_receive(line->session, NULL, 0, &line->out) || !flush(line)) {
        return false;
    }
    while (!secure_is_open(line->session)) {
        ssize_t count = receive(line, bytes, sizeof(bytes));
        if (count <= 0 || !secure_receive(line->session, bytes, (size_t)count, &line->out) ||
            !flush(line)) {
            return false;
        }
    }
    return true;
}

bool line_open(struct line *line)
{
    line->fd = line->fd >= 0 ? line->fd : line_dial(line->server);
    return line->fd >= 0 && (!line->wants_tls || greet(line));
}

bool line_send(struct line *line, const void *data, size_t bytes)
{
    if (!line->wants_tls) {
        return send_all(line, data, bytes);
    }
    return secure_send(line->session, data, bytes, &line->out) && flush(line);
}

/* The replies are read to the end: closing a socket with unread input sends a reset, which may
 * discard what we sent. */
bool line_end(struct line *line)
{
    char ignored[4096];
    ssize_t bytes;

    if (shutdown(line->fd, SHUT_WR) != 0) {
        return false;
    }
    do {
        bytes = receive(line, ignored, sizeof(ignored));
    } while (bytes > 0);
    return bytes == 0;
}
