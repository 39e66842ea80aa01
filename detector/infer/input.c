#include "detector/infer/input.h"

enum { PADDING = 114, BYTE_MAX = 255, CHANNELS = 3 };

/* The number of a pixel of 0 to 1 is pixel * factor + term. */
struct line {
    float factor, term;
};

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
    if (step == 1) { /* a loop of its own, which compilers vectorize */
        for (int x = from; x < to; x++) {
            row[x] = value;
        }
        return;
    }
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
int input_make(struct picture_scaler *scaler, const struct pipeline_input *input,
               const struct frame *frame, const int rect[4], float *values, struct fit *ret,
               struct baton_error *reterr)
{
    bool is_planar = input->layout == LAYOUT_NCHW;
    size_t step = is_planar ? 1 : CHANNELS;
    size_t row = (size_t)input->width * step;
    size_t plane = is_planar ? row * (size_t)input->height : 1;
    struct picture_target target = {.to_pixel = step, .to_row = row};
    struct fit fit;
    size_t begin;
    int code;

    fit_init(&fit, rect, input->width, input->height, input->is_letterboxed);
    begin = (size_t)fit.inner[1] * row + (size_t)fit.inner[0] * step;
    target.width = fit.inner[2];
    target.height = fit.inner[3];
    for (size_t i = 0; i < CHANNELS; i++) {
        target.colours[i] =
            values + begin + plane * (input->color == COLOR_RGB ? i : CHANNELS - 1 - i);
    }
    code = picture_convert(scaler, frame, fit.source, &target, reterr);
    for (int channel = 0; channel < CHANNELS && !code; channel++) {
        struct line line = line_of(input, channel);
        float *at = values + (size_t)channel * plane;
        if (line.factor != 1 || line.term != 0) {
            for (int y = 0; y < fit.inner[3]; y++) {
                float *inside = at + begin + (size_t)y * row;
                for (size_t x = 0; x < (size_t)fit.inner[2] * step; x += step) {
                    inside[x] = inside[x] * line.factor + line.term;
                }
            }
        }
        pad(at, &fit, step, padding_of(line));
    }
    if (!code) {
        *ret = fit;
    }
    return code;
}
