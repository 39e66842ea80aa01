#include "detector/camera/rings.h"

#include <stdlib.h>

struct shared_ring {
    struct shared_ring *next;
    struct rings *rings;
    uint64_t number;
    struct ring_writer writer;
    unsigned lent; /* slots that the decoder has */
};

void rings_init(struct rings *rings, const struct ring_control *control)
{
    *rings = (struct rings){.control = control};
}

static void shared_ring_free(struct shared_ring *ring)
{
    ring_writer_close(&ring->writer);
    free(ring);
}

/* Frees the rings that are neither the newest nor lent from. The parent has its own mapping of
 * frames that it holds. */
static void sweep(struct rings *rings)
{
    struct shared_ring **at = &rings->first;

    while (*at != NULL) {
        struct shared_ring *ring = *at;
        if (ring != rings->first && ring->lent == 0) {
            *at = ring->next;
            shared_ring_free(ring);
        } else {
            at = &ring->next;
        }
    }
}

void rings_fini(struct rings *rings)
{
    sweep(rings);
    if (rings->first != NULL && rings->first->lent == 0) {
        shared_ring_free(rings->first);
        rings->first = NULL;
    }
    av_buffer_pool_uninit(&rings->spare);
}

int rings_need(struct ring_writer **ret, uint64_t *ret_number, struct rings *rings, uint32_t width,
               uint32_t height, struct baton_error *reterr)
{
    struct shared_ring *ring = rings->first;
    int rc;

    if (ring == NULL || (uint32_t)ring->writer.layout.width != width ||
        (uint32_t)ring->writer.layout.height != height) {
        ring = calloc(1, sizeof(*ring));
        if (ring == NULL) {
            return error_set(reterr, BATON_ENOMEM, "out of memory for a ring");
        }
        rc = ring_writer_open(&ring->writer, width, height, reterr);
        if (rc != 0) {
            free(ring);
            return rc;
        }
        ring->rings = rings;
        ring->number = ++rings->made;
        ring->next = rings->first;
        rings->first = ring;
        sweep(rings);
    }
    *ret = &ring->writer;
    *ret_number = ring->number;
    return 0;
}

static bool lies_in(const struct shared_ring *ring, const AVFrame *frame, int slot)
{
    const struct ring_layout *layout = &ring->writer.layout;

    for (int plane = 0; plane < 3; plane++) {
        if (frame->data[plane] != ring_writer_plane(&ring->writer, slot, plane) ||
            frame->linesize[plane] != layout->stride[plane]) {
            return false;
        }
    }
    return frame->width == layout->width && frame->height == layout->height;
}

struct ring_writer *rings_find(struct rings *rings, const AVFrame *frame, int *ret_slot,
                               uint64_t *ret_number)
{
    for (struct shared_ring *ring = rings->first; ring != NULL; ring = ring->next) {
        for (int slot = 0; slot < ring->writer.layout.slots; slot++) {
            if ((ring->writer.lent & 1U << slot) != 0 && lies_in(ring, frame, slot)) {
                *ret_slot = slot;
                *ret_number = ring->number;
                return &ring->writer;
            }
        }
    }
    return NULL;
}

/* ---- lending ---- */

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is the library's */
static void give_back(void *opaque, uint8_t *data)
{
    struct shared_ring *ring = opaque;

    for (int slot = 0; slot < ring->writer.layout.slots; slot++) {
        if (ring_writer_plane(&ring->writer, slot, 0) == data) {
            ring_writer_give_back(&ring->writer, slot);
        }
    }
    ring->lent--;
    sweep(ring->rings);
}

/* Pictures of a decoder may lie in a ring if it writes each once and then only reads it. These two
 * codecs do, and cameras use few others. */
static bool is_suited(const AVCodecContext *decoder, const AVFrame *frame)
{
    return (decoder->codec_id == AV_CODEC_ID_H264 || decoder->codec_id == AV_CODEC_ID_HEVC) &&
           (decoder->codec->capabilities & AV_CODEC_CAP_DR1) != 0 &&
           (frame->format == AV_PIX_FMT_YUV420P || frame->format == AV_PIX_FMT_YUVJ420P) &&
           decoder->width > 0 && decoder->height > 0;
}

