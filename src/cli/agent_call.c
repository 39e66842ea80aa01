#include "cli/agent_call.h"

#include "net/local.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int dial(const char *path, struct baton_error *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd;

    if (strlen(path) >= sizeof(address.sun_path)) {
        return error_set(reterr, BATON_EINVAL,
                         "socket %s: a Unix socket's path has at most %zu bytes", path,
                         sizeof(address.sun_path) - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        int errnum = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return error_set(reterr, errnum == EACCES ? BATON_EAUTH : BATON_EUNAVAILABLE,
                         "socket %s: %s; `baton agent` serves it, and --socket names another one",
                         path, strerror(errnum));
    }
    return fd;
}

/* Until a newline; false: *ret_code says why. */
static bool read_line(int fd, instant limit, char *line, size_t room, int *ret_code)
{
    size_t bytes = 0;

    while (bytes < room - 1) {
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        int64_t left_ms = instant_since(limit, clock_now()).ns / 1000000;
        ssize_t got;
        if (left_ms <= 0 || poll(&readable, 1, left_ms > 60000 ? 60000 : (int)left_ms) <= 0) {
            if (left_ms <= 0) {
                *ret_code = BATON_ETIMEDOUT;
                return false;
            }
            continue;
        }
        got = read(fd, line + bytes, room - 1 - bytes);
        if (got <= 0) {
            *ret_code = BATON_EPROTO;
            return false;
        }
        bytes += (size_t)got;
        line[bytes] = '\0';
        if (memchr(line + bytes - (size_t)got, '\n', (size_t)got)) {
            return true;
        }
    }
    *ret_code = BATON_ETOOBIG;
    return false;
}

static int exchange(json_t **ret, int fd, const json_t *request, instant limit,
                    struct baton_error *reterr)
{
    char *text = json_dumps(request, JSON_COMPACT);
    char *line = malloc(LOCAL_LINE_MAX + 2);
    int code = text && line ? BATON_OK : BATON_ENOMEM;

    if (code == BATON_OK &&
        (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 || send(fd, "\n", 1, MSG_NOSIGNAL) < 0)) {
        code = BATON_EUNAVAILABLE;
    }
    if (code == BATON_OK && read_line(fd, limit, line, LOCAL_LINE_MAX + 2, &code)) {
        *ret = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        code = json_is_object(*ret) ? BATON_OK : BATON_EPROTO;
    }
    free(text);
    free(line);
    return code == BATON_OK ? code : error_set(reterr, code, "the agent: %s", baton_strerror(code));
}

int agent_call(json_t **ret, const char *path, json_t *request, span timeout,
               struct baton_error *reterr)
{
    int fd = dial(path, reterr), code = fd;

    *ret = NULL;
    if (fd >= 0) {
        (void)json_object_set_new(request, "id", json_integer(1));
        code = exchange(ret, fd, request, instant_add(clock_now(), timeout), reterr);
        (void)close(fd);
    }
    if (code == BATON_OK && !json_is_true(json_object_get(*ret, "ok"))) {
        const char *name = json_string_value(json_object_get(*ret, "code"));
        const char *text = json_string_value(json_object_get(*ret, "error"));
        code = error_set(reterr, local_code(name ? name : ""), "%s", text ? text : "refused");
    }
    if (code != BATON_OK) {
        json_decref(*ret);
        *ret = NULL;
    }
    json_decref(request);
    return code;
}
