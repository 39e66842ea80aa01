/* Whether what was written has arrived: the system knows how much of a connection's bytes the other
 * side's system has taken.
 *
 *   write ──▶ ours keeps it ──▶ theirs has it: delivered
 *                  └── the connection ends, or nothing comes back any more: it is not
 *
 * Nobody tells when more was taken, so it is looked for now and then while there are such messages,
 * and before anything that could make a difference.
 */
#include "detector/server_int.h"
#include "detector/tcp_count.h"

#include <stdlib.h>

enum {
    LOOK_MS = 20,
    SAYS_WITHIN_MS = 200, /* a system says so late, and longer ways take their time */
};

/* What is taken, and what was written later than `since`. */
static void give(struct server *server, struct peer *peer, instant since)
{
    uint64_t taken = UINT64_MAX; /* this system does not count */

    if (peer->sent == NULL) {
        return;
    }
    (void)tcp_count_taken(lws_get_socket_fd(peer->wsi), &taken);
    while (peer->sent != NULL &&
           (peer->sent->end <= taken || instant_before(since, peer->sent->written_at))) {
        struct message *message = peer->sent;
        peer->sent = message->next;
        free(message);
        server->config.hooks.delivered(server->config.hooks.userdata, peer->number);
    }
    if (peer->sent == NULL) {
        peer->last_sent = &peer->sent;
    }
}

static void look(struct server *server, struct peer *peer)
{
    give(server, peer, INSTANT_NEVER);
}

void server_receipts_presume(struct server *server, struct peer *peer)
{
    give(server, peer, instant_add(clock_now(), SPAN_MS(-SAYS_WITHIN_MS)));
}

void server_receipts_look(struct server *server)
{
    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        look(server, peer);
    }
}

static void on_due(uv_timer_t *timer)
{
    struct server *server = timer->data;
    const struct peer *peer = server->peers;

    server_receipts_look(server);
    while (peer != NULL && peer->sent == NULL) {
        peer = peer->next;
    }
    if (peer == NULL) {
        (void)uv_timer_stop(timer);
    }
}

void server_receipts_await(struct server *server, struct peer *peer, struct message *message)
{
    message->next = NULL;
    message->end = 0;
    message->written_at = clock_now();
    (void)tcp_count_written(lws_get_socket_fd(peer->wsi), &message->end);
    *peer->last_sent = message;
    peer->last_sent = &message->next;
    look(server, peer);
    if (peer->sent != NULL && !uv_is_active((uv_handle_t *)&server->receiver)) {
        (void)uv_timer_start(&server->receiver, on_due, LOOK_MS, LOOK_MS);
    }
}

void server_receipts_end(struct server *server, struct peer *peer)
{
    look(server, peer);
    while (peer->sent != NULL) {
        struct message *message = peer->sent;
        peer->sent = message->next;
        free(message);
    }
}
