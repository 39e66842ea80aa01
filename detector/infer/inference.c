#include "detector/infer/inference_int.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

enum { TELL_MS = 1000 };

/* ---- Outcomes ------------------------------------------------------------------------------- */

void inference_ring(const struct inference *inference)
{
    static const uint64_t one = 1;

    (void)!write(inference->bell, &one, sizeof(one));
}

struct outcome *outcome_new(int type)
{
    /* The sightings are not emptied: most frames have few of them, or none. */
    struct outcome *outcome = malloc(sizeof(*outcome));

    if (outcome) {
        memset(outcome, 0, offsetof(struct outcome, sightings));
        outcome->type = type;
    }
    return outcome;
}

void outcome_free(struct outcome *outcome)
{
    for (int i = 0; outcome && i < outcome->count; i++) {
        json_decref(outcome->sightings[i].attributes);
    }
    free(outcome);
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* No thread and no handle uses the inference any more. */
static void destroy(struct inference *inference)
{
    uv_mutex_destroy(&inference->lock);
    uv_cond_destroy(&inference->wake);
    (void)close(inference->config.engine.cancel_fd);
    (void)close(inference->bell);
    pipeline_fini(&inference->pipeline);
    outcome_free(inference->opened);
    free(inference);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct inference *inference = handle->data;
    struct inference_hooks hooks = inference->config.hooks;

    destroy(inference);
    if (hooks.closed) {
        hooks.closed(hooks.userdata);
    }
}

static void report(struct inference *inference, const struct baton_error *error)
{
    instant now = clock_now();

    if (!instant_before(now, instant_add(inference->reported, SPAN_MS(TELL_MS)))) {
        inference->reported = now;
        inference->config.hooks.failed(inference->config.hooks.userdata, error);
    }
}

static void destroy_feed(struct inference_feed *feed)
{
    camera_frame_unref(feed->pending);
    runner_view_free(feed->view);
    free(feed);
}

static void end_turn(struct inference *inference, struct outcome *outcome)
{
    struct inference_feed *feed = outcome->feed;
    bool is_running;
    const struct inference_result result = {.frame = outcome->turn.frame,
                                            .sightings = outcome->sightings,
                                            .count = outcome->count,
                                            .busy = outcome->busy};

    if (feed->seen && !inference->is_closed && outcome->error.code == 0) {
        feed->is_telling = true;
        feed->seen(feed->userdata, &result);
        feed->is_telling = false;
    } else if (feed->seen && !inference->is_closed) {
        report(inference, &outcome->error);
    }
    camera_frame_unref(outcome->turn.frame);
    uv_mutex_lock(&inference->lock);
    is_running = --feed->running > 0; /* the thread may have begun the next turn */
    uv_mutex_unlock(&inference->lock);
    if (!feed->seen && !is_running) {
        destroy_feed(feed);
    }
}

static void handle(struct inference *inference, struct outcome *outcome)
{
    const struct inference_hooks *hooks = &inference->config.hooks;
    const struct baton_error *error = outcome->error.code ? &outcome->error : NULL;
    struct inference_stats stats;

    if (outcome->type == OUTCOME_FRAME) {
        end_turn(inference, outcome);
    } else if (outcome->type == OUTCOME_LOST && !inference->is_closed) {
        report(inference, error);
    } else if (!inference->is_closed) {
        inference_stats(inference, &stats);
        hooks->opened(hooks->userdata, error ? NULL : stats.engine, error);
    }
    outcome_free(outcome);
}

/* NULL: there is none. */
static struct outcome *take_outcome(struct inference *inference, bool *ret_has_ended)
{
    struct outcome *outcome;

    uv_mutex_lock(&inference->lock);
    outcome = inference->first;
    if (outcome) {
        inference->first = outcome->next;
        if (!inference->first) {
            inference->last = &inference->first;
        }
    }
    *ret_has_ended = !outcome && inference->has_ended;
    uv_mutex_unlock(&inference->lock);
    return outcome;
}

static void on_bell(uv_poll_t *poll, int status, int events)
{
    struct inference *inference = poll->data;
    struct outcome *outcome;
    bool has_ended;
    uint64_t rings;

    (void)status;
    (void)events;
    (void)!read(inference->bell, &rings, sizeof(rings));

    while ((outcome = take_outcome(inference, &has_ended)) != NULL) {
        handle(inference, outcome);
    }
    if (has_ended && inference->is_closed && !uv_is_closing((uv_handle_t *)poll)) {
        (void)uv_thread_join(&inference->thread);
        uv_close((uv_handle_t *)poll, on_handle_closed);
    }
}

/* ---- Feeds ---------------------------------------------------------------------------------- */

struct inference_feed *inference_feed_new(struct inference *inference, inference_seen *seen,
                                          void *userdata)
{
    struct inference_feed *feed = NULL;

    if (inference->stats.feeds < INFERENCE_FEEDS_MAX) {
        feed = calloc(1, sizeof(*feed));
    }
    if (feed) {
        feed->inference = inference;
        feed->seen = seen;
        feed->userdata = userdata;
        uv_mutex_lock(&inference->lock);
        LL_PREPEND(inference->feeds, feed);
        inference->stats.feeds++;
        uv_mutex_unlock(&inference->lock);
    }
    return feed;
}

/* The feed is in no list any more. If a turn of it runs, the end of that turn frees it. */
static void part_with(struct inference_feed *feed, bool is_running)
{
    feed->seen = NULL;
    if (!is_running) {
        destroy_feed(feed);
    }
}

void inference_feed_free(struct inference_feed *feed)
{
    struct inference *inference;
    bool is_running;

    if (!feed) {
        return;
    }
    inference = feed->inference;
    uv_mutex_lock(&inference->lock);
    LL_DELETE(inference->feeds, feed);
    inference->stats.feeds--;
    is_running = feed->running > 0;
    uv_mutex_unlock(&inference->lock);
    part_with(feed, is_running);
}

bool inference_feed_frame(struct inference_feed *feed, const struct camera_frame *frame,
                          const int rect[4], enum stage progression)
{
    struct inference *inference = feed->inference;
    const struct camera_frame *old;

    frame = camera_frame_ref(frame);
    uv_mutex_lock(&inference->lock);
    old = feed->pending;
    feed->pending = frame;
    memcpy(feed->rect, rect, sizeof(feed->rect));
    feed->progression = progression;
    uv_mutex_unlock(&inference->lock);
    uv_cond_signal(&inference->wake); /* the lock is free for it by now */
    camera_frame_unref(old);
    return old != NULL;
}

bool inference_feed_is_idle(const struct inference_feed *feed)
{
    bool is_idle;

    uv_mutex_lock(&feed->inference->lock);
    is_idle = !feed->pending && feed->running <= feed->is_telling;
    uv_mutex_unlock(&feed->inference->lock);
    return is_idle;
}

/* ---- Life ----------------------------------------------------------------------------------- */

void inference_stats(struct inference *inference, struct inference_stats *ret)
{
    uv_mutex_lock(&inference->lock);
    *ret = inference->stats;
    uv_mutex_unlock(&inference->lock);
}

/* NULL: out of memory or descriptors. */
static struct inference *make(const struct inference_config *config)
{
    struct inference *inference = calloc(1, sizeof(*inference));

    if (!inference) {
        return NULL;
    }
    (void)uv_mutex_init(&inference->lock); /* glibc's: neither can fail */
    (void)uv_cond_init(&inference->wake);
    inference->config = *config;
    inference->config.engine.cancel_fd = eventfd(0, EFD_CLOEXEC);
    inference->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    inference->opened = outcome_new(OUTCOME_OPENED);
    inference->last = &inference->first;
    inference->reported = INSTANT_PAST;
    inference->poll.data = inference;
    if (inference->opened && inference->config.engine.cancel_fd >= 0 && inference->bell >= 0 &&
        uv_poll_init(config->loop, &inference->poll, inference->bell) == 0) {
        return inference;
    }
    destroy(inference);
    return NULL;
}

int inference_open(struct inference **ret, struct pipeline *pipeline,
                   const struct inference_config *config, struct baton_error *reterr)
{
    static const uv_thread_options_t options = {.flags = UV_THREAD_NO_FLAGS};
    struct inference *inference = make(config);

    if (!inference) {
        return error_set(reterr, BATON_ENOMEM, "out of memory or descriptors");
    }
    (void)uv_poll_start(&inference->poll, UV_READABLE,
                        on_bell); /* cannot fail: it is not closing */
    inference->pipeline = *pipeline;
    if (uv_thread_create_ex(&inference->thread, &options, inference_work, inference) != 0) {
        inference->pipeline = (struct pipeline){0};
        inference->config.hooks.closed = NULL;
        uv_close((uv_handle_t *)&inference->poll, on_handle_closed);
        return error_set(reterr, BATON_EIO, "no further thread");
    }
    *pipeline = (struct pipeline){0};
    *ret = inference;
    return 0;
}

void inference_close(struct inference *inference)
{
    static const uint64_t one = 1;
    struct inference_feed *feed;

    if (!inference || inference->is_closed) {
        return;
    }
    inference->is_closed = true;
    uv_mutex_lock(&inference->lock);
    inference->is_stopping = true; /* so no further turn begins */
    feed = inference->feeds;
    inference->feeds = NULL;
    inference->stats.feeds = 0;
    uv_cond_signal(&inference->wake);
    uv_mutex_unlock(&inference->lock);
    for (struct inference_feed *next; feed; feed = next) {
        next = feed->next;
        part_with(feed, feed->running > 0); /* only this thread ends a turn */
    }
    /* The thread may wait for a model; this ends its wait. */
    (void)!write(inference->config.engine.cancel_fd, &one, sizeof(one));
    inference_ring(inference); /* it may have ended before */
}
