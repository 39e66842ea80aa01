#include "net/control.h"

#include "base/buffer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int open_socket(const char *path, struct baton_error *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        return error_set(reterr, BATON_EINVAL, "%s: too long for a Unix socket", path);
    }
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        return fd;
    }
    int code = error_set(reterr, errno == EACCES ? BATON_EAUTH : BATON_EUNAVAILABLE,
                         "%s: %s; is the node running, and is this its data directory?", path,
                         strerror(errno));
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

static int send_request(int fd, const json_t *request, struct baton_error *reterr)
{
    char *text = json_dumps(request, JSON_COMPACT);
    size_t bytes = text ? strlen(text) : 0;
    if (!text) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    text[bytes] = '\n'; /* in the place of the NUL */
    ssize_t sent = send(fd, text, bytes + 1, MSG_NOSIGNAL);
    free(text);
    return sent == (ssize_t)bytes + 1
               ? 0
               : error_set(reterr, BATON_EUNAVAILABLE,
                           "the node closed the connection before the request; is it ending?");
}

static int wait_readable(int fd, instant deadline, struct baton_error *reterr)
{
    for (;;) {
        span left = instant_since(deadline, clock_now());
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        int wait_ms = left.ns > SPAN_S(1000000).ns ? -1 : (int)(left.ns / 1000000) + 1;
        if (left.ns <= 0) {
            return error_set(reterr, BATON_ETIMEDOUT, "the node has not answered in time");
        }
        int ready = poll(&wanted, 1, wait_ms);
        if (ready > 0) {
            return 0;
        }
        if (ready < 0 && errno != EINTR) {
            return error_set(reterr, BATON_EIO, "poll: %s", strerror(errno));
        }
    }
}

/* Reads the next line to the beginning of `line`; later bytes follow it there. */
static int read_line(int fd, struct buffer *line, instant deadline, size_t *ret_bytes,
                     struct baton_error *reterr)
{
    for (;;) {
        const uint8_t *end = line->bytes ? memchr(line->data, '\n', line->bytes) : NULL;
        if (end) {
            *ret_bytes = (size_t)(end - line->data) + 1;
            return 0;
        }
        int code = wait_readable(fd, deadline, reterr);
        uint8_t *room = code ? NULL : buffer_reserve(line, 16384);
        if (code || !room) {
            return code ? code : error_set(reterr, BATON_ETOOBIG, "the answer is too large");
        }
        ssize_t count = read(fd, room, 16384);
        if (count <= 0) {
            return error_set(
                reterr, BATON_ECLOSED,
                "the node closed the connection; the request may have been carried out");
        }
        line->bytes += (size_t)count;
    }
}

static int next_object(int fd, struct buffer *line, instant deadline, json_t **ret,
                       struct baton_error *reterr)
{
    size_t bytes = 0;
    int code = read_line(fd, line, deadline, &bytes, reterr);
    if (code) {
        return code;
    }
    json_t *json = json_loadb((const char *)line->data, bytes, JSON_REJECT_DUPLICATES, NULL);
    buffer_consume(line, bytes);
    if (!json_is_object(json)) {
        json_decref(json);
        return error_set(reterr, BATON_EPROTO, "the answer is not a JSON object");
    }
    *ret = json;
    return 0;
}

int control_call(const char *path, const json_t *request, span timeout, json_t **ret_answer,
                 struct baton_error *reterr)
{
    struct buffer line;
    int fd = open_socket(path, reterr);
    if (fd < 0) {
        return fd;
    }
    buffer_init(&line, CONTROL_ANSWER_MAX);
    int code = send_request(fd, request, reterr);
    if (!code) {
        code = next_object(fd, &line, instant_add(clock_now(), timeout), ret_answer, reterr);
    }
    buffer_fini(&line);
    close(fd);
    return code;
}

int control_follow(const char *path, const json_t *request, span timeout,
                   bool (*each)(void *userdata, const json_t *line), void *userdata,
                   struct baton_error *reterr)
{
    struct buffer line;
    bool goes_on = true;
    int fd = open_socket(path, reterr);
    if (fd < 0) {
        return fd;
    }
    buffer_init(&line, CONTROL_ANSWER_MAX);
    int code = send_request(fd, request, reterr);
    instant deadline = timeout.ns > 0 ? instant_add(clock_now(), timeout) : INSTANT_NEVER;
    while (!code && goes_on) {
        json_t *json = NULL;
        code = next_object(fd, &line, deadline, &json, reterr);
        if (!code) {
            goes_on = each(userdata, json);
        }
        json_decref(json);
    }
    buffer_fini(&line);
    close(fd);
    return code;
}
