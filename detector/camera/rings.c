#include "detector/camera/rings.h"

#include "base/invariant.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

static void ring_free(struct ring *ring)
{
    ring_unmap(ring->memory, &ring->layout);
    (void)close(ring->fd);
    free(ring);
}

/* Frees the rings that are neither `kept` nor lent from. The parent has its own mapping of frames
 * that it holds. */
static void sweep(struct rings *rings, const struct ring *kept)
{
    struct ring *ring = NULL, *next = NULL;

    LL_FOREACH_SAFE (rings->first, ring, next) {
        if (ring != kept && ring->lent == 0) {
            LL_DELETE(rings->first, ring);
            ring_free(ring);
        }
    }
}

void rings_fini(struct rings *rings)
{
    sweep(rings, NULL);
}

int rings_need(struct ring **ret, struct rings *rings, uint32_t width, uint32_t height,
               struct baton_error *reterr)
{
    struct ring *ring = rings->first;
    int rc;

    if (ring == NULL || (uint32_t)ring->layout.width != width ||
        (uint32_t)ring->layout.height != height) {
        ring = calloc(1, sizeof(*ring));
        if (ring == NULL) {
            return error_set(reterr, BATON_ENOMEM, "out of memory for a ring");
        }
        rc = ring_layout(&ring->layout, width, height)
                 ? ring_make(&ring->memory, &ring->fd, &ring->layout, reterr)
                 : ring_refuse(reterr, width, height);
        if (rc != 0) {
            free(ring);
            return rc;
        }
        ring->rings = rings;
        ring->number = ++rings->made;
        LL_PREPEND(rings->first, ring);
        sweep(rings, ring);
    }
    *ret = ring;
    return 0;
}

/* ---- slots ---- */

uint8_t *ring_plane(const struct ring *ring, int slot, int plane)
{
    INVARIANT(slot >= 0 && slot < ring->layout.slots && plane >= 0 && plane < 3);
    return ring->memory + (size_t)slot * ring->layout.slot_bytes + ring->layout.offset[plane];
}

static bool is_free(const struct ring *ring, int slot)
{
    return (ring->lent & 1U << slot) == 0 && ring->shown[slot] == 0;
}

int ring_free_slot(struct ring *ring)
{
    for (int slot = 0; slot < ring->layout.slots; slot++) {
        if (is_free(ring, slot)) {
            ring->used |= 1U << slot;
            ring->recent |= 1U << slot;
            return slot;
        }
    }
    return -1;
}

void ring_show(struct ring *ring, int slot)
{
    ring->shown[slot]++;
}

void rings_give_back(struct rings *rings, uint64_t number, uint32_t slot)
{
    for (struct ring *ring = rings->first; ring != NULL; ring = ring->next) {
        if (ring->number == number && slot < RING_SLOTS && ring->shown[slot] > 0) {
            ring->shown[slot]--;
        }
    }
}

void rings_trim(struct rings *rings, bool keeps_recent)
{
    for (struct ring *ring = rings->first; ring != NULL; ring = ring->next) {
        uint32_t idle = keeps_recent ? ring->used & ~ring->recent : ring->used;
        ring->recent = 0;
        for (int slot = 0; slot < ring->layout.slots; slot++) {
            if ((idle & 1U << slot) != 0 && is_free(ring, slot) &&
                madvise(ring_plane(ring, slot, 0), ring->layout.slot_bytes, MADV_REMOVE) == 0) {
                ring->used &= ~(1U << slot);
            }
        }
    }
}

static bool lies_in(const struct ring *ring, const AVFrame *frame, int slot)
{
    for (int plane = 0; plane < 3; plane++) {
        if (frame->data[plane] != ring_plane(ring, slot, plane) ||
            frame->linesize[plane] != ring->layout.stride[plane]) {
            return false;
        }
    }
    return frame->width == ring->layout.width && frame->height == ring->layout.height;
}

struct ring *rings_find(struct rings *rings, const AVFrame *frame, int *ret_slot)
{
    for (struct ring *ring = rings->first; ring != NULL; ring = ring->next) {
        for (int slot = 0; slot < ring->layout.slots; slot++) {
            if ((ring->lent & 1U << slot) != 0 && lies_in(ring, frame, slot)) {
                *ret_slot = slot;
                return ring;
            }
        }
    }
    return NULL;
}

/* ---- lending ---- */

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is the library's */
static void give_back(void *opaque, uint8_t *data)
{
    struct ring *ring = opaque;
    size_t slot = (size_t)(data - ring->memory) / ring->layout.slot_bytes;

    INVARIANT((ring->lent & 1U << slot) != 0);
    ring->lent &= ~(1U << slot);
    sweep(ring->rings, ring->rings->first);
}

/* Returns NULL if the remaining slots are needed for copies, and for what the parent has. */
static AVBufferRef *lend_slot(struct ring *ring)
{
    AVBufferRef *buffer = NULL;
    int slot = -1;

    if (__builtin_popcount(ring->lent) < ring->layout.slots - RING_SHOWN_MAX - 1) {
        slot = ring_free_slot(ring);
    }
    if (slot >= 0) {
        buffer = av_buffer_create(ring_plane(ring, slot, 0), ring->layout.slot_bytes, give_back,
                                  ring, 0);
    }
    if (buffer != NULL) {
        ring->lent |= 1U << slot;
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

bool rings_take(struct rings *rings, AVFrame *frame, int width, int height)
{
    struct ring *ring;

    frame->buf[0] = rings_need(&ring, rings, (uint32_t)width, (uint32_t)height, NULL) == 0
                        ? lend_slot(ring)
                        : NULL;
    if (frame->buf[0] != NULL) {
        lay_out(frame, &ring->layout);
    }
    return frame->buf[0] != NULL;
}

/* Pictures of a decoder may lie in a ring if it writes each once and then only reads it. These two
 * codecs do, and cameras use few others. */
static bool is_suited(const AVCodecContext *decoder, const AVFrame *frame)
{
    return (decoder->codec_id == AV_CODEC_ID_H264 || decoder->codec_id == AV_CODEC_ID_HEVC) &&
           (decoder->codec->capabilities & AV_CODEC_CAP_DR1) != 0 &&
           (frame->format == AV_PIX_FMT_YUV420P || frame->format == AV_PIX_FMT_YUVJ420P);
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

int rings_lend(struct rings *rings, AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct ring_layout layout;

    if (!is_suited(decoder, frame) ||
        !ring_layout(&layout, (uint32_t)decoder->width, (uint32_t)decoder->height) ||
        !has_room(&layout, decoder, frame)) {
        return avcodec_default_get_buffer2(decoder, frame, flags);
    }
    if (rings_take(rings, frame, layout.width, layout.height)) {
        return 0;
    }
    /* Elsewhere, laid out as in a slot, because some decoders need rows of constant length. */
    frame->buf[0] = av_buffer_allocz(layout.slot_bytes + RING_ALIGNMENT);
    if (frame->buf[0] == NULL) {
        return AVERROR(ENOMEM);
    }
    lay_out(frame, &layout);
    return 0;
}
