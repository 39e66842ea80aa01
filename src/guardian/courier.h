/* Carries a certificate to the peers: connects when there is something to say, and not before.
 *
 * Everything is non-blocking and bounded: each peer is tried a few times with growing pauses. The
 * certificate is in the kernel's hands once sent; it is delivered though the sender exits.
 */
#ifndef GUARDIAN_COURIER_H
#define GUARDIAN_COURIER_H

#include "guardian/certificate.h"
#include "guardian/protocol.h"

#include <stddef.h>

struct courier_peer {
    uint64_t node;
    socklen_t address_bytes;
    struct sockaddr_storage address;
    int fd; /* -1: nothing is under way */
    int tries;
    bool is_done; /* delivered, or given up */
    int64_t retry_at_ns;
};

struct courier {
    struct courier_peer peers[GUARDIAN_PEERS_MAX];
    size_t count;
};

void courier_clear(struct courier *courier);

/* Begins to connect to everybody, the heir first. May be called early, to have the connections
 * ready; what fails now is tried again by courier_deliver. */
void courier_connect(struct courier *courier, uint64_t heir);

/* Sends the certificate to every peer, the heir first; returns when each has it or was given up. */
void courier_deliver(struct courier *courier, const struct certificate *certificate);

#endif
