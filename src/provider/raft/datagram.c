/* Death certificates that come as datagrams, at the number of the node's TCP port.
 *
 *   guardian ──datagram──────────────────────▶ node        half a round trip
 *   guardian ──SYN──▶ ◀──SYN+ACK── ──frame───▶ node        one and a half, and surely
 *
 * The guardian sends a certificate both ways. A datagram needs no connection, so it comes a round
 * trip sooner, and a packet that is lost on one of the two is not waited for. A certificate proves
 * itself, may come twice, and gets no reply, so nothing else is taken from a datagram.
 */
#include "provider/raft/node.h"

static void give_space(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct node *node = handle->data;
    (void)suggested;

    *ret = uv_buf_init((char *)node->datagram, sizeof(node->datagram));
}

static void on_datagram(uv_udp_t *socket, ssize_t bytes, const uv_buf_t *data,
                        const struct sockaddr *from, unsigned flags)
{
    struct node *node = socket->data;

    if (bytes <= 0 || !from || node->is_isolated || node->is_closing) {
        return;
    }
    if (bytes == CERTIFICATE_BYTES && (flags & UV_UDP_PARTIAL) == 0) {
        proof_on_certificate(node, data->base);
    } else {
        node->counters.refused_certificate++;
    }
}

void datagram_listen(struct node *node, const struct sockaddr *address)
{
    int result;

    if (uv_udp_init(node->loop, &node->datagrams) != 0) {
        return;
    }
    node->datagrams.data = node;
    node->open_handles++;
    result = uv_udp_bind(&node->datagrams, address, 0);
    if (result == 0) {
        result = uv_udp_recv_start(&node->datagrams, give_space, on_datagram);
    }
    if (result != 0) {
        log_warning(node->logger, "no-datagrams", LOG_STR("reason", uv_strerror(result)),
                    LOG_STR("text", "a certificate comes by TCP all the same, a round trip later"));
    }
}
