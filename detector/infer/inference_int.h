/* State that the loop's side (inference.c) and the thread's side (inference_thread.c) of an
 * inference share. Only this folder includes this header. */
#ifndef DETECTOR_INFER_INFERENCE_INT_H
#define DETECTOR_INFER_INFERENCE_INT_H

#include "detector/infer/inference.h"

struct inference_feed {
    struct inference *inference;
    struct inference_feed *next;
    inference_seen *seen; /* NULL: closed; it goes when its turn is over */
    void *userdata;
    struct runner_view *view; /* the thread's while running */
    /* under the lock */
    const struct camera_frame *pending; /* held; NULL: none */
    int rect[4];
    enum stage progression;
    int running;     /* turns that are under way, or done and not reported yet: at times two */
    bool is_telling; /* within `seen` */
    uint64_t served; /* the number of its last turn */
};

/* A message of the thread to the loop; they are read oldest first. */
struct outcome {
    struct outcome *next;
    enum { OUTCOME_FRAME, OUTCOME_OPENED, OUTCOME_LOST } type;
    struct baton_error error; /* code 0: none */
    struct inference_feed *feed;
    struct runner_turn turn; /* the feed's; its frame is held */
    span busy;
    int count;
    struct sighting sightings[RUNNER_SIGHTINGS_MAX]; /* with their attributes */
};

struct inference {
    struct inference_config config;
    struct pipeline pipeline;
    uv_thread_t thread;
    /* Not a uv_async_t: if its writer is interrupted within the call, the loop spins until the
     * writer goes on, which on a shared processor is most of the time. */
    int bell; /* an eventfd */
    uv_poll_t poll;
    uv_mutex_t lock;
    uv_cond_t wake;
    instant reported; /* when the last failure was */
    bool is_closed;
    /* under the lock */
    struct inference_feed *feeds;
    struct outcome *first, **last;
    struct outcome *opened; /* reserved; told once */
    bool has_ended;         /* the thread has told all */
    struct inference_stats stats;
    uint64_t turn;
    bool is_stopping;
    /* the thread's */
    struct engine *engine;
    struct runner *runner;
    unsigned losses; /* of its child, in a row */
};

/* The thread's function; `userdata` is the inference. */
void inference_work(void *userdata);
/* Makes the loop look for outcomes. Any thread may call it. */
void inference_ring(const struct inference *inference);
struct outcome *outcome_new(int type);      /* NULL: out of memory */
void outcome_free(struct outcome *outcome); /* NULL allowed */

#endif
