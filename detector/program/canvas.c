#include "detector/program/canvas.h"

#include "base/error.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLOURS = 6,
    LETTER_COLUMNS = 3,
    LETTER_ROWS = 5,
    LETTER_PITCH = LETTER_COLUMNS + 1, /* dots from one letter to the next */
    LINE_DOTS = LETTER_ROWS + 2,       /* a line of text with its margins */
    LABEL_MAX = 160,
    DOT_WIDTH = 480, /* pixels of the picture's width for each pixel of a dot */
    DOT_MIN = 2,     /* pixels of a dot, at least */
};

static const uint8_t colours[COLOURS][CANVAS_CHANNELS] = {
    {255, 214, 10}, {64, 224, 255}, {255, 90, 205}, {120, 255, 90}, {255, 140, 40}, {190, 150, 255},
};
static const uint8_t black[CANVAS_CHANNELS] = {0, 0, 0};
static const uint8_t white[CANVAS_CHANNELS] = {255, 255, 255};

/* A row of a letter is an octal digit, the first one on top: its three bits are the dots. */
static const struct {
    char letter;
    uint16_t rows;
} letters[] = {
    {'A', 025755}, {'B', 065656}, {'C', 034443}, {'D', 065556}, {'E', 074647}, {'F', 074644},
    {'G', 034553}, {'H', 055755}, {'I', 072227}, {'J', 011152}, {'K', 055655}, {'L', 044447},
    {'M', 057755}, {'N', 065555}, {'O', 025552}, {'P', 065644}, {'Q', 025563}, {'R', 065655},
    {'S', 034216}, {'T', 072222}, {'U', 055557}, {'V', 055552}, {'W', 055775}, {'X', 055255},
    {'Y', 055222}, {'Z', 071247}, {'0', 075557}, {'1', 026227}, {'2', 061247}, {'3', 061216},
    {'4', 055711}, {'5', 074616}, {'6', 034652}, {'7', 071222}, {'8', 025252}, {'9', 025316},
    {' ', 000000}, {'.', 000002}, {',', 000024}, {':', 002020}, {'-', 000700}, {'_', 000007},
    {'#', 057575}, {'/', 011244}, {'+', 002720}, {'(', 012221}, {')', 042224}, {'%', 051245},
    {'?', 061202},
};

int canvas_new(struct canvas *ret, int width, int height, struct baton_error *reterr)
{
    *ret = (struct canvas){.width = width, .height = height};
    ret->pixels = calloc((size_t)width * CANVAS_CHANNELS, (size_t)height);
    return ret->pixels ? 0 : error_set(reterr, BATON_ENOMEM, "out of memory");
}

void canvas_free(struct canvas *canvas)
{
    free(canvas->pixels);
    canvas->pixels = NULL;
}

static uint8_t *pixel(const struct canvas *canvas, int x, int y)
{
    return canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * CANVAS_CHANNELS;
}

static int clamp(int value, int least, int most)
{
    return value < least ? least : value > most ? most : value;
}

static void fill(struct canvas *canvas, int left, int top, int right, int bottom,
                 const uint8_t colour[CANVAS_CHANNELS])
{
    left = clamp(left, 0, canvas->width);
    right = clamp(right, 0, canvas->width);
    top = clamp(top, 0, canvas->height);
    bottom = clamp(bottom, 0, canvas->height);
    for (int y = top; y < bottom; y++) {
        for (int x = left; x < right; x++) {
            memcpy(pixel(canvas, x, y), colour, CANVAS_CHANNELS);
        }
    }
}

void canvas_paste(struct canvas *canvas, const struct canvas *tile, int left, int top)
{
    int width = clamp(tile->width, 0, canvas->width - left);

    for (int y = 0; y < tile->height && top + y < canvas->height && width > 0; y++) {
        memcpy(pixel(canvas, left, top + y), pixel(tile, 0, y), (size_t)width * CANVAS_CHANNELS);
    }
}

/* ---- Letters -------------------------------------------------------------------------------- */

static unsigned rows_of(char letter)
{
    int capital = toupper((unsigned char)letter);

    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (letters[i].letter == capital) {
            return letters[i].rows;
        }
    }
    return 000200;
}

