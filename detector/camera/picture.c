#include "detector/camera/picture.h"

#include "base/error.h"
#include "detector/camera/floats.h"

#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAFE_WIDTH = 32,     /* rows of a multiple of it are written to their end and no further */
    BOUNCE_SLACK = 1024, /* bytes that other rows are written past the last one */
};

struct picture_scaler {
    struct SwsContext *context;
    uint8_t *bounce; /* owned; for widths that libswscale would write past */
    size_t bounce_bytes;
    struct floats floats;
};

/* FFmpeg's planar RGB has its planes in the order G, B, R; `order` is the position of each of ours.
 */
static const struct {
    enum AVPixelFormat format;
    int sample_bytes;
    bool is_planar;
    int order[3];
} layouts[] = {
    [PIXELS_RGB] = {AV_PIX_FMT_RGB24, 1, false, {0}},
    [PIXELS_BGR] = {AV_PIX_FMT_BGR24, 1, false, {0}},
    [PIXELS_RGB_PLANAR] = {AV_PIX_FMT_GBRP, 1, true, {1, 2, 0}},
    [PIXELS_BGR_PLANAR] = {AV_PIX_FMT_GBRP, 1, true, {1, 0, 2}},
    [PIXELS_RGB_PLANAR_F32] = {AV_PIX_FMT_GBRPF32, 4, true, {1, 2, 0}},
    [PIXELS_BGR_PLANAR_F32] = {AV_PIX_FMT_GBRPF32, 4, true, {1, 0, 2}},
};

size_t picture_bytes(enum pixel_layout layout, int width, int height)
{
    return (size_t)width * (size_t)height * 3 * (size_t)layouts[layout].sample_bytes;
}

struct picture_scaler *picture_scaler_new(void)
{
    return calloc(1, sizeof(struct picture_scaler));
}

void picture_scaler_free(struct picture_scaler *scaler)
{
    if (scaler != NULL) {
        sws_freeContext(scaler->context);
        floats_fini(&scaler->floats);
        free(scaler->bounce);
        free(scaler);
    }
}

static bool is_within(const struct frame *frame, const int rect[4])
{
    return rect[0] >= 0 && rect[1] >= 0 && rect[2] > 0 && rect[3] > 0 &&
           rect[2] <= frame->width - rect[0] && rect[3] <= frame->height - rect[1];
}

static int check(const struct frame *frame, const int rect[4], const struct picture_target *target,
                 struct baton_error *reterr)
{
    if (!is_within(frame, rect)) {
        return error_set(reterr, BATON_EINVAL, "cut of %dx%d at %d,%d: not within %dx%d", rect[2],
                         rect[3], rect[0], rect[1], frame->width, frame->height);
    }
    if (target->width < 1 || target->height < 1 || target->width > IMAGE_PIXELS_MAX ||
        target->height > IMAGE_PIXELS_MAX || target->layout >= PIXEL_LAYOUTS) {
        return error_set(reterr, BATON_EINVAL, "picture of %dx%d: sides must be 1 to %d",
                         target->width, target->height, IMAGE_PIXELS_MAX);
    }
    return 0;
}

static int prepare(struct picture_scaler *scaler, const struct camera_frame *frame,
                   const int rect[4], const struct picture_target *target,
                   struct baton_error *reterr)
{
    const int *matrix = sws_getCoefficients(frame->is_bt709 ? SWS_CS_ITU709 : SWS_CS_ITU601);

    scaler->context = sws_getCachedContext(
        scaler->context, rect[2], rect[3], AV_PIX_FMT_YUV420P, target->width, target->height,
        layouts[target->layout].format, SWS_BILINEAR | SWS_ACCURATE_RND, NULL, NULL, NULL);
    if (scaler->context == NULL) {
        return error_set(reterr, BATON_ENOMEM, "picture of %dx%d to %dx%d: cannot be scaled",
                         rect[2], rect[3], target->width, target->height);
    }
    (void)sws_setColorspaceDetails(scaler->context, matrix, frame->is_full_range,
                                   sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    return 0;
}

struct planes {
    int count;
    int strides[4];
    uint8_t *at[4];
};

static size_t row_of(const struct picture_target *target)
{
    return (size_t)target->width * (size_t)layouts[target->layout].sample_bytes *
           (layouts[target->layout].is_planar ? 1 : 3);
}

/* Finds where the planes begin in the caller's memory. */
static struct planes place(const struct picture_target *target)
{
    struct planes planes = {.count = layouts[target->layout].is_planar ? 3 : 1};
    size_t row_bytes = target->row_bytes > 0 ? target->row_bytes : row_of(target);
    size_t plane_bytes =
        target->plane_bytes > 0 ? target->plane_bytes : row_bytes * (size_t)target->height;

