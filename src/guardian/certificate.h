/* The death certificate: one frame that ends a leader's promises, and what makes it true.
 *
 * At its start a process makes a secret of 32 random bytes, tells its peers the secret's SHA-256
 * over the authenticated connection, and gives the secret itself to its guardian alone. The
 * guardian reveals it when the process is dead. Whoever sees it then learns nothing of use: it says
 * only that this incarnation is gone, which is true. So the guardian needs no key and no TLS.
 *
 *   offset 0   u32 length = 78      bytes of the whole frame
 *          4   u8  version = 3       as of every frame between the nodes
 *          5   u8  type = 2
 *          6   u32 cluster          first bytes of SHA-256 of the cluster's name
 *         10   u64 node
 *         18   u64 incarnation
 *         26   u64 heir             who should campaign first; 0: nobody in particular
 *         34   32 bytes secret
 *         66   8 bytes reserved, 0
 *         74   u32 CRC-32C of all before it
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

/* No allocation, no library: the guardian and signal handlers may call it. */
void certificate_encode(uint8_t ret[CERTIFICATE_BYTES], const struct certificate *certificate);

/* False unless `bytes` bytes are exactly one certificate, checksum and all. */
bool certificate_decode(struct certificate *ret, const void *data, size_t bytes);

#endif
