/* From a frame to a JPEG: cut, scaled down, drawn on, compressed. */
#include "detector/image.h"

#include "base/error.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libswscale/swscale.h>
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
                 int width, const struct image_boxes *boxes)
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
    if (boxes != NULL) {
        shape.box_count = boxes->count;
        memcpy(shape.boxes, boxes->boxes, boxes->count * sizeof(*boxes->boxes));
    }
    *ret = shape;
}

/* A cut is an offset into the planes: nothing is copied, least of all what the loop writes. */
static struct frame cut(const struct frame *frame, const int rect[4])
{
    struct frame part = {.width = rect[2],
                         .height = rect[3],
                         .is_full_range = frame->is_full_range,
                         .is_bt709 = frame->is_bt709};

    for (int i = 0; i < 3; i++) {
        int shift = i > 0;
        part.stride[i] = frame->stride[i];
        part.plane[i] =
            frame->plane[i] + (ptrdiff_t)(rect[1] >> shift) * frame->stride[i] + (rect[0] >> shift);
    }
    return part;
}

/* Makes a picture of that format, as large as the frame or scaled, with its matrix; its range
 * stays, but is full for red, green and blue. The planes of `ret` are for av_freep(), also on
 * failure. */
static int convert(struct frame *ret, const struct frame *from, const struct image_shape *shape,
                   enum AVPixelFormat format, struct baton_error *reterr)
{
    const int *matrix = sws_getCoefficients(from->is_bt709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
    uint8_t *planes[4] = {NULL};
    struct SwsContext *scaler;
    bool is_done;

    *ret = (struct frame){.width = shape->width,
                          .height = shape->height,
                          .is_full_range = from->is_full_range || format == AV_PIX_FMT_RGB24,
                          .is_bt709 = from->is_bt709};
    /* swscale writes whole vectors: 64 bytes, and av_image_alloc leaves room behind the last. */
    if (av_image_alloc(planes, ret->stride, ret->width, ret->height, format, 64) < 0) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a picture");
    }
    memcpy(ret->plane, planes, sizeof(planes));
    scaler = sws_getContext(from->width, from->height, AV_PIX_FMT_YUV420P, ret->width, ret->height,
                            format, SWS_AREA, NULL, NULL, NULL);
    is_done = scaler != NULL &&
              sws_setColorspaceDetails(scaler, matrix, from->is_full_range, matrix,
                                       ret->is_full_range, 0, 1 << 16, 1 << 16) >= 0 &&
              sws_scale(scaler, from->plane, from->stride, 0, from->height, planes, ret->stride) ==
                  ret->height;
    sws_freeContext(scaler);
    return is_done ? 0
                   : error_set(reterr, BATON_EIO, "a picture of %dx%d cannot be scaled to %dx%d",
                               from->width, from->height, ret->width, ret->height);
}

/* ---- boxes ---- */

static int clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* Corners may lie outside. */
static void fill(const struct frame *canvas, int left, int top, int right, int bottom,
                 const uint8_t colour[3])
{
    left = clamp(left, canvas->width);
    right = clamp(right, canvas->width);
    bottom = clamp(bottom, canvas->height);
    for (int y = clamp(top, canvas->height); y < bottom; y++) {
        uint8_t *row = (uint8_t *)canvas->plane[0] + (ptrdiff_t)y * canvas->stride[0];
        for (int x = left; x < right; x++) {
            memcpy(row + (ptrdiff_t)x * 3, colour, 3);
        }
    }
}

static int scaled(int64_t value, int64_t to, int64_t from)
{
    const int64_t far = INT64_C(2) * IMAGE_PIXELS_MAX;
    int64_t result = value * to / from;

    /* A box may be anywhere; what is far outside is as good as just outside. */
    return (int)(result < -far ? -far : result > far ? far : result);
}

static void draw(const struct frame *canvas, const struct image_shape *shape,
                 const struct image_box *box)
{
    static const uint8_t colours[][3] = {{0, 255, 0},   {255, 255, 0}, {255, 0, 0},
                                         {0, 255, 255}, {255, 0, 255}, {255, 255, 255}};
    const uint8_t *colour = colours[(unsigned)box->colour % (sizeof(colours) / sizeof(*colours))];
    int line = 1 + canvas->width / 400;
    int64_t x = (int64_t)box->x - shape->rect[0];
    int64_t y = (int64_t)box->y - shape->rect[1];
    int left = scaled(x, shape->width, shape->rect[2]);
    int top = scaled(y, shape->height, shape->rect[3]);
    int right = scaled(x + box->width, shape->width, shape->rect[2]);
    int bottom = scaled(y + box->height, shape->height, shape->rect[3]);

    fill(canvas, left, top, right, top + line, colour);
    fill(canvas, left, bottom - line, right, bottom, colour);
    fill(canvas, left, top, left + line, bottom, colour);
    fill(canvas, right - line, top, right, bottom, colour);
}

/* ---- JPEG ---- */

/* The library makes the range and matrix that each JPEG has. */
static int compress(const struct frame *canvas, uint8_t **jpeg, size_t *bytes,
                    struct baton_error *reterr)
{
    tjhandle compressor = tjInitCompress();
    unsigned char *made = NULL;
    unsigned long made_bytes = 0;
    int rc = 0;

    if (compressor == NULL) {
        rc = error_set(reterr, BATON_ENOMEM, "out of memory for a JPEG");
    } else if (tjCompress2(compressor, canvas->plane[0], canvas->width, canvas->stride[0],
                           canvas->height, TJPF_RGB, &made, &made_bytes, TJSAMP_420, IMAGE_QUALITY,
                           0) != 0) {
        rc = error_set(reterr, BATON_EIO, "JPEG of %dx%d: %s", canvas->width, canvas->height,
                       tjGetErrorStr2(compressor));
        tjFree(made);
    } else {
        *jpeg = made;
        *bytes = made_bytes;
    }
    (void)tjDestroy(compressor);
    return rc;
}

/* To scale first and convert what is left is faster than both in one step. */
int image_compress(const struct frame *frame, const struct image_shape *shape, uint8_t **jpeg,
                   size_t *bytes, struct baton_error *reterr)
{
    struct frame part = cut(frame, shape->rect), small = {0}, canvas = {0};
    int rc = 0;

    if (shape->width != part.width || shape->height != part.height) {
        rc = convert(&small, &part, shape, AV_PIX_FMT_YUV420P, reterr);
        part = small;
    }
    rc = rc ? rc : convert(&canvas, &part, shape, AV_PIX_FMT_RGB24, reterr);
    for (size_t i = 0; i < shape->box_count && rc == 0; i++) {
        draw(&canvas, shape, &shape->boxes[i]);
    }
    rc = rc ? rc : compress(&canvas, jpeg, bytes, reterr);
    av_freep((void *)&small.plane[0]);
    av_freep((void *)&canvas.plane[0]);
    return rc;
}
