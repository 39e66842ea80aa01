/* The frames with reports, whole and annotated: FOLDER/frame-NNNNNN.png. */
#ifndef DETECTOR_PROGRAM_SHOTS_H
#define DETECTOR_PROGRAM_SHOTS_H

#include "detector/infer/inference.h"

enum { SHOTS_MAX = 50 }; /* of one try, because a pipeline may report in every frame */

struct shots; /* opaque */

/* `folder` exists already, and is borrowed for the life of the result. Returns NULL if memory is
 * short. */
struct shots *shots_new(const char *folder);
void shots_free(struct shots *shots); /* NULL allowed */

/* Writes the frame if something was reported in it, unless there are SHOTS_MAX already. Returns
 * BATON_ENOMEM; other errors name the file. */
int shots_add(struct shots *shots, const struct inference_result *result,
              struct baton_error *reterr);

/* Returns the number of frames with reports that were not written because of the bound. */
uint64_t shots_left_out(const struct shots *shots);

#endif
