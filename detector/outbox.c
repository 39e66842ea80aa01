#include "detector/outbox.h"

#include "base/error.h"

#include <assert.h>
#include <stdlib.h>

int outbox_init(struct outbox *outbox, size_t waiting_max)
{
    *outbox = (struct outbox){.waiting_max = waiting_max, .room = waiting_max + OUTBOX_HANDED_MAX};
    outbox->ring = calloc(outbox->room, sizeof(*outbox->ring));
    return outbox->ring != NULL ? 0 : BATON_ENOMEM;
}

static struct letter *at(const struct outbox *outbox, size_t index)
{
    assert(outbox->room > 0);
    return &outbox->ring[(outbox->first + index) % outbox->room];
}

/* The oldest of all. */
static void drop_first(struct outbox *outbox)
{
    detection_fini(&at(outbox, 0)->detection);
    outbox->first = (outbox->first + 1) % outbox->room;
}

void outbox_fini(struct outbox *outbox)
{
    for (size_t i = outbox->handed + outbox->waiting; i > 0; i--) {
        drop_first(outbox);
    }
    free(outbox->ring);
    *outbox = (struct outbox){0};
}

/* The oldest of those that wait; those that were handed over move into its place. */
static void drop_oldest_waiting(struct outbox *outbox)
{
    detection_fini(&at(outbox, outbox->handed)->detection);
    for (size_t i = outbox->handed; i > 0; i--) {
        *at(outbox, i) = *at(outbox, i - 1);
    }
    outbox->first = (outbox->first + 1) % outbox->room;
    outbox->waiting--;
}

int outbox_set_max(struct outbox *outbox, size_t waiting_max, size_t *ret_dropped)
{
    size_t room = waiting_max + OUTBOX_HANDED_MAX;
    struct letter *ring = calloc(room, sizeof(*ring));

    if (ring == NULL) {
        return BATON_ENOMEM;
    }
    for (*ret_dropped = 0; outbox->waiting > waiting_max; ++*ret_dropped) {
        drop_oldest_waiting(outbox);
    }
    for (size_t i = 0; i < outbox->handed + outbox->waiting; i++) {
        ring[i] = *at(outbox, i);
    }
    free(outbox->ring);
    outbox->ring = ring;
    outbox->room = room;
    outbox->waiting_max = waiting_max;
    outbox->first = 0;
    return 0;
}

size_t outbox_put(struct outbox *outbox, struct detection *detection)
{
    size_t dropped = outbox->waiting == outbox->waiting_max;

    if (dropped > 0) {
        drop_oldest_waiting(outbox);
    }
    *at(outbox, outbox->handed + outbox->waiting) = (struct letter){.detection = *detection};
    outbox->waiting++;
    *detection = (struct detection){0};
    return dropped;
}

const struct detection *outbox_next(const struct outbox *outbox)
{
    if (outbox->waiting == 0 || outbox->handed == OUTBOX_HANDED_MAX) {
        return NULL;
    }
    return &at(outbox, outbox->handed)->detection;
}

void outbox_hand_over(struct outbox *outbox, bool is_patch)
{
    assert(outbox->waiting > 0 && outbox->handed < OUTBOX_HANDED_MAX);
    at(outbox, outbox->handed)->is_patch = is_patch;
    outbox->handed++;
    outbox->waiting--;
}

bool outbox_delivered(struct outbox *outbox, bool *was_patch)
{
    if (outbox->handed == 0) {
        return false;
    }
    *was_patch = at(outbox, 0)->is_patch;
    drop_first(outbox);
    outbox->handed--;
    return true;
}

size_t outbox_recall(struct outbox *outbox)
{
    size_t dropped = 0;

    outbox->waiting += outbox->handed;
    outbox->handed = 0;
    while (outbox->waiting > outbox->waiting_max) {
        drop_first(outbox);
        outbox->waiting--;
        dropped++;
    }
    return dropped;
}
