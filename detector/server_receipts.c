/* Reports which messages have arrived: the system knows how many bytes of a connection the peer's
 * system has acknowledged.
 *
 *   write ──▶ our system keeps it ──▶ the peer's system has it: delivered
 *                  └── the connection ends, or no acknowledgement comes: not delivered
 *
 * The system sends no event for an acknowledgement. So a timer reads the count while messages are
 * open, and it is read before each step that depends on it.
 */
#include "detector/server_int.h"
#include "detector/tcp_count.h"

#include <stdlib.h>

enum {
    LOOK_MS = 20,
    SAYS_WITHIN_MS = 200, /* the peer's system acknowledges late, and long paths take time */
};

static void take_first(struct peer *peer)
{
    struct receipt *receipt = peer->first;

    peer->first = receipt->next;
    if (peer->first == NULL) {
        peer->last = &peer->first;
    }
    free(receipt);
}

/* Reports as delivered what has arrived, and what was sent later than `since`. */
static void give(struct server *server, struct peer *peer, instant since)
{
    uint64_t taken = UINT64_MAX; /* for a system that does not count */

    if (peer->first == NULL) {
        return;
    }
    (void)tcp_count_taken(web_socket_fd(peer->socket), &taken);
    while (peer->first != NULL &&
           (peer->first->end <= taken || instant_before(since, peer->first->sent_at))) {
        take_first(peer);
        server->config.hooks.delivered(server->config.hooks.userdata, peer->number);
    }
}

void server_receipts_presume(struct server *server, struct peer *peer)
{
    give(server, peer, instant_add(clock_now(), SPAN_MS(-SAYS_WITHIN_MS)));
}

void server_receipts_look(struct server *server)
{
    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        give(server, peer, INSTANT_NEVER);
    }
}

static void on_due(uv_timer_t *timer)
{
    struct server *server = timer->data;
    const struct peer *peer = server->peers;

    server_receipts_look(server);
    while (peer != NULL && peer->first == NULL) {
        peer = peer->next;
    }
    if (peer == NULL) {
        (void)uv_timer_stop(timer);
    }
}

bool server_receipts_await(struct server *server, struct peer *peer)
{
    struct receipt *receipt = calloc(1, sizeof(*receipt));
    int fd = web_socket_fd(peer->socket);

    if (receipt == NULL || fd < 0) {
        free(receipt);
        return false;
    }
    if (tcp_count_written(fd, &receipt->end)) {
        receipt->end += web_socket_backlog(peer->socket);
    }
    receipt->sent_at = clock_now();
    *peer->last = receipt;
    peer->last = &receipt->next;
    if (!uv_is_active((uv_handle_t *)&server->receiver)) {
        (void)uv_timer_start(&server->receiver, on_due, LOOK_MS, LOOK_MS);
    }
    return true;
}

void server_receipts_end(struct server *server, struct peer *peer)
{
    give(server, peer, INSTANT_NEVER);
    while (peer->first != NULL) {
        take_first(peer);
    }
}
