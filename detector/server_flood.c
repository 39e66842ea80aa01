/* What a WebSocket peer sends besides messages: see frame_heads.h.
 *
 * Of control frames there may be only so many bytes in a second. What is wrong with a data frame is
 * told when it comes, with another one within a second. */
#include "detector/server_int.h"

enum {
    LOOK_MS = 1000,
    CONTROL_MAX = 256 << 10, /* bytes in a second */
    FRAGMENTS_MAX = 4096,    /* of a message */
};

int server_flood_receive(struct peer *peer, const char **reason)
{
    const struct frame_heads *frames = server_head_frames(peer->wsi);

    if (frames != NULL && frames->fault != NULL) {
        *reason = frames->fault;
        return CLOSE_PROTOCOL_ERROR;
    }
    if (lws_remaining_packet_payload(peer->wsi) > 0) {
        return 0;
    }
    peer->fragments = lws_is_final_fragment(peer->wsi) ? 0 : peer->fragments + 1;
    if (peer->fragments >= FRAGMENTS_MAX) {
        *reason = "a message has too many fragments";
        return CLOSE_POLICY;
    }
    return 0;
}

static void refuse(struct server *server, const struct peer *peer, int code, const char *reason)
{
    server->config.hooks.spoiled(server->config.hooks.userdata, peer->number, reason);
    server_drop(server, peer->number, code, reason);
}

static void look_at(struct server *server, struct peer *peer, const struct frame_heads *frames)
{
    uint64_t since = frames->control_bytes - peer->control_bytes;

    peer->control_bytes = frames->control_bytes;
    if (peer->close_code != 0) {
        return;
    }
    if (frames->fault != NULL) {
        refuse(server, peer, CLOSE_PROTOCOL_ERROR, frames->fault);
    } else if (since > CONTROL_MAX) {
        refuse(server, peer, CLOSE_POLICY, "too many control frames");
    }
}

static void look(uv_timer_t *timer)
{
    struct server *server = timer->data;

    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        const struct frame_heads *frames = server_head_frames(peer->wsi);

        if (frames != NULL) {
            look_at(server, peer, frames);
        }
        server_ping_look(server, peer);
    }
}

void server_flood_watch(struct server *server)
{
    (void)uv_timer_start(&server->looker, look, LOOK_MS, LOOK_MS);
}
