/* The thread of an inference: takes the frames of its feeds in turn through the models, and opens
 * these again when their child was lost. */
#include "detector/infer/inference_int.h"

#include "detector/camera/pace.h"

#include <string.h>

enum { PAUSE_MIN_MS = 500, PAUSE_MAX_MS = 30000 }; /* before the models are opened again */

static void tell(struct inference *inference, struct outcome *outcome)
{
    uv_mutex_lock(&inference->lock);
    outcome->next = NULL;
    *inference->last = outcome;
    inference->last = &outcome->next;
    uv_mutex_unlock(&inference->lock);
    inference_ring(inference);
}

static void take_stats(struct inference *inference, bool has_failed)
{
    uv_mutex_lock(&inference->lock);
    inference->stats.failures += has_failed;
    inference->stats.pid = inference->engine ? engine_pid(inference->engine) : 0;
    uv_mutex_unlock(&inference->lock);
}

static void close_engine(struct inference *inference)
{
    runner_free(inference->runner);
    engine_free(inference->engine);
    inference->runner = NULL;
    inference->engine = NULL;
}

/* A process that did not start, or was killed from outside, says nothing about the models. */
static bool is_machine(const struct inference *inference, int code)
{
    return code == BATON_ECLOSED && (!inference->engine || engine_was_killed(inference->engine));
}

static int open_engine(struct inference *inference, struct baton_error *reterr)
{
    int code = engine_start(&inference->engine, &inference->config.engine, reterr);

    code = code ? code
                : runner_new(&inference->runner, &inference->pipeline, inference->config.files,
                             inference->engine, reterr);
    code = code ? code : runner_prove(inference->runner, reterr);
    if (code) {
        code = reterr->code = is_machine(inference, code) ? BATON_EUNAVAILABLE : code;
        close_engine(inference);
        return code;
    }
    uv_mutex_lock(&inference->lock);
    memcpy(inference->stats.engine, engine_name(inference->engine),
           sizeof(inference->stats.engine));
    inference->stats.pid = engine_pid(inference->engine);
    uv_mutex_unlock(&inference->lock);
    return 0;
}

/* Of the feeds that wait, returns the one that was served least recently; NULL: none waits. */
static struct inference_feed *next_feed(const struct inference *inference)
{
    struct inference_feed *best = NULL;

    for (struct inference_feed *feed = inference->feeds; feed; feed = feed->next) {
        if (feed->pending && (!best || feed->served < best->served)) {
            best = feed;
        }
    }
    return best;
}

/* Waits for a frame, and takes it. False: the thread shall end. */
static bool take_turn(struct inference *inference, struct outcome *outcome)
{
    struct inference_feed *feed = NULL;
    bool is_stopping;

    uv_mutex_lock(&inference->lock);
    while (!inference->is_stopping && (feed = next_feed(inference)) == NULL) {
        uv_cond_wait(&inference->wake, &inference->lock);
    }
    is_stopping = inference->is_stopping;
    if (!is_stopping) {
        outcome->feed = feed;
        outcome->turn.frame = feed->pending;
        memcpy(outcome->turn.rect, feed->rect, sizeof(feed->rect));
        outcome->turn.progression = feed->progression;
        feed->pending = NULL;
        feed->running++;
        feed->served = ++inference->turn;
    }
    uv_mutex_unlock(&inference->lock);
    return !is_stopping;
}

static void take_sighting(void *userdata, const struct sighting *sighting)
{
    struct outcome *outcome = userdata;

    if (outcome->count < RUNNER_SIGHTINGS_MAX) {
        outcome->sightings[outcome->count++] = *sighting;
        json_incref(sighting->attributes);
    }
}

/* Returns true if the thread shall end, which ends the pause early. */
static bool pause_for(struct inference *inference, span pause)
{
    instant end = instant_add(clock_now(), pause);
    bool is_stopping;

    uv_mutex_lock(&inference->lock);
    while (!inference->is_stopping && instant_before(clock_now(), end)) {
        (void)uv_cond_timedwait(&inference->wake, &inference->lock,
                                (uint64_t)instant_since(end, clock_now()).ns);
    }
    is_stopping = inference->is_stopping;
    uv_mutex_unlock(&inference->lock);
    return is_stopping;
}

/* Opens the models again. False: the thread shall end. */
static bool reopen(struct inference *inference)
{
    struct outcome *outcome;

    close_engine(inference);
    while (!pause_for(inference, backoff_after(++inference->losses, SPAN_MS(PAUSE_MIN_MS),
                                               SPAN_MS(PAUSE_MAX_MS), 0))) {
        struct baton_error error = {0};
        uv_mutex_lock(&inference->lock);
        inference->stats.restarts++;
        uv_mutex_unlock(&inference->lock);
        if (open_engine(inference, &error) == 0) {
            return true;
        }
        outcome = outcome_new(OUTCOME_LOST);
        if (outcome) {
            outcome->error = error;
            tell(inference, outcome);
        }
    }
    return false;
}

static instant time_of(const struct inference *inference, const struct camera_frame *frame)
{
    bool is_ours = !inference->config.uses_stream_time || frame->pts_us == CAMERA_NO_PTS;

    return is_ours ? frame->captured : instant_add((instant){0}, SPAN_US(frame->pts_us));
}

static void run(struct inference *inference, struct outcome *outcome)
{
    struct inference_feed *feed = outcome->feed;
    instant begin = clock_now();

    feed->view = feed->view ? feed->view : runner_view_new(inference->runner);
    outcome->turn.view = feed->view;
    outcome->turn.now = time_of(inference, outcome->turn.frame);
    outcome->turn.seen = take_sighting;
    outcome->turn.userdata = outcome;
    outcome->turn.reterr = &outcome->error;
    if (!feed->view) {
        (void)error_set(&outcome->error, BATON_ENOMEM, "out of memory");
    } else {
        (void)runner_run(inference->runner, &outcome->turn); /* its error is the turn's */
    }
    outcome->busy = instant_since(clock_now(), begin);
}

/* Runs a frame. False: the thread shall end. */
static bool serve(struct inference *inference)
{
    struct outcome *outcome = outcome_new(OUTCOME_FRAME);
    bool is_lost;

    if (!outcome) {
        return !pause_for(inference, SPAN_MS(PAUSE_MIN_MS));
    }
    if (!take_turn(inference, outcome)) {
        outcome_free(outcome);
        return false;
    }
    run(inference, outcome);
    is_lost = engine_pid(inference->engine) == 0;
    if (!is_lost) {
        inference->losses = 0;
    }
    take_stats(inference, outcome->error.code != 0);
    tell(inference, outcome);
    return !is_lost || reopen(inference);
}

void inference_work(void *userdata)
{
    struct inference *inference = userdata;
    struct outcome *opened = inference->opened;

    inference->opened = NULL;
    (void)open_engine(inference, &opened->error);
    tell(inference, opened);
    if (inference->runner) {
        while (serve(inference)) {
        }
    }
    close_engine(inference);
    uv_mutex_lock(&inference->lock);
    inference->has_ended = true;
    uv_mutex_unlock(&inference->lock);
    inference_ring(inference);
}
