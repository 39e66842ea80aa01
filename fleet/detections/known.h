/* The keys of the latest detections, in bounded memory. Pure.
 *
 *   young ── full ──▶ old ── forgotten when the next young is full
 *
 * At least the latest KNOWN_KEYS keys are known, at most twice as many. The memory grows with them,
 * to 8 MiB.
 */
#ifndef FLEET_DETECTIONS_KNOWN_H
#define FLEET_DETECTIONS_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KNOWN_KEYS = 1 << 18 };

struct known_table {
    uint64_t *slots;
    size_t capacity; /* a power of two, at least twice `count`; 0: no memory yet */
    size_t count;
};

/* {0} is empty. */
struct known {
    struct known_table young, old;
};

void known_fini(struct known *known);
/* Whether the key is new; then it is known. Out of memory, older ones are forgotten earlier. */
bool known_add(struct known *known, uint64_t key);

#endif
