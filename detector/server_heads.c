/* Connections that have yet to say what they want, in the order in which they began to.
 *
 * Whoever takes long libwebsockets hangs up on. When very many do, the oldest go at once: so those
 * who say it all at a time always get through. */
#include "detector/server_int.h"

#include <stdlib.h>
#include <sys/ioctl.h>

struct head {
    struct server *server;
    struct lws *wsi;
    struct head *older, *newer;
    bool is_listed;
    struct incoming incoming;
    uint64_t given; /* requests */
    int fd;
};

static void put(struct head *head)
{
    struct server *server = head->server;

    if (head->is_listed) {
        return;
    }
    head->is_listed = true;
    head->newer = NULL;
    head->older = server->newest_head;
    if (head->older != NULL) {
        head->older->newer = head;
    } else {
        server->oldest_head = head;
    }
    server->newest_head = head;
    if (++server->heads > HEADS_MAX) {
        server_sweep_soon(server);
    }
}

static void take(struct head *head)
{
    struct server *server = head->server;

    if (!head->is_listed) {
        return;
    }
    head->is_listed = false;
    if (head->older != NULL) {
        head->older->newer = head->newer;
    } else {
        server->oldest_head = head->newer;
    }
    if (head->newer != NULL) {
        head->newer->older = head->older;
    } else {
        server->newest_head = head->older;
    }
    server->heads--;
}

int server_head_new(struct server *server, struct lws *wsi)
{
    struct head *head = calloc(1, sizeof(*head));

    if (head == NULL) {
        return -1;
    }
    head->server = server;
    head->wsi = wsi;
    head->fd = lws_get_socket_fd(wsi);
    if (!server_tap_begin(head->fd, &head->incoming)) {
        free(head);
        return -1;
    }
    lws_set_opaque_user_data(wsi, head);
    put(head);
    return 0;
}

void server_head_begins(struct lws *wsi)
{
    struct head *head = lws_get_opaque_user_data(wsi);

    if (head != NULL) {
        put(head);
    }
}

void server_head_ends(struct lws *wsi)
{
    struct head *head = lws_get_opaque_user_data(wsi);

    if (head != NULL) {
        head->given++;
        take(head);
    }
}

const char *server_head_fault(struct lws *wsi, bool is_upgrade)
{
    const struct head *head = lws_get_opaque_user_data(wsi);

    return head != NULL ? request_lines_fault(&head->incoming.lines, head->given + 1, is_upgrade)
                        : NULL;
}

const struct frame_heads *server_head_frames(struct lws *wsi)
{
    const struct head *head = lws_get_opaque_user_data(wsi);

    return head != NULL ? &head->incoming.frames : NULL;
}

void server_head_free(struct lws *wsi)
{
    struct head *head = lws_get_opaque_user_data(wsi);

    if (head != NULL) {
        take(head);
        server_tap_end(head->fd, &head->incoming);
        lws_set_opaque_user_data(wsi, NULL);
        free(head);
    }
}

/* libwebsockets accepts all who wait before it reads from any of them. */
static bool is_silent(const struct head *head)
{
    int unread = 0;

    return ioctl(lws_get_socket_fd(head->wsi), FIONREAD, &unread) != 0 || unread == 0;
}

void server_heads_sweep(struct server *server)
{
    struct head *head = server->oldest_head;

    while (head != NULL && server->heads > HEADS_MAX) {
        struct head *newer = head->newer;

        if (is_silent(head)) {
            take(head);
            lws_set_timeout(head->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_SYNC);
        }
        head = newer;
    }
}
