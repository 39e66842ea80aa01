/* Runs a pipeline on frames, and says what to report of them.
 *
 *   frame ─▶ cut of the subscription ─▶ stages from the frame ─▶ boxes ─▶ tracker ─▶ objects
 *                                                                                   │ cut out
 *     report ◀─ fields, in one flat object an object ◀─ further stages, in batches ◀┘
 *
 * A runner has the sessions of one pipeline and is shared by every camera that uses it; a view has
 * the tracker of one subscription. Further stages run only on objects that may be reported in this
 * frame, so an object that is reported once costs its classifiers once. Both belong to one thread
 * at a time.
 */
#ifndef DETECTOR_INFER_RUNNER_H
#define DETECTOR_INFER_RUNNER_H

#include "detector/camera/camera.h"
#include "detector/infer/engine.h"
#include "detector/infer/tracker.h"
#include "detector/model/pipeline.h"
#include "protocol/protocol.h"

#include <jansson.h>

enum { RUNNER_SIGHTINGS_MAX = TRACK_BOXES_MAX + TRACKS_MAX }; /* of one frame, with lost objects */

struct runner; /* opaque */

/* From zeroes; runner_run() begins its trackers. */
struct runner_view {
    struct tracker *trackers[PIPELINE_STAGES_MAX]; /* of stages from the frame */
};

/* Starts an engine with the archive, and opens its models. Each is run on one grey picture, to see
 * that it can be run, in time, and that its decoder reads its outputs. `pipeline` is borrowed for
 * the runner's life, and zeroes are filled: see engine_start(). Returns BATON_EINVAL or another
 * code, with the model and its fault, or one of engine_start(). */
int runner_new(struct runner **ret, struct pipeline *pipeline, int archive_fd,
               const struct engine_options *options, struct baton_error *reterr);
void runner_free(struct runner *runner); /* NULL allowed; its views go on with the next one */

const struct engine *runner_engine(const struct runner *runner);

/* Why a model gets one picture at a time, although its input seems to take more, or that its output
 * was too short for a field; of several, the first. "": none. */
const char *runner_note(const struct runner *runner);

void runner_view_fini(struct runner_view *view);

/* An object that is seen in the frame, or that was lost before all its stages had answered. */
struct sighting {
    struct box box;         /* in the frame's pixels; the whole cut if the stage finds no boxes */
    const char *class_name; /* NULL: none */
    uint64_t track;         /* 0: not tracked */
    json_t *attributes;     /* the fields to report; owned; NULL: none */
    bool is_unsure;         /* its score is below the model's confidence: only its track is known */
    bool is_lost;           /* it is not in this frame any more; `box` is its last position */
};

/* A frame to be run for a view. */
struct runner_turn {
    struct runner_view *view;
    const struct frame *frame;
    int rect[4]; /* the subscription's cut, see image_crop_rect() */
    instant now; /* of the frame, for the tracker */
    enum stage progression;
    struct baton_error *reterr;
};

/* Runs the frame through all stages; an object that they do not finish waits for a later frame.
 * Returns the number of objects, or the code of the turn's error; then the view can be given the
 * next frame. */
int runner_run(struct runner *runner, const struct runner_turn *turn,
               struct sighting ret[RUNNER_SIGHTINGS_MAX]);

/* Returns how often it ran a model. */
uint64_t runner_runs(const struct runner *runner);

#endif
