/* Engines, models and drawn pictures for the tests of this folder. */
#ifndef TESTS_DETECTOR_INFER_STAND_H
#define TESTS_DETECTOR_INFER_STAND_H

#include "detector/infer/boxes.h"
#include "detector/infer/engine.h"

enum { RED, GREEN, BLUE, COLOURS };
enum { RECTANGLES_WIDTH = 320, RECTANGLES_HEIGHT = 192 }; /* of the model's input */

struct drawn {
    int colour;
    int x, y, width, height;
};

/* The bytes of a model of tests/models, for free(). */
void *stand_model(const char *name, size_t *bytes);

/* NULL: it is not there, and a line says so. */
struct engine *stand_engine(enum engine_kind kind);
/* The same engine in a confined child; NULL too where no child is built. */
struct engine *stand_remote(enum engine_kind kind);

/* A picture of 3 x height x width numbers from 0 to 1, RGB, grey but for what is drawn. */
void stand_draw(float *values, int width, int height, const struct drawn *drawn, int count);

/* Every drawn thing has a box within `tolerance` pixels on each side, and nothing else has. */
void stand_assert_boxes(const struct box *boxes, int box_count, const struct drawn *drawn,
                        int drawn_count, float tolerance);

#endif
