/* What is reported of an object: fields of the flat `detection`, and in which frame.
 *
 * An object that is reported once waits for the answers of all its stages: in the frame that
 * confirms it, its licence plate may be too far away. So a further stage without an answer holds
 * the report back, for a number of frames or until the object is out of sight; meanwhile the
 * answers of other stages are kept. Pure. Only this folder includes this header.
 */
#ifndef DETECTOR_INFER_REPORT_H
#define DETECTOR_INFER_REPORT_H

#include "detector/infer/decoder.h"
#include "detector/infer/tracker.h"

enum {
    REPORT_TRIES = 10,
    REPORT_UNSEEN = 3, /* frames in a row */
};

/* Adds each of the stage's fields that the answer of `model` has a value for, unless `attributes`
 * has it. `box` is the one of the answer's boxes that they are about, `track` its number or 0.
 * Numbers are rounded to their precision. Returns BATON_ENOMEM. */
int report_fill(json_t *attributes, const struct pipeline_stage *stage,
                const struct pipeline_model *model, const struct answer *answer,
                const struct box *box, uint64_t track);

/* True if the object is reported, or may be once its further stages have run. An object that
 * has been reported, of a pipeline that does not report changes, needs no stage. */
bool report_is_due(const struct pipeline_track *rules, const struct track *track, instant now);

/* Called for an object that was due, with all its attributes of this frame. True: it is reported
 * now, and counts as such. `is_complete`: all its stages have answered. */
bool report_take(const struct pipeline *pipeline, struct track *track, json_t *attributes,
                 bool is_complete, instant now);

/* The attributes of an object that was out of sight for too long while it waited, for the caller
 * to decref; NULL: it is not such an object. */
json_t *report_lost(struct track *track);

#endif
