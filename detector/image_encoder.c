#include "detector/image_encoder.h"

#include "detector/image_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct encoder {
    uv_loop_t *loop;
    encoder_done *done;
    void *userdata;
    struct encoding *queue, **queue_last;
    unsigned queued, under_way;
    bool is_closing;
    struct encoder_counters counters;
};

struct encoder *encoder_new(uv_loop_t *loop, encoder_done *done, void *userdata)
{
    struct encoder *encoder = calloc(1, sizeof(*encoder));

    if (encoder != NULL) {
        *encoder = (struct encoder){.loop = loop, .done = done, .userdata = userdata};
        encoder->queue_last = &encoder->queue;
    }
    return encoder;
}

const struct encoder_counters *encoder_counters(const struct encoder *encoder)
{
    return &encoder->counters;
}

/* ---- what a still keeps ---- */

static struct encoding *find_encoding(const struct still *still, const struct image_shape *shape,
                                      const struct image_boxes *boxes)
{
    struct encoding *encoding = still->encodings;

    while (encoding != NULL &&
           (encoding->boxes != boxes || memcmp(&encoding->shape, shape, sizeof(*shape)) != 0)) {
        encoding = encoding->next;
    }
    return encoding;
}

static void unlink_encoding(struct encoding *encoding)
{
    struct encoding **link = &encoding->still->encodings;

    while (*link != encoding) {
        link = &(*link)->next;
    }
    *link = encoding->next;
}

/* Of those that are made, the newest stay. */
static void forget_oldest(struct still *still)
{
    struct encoding **link = &still->encodings;
    unsigned made = 0;

    while (*link != NULL) {
        struct encoding *encoding = *link;
        made += encoding->state == ENCODING_MADE;
        if (encoding->state == ENCODING_MADE && made > ENCODER_KEPT_MAX) {
            *link = encoding->next;
            encoding_free(encoding);
        } else {
            link = &encoding->next;
        }
    }
}

/* ---- making ---- */

static void make(uv_work_t *work)
{
    struct encoding *encoding = work->data;

    encoding->code = image_compress(&encoding->still->frame, &encoding->shape, encoding->boxes,
                                    &encoding->jpeg, &encoding->bytes, &encoding->error);
}

static void start_next(struct encoder *encoder);

/* The encoding is not the encoder's any more; the still keeps it, unless it failed. */
static void settle(struct encoding *encoding)
{
    struct still *still = encoding->still;

    encoding->state = ENCODING_MADE;
    if (encoding->jpeg == NULL) {
        unlink_encoding(encoding);
        encoding_free(encoding);
    } else {
        forget_oldest(still);
    }
    still_release(still);
}

static void on_made(uv_work_t *work, int status)
{
    struct encoding *encoding = work->data;
    struct encoder *encoder = encoding->encoder;
    const struct image image = {encoding->jpeg, encoding->bytes};

    (void)status; /* none is cancelled */
    encoder->under_way--;
    encoder->counters.waiting--;
    encoder->counters.made += encoding->jpeg != NULL;
    while (encoding->waiters != NULL) {
        struct waiter *waiter = encoding->waiters;
        encoding->waiters = waiter->next;
        if (!encoder->is_closing) {
            encoder->done(encoder->userdata, waiter->ticket, encoding->jpeg != NULL ? &image : NULL,
                          &encoding->error);
        }
        free(waiter);
    }
    settle(encoding);
    start_next(encoder);
}

static void start_next(struct encoder *encoder)
{
    while (encoder->queue != NULL && encoder->under_way < ENCODER_WORKERS) {
        struct encoding *encoding = encoder->queue;
        encoder->queue = encoding->next_queued;
        if (encoder->queue == NULL) {
            encoder->queue_last = &encoder->queue;
        }
        encoder->queued--;
        encoder->under_way++;
        encoding->state = ENCODING_UNDER_WAY;
        encoding->work.data = encoding;
        (void)uv_queue_work(encoder->loop, &encoding->work, make, on_made); /* fails on no input */
    }
}

/* ---- asking ---- */

static int wait_for(struct encoding *encoding, uint64_t ticket, struct baton_error *reterr)
{
    struct waiter *waiter = malloc(sizeof(*waiter));

    if (waiter == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    *waiter = (struct waiter){NULL, ticket};
    *encoding->last_waiter = waiter;
    encoding->last_waiter = &waiter->next;
    return BATON_EBUSY;
}

static int enqueue(struct encoder *encoder, struct still *still, const struct image_shape *shape,
                   struct image_boxes *boxes, uint64_t ticket, struct baton_error *reterr)
{
    struct encoding *encoding = calloc(1, sizeof(*encoding));
    int rc;

    if (encoding == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    encoding->last_waiter = &encoding->waiters;
    rc = wait_for(encoding, ticket, reterr);
    if (rc != BATON_EBUSY) {
        free(encoding);
        return rc;
    }
    encoding->encoder = encoder;
    encoding->shape = *shape;
    encoding->boxes = boxes;
    if (boxes != NULL) {
        boxes->holders++;
    }
    encoding->still = still_hold(still);
    encoding->next = still->encodings;
    still->encodings = encoding;
    *encoder->queue_last = encoding;
    encoder->queue_last = &encoding->next_queued;
    encoder->queued++;
    encoder->counters.waiting++;
    start_next(encoder);
    return rc;
}

int encoder_ask(struct encoder *encoder, struct still *still, const struct image_shape *shape,
                struct image_boxes *boxes, uint64_t ticket, struct image *image,
                struct baton_error *reterr)
{
    struct encoding *encoding = find_encoding(still, shape, boxes);

    assert(!encoder->is_closing);
    if (encoding != NULL && encoding->state == ENCODING_MADE) {
        *image = (struct image){encoding->jpeg, encoding->bytes};
        return 0;
    }
    if (encoding != NULL) {
        return wait_for(encoding, ticket, reterr);
    }
    if (encoder->queued >= ENCODER_QUEUE_MAX) {
        encoder->counters.refused++;
        return error_set(reterr, BATON_EUNAVAILABLE,
                         "too busy: %d pictures wait to be made; ask again later",
                         ENCODER_QUEUE_MAX);
    }
    return enqueue(encoder, still, shape, boxes, ticket, reterr);
}

/* ---- the end ---- */

void encoder_close(struct encoder *encoder)
{
    if (encoder == NULL) {
        return;
    }
    encoder->is_closing = true;
    while (encoder->queue != NULL) {
        struct encoding *encoding = encoder->queue;
        encoder->queue = encoding->next_queued;
        settle(encoding); /* there is no JPEG: it goes */
    }
    encoder->queue_last = &encoder->queue;
    encoder->queued = 0;
}

void encoder_free(struct encoder *encoder)
{
    assert(encoder == NULL || encoder->under_way == 0);
    free(encoder);
}
