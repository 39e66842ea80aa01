/* A pipeline at work for any number of subscriptions: a thread, and a confined child for its
 * models.
 *
 *   loop's thread                         thread of the inference        child (remote.h)
 *   feed_frame ─▶ the feed's newest ─▶ least recently served first ─▶ models
 *        seen  ◀──────── outcome ◀──── runner: stages, tracker, fields ◀──┘
 *
 *   OPENING ──all have run once─▶ READY ──child crashed or hung──▶ waits, opens again ──▶ READY
 *      └──a model cannot be run──▶ failed: told once, for good
 *
 * A slow model drops frames: each feed keeps its newest one only, and nothing is ever queued. Where
 * models take several pictures, those that wait may be run at once. A frame is read where its
 * camera's child wrote it. All calls and hooks are the loop's thread's.
 */
#ifndef DETECTOR_INFER_INFERENCE_H
#define DETECTOR_INFER_INFERENCE_H

#include "detector/infer/remote.h"
#include "detector/infer/runner.h"

#include <uv.h>

enum {
    INFERENCE_FEEDS_MAX = 1024,
    INFERENCE_BACKOFF_MIN_MS = 500,
    INFERENCE_BACKOFF_MAX_MS = 30000,
};

struct inference;      /* opaque */
struct inference_feed; /* opaque: the frames of one subscription */

/* The texts are borrowed during the call. `closed` may be NULL. */
struct inference_hooks {
    /* Once, unless it is closed before: NULL: each of its models has run on an empty picture and
     * given what is expected of it, and `engine` is what runs them. Else no frame will ever be run,
     * and the inference is to be closed. BATON_EUNAVAILABLE: that is no word on the models, as
     * their process did not begin or was killed from outside. */
    void (*opened)(void *userdata, const char *engine, const struct baton_error *error);
    /* Its child was lost, or a frame could not be run; it goes on. Not more than once a second. */
    void (*failed)(void *userdata, const struct baton_error *error);
    /* The folder is not read any more; the inference is gone after it. */
    void (*closed)(void *userdata);
    void *userdata;
};

struct inference_config {
    uv_loop_t *loop;
    struct remote_options engine; /* texts are borrowed for its life */
    const char *folder;           /* of the unpacked archive; copied */
    int batch;             /* frames of so many feeds at once, where the models take them; 0: one */
    bool uses_stream_time; /* of clips: an object's age is the clip's time, not ours */
    struct inference_hooks hooks;
};

/* Takes what `pipeline` owns on success, and leaves it empty. Models are opened in the thread. */
int inference_open(struct inference **ret, struct pipeline *pipeline,
                   const struct inference_config *config, struct baton_error *reterr);

/* No hook but `closed` comes any more; its feeds are closed as well. Then run the loop. May be
 * called from within hooks. NULL allowed. */
void inference_close(struct inference *inference);

/* What was seen in a frame. */
struct inference_result {
    const struct camera_frame *frame; /* borrowed during the call */
    const struct sighting *sightings;
    int count;
    span busy; /* from the frame's turn to its end */
};

typedef void inference_seen(void *userdata, const struct inference_result *result);

/* NULL: out of memory, or INFERENCE_FEEDS_MAX. */
struct inference_feed *inference_feed_new(struct inference *inference, inference_seen *seen,
                                          void *userdata);
/* `seen` is not called any more. Before inference_close(). NULL allowed. */
void inference_feed_free(struct inference_feed *feed);

/* The frame is held until its turn is over; one that still waits is dropped for it. `rect`: see
 * struct runner_turn. */
void inference_feed_frame(struct inference_feed *feed, const struct camera_frame *frame,
                          const int rect[4], enum stage progression);

struct inference_stats {
    char engine[ENGINE_NAME_MAX + 1]; /* "" until ready */
    int pid;                          /* of the child; 0: none */
    int feeds;
    uint64_t frames, dropped, failures, restarts, runs; /* runs: of models */
    span busy;                                          /* in the models */
};

void inference_stats(struct inference *inference, struct inference_stats *ret);

/* Nothing waits and nothing is under way; within `seen`: nothing but what it is called for. */
bool inference_feed_is_idle(const struct inference_feed *feed);

/* Frames of the feed: run, dropped because a newer one came. */
void inference_feed_stats(const struct inference_feed *feed, uint64_t *frames, uint64_t *dropped);

#endif