    for (int plane = 0; plane < planes.count; plane++) {
        planes.at[plane] =
            (uint8_t *)target->pixels + plane_bytes * (size_t)layouts[target->layout].order[plane];
        planes.strides[plane] = (int)row_bytes;
    }
    return planes;
}

/* Allocates planes with room to write past every row; false: out of memory. */
static bool place_bounce(struct picture_scaler *scaler, const struct picture_target *target,
                         struct planes *ret)
{
    struct planes planes = {.count = layouts[target->layout].is_planar ? 3 : 1};
    size_t row = (row_of(target) + BOUNCE_SLACK + (BOUNCE_SLACK - 1)) / BOUNCE_SLACK * BOUNCE_SLACK;
    size_t bytes = row * (size_t)target->height * (size_t)planes.count + BOUNCE_SLACK;

    if (bytes > scaler->bounce_bytes) {
        uint8_t *larger = realloc(scaler->bounce, bytes);
        if (larger == NULL) {
            return false;
        }
        scaler->bounce = larger;
        scaler->bounce_bytes = bytes;
    }
    for (int plane = 0; plane < planes.count; plane++) {
        planes.at[plane] = scaler->bounce + row * (size_t)target->height * (size_t)plane;
        planes.strides[plane] = (int)row;
    }
    *ret = planes;
    return true;
}

static void copy_rows(const struct planes *to, const struct planes *from,
                      const struct picture_target *target)
{
    for (int plane = 0; plane < to->count; plane++) {
        for (int y = 0; y < target->height; y++) {
            memcpy(to->at[plane] + (ptrdiff_t)to->strides[plane] * y,
                   from->at[plane] + (ptrdiff_t)from->strides[plane] * y, row_of(target));
        }
    }
}

static bool is_of_floats(const struct picture_target *target)
{
    return layouts[target->layout].sample_bytes == (int)sizeof(float);
}

/* libswscale's conversion to floats takes several times as long. */
static int convert_to_floats(struct picture_scaler *scaler, const struct camera_frame *frame,
                             const int rect[4], const struct picture_target *target,
                             struct baton_error *reterr)
{
    const struct planes planes = place(target);
    const struct float_planes floats = {
        .width = target->width,
        .height = target->height,
        .plane = {(void *)planes.at[2], (void *)planes.at[0], (void *)planes.at[1]},
        .stride = (size_t)planes.strides[0] / sizeof(float)};

    return floats_make(&scaler->floats, frame, rect, &floats, reterr);
}

int picture_convert(struct picture_scaler *scaler, const struct camera_frame *frame,
                    const int rect[4], const struct picture_target *target,
                    struct baton_error *reterr)
{
    const struct frame *from = &frame->picture;
    const int whole[4] = {0, 0, from->width, from->height};
    const uint8_t *sources[4] = {0};
    int source_strides[4] = {0};
    struct planes planes, bounce;
    bool bounces = target->width % SAFE_WIDTH != 0;
    int rc;

    rect = rect != NULL ? rect : whole;
    rc = check(from, rect, target, reterr);
    if (rc == 0 && is_of_floats(target)) {
        return convert_to_floats(scaler, frame, rect, target, reterr);
    }
    rc = rc ? rc : prepare(scaler, frame, rect, target, reterr);
    if (rc != 0) {
        return rc;
    }
    for (int plane = 0; plane < 3; plane++) {
        int shift = plane > 0; /* chroma of an odd edge begins at the even one before it */
        source_strides[plane] = from->stride[plane];
        sources[plane] = from->plane[plane] + (ptrdiff_t)from->stride[plane] * (rect[1] >> shift) +
                         (rect[0] >> shift);
    }
    planes = place(target);
    if (bounces && !place_bounce(scaler, target, &bounce)) {
        return error_set(reterr, BATON_ENOMEM, "picture of %dx%d: out of memory", target->width,
                         target->height);
    }
    (void)sws_scale(scaler->context, sources, source_strides, 0, rect[3],
                    bounces ? bounce.at : planes.at, bounces ? bounce.strides : planes.strides);
    if (bounces) {
        copy_rows(&planes, &bounce, target);
    }
    return 0;
}
