#include "detector/program/sheet.h"

#include "base/error.h"
#include "detector/camera/picture.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE = 2, CHANNELS = 3, COLOURS = 6 };

static const uint8_t colours[COLOURS][CHANNELS] = {{255, 214, 10}, {64, 224, 255}, {255, 90, 205},
                                                   {120, 255, 90}, {255, 140, 40}, {190, 150, 255}};

struct tile {
    uint8_t *pixels; /* owned; RGB, SHEET_TILE_WIDTH wide */
    int height;
};

struct sheet {
    char *path;
    FILE *file; /* NULL: it has been written */
    struct picture_scaler *scaler;
    struct tile tiles[SHEET_TILES];
    int count;
    uint64_t seen, distance;
};

int sheet_open(struct sheet **ret, const char *path, struct baton_error *reterr)
{
    struct sheet *sheet = calloc(1, sizeof(*sheet));

    if (!sheet || !(sheet->scaler = picture_scaler_new()) || !(sheet->path = strdup(path))) {
        sheet_free(sheet);
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    sheet->distance = 1;
    sheet->file = fopen(path, "wbe");
    if (!sheet->file) {
        int errnum = errno;
        sheet_free(sheet);
        return error_set(reterr, error_from_errno(errnum), "%s: %s", path, strerror(errnum));
    }
    *ret = sheet;
    return 0;
}

/* Only what is a file: the path may be that of a device. */
static void remove_file(const struct sheet *sheet)
{
    struct stat info;

    if (fstat(fileno(sheet->file), &info) == 0 && S_ISREG(info.st_mode)) {
        (void)unlink(sheet->path);
    }
}

void sheet_free(struct sheet *sheet)
{
    if (sheet) {
        for (int i = 0; i < sheet->count; i++) {
            free(sheet->tiles[i].pixels);
        }
        if (sheet->file) {
            remove_file(sheet);
            (void)fclose(sheet->file);
        }
        picture_scaler_free(sheet->scaler);
        free(sheet->path);
        free(sheet);
    }
}

static int clamp(int value, int most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

static void fill(const struct tile *tile, int left, int top, int right, int bottom,
                 const uint8_t colour[CHANNELS])
{
    left = clamp(left, SHEET_TILE_WIDTH);
    right = clamp(right, SHEET_TILE_WIDTH);
    top = clamp(top, tile->height);
    bottom = clamp(bottom, tile->height);
    for (int y = top; y < bottom; y++) {
        for (int x = left; x < right; x++) {
            memcpy(tile->pixels + ((size_t)y * SHEET_TILE_WIDTH + (size_t)x) * CHANNELS, colour,
                   CHANNELS);
        }
    }
}

static void draw_box(const struct tile *tile, const struct box *box, float scale)
{
    const uint8_t *colour = colours[box->label < 0 ? 0 : box->label % COLOURS];
    int left = (int)lroundf(box->x * scale);
    int top = (int)lroundf(box->y * scale);
    int right = (int)lroundf((box->x + box->width) * scale);
    int bottom = (int)lroundf((box->y + box->height) * scale);

    fill(tile, left, top, right, top + LINE, colour);
    fill(tile, left, bottom - LINE, right, bottom, colour);
    fill(tile, left, top, left + LINE, bottom, colour);
    fill(tile, right - LINE, top, right, bottom, colour);
}

/* Every second one stays. */
static void thin_out(struct sheet *sheet)
{
    int kept = 0;

    for (int i = 0; i < sheet->count; i++) {
        if (i % 2 == 0) {
            sheet->tiles[kept++] = sheet->tiles[i];
        } else {
            free(sheet->tiles[i].pixels);
        }
    }
    sheet->count = kept;
    sheet->distance *= 2;
}

int sheet_add(struct sheet *sheet, const struct inference_result *result,
              struct baton_error *reterr)
{
    const struct frame *picture = &result->frame->picture;
    float scale = (float)SHEET_TILE_WIDTH / (float)picture->width;
    struct picture_target target = {.layout = PIXELS_RGB, .width = SHEET_TILE_WIDTH};
    struct tile tile;
    int code;

    if (sheet->seen++ % sheet->distance != 0) {
        return 0;
    }
    if (sheet->count == SHEET_TILES) {
        thin_out(sheet); /* as many are kept as came at the new distance; this one is next */
    }
    target.height = (int)lroundf((float)picture->height * scale);
    target.height = target.height < 1 ? 1 : target.height;
    tile.height = target.height;
    tile.pixels = malloc(picture_bytes(PIXELS_RGB, target.width, target.height));
    if (!tile.pixels) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    target.pixels = tile.pixels;
    code = picture_convert(sheet->scaler, result->frame, NULL, &target, reterr);
    if (code) {
        free(tile.pixels);
        return code;
    }
    for (int i = 0; i < result->count; i++) {
        if (!result->sightings[i].is_lost) {
            draw_box(&tile, result->sightings[i].box, scale);
        }
    }
    sheet->tiles[sheet->count++] = tile;
    return 0;
}

int sheet_write(struct sheet *sheet, struct baton_error *reterr)
{
    int columns = sheet->count < SHEET_COLUMNS ? sheet->count : SHEET_COLUMNS;
    size_t row_bytes = (size_t)columns * SHEET_TILE_WIDTH * CHANNELS;
    png_image image = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_RGB};
    size_t tile_bytes = (size_t)SHEET_TILE_WIDTH * CHANNELS;
    int height = 1;
    uint8_t *pixels;
    int is_written;

    for (int i = 0; i < sheet->count; i++) {
        height = sheet->tiles[i].height > height ? sheet->tiles[i].height : height;
    }
    if (sheet->count < 1) {
        return error_set(reterr, BATON_ENOENT, "%s: there is no frame to show", sheet->path);
    }
    image.width = (png_uint_32)(columns * SHEET_TILE_WIDTH);
    image.height = (png_uint_32)(height * ((sheet->count + columns - 1) / columns));
    pixels = calloc(image.height, row_bytes);
    if (!pixels) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    for (int i = 0; i < sheet->count; i++) {
        size_t left = (size_t)(i % columns) * tile_bytes;
        size_t top = (size_t)(i / columns) * (size_t)height;
        for (size_t y = 0; y < (size_t)sheet->tiles[i].height; y++) {
            memcpy(pixels + (top + y) * row_bytes + left, sheet->tiles[i].pixels + y * tile_bytes,
                   tile_bytes);
        }
    }
    is_written =
        png_image_write_to_stdio(&image, sheet->file, 0, pixels, (png_int_32)row_bytes, NULL);
    free(pixels);
    if (!is_written) {
        return error_set(reterr, BATON_EIO, "%s: %s", sheet->path, image.message);
    }
    is_written = fclose(sheet->file) == 0;
    sheet->file = NULL;
    return is_written ? 0 : error_set(reterr, BATON_EIO, "%s: %s", sheet->path, strerror(errno));
}
