#include "detector/outbox.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

static void drop(struct outbox *outbox, struct letter *letter)
{
    DL_DELETE(outbox->letters, letter);
    detection_fini(&letter->detection);
    free(letter);
}

void outbox_fini(struct outbox *outbox)
{
    while (outbox->letters != NULL) {
        drop(outbox, outbox->letters);
    }
}

size_t outbox_set_max(struct outbox *outbox, size_t waiting_max)
{
    size_t dropped = 0;

    outbox->waiting_max = waiting_max;
    for (; outbox->waiting > waiting_max; outbox->waiting--, dropped++) {
        struct letter *oldest = outbox->oldest;
        outbox->oldest = oldest->next;
        drop(outbox, oldest);
    }
    return dropped;
}

size_t outbox_put(struct outbox *outbox, struct detection *detection)
{
    struct letter *letter = calloc(1, sizeof(*letter));

    if (letter == NULL) {
        detection_fini(detection);
        return 1;
    }
    letter->detection = *detection;
    *detection = (struct detection){0};
    DL_APPEND(outbox->letters, letter);
    outbox->oldest = outbox->oldest != NULL ? outbox->oldest : letter;
    outbox->waiting++;
    return outbox_set_max(outbox, outbox->waiting_max);
}

const struct detection *outbox_next(const struct outbox *outbox)
{
    return outbox->oldest != NULL && outbox->handed < OUTBOX_HANDED_MAX ? &outbox->oldest->detection
                                                                        : NULL;
}

void outbox_hand_over(struct outbox *outbox, bool is_patch, uint64_t end)
{
    struct letter *letter = outbox->oldest;

    assert(letter != NULL && outbox->handed < OUTBOX_HANDED_MAX);
    letter->is_patch = is_patch;
    letter->end = end;
    outbox->oldest = letter->next;
    outbox->handed++;
    outbox->waiting--;
}

bool outbox_delivered(struct outbox *outbox, uint64_t arrived, bool *was_patch)
{
    struct letter *letter = outbox->letters;

    if (outbox->handed == 0 || letter->end > arrived) {
        return false;
    }
    *was_patch = letter->is_patch;
    outbox->handed--;
    drop(outbox, letter);
    return true;
}

size_t outbox_recall(struct outbox *outbox)
{
    outbox->oldest = outbox->letters;
    outbox->waiting += outbox->handed;
    outbox->handed = 0;
    return outbox_set_max(outbox, outbox->waiting_max);
}
