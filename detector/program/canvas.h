/* A picture of a frame with its results drawn in, and its conversion to PNG.
 *
 * Boxes have a colour for each class, and a label: class, score, number of the track. Results that
 * this very frame reported have thicker boxes. Letters are capitals of 3 x 5 dots, so no font is
 * needed; a character that is no ASCII letter, digit or common sign is a dot.
 */
#ifndef DETECTOR_PROGRAM_CANVAS_H
#define DETECTOR_PROGRAM_CANVAS_H

#include "detector/camera/picture.h"
#include "detector/infer/inference.h"

#include <stdio.h>

enum { CANVAS_CHANNELS = 3 };

struct canvas {
    uint8_t *pixels; /* owned; RGB, without gaps */
    int width, height;
};

/* Draws the frame of the result, `width` wide (0: its own width). Returns BATON_ENOMEM. */
int canvas_show(struct canvas *ret, struct picture_scaler *scaler,
                const struct inference_result *result, int width, struct baton_error *reterr);

/* Makes a black picture. Returns BATON_ENOMEM. */
int canvas_new(struct canvas *ret, int width, int height, struct baton_error *reterr);
void canvas_free(struct canvas *canvas); /* zeroes are allowed */

/* Pixels outside are left out. */
void canvas_paste(struct canvas *canvas, const struct canvas *tile, int left, int top);
void canvas_text(struct canvas *canvas, int left, int top, int dot, const char *text,
                 const uint8_t ink[CANVAS_CHANNELS], const uint8_t paper[CANVAS_CHANNELS]);

/* `path` is for the error only. Returns BATON_EIO or BATON_ENOMEM. */
int canvas_write(const struct canvas *canvas, FILE *file, const char *path,
                 struct baton_error *reterr);

#endif
