#include "detector/image.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <uthash.h>
#include <utlist.h>

/* Of a subscription. */
struct slot {
    struct still *stills[IMAGE_SOURCES]; /* NULL: none yet */
    enum image_source shown;
    struct image_boxes boxes; /* of what is shown */
    UT_hash_handle hh;
    char identifier[];
};

struct image_store {
    struct slot *slots;
    uint64_t puts, boxes;
    uv_loop_t *loop;
    image_made *made;
    void *userdata;
    atomic_bool is_closing;
    struct image_counters counters;
};

/* ---- stills ---- */

/* The encoding is on no list any more. */
static void free_encoding(struct encoding *encoding)
{
    tjFree(encoding->jpeg);
    free(encoding);
}

static void release(struct still *still)
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
        free_encoding(encoding);
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
    still->frame = *frame;
    (void)av_image_fill_arrays((uint8_t **)still->frame.plane, still->frame.stride, still->pixels,
                               AV_PIX_FMT_YUV420P, frame->width, frame->height, 1);
    return true;
}

/* NULL: out of memory. */
static struct still *new_still(const struct frame *frame, const struct image_loan *loan)
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

struct image_store *image_store_new(uv_loop_t *loop, image_made *made, void *userdata)
{
    struct image_store *store = calloc(1, sizeof(*store));

    if (store != NULL) {
        *store = (struct image_store){.loop = loop, .made = made, .userdata = userdata};
    }
    return store;
}

void image_store_close(struct image_store *store)
{
    if (store != NULL) {
        store->is_closing = true;
    }
}

/* The slot is in no store any more. */
static void free_slot(struct slot *slot)
{
    for (int source = 0; source < IMAGE_SOURCES; source++) {
        release(slot->stills[source]);
    }
    free(slot);
}

void image_store_free(struct image_store *store)
{
    struct slot *slot, *next;

    if (store == NULL) {
        return;
    }
    assert(store->counters.waiting == 0);
    slot = store->slots;
    HASH_CLEAR(hh, store->slots);
    for (; slot != NULL; slot = next) {
        next = slot->hh.next;
        free_slot(slot);
    }
    free(store);
}

const struct image_counters *image_counters(const struct image_store *store)
{
    return &store->counters;
}

static struct slot *find_slot(const struct image_store *store, const char *identifier)
{
    struct slot *slot;

    HASH_FIND_STR(store->slots, identifier, slot);
    return slot;
}

/* NULL: out of memory. */
static struct slot *need_slot(struct image_store *store, const char *identifier)
{
    struct slot *slot = find_slot(store, identifier);
    size_t bytes = strlen(identifier);

    if (slot != NULL) {
        return slot;
    }
    slot = calloc(1, sizeof(*slot) + bytes + 1);
    if (slot != NULL) {
        slot->shown = IMAGE_STREAM;
        memcpy(slot->identifier, identifier, bytes);
        HASH_ADD_KEYPTR(hh, store->slots, slot->identifier, bytes, slot);
    }
    if (slot != NULL && slot->hh.tbl == NULL) {
        free(slot);
        slot = NULL;
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
    still = slot != NULL ? new_still(frame, loan) : NULL;
    if (still == NULL) {
        return error_set(reterr, BATON_ENOMEM, "no room for a frame of \"%s\"", identifier);
    }
    still->number = ++store->puts;
    release(slot->stills[source]);
    slot->stills[source] = still;
    return 0;
}

void image_show(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL && slot->shown != source) {
        slot->shown = source;
        slot->boxes.count = 0;
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
    still = new_still(&lent->frame, NULL);
    if (still != NULL) { /* else it stays lent */
        still->number = lent->number;
        release(lent);
        slot->stills[source] = still;
    }
}

void image_drop(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL) {
        release(slot->stills[source]);
        slot->stills[source] = NULL;
        if (slot->shown == source) {
            slot->boxes.count = 0;
        }
    }
}