void canvas_text(struct canvas *canvas, int left, int top, int dot, const char *text,
                 const uint8_t ink[CANVAS_CHANNELS], const uint8_t paper[CANVAS_CHANNELS])
{
    int length = (int)strnlen(text, LABEL_MAX);

    fill(canvas, left, top, left + (length * LETTER_PITCH + 1) * dot, top + LINE_DOTS * dot, paper);
    for (int i = 0; i < length * LETTER_ROWS * LETTER_COLUMNS; i++) {
        int place = i % (LETTER_ROWS * LETTER_COLUMNS);
        int row = place / LETTER_COLUMNS;
        int column = place % LETTER_COLUMNS;
        int letter = i / (LETTER_ROWS * LETTER_COLUMNS);
        int x = left + (letter * LETTER_PITCH + 1 + column) * dot;
        int y = top + (1 + row) * dot;

        if ((rows_of(text[letter]) >> (LETTER_ROWS * LETTER_COLUMNS - 1 - place) & 1U) != 0) {
            fill(canvas, x, y, x + dot, y + dot, ink);
        }
    }
}

/* ---- Boxes and labels ----------------------------------------------------------------------- */

static void draw(struct canvas *canvas, const struct sighting *sighting, float scale, int dot)
{
    const struct box *box = sighting->box;
    const uint8_t *colour = colours[box->label < 0 ? 0 : box->label % COLOURS];
    int left = (int)lroundf(box->x * scale);
    int top = (int)lroundf(box->y * scale);
    int right = (int)lroundf((box->x + box->width) * scale);
    int bottom = (int)lroundf((box->y + box->height) * scale);
    int line = sighting->attributes ? 2 * dot : dot;
    int above = top - LINE_DOTS * dot;
    char label[LABEL_MAX];
    int length = snprintf(label, sizeof(label), "%s %.2f",
                          sighting->class_name ? sighting->class_name : "", (double)box->score);

    fill(canvas, left, top, right, top + line, colour);
    fill(canvas, left, bottom - line, right, bottom, colour);
    fill(canvas, left, top, left + line, bottom, colour);
    fill(canvas, right - line, top, right, bottom, colour);
    if (sighting->track != 0 && length > 0 && (size_t)length < sizeof(label)) {
        (void)snprintf(label + length, sizeof(label) - (size_t)length, " #%llu",
                       (unsigned long long)sighting->track);
    }
    canvas_text(canvas, left < 0 ? 0 : left, above < 0 ? bottom : above, dot, label, black, colour);
}

static void write_caption(struct canvas *canvas, const struct camera_frame *frame, int dot)
{
    char caption[LABEL_MAX];

    if (frame->pts_us == CAMERA_NO_PTS) {
        (void)snprintf(caption, sizeof(caption), "%llu", (unsigned long long)frame->number);
    } else {
        (void)snprintf(caption, sizeof(caption), "%llu: %.2f s", (unsigned long long)frame->number,
                       (double)frame->pts_us / 1e6);
    }
    canvas_text(canvas, 0, canvas->height - LINE_DOTS * dot, dot, caption, white, black);
}

int canvas_show(struct canvas *ret, struct picture_scaler *scaler,
                const struct inference_result *result, int width, struct baton_error *reterr)
{
    const struct frame *picture = &result->frame->picture;
    struct picture_target target = {.layout = PIXELS_RGB, .width = width};
    float scale;
    int dot;
    int code;

    target.width = width > 0 ? width : picture->width;
    scale = (float)target.width / (float)picture->width;
    target.height = clamp((int)lroundf((float)picture->height * scale), 1, IMAGE_PIXELS_MAX);
    code = canvas_new(ret, target.width, target.height, reterr);
    if (code) {
        return code;
    }
    target.pixels = ret->pixels;
    code = picture_convert(scaler, result->frame, NULL, &target, reterr);
    if (code) {
        canvas_free(ret);
        return code;
    }
    dot = clamp(target.width / DOT_WIDTH, DOT_MIN, IMAGE_PIXELS_MAX);
    for (int i = 0; i < result->count; i++) {
        if (!result->sightings[i].is_lost) {
            draw(ret, &result->sightings[i], scale, dot);
        }
    }
    write_caption(ret, result->frame, dot);
    return 0;
}

int canvas_write(const struct canvas *canvas, FILE *file, const char *path,
                 struct baton_error *reterr)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .format = PNG_FORMAT_RGB,
                       .flags = PNG_IMAGE_FLAG_FAST,
                       .width = (png_uint_32)canvas->width,
                       .height = (png_uint_32)canvas->height};

    if (!png_image_write_to_stdio(&image, file, 0, canvas->pixels, canvas->width * CANVAS_CHANNELS,
                                  NULL)) {
        return error_set(reterr, BATON_EIO, "%s: %s", path, image.message);
    }
    return fflush(file) == 0 ? 0 : error_set(reterr, BATON_EIO, "%s: %s", path, strerror(errno));
}
