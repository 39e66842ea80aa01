/* Sends the death certificate to the peers, and connects only then.
 *
 * It goes to each peer as a datagram first, which needs no connection, and then on a connection,
 * which is sure to deliver it.
 *
 * A peer that does not answer a dial at once is dialled a second time beside the first: the kernel
 * would repeat a lost first packet after a whole second. Whichever connection is there first is
 * used.
 *
 * Everything is non-blocking and bounded: each peer is tried a few times with growing pauses. Once
 * sent, the certificate is with the kernel, which delivers it even if this process exits.
 */
#ifndef GUARDIAN_SENDER_H
#define GUARDIAN_SENDER_H

#include "guardian/certificate.h"
#include "guardian/protocol.h"

#include <stddef.h>

struct sender_peer {
    uint64_t node;
    socklen_t address_bytes;
    struct sockaddr_storage address;
    int fd;    /* -1: no connection */
    int spare; /* the second one; -1: none */
    int tries;
    bool is_done; /* sent, or given up */
    int64_t retry_at_ns, spare_at_ns;
};

struct sender {
    struct sender_peer peers[GUARDIAN_PEERS_MAX];
    size_t count;
};

void sender_clear(struct sender *sender);

/* Begins to connect to every peer, the heir first. May be called early, so that the connections are
 * ready; sender_deliver() tries failed ones again. */
void sender_connect(struct sender *sender, uint64_t heir);

/* Sends the certificate to every peer, the heir first; returns when each peer is done. */
void sender_deliver(struct sender *sender, const struct certificate *certificate);

#endif