void image_remove(struct image_store *store, const char *identifier)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL) {
        HASH_DEL(store->slots, slot);
        free_slot(slot);
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
    if (kept > 0 && (slot->boxes.count != kept || memcmp(slot->boxes.boxes, boxes, bytes) != 0)) {
        slot->boxes.number = ++store->boxes; /* else a picture with them may be made already */
        memcpy(slot->boxes.boxes, boxes, bytes);
    }
    slot->boxes.count = kept;
}

const struct image_boxes *image_boxes(const struct image_store *store, const char *identifier,
                                      enum image_source source)
{
    const struct slot *slot = find_slot(store, identifier);
    bool is_shown = slot != NULL && (source == IMAGE_SHOWN || source == slot->shown);

    return is_shown && slot->boxes.count > 0 ? &slot->boxes : NULL;
}

/* ---- JPEGs ---- */

static struct encoding *find_encoding(const struct still *still, const struct image_shape *shape,
                                      uint64_t boxes)
{
    struct encoding *encoding = still->encodings;

    while (encoding != NULL && (encoding->boxes.number != boxes ||
                                memcmp(&encoding->shape, shape, sizeof(*shape)) != 0)) {
        encoding = encoding->next;
    }
    return encoding;
}

/* Of those that are made, the newest stay. */
static void forget_oldest(struct still *still)
{
    struct encoding *encoding = NULL, *next = NULL;
    unsigned made = 0;

    LL_FOREACH_SAFE (still->encodings, encoding, next) {
        made += encoding->is_made;
        if (encoding->is_made && made > IMAGE_KEPT_MAX) {
            LL_DELETE(still->encodings, encoding);
            free_encoding(encoding);
        }
    }
}

static void make(uv_work_t *work)
{
    struct encoding *encoding = work->data;

    if (!encoding->store->is_closing) {
        (void)image_compress(&encoding->still->frame, &encoding->shape, &encoding->boxes,
                             &encoding->jpeg, &encoding->bytes, &encoding->error);
    }
}

static void on_made(uv_work_t *work, int status)
{
    struct encoding *encoding = work->data;
    struct image_store *store = encoding->store;
    struct still *still = encoding->still;

    (void)status; /* none is cancelled */
    store->counters.waiting--;
    store->counters.made += encoding->jpeg != NULL;
    encoding->is_made = true;
    if (encoding->jpeg == NULL) { /* who asks from now on has it tried again */
        LL_DELETE(still->encodings, encoding);
    }
    if (!store->is_closing) {
        store->made(store->userdata, encoding);
    }
    if (encoding->jpeg == NULL) {
        free_encoding(encoding);
    }
    forget_oldest(still);
    release(still);
}

/* NULL: out of memory. */
static struct encoding *begin(struct image_store *store, struct still *still,
                              const struct image_shape *shape, const struct image_boxes *boxes)
{
    struct encoding *encoding = calloc(1, sizeof(*encoding));

    if (encoding == NULL) {
        return NULL;
    }
    encoding->store = store;
    encoding->shape = *shape;
    if (boxes != NULL) {
        encoding->boxes = *boxes;
    }
    encoding->still = still;
    still->holders++;
    LL_PREPEND(still->encodings, encoding);
    store->counters.waiting++;
    encoding->work.data = encoding;
    (void)uv_queue_work(store->loop, &encoding->work, make, on_made); /* fails on no input */
    return encoding;
}

int image_ask(struct image_store *store, struct still *still, const struct image_shape *shape,
              const struct image_boxes *boxes, const struct encoding **ret,
              struct baton_error *reterr)
{
    struct encoding *encoding = find_encoding(still, shape, boxes != NULL ? boxes->number : 0);

    assert(!store->is_closing);
    if (encoding == NULL && store->counters.waiting >= IMAGE_ENCODINGS_MAX) {
        store->counters.refused++;
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "too busy: %d pictures are being made; ask again later",
                         IMAGE_ENCODINGS_MAX);
    }
    if (encoding == NULL) {
        encoding = begin(store, still, shape, boxes);
    }
    if (encoding == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    *ret = encoding;
    return encoding->is_made ? 0 : BATON_EBUSY;
}
