#include "detector/infer/inference.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { TELL_MS = 1000 };

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
    const struct camera_frame *frame;
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
    int64_t backoff_ms;
};

/* ---- The thread ----------------------------------------------------------------------------- */

static void ring(const struct inference *inference)
{
    static const uint64_t one = 1;

    (void)!write(inference->bell, &one, sizeof(one));
}

static void tell(struct inference *inference, struct outcome *outcome)
{
    uv_mutex_lock(&inference->lock);
    outcome->next = NULL;
    *inference->last = outcome;
    inference->last = &outcome->next;
    uv_mutex_unlock(&inference->lock);
    ring(inference);
}

static void take_stats(struct inference *inference, bool is_lost)
{
    struct runner_stats stats = {0};

    if (inference->runner) {
        runner_stats(inference->runner, &stats);
    }
    uv_mutex_lock(&inference->lock);
    inference->stats.runs = stats.runs;
    inference->stats.busy = stats.busy;
    inference->stats.failures += is_lost;
    inference->stats.pid = inference->engine ? remote_pid(inference->engine) : 0;
    uv_mutex_unlock(&inference->lock);
}

static void close_engine(struct inference *inference)
{
    runner_free(inference->runner);
    engine_free(inference->engine);
    inference->runner = NULL;
    inference->engine = NULL;
}

static int open_engine(struct inference *inference, struct baton_error *reterr)
{
    int code = remote_load(&inference->engine, &inference->config.engine, reterr);

    code = code ? code
                : runner_new(&inference->runner, &inference->pipeline, inference->folder,
                             inference->engine, reterr);
    if (code) {
        close_engine(inference);
        return code;
    }
    uv_mutex_lock(&inference->lock);
    memcpy(inference->stats.engine, inference->engine->name, sizeof(inference->stats.engine));
    inference->stats.pid = remote_pid(inference->engine);
    uv_mutex_unlock(&inference->lock);
    return 0;
}

/* The feed that waits and was served least recently; waits for one. NULL: the end. */
static struct inference_feed *next_feed(struct inference *inference)
{
    struct inference_feed *best = NULL;

    while (!inference->is_stopping) {
        for (struct inference_feed *feed = inference->feeds; feed; feed = feed->next) {
            if (feed->pending && (!best || feed->served < best->served)) {
                best = feed;
            }
        }
        if (best) {
            return best;
        }
        uv_cond_wait(&inference->wake, &inference->lock);
    }
    return NULL;
}

/* Returns its outcome, with the frame that is now the feed's turn; NULL: the end. */
static struct outcome *begin_turn(struct inference *inference, struct outcome *outcome, int rect[4],
                                  enum stage *progression)
{
    struct inference_feed *feed;

    uv_mutex_lock(&inference->lock);
    feed = next_feed(inference);
    if (feed) {
        outcome->feed = feed;
        outcome->frame = feed->pending;
        memcpy(rect, feed->rect, sizeof(feed->rect));
        *progression = feed->progression;
        feed->pending = NULL;
        feed->running++;
        feed->served = ++inference->turn;
    }
    uv_mutex_unlock(&inference->lock);
    return feed ? outcome : NULL;
}

static void take_sighting(void *userdata, const struct sighting *sighting)
{
    struct outcome *outcome = userdata;

    if (outcome->count < outcome->room) {
        outcome->boxes[outcome->count] = *sighting->box;
        outcome->sightings[outcome->count] = *sighting;
        outcome->sightings[outcome->count].box = &outcome->boxes[outcome->count];
        json_incref(sighting->attributes);
        outcome->count++;
    }
}

static struct outcome *outcome_new(void)
{
    struct outcome *outcome = calloc(1, sizeof(*outcome));

    if (outcome) {
        outcome->type = OUTCOME_FRAME;
        outcome->room = RUNNER_SIGHTINGS_MAX;
        /* Not emptied: most frames have few of them, or none. */
        outcome->sightings = malloc(RUNNER_SIGHTINGS_MAX * sizeof(*outcome->sightings));
        outcome->boxes = malloc(RUNNER_SIGHTINGS_MAX * sizeof(*outcome->boxes));
    }
    if (outcome && outcome->sightings && outcome->boxes) {
        return outcome;
    }
    if (outcome) {
        free(outcome->sightings);
        free(outcome->boxes);
        free(outcome);
    }
    return NULL;
}

static void outcome_free(struct outcome *outcome)
{
    for (int i = 0; i < outcome->count; i++) {
        json_decref(outcome->sightings[i].attributes);
    }
    free(outcome->sightings);
    free(outcome->boxes);
    free(outcome);
}

