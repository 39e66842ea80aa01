#include "detector/infer/input.h"

#include <stdlib.h>

enum { PADDING = 114, BYTE_MAX = 255, CHANNELS = 3 };

struct input_maker {
    struct picture_scaler *scaler;
    uint8_t *bytes; /* interleaved pixels, for models that want them so */
    size_t bytes_count;
};

/* The number of a pixel of 0 to 1 is pixel * factor + term. */
struct line {
    float factor, term;
};

struct input_maker *input_maker_new(void)
{
    struct input_maker *maker = calloc(1, sizeof(*maker));

    if (maker) {
        maker->scaler = picture_scaler_new();
    }
    if (maker && !maker->scaler) {
        free(maker);
        return NULL;
    }
    return maker;
}

void input_maker_free(struct input_maker *maker)
{
    if (maker) {
        picture_scaler_free(maker->scaler);
        free(maker->bytes);
        free(maker);
    }
}

static struct line line_of(const struct pipeline_input *input, int channel)
{
    return (struct line){.factor = input->scale * BYTE_MAX / input->std[channel],
                         .term = -input->mean[channel] / input->std[channel]};
}

static float padding_of(struct line line)
{
    return (float)PADDING / BYTE_MAX * line.factor + line.term;
}

static void fill(float *row, int from, int to, size_t step, float value)
{
    for (int x = from; x < to; x++) {
        row[(size_t)x * step] = value;
    }
}

/* Sets every number outside of the inner rectangle; a pixel has `step` numbers. */
static void pad(float *plane, const struct fit *fit, size_t step, float padding)
{
    int left = fit->inner[0];
    int top = fit->inner[1];
    int right = left + fit->inner[2];
    int bottom = top + fit->inner[3];

    for (int y = 0; y < fit->height; y++) {
        float *row = plane + (size_t)y * (size_t)fit->width * step;
        bool is_inside = y >= top && y < bottom;
        fill(row, 0, is_inside ? left : fit->width, step, padding);
        fill(row, is_inside ? right : fit->width, fit->width, step, padding);
    }
}

/* The scaler writes numbers of 0 to 1 into the input itself; most models need no others. */
static int make_planar(struct input_maker *maker, const struct pipeline_input *input,
                       const struct camera_frame *frame, const struct fit *fit, float *values,
                       struct baton_error *reterr)
{
    size_t width = (size_t)fit->width;
    size_t plane = width * (size_t)fit->height;
    size_t begin = (size_t)fit->inner[1] * width + (size_t)fit->inner[0];
    const struct picture_target target = {
        .layout = input->color == COLOR_RGB ? PIXELS_RGB_PLANAR_F32 : PIXELS_BGR_PLANAR_F32,
        .width = fit->inner[2],
        .height = fit->inner[3],
        .pixels = values + begin,
        .row_bytes = width * sizeof(float),
        .plane_bytes = plane * sizeof(float)};
    int code = picture_convert(maker->scaler, frame, fit->source, &target, reterr);

    for (int channel = 0; channel < CHANNELS && !code; channel++) {
        struct line line = line_of(input, channel);
        float *at = values + (size_t)channel * plane;
        if (line.factor != 1 || line.term != 0) {
            for (int y = 0; y < fit->inner[3]; y++) {
                float *row = at + begin + (size_t)y * width;
                for (int x = 0; x < fit->inner[2]; x++) {
                    row[x] = row[x] * line.factor + line.term;
                }
            }
        }
        pad(at, fit, 1, padding_of(line));
    }
    return code;
}

static int make_interleaved(struct input_maker *maker, const struct pipeline_input *input,
                            const struct camera_frame *frame, const struct fit *fit, float *values,
                            struct baton_error *reterr)
{
    enum pixel_layout layout = input->color == COLOR_RGB ? PIXELS_RGB : PIXELS_BGR;
    size_t row_bytes = (size_t)fit->inner[2] * CHANNELS;
    size_t bytes = picture_bytes(layout, fit->inner[2], fit->inner[3]);
    struct picture_target target = {
        .layout = layout, .width = fit->inner[2], .height = fit->inner[3]};
    int code;

    if (bytes > maker->bytes_count) {
        uint8_t *larger = realloc(maker->bytes, bytes);
        if (!larger) {
            return error_set(reterr, BATON_ENOMEM, "out of memory");
        }
        maker->bytes = larger;
        maker->bytes_count = bytes;
    }
    target.pixels = maker->bytes;
    code = picture_convert(maker->scaler, frame, fit->source, &target, reterr);
    for (int channel = 0; channel < CHANNELS && !code; channel++) {
        struct line line = line_of(input, channel);
        for (int y = 0; y < fit->inner[3]; y++) {
            const uint8_t *from = maker->bytes + (size_t)y * row_bytes + channel;
            float *to = values + channel +
                        ((size_t)(fit->inner[1] + y) * (size_t)fit->width + (size_t)fit->inner[0]) *
                            CHANNELS;
            for (size_t x = 0; x < row_bytes; x += CHANNELS) {
                to[x] = (float)from[x] / BYTE_MAX * line.factor + line.term;
            }
        }
        pad(values + channel, fit, CHANNELS, padding_of(line));
    }
    return code;
}

int input_make(struct input_maker *maker, const struct pipeline_input *input,
               const struct camera_frame *frame, const int rect[4], float *values, struct fit *ret,
               struct baton_error *reterr)
{
    struct fit fit;
    int code = fit_init(&fit, rect, input->width, input->height, input->is_letterboxed, reterr);

    if (!code) {
        code = input->layout == LAYOUT_NCHW
                   ? make_planar(maker, input, frame, &fit, values, reterr)
                   : make_interleaved(maker, input, frame, &fit, values, reterr);
    }
    if (!code) {
        *ret = fit;
    }
    return code;
}
