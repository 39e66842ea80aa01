/* The death certificate: one frame that ends the promises made to a leader.
 *
 * At its start a process draws a secret of 32 random bytes. It sends the secret's SHA-256 to its
 * peers over authenticated connections, and the secret itself to its guardian alone. The guardian
 * reveals the secret once the process is dead. An eavesdropper gains nothing by it: the secret
 * proves only that this incarnation has ended, which is true. So the guardian needs neither key nor
 * TLS.
 *
 *   offset 0   u32 length = 78      bytes of the whole frame
 *          4   u8  version          as in every frame between nodes
 *          5   u8  type = 2
 *          6   u32 cluster          first bytes of SHA-256 of the cluster's name
 *         10   u64 node
 *         18   u64 incarnation
 *         26   u64 heir             the node that should campaign first; 0: none
 *         34   32 bytes secret
 *         66   8 bytes reserved, 0
 *         74   u32 CRC-32C of all bytes before it
 */
#ifndef GUARDIAN_CERTIFICATE_H
#define GUARDIAN_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CERTIFICATE_BYTES = 78, CERTIFICATE_SECRET_BYTES = 32, CERTIFICATE_TYPE = 2 };

struct certificate {
    uint32_t cluster;
    uint64_t node;
    uint64_t incarnation;
    uint64_t heir;
    uint8_t secret[CERTIFICATE_SECRET_BYTES];
};

/* Async-signal-safe: no allocation and no library calls. */
void certificate_encode(uint8_t ret[CERTIFICATE_BYTES], const struct certificate *certificate);

/* False unless the data is exactly one certificate with a valid checksum. */
bool certificate_decode(struct certificate *ret, const void *data, size_t bytes);

#endif
