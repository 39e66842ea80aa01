#include "detector/image.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <utlist.h>

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

/* ---- the images of a subscription ---- */

static void set_frame(struct images *images, enum image_source source, struct frame *frame)
{
    frame_unref(images->frames[source]);
    images->frames[source] = frame;
}

void image_put(struct image_store *store, struct images *images, const struct frame *frame)
{
    struct frame *held = frame_ref(frame);

    assert(frame->width >= 1 && frame->width <= IMAGE_PIXELS_MAX);
    assert(frame->height >= 1 && frame->height <= IMAGE_PIXELS_MAX);
    if (held->id == 0) { /* else another subscription of its camera has it, too */
        held->id = ++store->frames;
    }
    set_frame(images, held->source, held);
}

void image_show(struct images *images, enum image_source source)
{
    if (images->shown != source) {
        images->shown = source;
        images->boxes.count = 0;
    }
}

void image_drop(struct images *images, enum image_source source)
{
    set_frame(images, source, NULL);
    if (images->shown == source) {
        images->boxes.count = 0;
    }
}

void images_fini(struct images *images)
{
    for (int source = 0; source < IMAGE_SOURCES; source++) {
        image_drop(images, source);
    }
}

struct frame *image_newest(const struct images *images, enum image_source source)
{
    return images->frames[source == IMAGE_SHOWN ? images->shown : source];
}

/* ---- what was found ---- */

void image_set_boxes(struct images *images, enum image_source source, const struct image_box *boxes,
                     size_t count)
{
    struct image_boxes *last = &images->boxes;
    size_t kept = count < IMAGE_BOXES_MAX ? count : IMAGE_BOXES_MAX;
    size_t bytes = kept * sizeof(*boxes);

    if ((source != images->shown && source != IMAGE_SHOWN) ||
        images->frames[images->shown] == NULL) {
        return;
    }
    if (kept > 0 && (last->count != kept || memcmp(last->boxes, boxes, bytes) != 0)) {
        last->number = (uint64_t)clock_now().ns; /* else a picture may be made already */
        memcpy(last->boxes, boxes, bytes);
    }
    last->count = kept;
}

const struct image_boxes *image_boxes(const struct images *images, enum image_source source)
{
    bool is_shown = source == IMAGE_SHOWN || source == images->shown;

    return is_shown && images->boxes.count > 0 ? &images->boxes : NULL;
}

/* ---- JPEGs ---- */

void image_store_close(struct image_store *store)
{
    store->is_closing = true;
}

static struct encoding *find_encoding(const struct frame *frame, const struct image_shape *shape)
{
    struct encoding *encoding = frame->encodings;

    while (encoding != NULL && memcmp(&encoding->shape, shape, sizeof(*shape)) != 0) {
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
        (void)image_compress(encoding->frame, &encoding->shape, &encoding->jpeg, &encoding->bytes,
                             &encoding->error);
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
                              const struct image_shape *shape)
{
    struct encoding *encoding = calloc(1, sizeof(*encoding));

    if (encoding == NULL) {
        return NULL;
    }
    encoding->store = store;
    encoding->shape = *shape;
    encoding->frame = frame_ref(frame);
    LL_PREPEND(frame->encodings, encoding);
    store->counters.waiting++;
    encoding->work.data = encoding;
    (void)uv_queue_work(store->loop, &encoding->work, make, on_made); /* fails on no input */
    return encoding;
}

int image_ask(struct image_store *store, struct frame *frame, const struct image_shape *shape,
              const struct encoding **ret, struct baton_error *reterr)
{
    struct encoding *encoding = find_encoding(frame, shape);

    assert(!store->is_closing);
    if (encoding == NULL && store->counters.waiting >= IMAGE_ENCODINGS_MAX) {
        store->counters.refused++;
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "too busy: %d pictures are being made; ask again later",
                         IMAGE_ENCODINGS_MAX);
    }
    if (encoding == NULL) {
        encoding = begin(store, frame, shape);
    }
    if (encoding == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    *ret = encoding;
    return encoding->is_made ? 0 : BATON_EBUSY;
}
