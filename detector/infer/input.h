/* Converts a cut of a frame to the numbers of a model's input. */
#ifndef DETECTOR_INFER_INPUT_H
#define DETECTOR_INFER_INPUT_H

#include "detector/camera/picture.h"
#include "detector/infer/boxes.h"
#include "detector/model/pipeline.h"

/* Writes 3 * height * width numbers in the layout of `input`. `rect` is x, y, width and height
 * within the frame. `ret` is the way back. Returns BATON_ENOMEM, or BATON_EINVAL if `rect` is not
 * within the frame. */
int input_make(struct picture_scaler *scaler, const struct pipeline_input *input,
               const struct frame *frame, const int rect[4], float *values, struct fit *ret,
               struct baton_error *reterr);

#endif
