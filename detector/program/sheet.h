/* A contact sheet: frames of a clip with the objects in them, as one PNG.
 *
 * The number of frames is not known beforehand. Of all added frames at most SHEET_TILES are kept,
 * at even distances: when the sheet is full, every second one is removed and the distance doubles.
 */
#ifndef DETECTOR_PROGRAM_SHEET_H
#define DETECTOR_PROGRAM_SHEET_H

#include "detector/infer/inference.h"

enum { SHEET_TILES = 16, SHEET_COLUMNS = 4, SHEET_TILE_WIDTH = 320 };

struct sheet; /* opaque */

/* Opens the file at once, so that a wrong path is an error before the work. Returns BATON_ENOMEM,
 * or the system's error with the file's name. */
int sheet_open(struct sheet **ret, const char *path, struct baton_error *reterr);
/* Removes the file unless it has been written. NULL is allowed. */
void sheet_free(struct sheet *sheet);

/* Draws the boxes in; see canvas.h. Returns BATON_ENOMEM. */
int sheet_add(struct sheet *sheet, const struct inference_result *result,
              struct baton_error *reterr);

/* Called once. Returns BATON_ENOENT if nothing was added, or BATON_EIO with the file's name. */
int sheet_write(struct sheet *sheet, struct baton_error *reterr);

#endif
