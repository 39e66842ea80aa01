#include "cli/delay.h"

#include <stdlib.h>
#include <string.h>

enum { MILLION = 1000000 };

void delay_init(struct delay *delay, const struct delay_settings *settings)
{
    *delay = (struct delay){.settings = *settings, .random = settings->seed};
}

void delay_fini(struct delay *delay)
{
    while (delay->count > 0) {
        free(delay->heap[--delay->count]);
    }
}

/* xorshift64* */
static uint64_t draw(struct delay *delay, uint64_t below)
{
    delay->random ^= delay->random >> 12;
    delay->random ^= delay->random << 25;
    delay->random ^= delay->random >> 27;
    return below ? (delay->random * 2685821657736338717u >> 11) % below : 0;
}

static bool is_before(const struct delayed *a, const struct delayed *b)
{
    return a->due.ns < b->due.ns || (a->due.ns == b->due.ns && a->number < b->number);
}

static void swap(struct delayed **a, struct delayed **b)
{
    struct delayed *kept = *a;
    *a = *b;
    *b = kept;
}

static void push(struct delay *delay, struct delayed *packet)
{
    size_t at = delay->count++;

    delay->heap[at] = packet;
    while (at > 0 && is_before(delay->heap[at], delay->heap[(at - 1) / 2])) {
        swap(&delay->heap[at], &delay->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

void delay_put(struct delay *delay, unsigned from, unsigned to, const void *packet, size_t bytes,
               instant now)
{
    const struct delay_settings *settings = &delay->settings;
    int64_t way_ns = settings->rtt.ns / 2 - settings->jitter.ns / 2 +
                     (int64_t)draw(delay, (uint64_t)settings->jitter.ns + 1);
    instant *last = &delay->last_due[from][to];
    bool is_lost = draw(delay, MILLION) < settings->loss_ppm;
    struct delayed *copy =
        is_lost || delay->count == DELAY_PACKETS_MAX ? NULL : malloc(sizeof(*copy) + bytes);

    delay->taken++;
    if (!copy) {
        delay->lost++;
        return;
    }
    *last = instant_max(*last, instant_add(now, SPAN_NS(way_ns > 0 ? way_ns : 0)));
    copy->due = *last;
    copy->number = delay->taken;
    copy->to = to;
    copy->bytes = bytes;
    memcpy(copy->data, packet, bytes);
    push(delay, copy);
}

instant delay_next(const struct delay *delay)
{
    return delay->count > 0 ? delay->heap[0]->due : INSTANT_NEVER;
}

struct delayed *delay_take(struct delay *delay, instant now)
{
    struct delayed *first = delay->count > 0 ? delay->heap[0] : NULL;
    size_t at = 0;

    if (!first || instant_before(now, first->due)) {
        return NULL;
    }
    delay->heap[0] = delay->heap[--delay->count];
    for (size_t child = 1; child < delay->count; child = 2 * at + 1) {
        if (child + 1 < delay->count && is_before(delay->heap[child + 1], delay->heap[child])) {
            child++;
        }
        if (!is_before(delay->heap[child], delay->heap[at])) {
            break;
        }
        swap(&delay->heap[child], &delay->heap[at]);
        at = child;
    }
    return first;
}
