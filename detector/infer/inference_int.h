/* Inside of this folder only: what the loop's side (inference.c) and the thread's side
 * (inference_thread.c) of an inference share. */
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
    int running;     /* turns that are under way, or done and not told yet: at times two */
    bool is_telling; /* within `seen` */
    uint64_t served; /* when its last turn was, in turns */
    uint64_t frames, dropped;
};

/* What the thread tells the loop, oldest first. */
struct outcome {
    struct outcome *next;
    enum { OUTCOME_OPENED, OUTCOME_FRAME, OUTCOME_LOST, OUTCOME_ENDED } type;
    struct baton_error error; /* code 0: none */
    struct inference_feed *feed;
    struct runner_turn turn;    /* the feed's; its frame is held */
    struct sighting *sightings; /* owned, with their attributes */
    struct box *boxes;          /* owned: of the sightings */
    int count, room;
    span busy;
};

struct inference {
    struct inference_config config;
    struct pipeline pipeline;
    char *folder;
    uv_thread_t thread;
    /* Not a uv_async_t: if its writer is interrupted within, the loop spins until it is back, which
     * on a processor that both share is most of the time. */
    int bell; /* an eventfd */
    uv_poll_t poll;
    uv_mutex_t lock;
    uv_cond_t wake;
    instant told; /* the last failure */
    bool is_closed, has_ended;
    /* under the lock */
    struct inference_feed *feeds;
    struct outcome *first, **last;
    struct outcome end; /* so that the end never lacks memory */
    struct outcome opened;
    struct inference_stats stats;
    uint64_t turn;
    bool is_stopping;
    /* the thread's */
    struct engine *engine;
    struct runner *runner;
    struct outcome *spare[RUNNER_BATCH]; /* of the next turns; NULL: none yet */
    int64_t backoff_ms;
};

/* The thread; `userdata` is the inference. Its last outcome is OUTCOME_ENDED. */
void inference_work(void *userdata);
/* The loop looks for outcomes. Any thread. */
void inference_ring(const struct inference *inference);
/* Of type OUTCOME_FRAME, with room for what is seen; NULL: out of memory. */
struct outcome *outcome_new(void);
void outcome_free(struct outcome *outcome); /* NULL allowed */

#endif
