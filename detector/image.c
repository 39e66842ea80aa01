#include "detector/image.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <uthash.h>
#include <utlist.h>

/* Of a subscription. */
struct slot {
    struct frame *frames[IMAGE_SOURCES]; /* NULL: none yet */
    enum image_source shown;
    struct image_boxes boxes; /* of what is shown */
    UT_hash_handle hh;
    char identifier[];
};

struct image_store {
    struct slot *slots;
    uint64_t frames, boxes; /* so many had an id or a number */
    uv_loop_t *loop;
    image_made *made;
    void *userdata;
    atomic_bool is_closing;
    struct image_counters counters;
};

/* ---- frames ---- */

/* The encoding is on no list any more. */
static void free_encoding(struct encoding *encoding)
{
    tjFree(encoding->jpeg);
    free(encoding);
}

struct frame *frame_ref(const struct frame *frame)
{
    struct frame *held = (struct frame *)frame;

    assert(held->refs > 0);
    held->refs++;
    return held;
}

void frame_unref(const struct frame *frame)
{
    struct frame *held = (struct frame *)frame;

    if (held == NULL) {
        return;
    }
    assert(held->refs > 0);
    if (--held->refs > 0) {
        return;
    }
    while (held->encodings != NULL) {
        struct encoding *encoding = held->encodings;
        assert(encoding->is_made);
        held->encodings = encoding->next;
        free_encoding(encoding);
    }
    held->free(held);
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
        frame_unref(slot->frames[source]);
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

int image_put(struct image_store *store, const char *identifier, const struct frame *frame,
              struct baton_error *reterr)
{
    struct slot *slot;
    struct frame *last;

    if (frame->width < 1 || frame->height < 1 || frame->width > IMAGE_PIXELS_MAX ||
        frame->height > IMAGE_PIXELS_MAX) {
        return error_set(reterr, BATON_EINVAL, "frame of %dx%d: sides must be 1 to %d",
                         frame->width, frame->height, IMAGE_PIXELS_MAX);
    }
    slot = need_slot(store, identifier);
    if (slot == NULL) {
        return error_set(reterr, BATON_ENOMEM, "no room for a frame of \"%s\"", identifier);
    }
    last = slot->frames[frame->source];
    slot->frames[frame->source] = frame_ref(frame);
    if (frame->id == 0) { /* else another subscription of its camera has it, too */
        slot->frames[frame->source]->id = ++store->frames;
    }
    frame_unref(last);
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

void image_drop(struct image_store *store, const char *identifier, enum image_source source)
{
    struct slot *slot = find_slot(store, identifier);

    if (slot != NULL) {
        frame_unref(slot->frames[source]);
        slot->frames[source] = NULL;
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

struct frame *image_newest(const struct image_store *store, const char *identifier,
                           enum image_source source)
{
    const struct slot *slot = find_slot(store, identifier);

    return slot != NULL ? slot->frames[source == IMAGE_SHOWN ? slot->shown : source] : NULL;
}

/* ---- what was found ---- */

void image_set_boxes(struct image_store *store, const char *identifier, enum image_source source,
                     const struct image_box *boxes, size_t count)
{
    struct slot *slot = find_slot(store, identifier);
    size_t kept = count < IMAGE_BOXES_MAX ? count : IMAGE_BOXES_MAX;
    size_t bytes = kept * sizeof(*boxes);

    if (slot == NULL || (source != slot->shown && source != IMAGE_SHOWN) ||
        slot->frames[slot->shown] == NULL) {
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

static struct encoding *find_encoding(const struct frame *frame, const struct image_shape *shape,
                                      uint64_t boxes)
{
    struct encoding *encoding = frame->encodings;

    while (encoding != NULL && (encoding->boxes.number != boxes ||
                                memcmp(&encoding->shape, shape, sizeof(*shape)) != 0)) {
        encoding = encoding->next;
    }
    return encoding;
}

/* Of those that are made, the newest stay. */
static void forget_oldest(struct frame *frame)
{
    struct encoding *encoding = NULL, *next = NULL;
    unsigned made = 0;

    LL_FOREACH_SAFE (frame->encodings, encoding, next) {
        made += encoding->is_made;
        if (encoding->is_made && made > IMAGE_KEPT_MAX) {
            LL_DELETE(frame->encodings, encoding);
            free_encoding(encoding);
        }
    }
}

static void make(uv_work_t *work)
{
    struct encoding *encoding = work->data;

    if (!encoding->store->is_closing) {
        (void)image_compress(encoding->frame, &encoding->shape, &encoding->boxes, &encoding->jpeg,
                             &encoding->bytes, &encoding->error);
    }
}

static void on_made(uv_work_t *work, int status)
{
    struct encoding *encoding = work->data;
    struct image_store *store = encoding->store;
    struct frame *frame = encoding->frame;

    (void)status; /* none is cancelled */
    store->counters.waiting--;
    store->counters.made += encoding->jpeg != NULL;
    encoding->is_made = true;
    if (encoding->jpeg == NULL) { /* who asks from now on has it tried again */
        LL_DELETE(frame->encodings, encoding);
    }
    if (!store->is_closing) {
        store->made(store->userdata, encoding);
    }
    if (encoding->jpeg == NULL) {
        free_encoding(encoding);
    }
    forget_oldest(frame);
    frame_unref(frame);
}

/* NULL: out of memory. */
static struct encoding *begin(struct image_store *store, struct frame *frame,
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
    encoding->frame = frame_ref(frame);
    LL_PREPEND(frame->encodings, encoding);
    store->counters.waiting++;
    encoding->work.data = encoding;
    (void)uv_queue_work(store->loop, &encoding->work, make, on_made); /* fails on no input */
    return encoding;
}

int image_ask(struct image_store *store, struct frame *frame, const struct image_shape *shape,
              const struct image_boxes *boxes, const struct encoding **ret,
              struct baton_error *reterr)
{
    struct encoding *encoding = find_encoding(frame, shape, boxes != NULL ? boxes->number : 0);

    assert(!store->is_closing);
    if (encoding == NULL && store->counters.waiting >= IMAGE_ENCODINGS_MAX) {
        store->counters.refused++;
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "too busy: %d pictures are being made; ask again later",
                         IMAGE_ENCODINGS_MAX);
    }
    if (encoding == NULL) {
        encoding = begin(store, frame, shape, boxes);
    }
    if (encoding == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    *ret = encoding;
    return encoding->is_made ? 0 : BATON_EBUSY;
}
