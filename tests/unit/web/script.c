#include "script.h"

#include "cmocka_all.h"
#include "lib/process.h"
#include "web/socket_int.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PACE_MS = 5 };

/* False: the client has hung up. */
static bool hear(struct script *script, int fd)
{
    size_t room = SCRIPT_REQUEST_MAX - 1 - script->request_bytes;
    ssize_t count = room > 0 ? read(fd, script->request + script->request_bytes, room) : 0;

    script->request_bytes += count > 0 ? (size_t)count : 0;
    return count > 0;
}

static bool say(const struct script *script, int fd, const char *bytes, size_t count)
{
    size_t piece = script->piece > 0 ? script->piece : count;

    for (size_t at = 0; at < count; at += piece) {
        size_t part = count - at < piece ? count - at : piece;
        struct pollfd end = {.fd = fd, .events = POLLRDHUP};
        if (script->is_slow && poll(&end, 1, PACE_MS) > 0) {
            return false;
        }
        if (send(fd, bytes + at, part, MSG_NOSIGNAL) != (ssize_t)part) {
            return false;
        }
    }
    return true;
}

/* Puts the answer to the client's key in the place of "%s"; malloc'ed. */
static char *fill_in(const struct script *script, size_t *ret_count)
{
    const char *key = strcasestr(script->request, "sec-websocket-key: ");
    const char *mark = strstr(script->bytes, "%s");
    size_t count = script->count > 0 ? script->count : strlen(script->bytes);
    char *ret = calloc(1, count + WEB_KEY_ROOM), accept[WEB_KEY_ROOM] = "", own[WEB_KEY_ROOM];
    size_t front = mark != NULL ? (size_t)(mark - script->bytes) : count;

    if (key != NULL) {
        (void)snprintf(own, sizeof(own), "%.24s", key + 19);
        web_socket_accept(own, accept);
    }
    memcpy(ret, script->bytes, front);
    *ret_count = count;
    if (mark != NULL) {
        memcpy(ret + front, accept, strlen(accept));
        memcpy(ret + front + strlen(accept), mark + 2, count - front - 2);
        *ret_count = count - 2 + strlen(accept);
    }
    return ret;
}

static void *play(void *userdata)
{
    struct script *script = userdata;
    int fd = accept(script->listener, NULL, NULL);
    const int yes = 1;
    const struct linger at_once = {.l_onoff = 1};
    bool goes_on = true;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    while (strstr(script->request, "\r\n\r\n") == NULL && hear(script, fd)) {
    }
    if (script->bytes != NULL) {
        size_t count;
        char *bytes = fill_in(script, &count);
        goes_on = say(script, fd, bytes, count);
        free(bytes);
    }
    while (script->again != NULL && goes_on) {
        goes_on = say(script, fd, script->again, strlen(script->again));
    }
    while (script->holds && goes_on && hear(script, fd)) {
    }
    if (script->resets) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    (void)close(fd);
    return NULL;
}

void script_start(struct script *script)
{
    script->listener = process_listen(&script->port);
    assert_int_equal(pthread_create(&script->thread, NULL, play, script), 0);
}

void script_join(struct script *script)
{
    assert_int_equal(pthread_join(script->thread, NULL), 0);
    (void)close(script->listener);
}
