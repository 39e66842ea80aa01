/* Whether an object is reported in a frame, and with what.
 *
 * An object that is reported once waits for the answers of all its stages: in the frame that
 * confirms it, its licence plate may be too far away. So a further stage without an answer holds
 * the report back, for a number of frames or until the object is out of sight; meanwhile the
 * answers of other stages are kept. Only this folder includes this header.
 */
#ifndef DETECTOR_INFER_REPORT_H
#define DETECTOR_INFER_REPORT_H

#include "detector/infer/tracker.h"
#include "detector/model/pipeline.h"

enum {
    REPORT_TRIES = 10,
    REPORT_UNSEEN = 3, /* frames in a row */
};

/* True if the object is reported, or may be once its further stages have run. An object that
 * has been reported, of a pipeline that does not report changes, needs no stage. `track` NULL: of
 * no tracker. */
bool report_is_due(const struct pipeline_track *rules, const struct track *track, instant now);

/* Called for an object that was due, with all its attributes of this frame. True: it is reported
 * now, and counts as such. `is_complete`: all its stages have answered. */
bool report_take(const struct pipeline *pipeline, struct track *track, json_t *attributes,
                 bool is_complete, instant now);

/* The attributes of an object that was out of sight for too long while it waited, for the caller
 * to decref; NULL: it is not such an object. */
json_t *report_lost(struct track *track);

#endif
