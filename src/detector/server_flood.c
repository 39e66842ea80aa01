/* What a WebSocket peer sends besides messages, which libwebsockets keeps to itself.
 *
 * The system counts the bytes that came over a connection. Those that are none of a data frame are
 * of control frames: in a second there may be only so many of them. And a client that masks, as it
 * must, has sent at least four bytes more for each frame than one that does not. Under TLS, which
 * adds bytes of its own, only the former is looked at.
 */
#include "detector/server_int.h"
#include "detector/tcp_count.h"

enum {
    LOOK_MS = 1000,
    OTHER_MAX = 256 << 10, /* bytes of a second; of a message 64 KiB may not be ours yet */
    FRAGMENTS_MAX = 4096,  /* of a message */
    TLS_OVERHEAD = 64,     /* bytes of a record that has one frame, and more */
    SHORT_LENGTH = 125,
    MIDDLE_LENGTH = 65535
};

void server_flood_begin(struct peer *peer)
{
    struct traffic *traffic = &peer->traffic;

    traffic->is_counted = tcp_count_read(lws_get_socket_fd(peer->wsi), &traffic->before);
}

/* The least that a masked frame takes. */
static uint64_t frame_bytes(uint64_t payload)
{
    return 2u + (payload > MIDDLE_LENGTH ? 8u : payload > SHORT_LENGTH ? 2u : 0u) + 4u + payload;
}

static bool is_unmasked(const struct peer *peer)
{
    const struct traffic *traffic = &peer->traffic;
    uint64_t came;

    return traffic->is_counted && !lws_is_ssl(peer->wsi) &&
           tcp_count_come(lws_get_socket_fd(peer->wsi), &came) &&
           came < traffic->before + traffic->framed;
}

int server_flood_receive(struct peer *peer, size_t bytes, const char **reason)
{
    struct traffic *traffic = &peer->traffic;

    traffic->payload += bytes;
    if (lws_remaining_packet_payload(peer->wsi) > 0) {
        return 0;
    }
    traffic->framed += frame_bytes(traffic->payload);
    traffic->frames++;
    traffic->payload = 0;
    if (is_unmasked(peer)) {
        *reason = "frames of a client must be masked";
        return CLOSE_PROTOCOL_ERROR;
    }
    traffic->fragments = lws_is_final_fragment(peer->wsi) ? 0 : traffic->fragments + 1;
    if (traffic->fragments >= FRAGMENTS_MAX) {
        *reason = "a message has too many fragments";
        return CLOSE_POLICY;
    }
    return 0;
}

/* Bytes of control frames so far, or fewer. */
static uint64_t other_bytes(const struct peer *peer)
{
    const struct traffic *traffic = &peer->traffic;
    uint64_t known = traffic->before + traffic->framed + traffic->payload;
    uint64_t came;

    known += lws_is_ssl(peer->wsi) ? traffic->frames * TLS_OVERHEAD : 0;
    return tcp_count_read(lws_get_socket_fd(peer->wsi), &came) && came > known ? came - known : 0;
}

static void look(uv_timer_t *timer)
{
    static const char flood[] = "too many control frames";
    struct server *server = timer->data;

    for (struct peer *peer = server->peers; peer != NULL; peer = peer->next) {
        struct traffic *traffic = &peer->traffic;
        uint64_t other = traffic->is_counted ? other_bytes(peer) : 0;

        if (peer->close_code == 0 && other > traffic->other + OTHER_MAX) {
            server->config.hooks.spoiled(server->config.hooks.userdata, peer->number, flood);
            server_drop(server, peer->number, CLOSE_POLICY, flood);
        }
        traffic->other = other > traffic->other ? other : traffic->other;
    }
}

void server_flood_watch(struct server *server)
{
    (void)uv_timer_start(&server->looker, look, LOOK_MS, LOOK_MS);
}
