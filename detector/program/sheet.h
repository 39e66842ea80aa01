/* A contact sheet: frames of a clip with what was seen in them, as one PNG.
 *
 * How many frames will come is not known. Of all that were added, SHEET_TILES at most are kept, at
 * even distances: when the sheet is full, every second one goes and the distance doubles.
 */
#ifndef DETECTOR_PROGRAM_SHEET_H
#define DETECTOR_PROGRAM_SHEET_H

#include "detector/infer/inference.h"

enum { SHEET_TILES = 16, SHEET_COLUMNS = 4, SHEET_TILE_WIDTH = 320 };

struct sheet; /* opaque */

/* Opens the file at once, so that a wrong path is known before the work. BATON_ENOMEM, or what the
 * system says of the file, with its name. */
int sheet_open(struct sheet **ret, const char *path, struct baton_error *reterr);
/* Removes the file unless it has been written. NULL allowed. */
void sheet_free(struct sheet *sheet);

/* Boxes are drawn in; see canvas.h. BATON_ENOMEM. */
int sheet_add(struct sheet *sheet, const struct inference_result *result,
              struct baton_error *reterr);

/* Once. BATON_ENOENT: nothing was added; BATON_EIO names the file. */
int sheet_write(struct sheet *sheet, struct baton_error *reterr);

#endif
