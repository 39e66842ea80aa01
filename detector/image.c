#include "detector/image.h"

#include "base/error.h"
#include "detector/image_int.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

struct slot {
    char identifier[PROTOCOL_IDENTIFIER_MAX + 1];
    struct still *stills[IMAGE_SOURCES]; /* NULL: none yet */
    enum image_source shown;
    struct image_boxes boxes; /* of what is shown */
};

struct image_store {
    struct slot *slots;
    size_t count, count_max;
    uint64_t puts, boxes;
};

/* ---- stills ---- */

void encoding_free(struct encoding *encoding)
{
    tjFree(encoding->jpeg);
    free(encoding);
}

struct still *still_hold(struct still *still)
{
    still->holders++;
    return still;
}

void still_release(struct still *still)
{
    if (still == NULL) {
        return;
    }
    assert(still->holders > 0);
    if (--still->holders > 0) {
        return;
    }
    while (still->encodings != NULL) {
        struct encoding *encoding = still->encodings;
        assert(encoding->is_made);
        still->encodings = encoding->next;
        encoding_free(encoding);
    }
    if (still->loan.owner != NULL) {
        still->loan.give_back(still->loan.owner);
    }
    free(still->pixels);
    free(still);
}

/* False: out of memory. */
static bool copy_into(struct still *still, const struct frame *frame)
{
    int bytes = av_image_get_buffer_size(AV_PIX_FMT_YUV420P, frame->width, frame->height, 1);

    still->pixels = malloc((size_t)bytes);
    if (still->pixels == NULL) {
        return false;
    }
    (void)av_image_copy_to_buffer(still->pixels, bytes, frame->plane, frame->stride,
                                  AV_PIX_FMT_YUV420P, frame->width, frame->height, 1);
    still->frame = (struct frame){.width = frame->width, .height = frame->height};
    (void)av_image_fill_arrays((uint8_t **)still->frame.plane, still->frame.stride, still->pixels,
                               AV_PIX_FMT_YUV420P, frame->width, frame->height, 1);
    return true;
}

/* NULL: out of memory. */
static struct still *still_new(const struct frame *frame, const struct image_loan *loan)
{
    struct still *still = calloc(1, sizeof(*still));

    if (still == NULL) {
        return NULL;
    }
    still->holders = 1;
    if (loan != NULL) {
        loan->hold(loan->owner);
        still->frame = *frame;
        still->loan = *loan;
    } else if (!copy_into(still, frame)) {
        free(still);
        return NULL;
    }
    return still;
}

/* ---- the store ---- */

struct image_store *image_store_new(size_t count_max)
{
    struct image_store *store = calloc(1, sizeof(*store));

    if (store == NULL) {
        return NULL;
    }
    store->slots = calloc(count_max, sizeof(*store->slots));
    store->count_max = count_max;
    if (store->slots == NULL) {
        image_store_free(store);
        return NULL;
    }
    return store;
}

static void empty(struct slot *slot)
{
    for (int source = 0; source < IMAGE_SOURCES; source++) {
        still_release(slot->stills[source]);
    }
}

void image_store_free(struct image_store *store)
{
    if (store == NULL) {
        return;
    }
    for (size_t i = 0; i < store->count; i++) {
        empty(&store->slots[i]);
    }
    free(store->slots);
    free(store);
}

static struct slot *find_slot(const struct image_store *store, const char *identifier)
{
    for (size_t i = 0; i < store->count; i++) {
        if (strcmp(store->slots[i].identifier, identifier) == 0) {
            return &store->slots[i];
        }
    }
    return NULL;
}

/* NULL: there is no room. */
static struct slot *need_slot(struct image_store *store, const char *identifier)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot == NULL && store->count < store->count_max) {
        slot = &store->slots[store->count++];
        *slot = (struct slot){.shown = IMAGE_STREAM};
        (void)snprintf(slot->identifier, sizeof(slot->identifier), "%s", identifier);
    }
    return slot;
}

int image_put(struct image_store *store, const char *identifier, enum image_source source,
              const struct frame *frame, const struct image_loan *loan, struct baton_error *reterr)
{
    struct slot *slot;
    struct still *still;

    if (frame->width < 1 || frame->height < 1 || frame->width > IMAGE_PIXELS_MAX ||
        frame->height > IMAGE_PIXELS_MAX) {
        return error_set(reterr, BATON_EINVAL, "frame of %dx%d: sides must be 1 to %d",
                         frame->width, frame->height, IMAGE_PIXELS_MAX);
    }
    slot = need_slot(store, identifier);
    still = slot != NULL ? still_new(frame, loan) : NULL;
    if (still == NULL) {
        return error_set(reterr, BATON_EFULL, "no room for a frame of \"%s\"", identifier);
    }
    still->number = ++store->puts;
    still_release(slot->stills[source]);
    slot->stills[source] = still;
    return 0;
}

void image_show(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL && slot->shown != source) {
        slot->shown = source;
        slot->boxes.number = slot->boxes.count = 0;
    }
}

void image_settle(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);
    struct still *lent = slot != NULL ? slot->stills[source] : NULL;
    struct still *still;

    if (lent == NULL || lent->loan.owner == NULL) {
        return;
    }
    still = still_new(&lent->frame, NULL);
    if (still != NULL) { /* else it stays lent */
        still->number = lent->number;
        still_release(lent);
        slot->stills[source] = still;
    }
}

void image_drop(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL) {
        still_release(slot->stills[source]);
        slot->stills[source] = NULL;
        if (slot->shown == source) {
            slot->boxes.number = slot->boxes.count = 0;
        }
    }
}

void image_remove(struct image_store *store, const char *identifier)
{
    struct slot *slot = find_slot(store, identifier);
    struct slot *last;

    if (slot == NULL) {
        return;
    }
    empty(slot);
    last = &store->slots[--store->count];
    if (slot != last) {
        *slot = *last;
    }
}

struct still *image_newest(const struct image_store *store, const char *identifier,
                           enum image_source source)
{
    const struct slot *slot = find_slot(store, identifier);

    return slot != NULL ? slot->stills[source == IMAGE_SHOWN ? slot->shown : source] : NULL;
}

/* ---- what was found ---- */

void image_set_boxes(struct image_store *store, const char *identifier, enum image_source source,
                     const struct image_box *boxes, size_t count)
{
    struct slot *slot = find_slot(store, identifier);
    size_t kept = count < IMAGE_BOXES_MAX ? count : IMAGE_BOXES_MAX;
    size_t bytes = kept * sizeof(*boxes);

    if (slot == NULL || (source != slot->shown && source != IMAGE_SHOWN) ||
        slot->stills[slot->shown] == NULL) {
        return;
    }
    if (kept == 0) {
        slot->boxes.number = slot->boxes.count = 0;
    } else if (slot->boxes.count != kept || memcmp(slot->boxes.boxes, boxes, bytes) != 0) {
        slot->boxes.number = ++store->boxes; /* else a picture with them may be made already */
        slot->boxes.count = kept;
        memcpy(slot->boxes.boxes, boxes, bytes);
    }
}

const struct image_boxes *image_boxes(const struct image_store *store, const char *identifier,
                                      enum image_source source)
{
    const struct slot *slot = find_slot(store, identifier);
    bool is_shown = slot != NULL && (source == IMAGE_SHOWN || source == slot->shown);

    return is_shown && slot->boxes.count > 0 ? &slot->boxes : NULL;
}
