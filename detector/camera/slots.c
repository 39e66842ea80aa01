#include "detector/camera/slots.h"

#include "base/invariant.h"

#include <sys/mman.h>

uint8_t *slots_at(const struct slots *slots, int slot)
{
    INVARIANT(slot >= 0 && slot < RING_SLOTS);
    return slots->memory + (size_t)slot * RING_STRIDE;
}

static bool is_free(const struct slots *slots, int slot)
{
    return ((slots->lent | slots->shown) & 1U << slot) == 0;
}

static void trim(struct slots *slots, int slot)
{
    (void)madvise(slots_at(slots, slot), slots->used[slot], MADV_REMOVE);
    slots->used[slot] = 0;
}

int slots_find_free(struct slots *slots, const struct ring_layout *layout)
{
    int slot = 0;

    while (slot < RING_SLOTS && !is_free(slots, slot)) {
        slot++;
    }
    if (slot == RING_SLOTS) {
        return -1;
    }
    if (slots->used[slot] > layout->bytes) {
        trim(slots, slot); /* its last picture was larger */
    }
    slots->used[slot] = layout->bytes;
    slots->recent |= 1U << slot;
    return slot;
}

void slots_show(struct slots *slots, int slot)
{
    slots->shown |= 1U << slot;
}

void slots_give_back(struct slots *slots, uint32_t slot)
{
    slots->shown &= slot < RING_SLOTS ? ~(1U << slot) : UINT32_MAX;
}

void slots_trim(struct slots *slots, bool keeps_recent)
{
    uint32_t kept = keeps_recent ? slots->recent : 0;

    slots->recent = 0;
    for (int slot = 0; slot < RING_SLOTS; slot++) {
        if (slots->used[slot] > 0 && (kept & 1U << slot) == 0 && is_free(slots, slot)) {
            trim(slots, slot);
        }
    }
}

static bool lies_at(const uint8_t *at, const struct ring_layout *layout, const AVFrame *frame)
{
    for (int plane = 0; plane < 3; plane++) {
        if (frame->data[plane] != at + layout->offset[plane] ||
            frame->linesize[plane] != layout->stride[plane]) {
            return false;
        }
    }
    return true;
}

int slots_find(const struct slots *slots, const struct ring_layout *layout, const AVFrame *frame)
{
    size_t slot = ((uintptr_t)frame->data[0] - (uintptr_t)slots->memory) / RING_STRIDE;
    bool is_there = slot < RING_SLOTS && (slots->lent & ~slots->shown & 1U << slot) != 0;

    return is_there && lies_at(slots_at(slots, (int)slot), layout, frame) ? (int)slot : -1;
}

/* ---- lending ---- */

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is the library's */
static void give_back(void *opaque, uint8_t *data)
{
    struct slots *slots = opaque;
    size_t slot = (size_t)(data - slots->memory) / RING_STRIDE;

    INVARIANT((slots->lent & 1U << slot) != 0);
    slots->lent &= ~(1U << slot);
}

/* Returns NULL if the remaining slot is needed for copies. */
static AVBufferRef *lend_slot(struct slots *slots, const struct ring_layout *layout)
{
    AVBufferRef *buffer = NULL;
    int slot = -1;

    if (__builtin_popcount(slots->lent | slots->shown) < RING_SLOTS - 1) {
        slot = slots_find_free(slots, layout);
    }
    if (slot >= 0) {
        buffer = av_buffer_create(slots_at(slots, slot), layout->bytes, give_back, slots, 0);
    }
    if (buffer != NULL) {
        slots->lent |= 1U << slot;
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

bool slots_take(struct slots *slots, const struct ring_layout *layout, AVFrame *frame)
{
    frame->buf[0] = lend_slot(slots, layout);
    if (frame->buf[0] != NULL) {
        lay_out(frame, layout);
    }
    return frame->buf[0] != NULL;
}

/* Pictures of a decoder may lie in the ring if it writes each once and then only reads it. These
 * two codecs do, and cameras use few others. */
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

int slots_lend(struct slots *slots, const struct ring_layout *layout, AVCodecContext *decoder,
               AVFrame *frame, int flags)
{
    if (!is_suited(decoder, frame) || !has_room(layout, decoder, frame)) {
        return avcodec_default_get_buffer2(decoder, frame, flags);
    }
    if (slots_take(slots, layout, frame)) {
        return 0;
    }
    /* Elsewhere, laid out as in a slot, because some decoders need rows of constant length. */
    frame->buf[0] = av_buffer_allocz(layout->bytes + RING_ALIGNMENT);
    if (frame->buf[0] == NULL) {
        return AVERROR(ENOMEM);
    }
    lay_out(frame, layout);
    return 0;
}