/* Whether the thread shall end instead. */
static bool pause_for(struct inference *inference, int64_t pause_ms)
{
    instant end = instant_add(clock_now(), SPAN_MS(pause_ms));
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

/* Opens the models again; the pause doubles from one failure to the next. False: the end. */
static bool reopen(struct inference *inference)
{
    struct outcome *outcome;

    close_engine(inference);
    while (!pause_for(inference, inference->backoff_ms)) {
        struct baton_error error = {0};
        inference->backoff_ms = inference->backoff_ms * 2 < INFERENCE_BACKOFF_MAX_MS
                                    ? inference->backoff_ms * 2
                                    : INFERENCE_BACKOFF_MAX_MS;
        uv_mutex_lock(&inference->lock);
        inference->stats.restarts++;
        uv_mutex_unlock(&inference->lock);
        if (open_engine(inference, &error) == 0) {
            return true;
        }
        outcome = calloc(1, sizeof(*outcome));
        if (outcome) {
            outcome->type = OUTCOME_LOST;
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

/* One feed's turn. False: the end. */
static bool serve(struct inference *inference)
{
    struct outcome *outcome = outcome_new();
    enum stage progression;
    int rect[4];
    instant begin;
    bool is_lost;

    if (!outcome) {
        return !pause_for(inference, INFERENCE_BACKOFF_MIN_MS);
    }
    if (!begin_turn(inference, outcome, rect, &progression)) {
        outcome_free(outcome);
        return false;
    }
    begin = clock_now();
    if (!outcome->feed->view) {
        outcome->feed->view = runner_view_new(inference->runner);
    }
    if (outcome->feed->view) {
        (void)runner_run(inference->runner, outcome->feed->view, outcome->frame, rect,
                         time_of(inference, outcome->frame), progression, take_sighting, outcome,
                         &outcome->error);
    } else {
        (void)error_set(&outcome->error, BATON_ENOMEM, "out of memory");
    }
    outcome->busy = instant_since(clock_now(), begin);
    is_lost = remote_pid(inference->engine) == 0;
    if (outcome->error.code == 0) {
        inference->backoff_ms = INFERENCE_BACKOFF_MIN_MS;
    }
    take_stats(inference, outcome->error.code != 0);
    tell(inference, outcome);
    return !is_lost || reopen(inference);
}

static void work(void *userdata)
{
    struct inference *inference = userdata;
    struct outcome *opened = &inference->opened;

    inference->backoff_ms = INFERENCE_BACKOFF_MIN_MS;
    opened->type = OUTCOME_OPENED;
    (void)open_engine(inference, &opened->error);
    tell(inference, opened);
    if (inference->runner) {
        while (serve(inference)) {
        }
    }
    close_engine(inference);
    tell(inference, &inference->end);
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* What no thread and no handle uses any more. */
static void destroy(struct inference *inference)
{
    uv_mutex_destroy(&inference->lock);
    uv_cond_destroy(&inference->wake);
    (void)close(inference->config.engine.cancel_fd);
    (void)close(inference->bell);
    pipeline_fini(&inference->pipeline);
    free(inference->folder);
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

    if (!instant_before(now, instant_add(inference->told, SPAN_MS(TELL_MS)))) {
        inference->told = now;
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
    const struct inference_result result = {.frame = outcome->frame,
                                            .sightings = outcome->sightings,
                                            .count = outcome->count,
                                            .busy = outcome->busy};

    uv_mutex_lock(&inference->lock);
    feed->frames++;
    inference->stats.frames++;
    uv_mutex_unlock(&inference->lock);
    if (feed->seen && !inference->is_closed && outcome->error.code == 0) {
        feed->is_telling = true;
        feed->seen(feed->userdata, &result);
        feed->is_telling = false;
    } else if (feed->seen && !inference->is_closed) {
        report(inference, &outcome->error);
    }
    camera_frame_unref(outcome->frame);
    uv_mutex_lock(&inference->lock);
    is_running = --feed->running > 0; /* the thread may have begun the next turn */
    uv_mutex_unlock(&inference->lock);
    if (!feed->seen && !is_running) {
        destroy_feed(feed);
    }
}

/* True: that was the last one, and the inference may be gone. */
static bool handle(struct inference *inference, struct outcome *outcome)
{
    const struct inference_hooks *hooks = &inference->config.hooks;
    const struct baton_error *error = outcome->error.code ? &outcome->error : NULL;
    struct inference_stats stats;

    switch (outcome->type) {
    case OUTCOME_OPENED:
        inference_stats(inference, &stats);
        if (!inference->is_closed) {
            hooks->opened(hooks->userdata, error ? NULL : stats.engine, error);
        }
        return false;
    case OUTCOME_FRAME:
        end_turn(inference, outcome);
        outcome_free(outcome);
        return false;
    case OUTCOME_LOST:
        if (!inference->is_closed) {
            report(inference, error);
        }
        free(outcome);
        return false;
    case OUTCOME_ENDED:
        break;
    }
    (void)uv_thread_join(&inference->thread);
    return true;
}

static struct outcome *take_outcome(struct inference *inference)
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
    uv_mutex_unlock(&inference->lock);
    return outcome;
}

static void on_bell(uv_poll_t *poll, int status, int events)
{
    struct inference *inference = poll->data;
    struct outcome *outcome;
    uint64_t rings;

    (void)status;
    (void)events;
    (void)!read(inference->bell, &rings, sizeof(rings));

    while ((outcome = take_outcome(inference)) != NULL) {
        inference->has_ended = handle(inference, outcome) || inference->has_ended;
    }
    if (inference->has_ended && inference->is_closed && !uv_is_closing((uv_handle_t *)poll)) {
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
        feed->next = inference->feeds;
        inference->feeds = feed;
        inference->stats.feeds++;
        uv_mutex_unlock(&inference->lock);
    }
    return feed;
}

/* It is in no list any more; what is under way goes when its turn is over. */
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
    for (struct inference_feed **at = &inference->feeds; *at; at = &(*at)->next) {
        if (*at == feed) {
            *at = feed->next;
            break;
        }
    }
    inference->stats.feeds--;
    is_running = feed->running > 0;
    uv_mutex_unlock(&inference->lock);
    part_with(feed, is_running);
}

void inference_feed_frame(struct inference_feed *feed, const struct camera_frame *frame,
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
    if (old) {
        feed->dropped++;
        inference->stats.dropped++;
    }
    uv_mutex_unlock(&inference->lock);
    uv_cond_signal(&inference->wake); /* the lock is free for it by now */
    camera_frame_unref(old);
}

bool inference_feed_is_idle(const struct inference_feed *feed)
{
    bool is_idle;

    uv_mutex_lock(&feed->inference->lock);
    is_idle = !feed->pending && feed->running <= feed->is_telling;
    uv_mutex_unlock(&feed->inference->lock);
    return is_idle;
}

void inference_feed_stats(const struct inference_feed *feed, uint64_t *frames, uint64_t *dropped)
{
    *frames = feed->frames; /* only the loop's thread, which asks, writes these two */
    *dropped = feed->dropped;
}

/* ---- Life ----------------------------------------------------------------------------------- */

void inference_stats(struct inference *inference, struct inference_stats *ret)
{
    uv_mutex_lock(&inference->lock);
    *ret = inference->stats;
    uv_mutex_unlock(&inference->lock);
}

static void on_never_started(uv_handle_t *handle)
{
    destroy(handle->data);
}

static struct inference *make(const struct inference_config *config)
{
    struct inference *inference = calloc(1, sizeof(*inference));
    int cancel = eventfd(0, EFD_CLOEXEC);
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (inference) {
        inference->folder = strdup(config->folder);
        inference->config = *config;
        inference->config.engine.cancel_fd = cancel;
        inference->last = &inference->first;
        inference->end.type = OUTCOME_ENDED;
        inference->told = INSTANT_PAST;
        inference->bell = bell;
        inference->poll.data = inference;
        if (inference->folder && cancel >= 0 && bell >= 0 && uv_mutex_init(&inference->lock) == 0) {
            if (uv_cond_init(&inference->wake) == 0) {
                return inference;
            }
            uv_mutex_destroy(&inference->lock);
        }
        free(inference->folder);
        free(inference);
    }
    if (cancel >= 0) {
        (void)close(cancel);
    }
    if (bell >= 0) {
        (void)close(bell);
    }
    return NULL;
}

int inference_open(struct inference **ret, struct pipeline *pipeline,
                   const struct inference_config *config, struct baton_error *reterr)
{
    static const uv_thread_options_t options = {.flags = UV_THREAD_NO_FLAGS};
    struct inference *inference = make(config);

    if (!inference) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    if (uv_poll_init(config->loop, &inference->poll, inference->bell) != 0) {
        destroy(inference);
        return error_set(reterr, BATON_EIO, "no further handle");
    }
    (void)uv_poll_start(&inference->poll, UV_READABLE,
                        on_bell); /* cannot fail: it is not closing */
    inference->pipeline = *pipeline;
    if (uv_thread_create_ex(&inference->thread, &options, work, inference) != 0) {
        inference->pipeline = (struct pipeline){0};
        uv_close((uv_handle_t *)&inference->poll, on_never_started);
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
    /* The thread may be in a model; what it waits for is over at once. */
    (void)!write(inference->config.engine.cancel_fd, &one, sizeof(one));
    ring(inference); /* it may have ended before */
}
