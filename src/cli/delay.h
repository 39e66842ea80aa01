/* A network that delays and loses packets: a pure queue, for bench_network.c.
 *
 * Each packet is due after half of the round trip, give or take half of the jitter; packets from
 * one host to another keep their order. The draws follow from the seed.
 */
#ifndef CLI_DELAY_H
#define CLI_DELAY_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DELAY_HOSTS_MAX = 16, DELAY_PACKETS_MAX = 16384 };

struct delay_settings {
    span rtt, jitter;
    uint32_t loss_ppm; /* of 1,000,000 packets */
    uint64_t seed;     /* not 0 */
};

struct delayed {
    instant due;
    uint64_t number;
    unsigned to;
    size_t bytes;
    uint8_t data[];
};

struct delay {
    struct delay_settings settings;
    uint64_t random;
    uint64_t taken, lost;
    instant last_due[DELAY_HOSTS_MAX][DELAY_HOSTS_MAX];
    struct delayed *heap[DELAY_PACKETS_MAX]; /* the first is due first */
    size_t count;
};

void delay_init(struct delay *delay, const struct delay_settings *settings);
void delay_fini(struct delay *delay);
/* Copies the packet, or loses it: by the draw, or for lack of room or memory. */
void delay_put(struct delay *delay, unsigned from, unsigned to, const void *packet, size_t bytes,
               instant now);
instant delay_next(const struct delay *delay); /* INSTANT_NEVER: nothing is on its way */
/* The packet that is due, which the caller frees; NULL: none is. */
struct delayed *delay_take(struct delay *delay, instant now);

#endif
