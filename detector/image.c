#include "detector/image.h"

#include <assert.h>
#include <libavutil/imgutils.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>
#include <utlist.h>

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
        still->frame = *frame;
        still->loan = *loan;
    } else if (!copy_into(still, frame)) {
        free(still);
        return NULL;
    }
    return still;
}

/* ---- the images of a subscription ---- */

static void set_still(struct images *images, enum image_source source, struct still *still)
{
    release(images->stills[source]);
    images->stills[source] = still;
}

int image_put(struct image_store *store, struct images *images, enum image_source source,
              const struct frame *frame, const struct image_loan *loan, struct baton_error *reterr)
{
    bool fits = frame->width >= 1 && frame->height >= 1 && frame->width <= IMAGE_PIXELS_MAX &&
                frame->height <= IMAGE_PIXELS_MAX;
    struct still *still = fits ? new_still(frame, loan) : NULL;

    if (still == NULL) {
        if (loan != NULL) {
            loan->give_back(loan->owner);
        }
        return fits ? error_set(reterr, BATON_ENOMEM, "no room for a frame")
                    : error_set(reterr, BATON_EINVAL, "frame of %dx%d: sides must be 1 to %d",
                                frame->width, frame->height, IMAGE_PIXELS_MAX);
    }
    still->number = ++store->puts;
    set_still(images, source, still);
    return 0;
}

void image_show(struct images *images, enum image_source source)
{
    if (images->shown != source) {
        images->shown = source;
        images->boxes.count = 0;
    }
}

void image_settle(struct images *images, enum image_source source)
{
    const struct still *lent = images->stills[source];
    struct still *still =
        lent != NULL && lent->loan.owner != NULL ? new_still(&lent->frame, NULL) : NULL;

    if (still != NULL) { /* without memory it stays lent */
        still->number = lent->number;
        set_still(images, source, still);
    }
}

void image_drop(struct images *images, enum image_source source)
{
    set_still(images, source, NULL);
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

struct still *image_newest(const struct images *images, enum image_source source)
{
    return images->stills[source == IMAGE_SHOWN ? images->shown : source];
}

/* ---- what was found ---- */

void image_set_boxes(struct images *images, enum image_source source, const struct image_box *boxes,
                     size_t count)
{
    struct image_boxes *last = &images->boxes;
    size_t kept = count < IMAGE_BOXES_MAX ? count : IMAGE_BOXES_MAX;
    size_t bytes = kept * sizeof(*boxes);

    if ((source != images->shown && source != IMAGE_SHOWN) ||
        images->stills[images->shown] == NULL) {
        return;
    }
    if (kept > 0 && (last->count != kept || memcmp(last->boxes, boxes, bytes) != 0)) {
        last->number++; /* else a picture with them may be made already */
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
