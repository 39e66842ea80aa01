/* From a frame to a JPEG: cut, scaled down, compressed. */
#include "detector/image.h"

#include "base/error.h"

#include <libavutil/pixfmt.h>
#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

/* One axis: the even begin and the length from low to high within 0 … size. */
static void crop_axis(bool has_low, int low, bool has_high, int high, int size, int *begin,
                      int *length)
{
    int end = has_high && high < size ? high : size;

    *begin = has_low ? low : 0;
    *begin = *begin > size - 2 ? (size > 2 ? size - 2 : 0) : *begin;
    *begin -= *begin % 2;
    *length = end - *begin;
    if (*length < 2) {
        *length = size - *begin < 2 ? size - *begin : 2;
    }
}

void image_crop_rect(const struct crop *crop, int width, int height, int rect[4])
{
    unsigned given = crop->given;

    crop_axis(given & 1u << CROP_X1, crop->at[CROP_X1], given & 1u << CROP_X2, crop->at[CROP_X2],
              width, &rect[0], &rect[2]);
    crop_axis(given & 1u << CROP_Y1, crop->at[CROP_Y1], given & 1u << CROP_Y2, crop->at[CROP_Y2],
              height, &rect[1], &rect[3]);
}

void image_shape(struct image_shape *ret, const struct frame *frame, const struct crop *crop,
                 int width)
{
    static const struct crop all = {0};
    struct image_shape shape = {0};
    const int *rect = shape.rect;

    image_crop_rect(crop != NULL ? crop : &all, frame->width, frame->height, shape.rect);
    shape.width = rect[2];
    shape.height = rect[3];
    if (width > 0 && width < rect[2]) {
        shape.width = width;
        shape.height = (int)(((int64_t)rect[3] * width + rect[2] / 2) / rect[2]);
        shape.height += shape.height == 0;
    }
    *ret = shape;
}

/* A cut is an offset into the planes: nothing is copied. */
static struct frame cut(const struct frame *frame, const int rect[4])
{
    struct frame part = {.width = rect[2], .height = rect[3]};

    for (int i = 0; i < 3; i++) {
        int shift = i > 0;
        part.stride[i] = frame->stride[i];
        part.plane[i] =
            frame->plane[i] + (ptrdiff_t)(rect[1] >> shift) * frame->stride[i] + (rect[0] >> shift);
    }
    return part;
}

/* The memory of the planes, for free(); NULL: it cannot be done. */
static uint8_t *scale(const struct frame *from, int width, int height, struct frame *to)
{
    /* swscale writes whole vectors: rows of 64 bytes and some room behind the last one. */
    int stride = (width + 63) / 64 * 64;
    size_t luma = (size_t)stride * (size_t)height;
    size_t chroma = (size_t)stride * (size_t)((height + 1) / 2);
    uint8_t *memory = aligned_alloc(64, luma + 2 * chroma + 64);
    struct SwsContext *scaler =
        sws_getContext(from->width, from->height, AV_PIX_FMT_YUV420P, width, height,
                       AV_PIX_FMT_YUV420P, SWS_AREA, NULL, NULL, NULL);
    bool is_done = false;

    if (memory != NULL && scaler != NULL) {
        uint8_t *planes[3] = {memory, memory + luma, memory + luma + chroma};
        int strides[3] = {stride, stride, stride};
        is_done = sws_scale(scaler, (const uint8_t *const *)from->plane, from->stride, 0,
                            from->height, planes, strides) == height;
        *to = (struct frame){
            width, height, {stride, stride, stride}, {planes[0], planes[1], planes[2]}};
    }
    sws_freeContext(scaler);
    if (!is_done) {
        free(memory);
        return NULL;
    }
    return memory;
}

static int compress(const struct frame *frame, uint8_t **jpeg, size_t *bytes,
                    struct baton_error *reterr)
{
    tjhandle compressor = tjInitCompress();
    const unsigned char *planes[3] = {frame->plane[0], frame->plane[1], frame->plane[2]};
    unsigned char *made = NULL;
    unsigned long made_bytes = 0;
    int rc = 0;

    if (compressor == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    }
    if (tjCompressFromYUVPlanes(compressor, planes, frame->width, frame->stride, frame->height,
                                TJSAMP_420, &made, &made_bytes, IMAGE_QUALITY, 0) != 0) {
        rc = error_set(reterr, BATON_EIO, "JPEG of %dx%d: %s", frame->width, frame->height,
                       tjGetErrorStr2(compressor));
        tjFree(made);
    } else {
        *jpeg = made;
        *bytes = made_bytes;
    }
    (void)tjDestroy(compressor);
    return rc;
}

int image_compress(const struct frame *frame, const struct image_shape *shape, uint8_t **jpeg,
                   size_t *bytes, struct baton_error *reterr)
{
    struct frame part = cut(frame, shape->rect);
    struct frame scaled;
    uint8_t *memory;
    int rc;

    if (shape->width == part.width && shape->height == part.height) {
        return compress(&part, jpeg, bytes, reterr);
    }
    memory = scale(&part, shape->width, shape->height, &scaled);
    if (memory == NULL) {
        return error_set(reterr, BATON_EIO, "a picture of %dx%d cannot be scaled to %dx%d",
                         part.width, part.height, shape->width, shape->height);
    }
    rc = compress(&scaled, jpeg, bytes, reterr);
    free(memory);
    return rc;
}
