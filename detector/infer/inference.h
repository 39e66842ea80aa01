/* Runs the pipeline of an archive for any number of subscriptions, in a thread, with a confined
 * child for its models.
 *
 *   loop's thread                         thread of the inference        child (engine.h)
 *   feed_frame ─▶ the feed's newest ─▶ least recently served first ─▶ models
 *        seen  ◀──────── outcome ◀──── runner: stages, tracker, fields ◀──┘
 *
 *   OPENING ──all have run once─▶ READY ──child crashed or hung──▶ waits, opens again ──▶ READY
 *      └──a model cannot be run──▶ failed, which is reported once and final
 *
 * A slow model drops frames: each feed keeps its newest one only, and nothing is ever queued. A
 * frame is read where its camera's child wrote it. All calls and hooks are on the loop's thread.
 */
#ifndef DETECTOR_INFER_INFERENCE_H
#define DETECTOR_INFER_INFERENCE_H

#include "detector/infer/engine.h"
#include "detector/infer/runner.h"

#include <uv.h>

struct inference;      /* opaque */
struct inference_feed; /* opaque: the frames of one subscription */

/* The error is borrowed during the call. */
struct inference_hooks {
    /* Called once, unless the inference is closed before. Without an error the archive is one, and
     * each of its models has run on an empty picture with an output of the right form.
     * With an error no frame will ever run, and the inference must be closed. BATON_EUNAVAILABLE
     * does not concern the models: their process did not start, or was killed from outside. */
    void (*opened)(void *userdata, const struct baton_error *error);
    /* Its child was lost, or a frame could not be run; the inference goes on. At most one call a
     * second. */
    void (*failed)(void *userdata, const struct baton_error *error);
    void *userdata;
};

struct inference_config {
    uv_loop_t *loop;
    struct engine_options engine; /* texts are borrowed for its life */
    int archive_fd;               /* borrowed during inference_open() */
    bool uses_stream_time; /* for clips: an object's age follows the clip's time instead of the
                              clock */
    struct inference_hooks hooks;
};

/* The thread opens the models. */
int inference_open(struct inference **ret, const struct inference_config *config,
                   struct baton_error *reterr);

/* Ends all hooks; its feeds are freed before. Then run the loop, which frees it. May be called from
 * within hooks. NULL is allowed. */
void inference_close(struct inference *inference);

/* The objects that were seen in a frame. */
struct inference_result {
    const struct frame *frame; /* borrowed during the call */
    const struct sighting *sightings;
    int count;
    span busy; /* from the start of the frame's turn to its end */
};

typedef void inference_seen(void *userdata, const struct inference_result *result);

/* Returns NULL if memory is short. */
struct inference_feed *inference_feed_new(struct inference *inference, inference_seen *seen,
                                          void *userdata);
/* Ends the calls of `seen`. NULL is allowed. */
void inference_feed_free(struct inference_feed *feed);

/* The frame is held until its turn is over, and replaces one that still waits. `rect`: see struct
 * runner_turn. True: it did so. */
bool inference_feed_frame(struct inference_feed *feed, const struct frame *frame, const int rect[4],
                          enum stage progression);

/* As of the last hook or `seen`. */
struct inference_stats {
    char engine[ENGINE_NAME_MAX + 1];   /* "" until ready */
    char note[BATON_ERROR_MESSAGE_MAX]; /* runner_note() */
    int pid;                            /* of the child; 0: none */
    uint64_t failures, restarts;
};

const struct inference_stats *inference_stats(const struct inference *inference);

/* True if no frame waits or is under way; within `seen`, apart from the frame of that call. */
bool inference_feed_is_idle(const struct inference_feed *feed);

#endif