/* Decoders round sizes up, and their vector code needs aligned rows. */
static bool has_room(const struct ring_layout *layout, AVCodecContext *decoder,
                     const AVFrame *frame)
{
    int alignment[AV_NUM_DATA_POINTERS] = {0};
    int width = frame->width;
    int height = frame->height;

    avcodec_align_dimensions2(decoder, &width, &height, alignment);
    for (int plane = 0; plane < 3; plane++) {
        int shift = plane > 0;
        if (layout->stride[plane] < (width + shift) >> shift ||
            layout->rows[plane] < (height + shift) >> shift ||
            (alignment[plane] > 0 && layout->stride[plane] % alignment[plane] != 0)) {
            return false;
        }
    }
    return true;
}

/* The layout is that of a slot, because some decoders need rows of constant length. */
static AVBufferRef *lend_spare(struct rings *rings, const struct ring_layout *layout)
{
    if (rings->spare_bytes != layout->slot_bytes) {
        av_buffer_pool_uninit(&rings->spare); /* lent pictures stay until they are given back */
        rings->spare = av_buffer_pool_init(layout->slot_bytes + RING_ALIGNMENT, av_buffer_allocz);
        rings->spare_bytes = rings->spare != NULL ? layout->slot_bytes : 0;
    }
    return rings->spare != NULL ? av_buffer_pool_get(rings->spare) : NULL;
}

static AVBufferRef *lend_slot(struct shared_ring *ring, int slot)
{
    uint8_t *data = ring_writer_plane(&ring->writer, slot, 0);
    AVBufferRef *buffer =
        av_buffer_create(data, ring->writer.layout.slot_bytes, give_back, ring, 0);

    if (buffer != NULL) {
        ring->lent++;
    } else {
        ring_writer_give_back(&ring->writer, slot);
    }
    return buffer;
}

static void lay_out(AVFrame *frame, const struct ring_layout *layout)
{
    uint8_t *data = frame->buf[0]->data;

    data += (RING_ALIGNMENT - (uintptr_t)data % RING_ALIGNMENT) % RING_ALIGNMENT;
    for (int plane = 0; plane < 3; plane++) {
        frame->data[plane] = data + layout->offset[plane];
        frame->linesize[plane] = layout->stride[plane];
    }
    frame->extended_data = frame->data;
}

bool rings_take(struct rings *rings, AVFrame *frame)
{
    struct ring_writer *writer = NULL;
    uint64_t number = 0;
    int slot = -1;

    if (rings_need(&writer, &number, rings, (uint32_t)frame->width, (uint32_t)frame->height,
                   NULL) == 0) {
        slot = ring_writer_lend(writer, rings->control);
    }
    frame->buf[0] = slot >= 0 ? lend_slot(rings->first, slot) : NULL;
    if (frame->buf[0] == NULL) {
        return false;
    }
    lay_out(frame, &writer->layout);
    return true;
}

void rings_trim(struct rings *rings)
{
    for (struct shared_ring *ring = rings->first; ring != NULL; ring = ring->next) {
        ring_writer_trim(&ring->writer, rings->control);
    }
}

int rings_lend(struct rings *rings, AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct ring_writer *writer = NULL;
    uint64_t number = 0;
    int slot;

    if (!is_suited(decoder, frame) ||
        rings_need(&writer, &number, rings, (uint32_t)decoder->width, (uint32_t)decoder->height,
                   NULL) != 0 ||
        !has_room(&writer->layout, decoder, frame)) {
        return avcodec_default_get_buffer2(decoder, frame, flags);
    }
    slot = ring_writer_lend(writer, rings->control);
    frame->buf[0] = slot >= 0 ? lend_slot(rings->first, slot) : lend_spare(rings, &writer->layout);
    if (frame->buf[0] == NULL) {
        return AVERROR(ENOMEM);
    }
    lay_out(frame, &writer->layout);
    return 0;
}
