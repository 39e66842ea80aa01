/* Connections that were refused and may still be sending; see server_linger(). */
#include "detector/server_int.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct straggler {
    struct straggler *next, **link; /* in the server's list while it reads */
    struct server *server;
    uv_poll_t socket;
    uv_timer_t deadline;
    unsigned open; /* handles */
    size_t heard;
    int fd;
};

static void on_closed(uv_handle_t *handle)
{
    struct straggler *straggler = handle->data;

    if (--straggler->open == 0) {
        (void)close(straggler->fd);
        free(straggler);
    }
}

static void end(struct straggler *straggler)
{
    *straggler->link = straggler->next;
    if (straggler->next != NULL) {
        straggler->next->link = straggler->link;
    }
    straggler->server->lingering--;
    uv_close((uv_handle_t *)&straggler->socket, on_closed);
    uv_close((uv_handle_t *)&straggler->deadline, on_closed);
}

static void on_readable(uv_poll_t *socket, int status, int events)
{
    struct straggler *straggler = socket->data;
    char dropped[16384];
    ssize_t bytes;

    (void)events;
    bytes = status < 0 ? -1 : recv(straggler->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
    if (bytes < 0 && status == 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    straggler->heard += bytes > 0 ? (size_t)bytes : 0;
    if (bytes <= 0 || straggler->heard > LINGER_BYTES) {
        end(straggler);
    }
}

static void on_late(uv_timer_t *timer)
{
    end(timer->data);
}

/* Under TLS libwebsockets leaves the shutdown to the close, and this copy keeps it open. */
static void on_turned(uv_timer_t *timer)
{
    struct straggler *straggler = timer->data;

    (void)shutdown(straggler->fd, SHUT_WR);
    if (uv_timer_start(&straggler->deadline, on_late, LINGER_MS, 0) != 0 ||
        uv_poll_start(&straggler->socket, UV_READABLE, on_readable) != 0) {
        end(straggler);
    }
}

void server_linger(struct server *server, int fd)
{
    uv_loop_t *loop = server->config.loop;
    struct straggler *straggler = NULL;

    if (fd < 0) {
        return;
    }
    if (server->lingering < LINGER_MAX && server->has_timers) {
        straggler = calloc(1, sizeof(*straggler));
    }
    if (straggler == NULL || uv_poll_init(loop, &straggler->socket, fd) != 0) {
        free(straggler);
        (void)close(fd);
        return;
    }
    straggler->fd = fd;
    straggler->server = server;
    straggler->open = 2;
    straggler->socket.data = straggler->deadline.data = straggler;
    (void)uv_timer_init(loop, &straggler->deadline); /* cannot fail */
    straggler->next = server->stragglers;
    straggler->link = &server->stragglers;
    if (straggler->next != NULL) {
        straggler->next->link = &straggler->next;
    }
    server->stragglers = straggler;
    server->lingering++;
    (void)uv_timer_start(&straggler->deadline, on_turned, 0, 0); /* cannot fail */
}

void server_linger_end(struct server *server)
{
    while (server->stragglers != NULL) {
        end(server->stragglers);
    }
}
