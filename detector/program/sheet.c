#include "detector/program/sheet.h"

#include "base/error.h"
#include "detector/program/canvas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GAP = 2 }; /* between tiles */

struct sheet {
    char *path;
    FILE *file;
    bool is_written;
    struct picture_scaler *scaler;
    struct canvas tiles[SHEET_TILES];
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

/* Removes regular files only: the path may name a device. */
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
            canvas_free(&sheet->tiles[i]);
        }
        if (sheet->file && !sheet->is_written) {
            remove_file(sheet);
        }
        if (sheet->file) {
            (void)fclose(sheet->file);
        }
        picture_scaler_free(sheet->scaler);
        free(sheet->path);
        free(sheet);
    }
}

/* Every second one stays. */
static void thin_out(struct sheet *sheet)
{
    int kept = 0;

    for (int i = 0; i < sheet->count; i++) {
        if (i % 2 == 0) {
            sheet->tiles[kept++] = sheet->tiles[i];
        } else {
            canvas_free(&sheet->tiles[i]);
        }
    }
    sheet->count = kept;
    sheet->distance *= 2;
}

int sheet_add(struct sheet *sheet, const struct inference_result *result,
              struct baton_error *reterr)
{
    int code;

    if (sheet->seen++ % sheet->distance != 0) {
        return 0;
    }
    if (sheet->count == SHEET_TILES) {
        thin_out(sheet); /* the tiles that stay have the new distance; this frame is the next one */
    }
    code =
        canvas_show(&sheet->tiles[sheet->count], sheet->scaler, result, SHEET_TILE_WIDTH, reterr);
    sheet->count += code == 0;
    return code;
}

int sheet_write(struct sheet *sheet, struct baton_error *reterr)
{
    int columns = sheet->count < SHEET_COLUMNS ? sheet->count : SHEET_COLUMNS;
    struct canvas whole = {0};
    int height = 1;
    int code;

    for (int i = 0; i < sheet->count; i++) {
        height = sheet->tiles[i].height > height ? sheet->tiles[i].height : height;
    }
    if (sheet->count < 1) {
        return error_set(reterr, BATON_ENOENT, "%s: there is no frame to show", sheet->path);
    }
    code = canvas_new(&whole, columns * (SHEET_TILE_WIDTH + GAP) - GAP,
                      (sheet->count + columns - 1) / columns * (height + GAP) - GAP, reterr);
    if (code) {
        return code;
    }
    for (int i = 0; i < sheet->count; i++) {
        canvas_paste(&whole, &sheet->tiles[i], i % columns * (SHEET_TILE_WIDTH + GAP),
                     i / columns * (height + GAP));
    }
    code = canvas_write(&whole, sheet->file, sheet->path, reterr);
    sheet->is_written = code == 0;
    canvas_free(&whole);
    return code;
}
