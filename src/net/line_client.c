#include "net/line_client.h"

#include "base/json_load.h"
#include "base/json_text.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ_BYTES = 16384 };

/* ---- Connecting ------------------------------------------------------------------------------ */

/* What takes longer fails with EAGAIN. */
static void limit_sending(int fd, span timeout)
{
    const struct timeval most = {.tv_sec = timeout.ns / 1000000000,
                                 .tv_usec = timeout.ns % 1000000000 / 1000};

    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

static int refuse(const struct line_server *server, const char *path, int errnum,
                  struct baton_error *reterr)
{
    if (errnum == EAGAIN) {
        return error_set(reterr, BATON_ETIMEDOUT, "%s: the %s does not answer", path, server->who);
    }
    if (errnum == EACCES) {
        return error_set(reterr, BATON_EAUTH,
                         "%s: %s; its user, its group (an agent's --socket-group) and root may "
                         "connect",
                         path, strerror(errnum));
    }
    return error_set(reterr, BATON_EUNAVAILABLE, "%s: %s; %s", path, strerror(errnum),
                     server->hint);
}

int line_client_open(struct line_client *ret, const struct line_server *server, const char *path,
                     size_t line_max, span timeout, struct baton_error *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd, errnum;

    if (strlen(path) >= sizeof(address.sun_path)) {
        return error_set(reterr, BATON_EINVAL, "%s: too long for a Unix socket", path);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        limit_sending(fd, timeout);
    }
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        errnum = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return refuse(server, path, errnum, reterr);
    }
    *ret = (struct line_client){.server = server, .fd = fd};
    buffer_init(&ret->input, line_max);
    return BATON_OK;
}

void line_client_close(struct line_client *client)
{
    buffer_fini(&client->input);
    (void)close(client->fd);
}

/* ---- Sending --------------------------------------------------------------------------------- */

int line_client_send(struct line_client *client, const json_t *message, struct baton_error *reterr)
{
    char *text = json_text(message, JSON_COMPACT);
    size_t bytes = text ? strlen(text) + 1 : 0, sent = 0;
    int errnum = 0;

    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    text[bytes - 1] = '\n'; /* in the place of the NUL */
    while (sent < bytes && errnum == 0) {
        ssize_t count = send(client->fd, text + sent, bytes - sent, MSG_NOSIGNAL);
        sent += count > 0 ? (size_t)count : 0;
        errnum = count < 0 && errno != EINTR ? errno : 0;
    }
    free(text);
    if (errnum == EAGAIN) {
        return error_set(reterr, BATON_ETIMEDOUT, "the %s has not taken the request in time",
                         client->server->who);
    }
    return errnum == 0 ? BATON_OK
                       : error_set(reterr, BATON_ECLOSED,
                                   "the %s closed the connection before the request; is it ending?",
                                   client->server->who);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int wait_readable(const struct line_client *client, instant deadline,
                         struct baton_error *reterr)
{
    for (;;) {
        span left = instant_since(deadline, clock_now());
        struct pollfd wanted = {.fd = client->fd, .events = POLLIN};
        int wait_ms = left.ns > SPAN_S(1000000).ns ? -1 : (int)(left.ns / 1000000) + 1;
        if (left.ns <= 0) {
            return error_set(reterr, BATON_ETIMEDOUT, "the %s has not answered in time",
                             client->server->who);
        }
        int ready = poll(&wanted, 1, wait_ms);
        if (ready > 0) {
            return BATON_OK;
        }
        if (ready < 0 && errno != EINTR) {
            return error_set(reterr, BATON_EIO, "poll: %s", strerror(errno));
        }
    }
}

static int read_more(struct line_client *client, instant deadline, struct baton_error *reterr)
{
    int code = wait_readable(client, deadline, reterr);
    uint8_t *room = code ? NULL : buffer_reserve(&client->input, READ_BYTES);

    if (code || !room) {
        return code ? code : error_set(reterr, BATON_ETOOBIG, "the answer is too large");
    }
    ssize_t count = read(client->fd, room, READ_BYTES);
    if (count <= 0) {
        return error_set(reterr, BATON_ECLOSED,
                         "the %s closed the connection; the request may have been carried out",
                         client->server->who);
    }
    client->input.bytes += (size_t)count;
    return BATON_OK;
}

int line_client_next(struct line_client *client, instant deadline, json_t **ret,
                     struct baton_error *reterr)
{
    const uint8_t *end = NULL;
    size_t seen = 0, bytes;

    while (client->input.bytes == seen ||
           !(end = memchr(client->input.data + seen, '\n', client->input.bytes - seen))) {
        seen = client->input.bytes;
        int code = read_more(client, deadline, reterr);
        if (code) {
            return code;
        }
    }
    bytes = (size_t)(end - client->input.data) + 1;
    json_t *json =
        json_load_bytes((const char *)client->input.data, bytes, JSON_REJECT_DUPLICATES, NULL);
    buffer_consume(&client->input, bytes);
    if (!json_is_object(json)) {
        json_decref(json);
        return error_set(reterr, BATON_EPROTO, "the answer is not a JSON object");
    }
    *ret = json;
    return BATON_OK;
}
