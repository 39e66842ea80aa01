/* Pings of our own: those of libwebsockets overwrite the payload of a pong that is not written yet.
 *
 * Seconds are counted in looks, not by a clock: a worker that was stopped reads the pongs that came
 * meanwhile before it closes a peer. */
#include "detector/server_int.h"

enum { PING_AFTER_S = 20, PONG_WITHIN_S = 10 };

void server_ping_look(struct server *server, struct peer *peer)
{
    unsigned after_s = server->config.ping_after_s;

    after_s = after_s > 0 ? after_s : PING_AFTER_S;
    peer->quiet_s++;
    if (peer->close_code != 0) {
        return;
    }
    if (peer->quiet_s == after_s) {
        peer->is_ping_due = true;
        lws_callback_on_writable(peer->wsi);
    } else if (peer->quiet_s > after_s + PONG_WITHIN_S) {
        char reason[REASON_MAX + 1];
        (void)snprintf(reason, sizeof(reason), "the peer answers no ping within %d s",
                       PONG_WITHIN_S);
        server_drop(server, peer->number, CLOSE_POLICY, reason);
    }
}

int server_ping_write(struct peer *peer)
{
    unsigned char room[LWS_PRE + 1] = {[LWS_PRE] = '?'}; /* lws does not report an empty pong */

    peer->is_ping_due = false;
    lws_callback_on_writable(peer->wsi); /* for what else there is to write */
    return lws_write(peer->wsi, room + LWS_PRE, 1, LWS_WRITE_PING) < 0 ? -1 : 0;
}
