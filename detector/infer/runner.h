/* A pipeline at work: frames in, what is to be reported of them out.
 *
 *   frame ─▶ cut of the subscription ─▶ stages from the frame ─▶ boxes ─▶ tracker ─▶ objects
 *                                                                                   │ cut out
 *     report ◀─ fields, in one flat object an object ◀─ further stages, in batches ◀┘
 *
 * A runner has the sessions of one pipeline and is shared by every camera that uses it; a view has
 * what belongs to one subscription: its tracker. Further stages run only on objects that may be
 * reported in this frame, so that an object that is reported once costs its classifiers once.
 * Both belong to one thread at a time.
 */
#ifndef DETECTOR_INFER_RUNNER_H
#define DETECTOR_INFER_RUNNER_H

#include "detector/camera/camera.h"
#include "detector/infer/engine.h"
#include "detector/infer/tracker.h"
#include "detector/model/pipeline.h"
#include "protocol/protocol.h"

#include <jansson.h>

enum {
    RUNNER_BATCH = 8,     /* pictures that a model is given at once, where it takes so many */
    RUNNER_PARTS_MAX = 8, /* boxes that a further stage finds in one cut and hands on */
    RUNNER_SIGHTINGS_MAX = TRACK_BOXES_MAX + 64, /* of one frame, with those that are lost in it */
};

struct runner;      /* opaque */
struct runner_view; /* opaque */

/* Opens the models, which are files of `folder`. `pipeline` and `engine` are borrowed for the
 * runner's life. `batch`: as many frames as shall ever be run at once, 1 to RUNNER_BATCH.
 * BATON_EINVAL names the model and what is wrong; BATON_ENOENT, BATON_EIO, BATON_ENOMEM. */
int runner_new(struct runner **ret, const struct pipeline *pipeline, const char *folder,
               struct engine *engine, int batch, struct baton_error *reterr);
void runner_free(struct runner *runner); /* after its views; NULL allowed */

/* Shows every model one grey picture: whether it runs at all, in time, and gives what its decoder
 * reads. The error names the model. */
int runner_prove(struct runner *runner, struct baton_error *reterr);

struct runner_view *runner_view_new(const struct runner *runner); /* NULL: out of memory */
void runner_view_free(struct runner_view *view);                  /* NULL allowed */

/* An object that is seen in the frame, or that was lost before all was known of it. */
struct sighting {
    const struct box *box;  /* in the frame's pixels; the whole cut if the stage finds no boxes */
    const char *class_name; /* NULL: none */
    uint64_t track;         /* 0: not tracked */
    json_t *attributes;     /* what is to be reported; borrowed; NULL: nothing is */
    bool is_lost;           /* it is not in this frame any more; `box` is where it was last */
};

typedef void runner_seen(void *userdata, const struct sighting *sighting);

/* A frame that is to be run for a view. */
struct runner_turn {
    struct runner_view *view;
    const struct camera_frame *frame;
    int rect[4]; /* the subscription's cut, see image_crop_rect() */
    instant now; /* of the frame, for the tracker */
    enum stage progression;
    runner_seen *seen; /* is called for each object before runner_run() returns */
    void *userdata;
    struct baton_error *reterr; /* code 0 at first, and still if the frame was run */
};

/* How many frames it pays to run at once: as many as were asked for, if every model that looks at
 * frames takes so many, and else fewer. */
int runner_batch(const struct runner *runner);

/* Runs frames of `count` views, each another one: every stage from the frame sees all of them in as
 * few runs of its model as it takes. What is wrong with one frame is that one's error, and the view
 * may be given the next. */
void runner_run(struct runner *runner, struct runner_turn *const *turns, int count);

struct runner_stats {
    uint64_t frames, runs, failures; /* runs: of models */
    span busy;                       /* in the models */
};

void runner_stats(const struct runner *runner, struct runner_stats *ret);

#endif
