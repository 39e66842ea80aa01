#include "detector/image_encoder.h"

#include "detector/image_int.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct encoder {
    uv_loop_t *loop;
    encoder_done *done;
    void *userdata;
    atomic_bool is_closing;
    struct encoder_counters counters;
};

struct encoder *encoder_new(uv_loop_t *loop, encoder_done *done, void *userdata)
{
    struct encoder *encoder = calloc(1, sizeof(*encoder));

    if (encoder != NULL) {
        *encoder = (struct encoder){.loop = loop, .done = done, .userdata = userdata};
    }
    return encoder;
}

const struct encoder_counters *encoder_counters(const struct encoder *encoder)
{
    return &encoder->counters;
}

/* ---- what a still keeps ---- */

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
        if (encoding->is_made && made > ENCODER_KEPT_MAX) {
            LL_DELETE(still->encodings, encoding);
            encoding_free(encoding);
        }
    }
}

/* ---- making ---- */

static void make(uv_work_t *work)
{
    struct encoding *encoding = work->data;

    if (!encoding->encoder->is_closing) {
        (void)image_compress(&encoding->still->frame, &encoding->shape, &encoding->boxes,
                             &encoding->jpeg, &encoding->bytes, &encoding->error);
    }
}

static void on_made(uv_work_t *work, int status)
{
    struct encoding *encoding = work->data;
    struct encoder *encoder = encoding->encoder;
    struct still *still = encoding->still;
    const struct image image = {encoding->jpeg, encoding->bytes};

    (void)status; /* none is cancelled */
    encoder->counters.waiting--;
    encoder->counters.made += encoding->jpeg != NULL;
    encoding->is_made = true;
    if (encoding->jpeg == NULL) {
        LL_DELETE(still->encodings, encoding);
    }
    if (!encoder->is_closing) {
        encoder->done(encoder->userdata, encoding, encoding->jpeg != NULL ? &image : NULL,
                      &encoding->error);
    }
    if (encoding->jpeg == NULL) {
        encoding_free(encoding);
    } else {
        forget_oldest(still);
    }
    still_release(still);
}

/* ---- asking ---- */

int encoder_ask(struct encoder *encoder, struct still *still, const struct image_shape *shape,
                const struct image_boxes *boxes, const struct encoding **awaited,
                struct image *image, struct baton_error *reterr)
{
    struct encoding *encoding = find_encoding(still, shape, boxes != NULL ? boxes->number : 0);

    assert(!encoder->is_closing);
    if (encoding != NULL && encoding->is_made) {
        *image = (struct image){encoding->jpeg, encoding->bytes};
        return 0;
    }
    if (encoding != NULL) {
        *awaited = encoding;
        return BATON_EBUSY;
    }
    if (encoder->counters.waiting >= ENCODER_MAX) {
        encoder->counters.refused++;
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "too busy: %d pictures are being made; ask again later", ENCODER_MAX);
    }
    encoding = calloc(1, sizeof(*encoding));
    if (encoding == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    encoding->encoder = encoder;
    encoding->shape = *shape;
    if (boxes != NULL) {
        encoding->boxes = *boxes;
    }
    encoding->still = still_hold(still);
    LL_PREPEND(still->encodings, encoding);
    encoder->counters.waiting++;
    encoding->work.data = encoding;
    (void)uv_queue_work(encoder->loop, &encoding->work, make, on_made); /* fails on no input */
    *awaited = encoding;
    return BATON_EBUSY;
}

/* ---- the end ---- */

void encoder_close(struct encoder *encoder)
{
    if (encoder != NULL) {
        encoder->is_closing = true;
    }
}

void encoder_free(struct encoder *encoder)
{
    assert(encoder == NULL || encoder->counters.waiting == 0);
    free(encoder);
}
