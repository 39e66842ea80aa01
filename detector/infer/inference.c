#include "detector/infer/inference.h"

#include "base/backoff.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

enum {
    TELL_MS = 1000,
    PAUSE_MIN_MS = 500, /* before the models are opened again */
    PAUSE_MAX_MS = 30000,
};

struct inference_feed {
    struct inference *inference;
    struct inference_feed *prev, *next;
    inference_seen *seen; /* NULL: closed; it goes with its last turn */
    void *userdata;
    int turns;                  /* that wait, are under way, or are done and not reported yet */
    struct runner_view view;    /* the thread's while a turn is under way */
    struct runner_turn pending; /* under the lock; its frame is held; NULL: none */
};

/* What came of a turn, or of opening the models, for the loop; they are read oldest first. */
struct outcome {
    struct outcome *prev, *next;
    struct baton_error error; /* code 0: none */
    struct inference_stats stats;
    struct inference_feed *feed; /* NULL: the models are open, or cannot be opened */
    struct runner_turn turn;     /* its frame is held */
    struct inference_result result;
    struct sighting sightings[RUNNER_SIGHTINGS_MAX]; /* with their attributes */
};

struct inference {
    struct inference_config config;
    uv_thread_t thread;
    /* Not a uv_async_t: if its writer is interrupted within the call, the loop spins until the
     * writer goes on, which on a shared processor is most of the time. */
    int bell; /* an eventfd */
    uv_poll_t poll;
    uv_mutex_t lock;
    uv_cond_t wake;
    instant reported; /* when the last failure was */
    struct inference_stats stats;
    atomic_bool is_closed; /* set by the loop under the lock; ends the thread and its waits */
    /* under the lock */
    struct inference_feed *feeds; /* the one that was served least recently first */
    struct outcome *outcomes;
    bool has_ended; /* the thread has told all */
    /* the thread's */
    struct runner *runner;
    struct pipeline pipeline; /* read by the first runner, as the loop reads names in it */
    struct inference_stats newest;
    unsigned losses; /* of its child, in a row */
};

/* Makes the loop look for outcomes. Any thread may call it. */
static void ring(const struct inference *inference)
{
    static const uint64_t one = 1;

    (void)!write(inference->bell, &one, sizeof(one));
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* True: the thread shall end, which ends the pause early. */
static bool pause_for(struct inference *inference, span pause)
{
    instant end = instant_add(clock_now(), pause);
    int64_t left_ns = pause.ns;

    uv_mutex_lock(&inference->lock);
    while (!inference->is_closed && left_ns > 0) {
        (void)uv_cond_timedwait(&inference->wake, &inference->lock, (uint64_t)left_ns);
        left_ns = instant_since(end, clock_now()).ns;
    }
    uv_mutex_unlock(&inference->lock);
    return inference->is_closed;
}

/* Waits for memory. NULL: the thread shall end. */
static struct outcome *new_outcome(struct inference *inference)
{
    struct outcome *outcome = malloc(sizeof(*outcome));

    while (!outcome && !pause_for(inference, SPAN_MS(PAUSE_MIN_MS))) {
        outcome = malloc(sizeof(*outcome));
    }
    /* The sightings are not emptied: most frames have few of them, or none. */
    if (outcome) {
        memset(outcome, 0, offsetof(struct outcome, sightings));
    }
    return outcome;
}

static void tell(struct inference *inference, struct outcome *outcome)
{
    const struct runner *runner = inference->runner;

    inference->newest.failures += outcome->feed && outcome->error.code != 0;
    inference->newest.pid = runner ? engine_pid(runner_engine(runner)) : 0;
    outcome->stats = inference->newest;
    uv_mutex_lock(&inference->lock);
    DL_APPEND(inference->outcomes, outcome);
    uv_mutex_unlock(&inference->lock);
    ring(inference);
}

/* Opens the models, and tells the loop what came of it. False: they are not open. */
static bool open_runner(struct inference *inference)
{
    struct outcome *outcome = new_outcome(inference);
    int code;

    if (!outcome) {
        return false;
    }
    code = runner_new(&inference->runner, &inference->pipeline, inference->config.archive_fd,
                      &inference->config.engine, &outcome->error);
    if (!code) {
        memcpy(inference->newest.engine, engine_name(runner_engine(inference->runner)),
               sizeof(inference->newest.engine));
        (void)snprintf(inference->newest.note, sizeof(inference->newest.note), "%s",
                       runner_note(inference->runner));
    }
    tell(inference, outcome);
    return !code;
}

/* NULL: none waits. */
static struct inference_feed *next_feed(const struct inference *inference)
{
    struct inference_feed *feed = inference->feeds;

    while (feed && !feed->pending.frame) {
        feed = feed->next;
    }
    return feed;
}

/* Waits for a frame, and takes it. False: the thread shall end. */
static bool take_turn(struct inference *inference, struct outcome *outcome)
{
    struct inference_feed *feed = NULL;

    uv_mutex_lock(&inference->lock);
    while (!inference->is_closed && (feed = next_feed(inference)) == NULL) {
        uv_cond_wait(&inference->wake, &inference->lock);
    }
    if (feed) {
        outcome->feed = feed;
        outcome->turn = feed->pending;
        feed->pending.frame = NULL;
        DL_DELETE(inference->feeds, feed);
        DL_APPEND(inference->feeds, feed);
    }
    uv_mutex_unlock(&inference->lock);
    return feed != NULL;
}

/* Opens the models again. False: the thread shall end. */
static bool reopen(struct inference *inference)
{
    runner_free(inference->runner);
    inference->runner = NULL;
    while (!pause_for(inference, backoff_after(++inference->losses, SPAN_MS(PAUSE_MIN_MS),
                                               SPAN_MS(PAUSE_MAX_MS), 0))) {
        inference->newest.restarts++;
        if (open_runner(inference)) {
            return true;
        }
    }
    return false;
}

static instant time_of(const struct inference *inference, const struct frame *frame)
{
    bool is_ours = !inference->config.uses_stream_time || frame->pts_us == CAMERA_NO_PTS;

    return is_ours ? frame->captured : instant_add((instant){0}, SPAN_US(frame->pts_us));
}

static void run(struct inference *inference, struct outcome *outcome)
{
    instant begin = clock_now();
    int count;

    outcome->turn.view = &outcome->feed->view;
    outcome->turn.now = time_of(inference, outcome->turn.frame);
    outcome->turn.reterr = &outcome->error;
    count = runner_run(inference->runner, &outcome->turn, outcome->sightings);
    outcome->result =
        (struct inference_result){.frame = outcome->turn.frame,
                                  .sightings = outcome->sightings,
                                  .count = count > 0 ? count : 0, /* else the error is the turn's */
                                  .busy = instant_since(clock_now(), begin)};
}

/* Runs a frame. False: the thread shall end. */
static bool serve(struct inference *inference)
{
    struct outcome *outcome = new_outcome(inference);
    bool is_lost;

    if (!outcome || !take_turn(inference, outcome)) {
        free(outcome);
        return false;
    }
    run(inference, outcome);
    is_lost = engine_pid(runner_engine(inference->runner)) == 0;
    if (!is_lost) {
        inference->losses = 0;
    }
    tell(inference, outcome);
    return !is_lost || reopen(inference);
}

static void work(void *userdata)
{
    struct inference *inference = userdata;

    if (open_runner(inference)) {
        while (serve(inference)) {
        }
    }
    runner_free(inference->runner);
    uv_mutex_lock(&inference->lock);
    inference->has_ended = true;
    uv_mutex_unlock(&inference->lock);
    ring(inference);
}

/* ---- The loop ------------------------------------------------------------------------------- */

/* No thread and no handle uses the inference any more. */
static void destroy(struct inference *inference)
{
    uv_mutex_destroy(&inference->lock);
    uv_cond_destroy(&inference->wake);
    (void)close(inference->bell);
    (void)close(inference->config.archive_fd);
    pipeline_fini(&inference->pipeline);
    free(inference);
}

static void on_handle_closed(uv_handle_t *handle)
{
    destroy(handle->data);
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
    runner_view_fini(&feed->view);
    free(feed);
}

static void end_turn(struct inference *inference, struct outcome *outcome)
{
    struct inference_feed *feed = outcome->feed;

    feed->turns--;
    if (feed->seen && outcome->error.code == 0) {
        feed->seen(feed->userdata, &outcome->result); /* which may free it */
    } else if (feed->seen) {
        report(inference, &outcome->error);
    } else if (feed->turns == 0) {
        destroy_feed(feed);
    }
    for (int i = 0; i < outcome->result.count; i++) {
        json_decref(outcome->sightings[i].attributes);
    }
    frame_unref(outcome->turn.frame);
}

/* The first one is told as such, a later one only if it failed. */
static void tell_opening(struct inference *inference, const struct baton_error *opening)
{
    const struct inference_hooks *hooks = &inference->config.hooks;

    if (inference->stats.restarts == 0) {
        hooks->opened(hooks->userdata, opening->code ? opening : NULL);
    } else if (opening->code) {
        report(inference, opening);
    }
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

    uv_mutex_lock(&inference->lock);
    outcome = inference->outcomes;
    inference->outcomes = NULL;
    has_ended = inference->has_ended;
    uv_mutex_unlock(&inference->lock);
    for (struct outcome *next; outcome; outcome = next) {
        next = outcome->next;
        inference->stats = outcome->stats;
        if (outcome->feed) {
            end_turn(inference, outcome);
        } else if (!inference->is_closed) {
            tell_opening(inference, &outcome->error);
        }
        free(outcome);
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
    struct inference_feed *feed = calloc(1, sizeof(*feed));

    if (feed) {
        feed->inference = inference;
        feed->seen = seen;
        feed->userdata = userdata;
        uv_mutex_lock(&inference->lock);
        DL_PREPEND(inference->feeds, feed);
        uv_mutex_unlock(&inference->lock);
    }
    return feed;
}

/* If a turn of it is under way, the end of that turn frees it. */
void inference_feed_free(struct inference_feed *feed)
{
    struct inference *inference;
    const struct frame *pending;

    if (!feed) {
        return;
    }
    inference = feed->inference;
    uv_mutex_lock(&inference->lock);
    DL_DELETE(inference->feeds, feed);
    pending = feed->pending.frame;
    uv_mutex_unlock(&inference->lock);
    frame_unref(pending);
    feed->turns -= pending != NULL;
    feed->seen = NULL;
    if (feed->turns == 0) {
        destroy_feed(feed);
    }
}

bool inference_feed_frame(struct inference_feed *feed, const struct frame *frame, const int rect[4],
                          enum stage progression)
{
    struct inference *inference = feed->inference;
    const struct runner_turn turn = {.frame = frame_ref(frame),
                                     .rect = {rect[0], rect[1], rect[2], rect[3]},
                                     .progression = progression};
    const struct frame *old;

    uv_mutex_lock(&inference->lock);
    old = feed->pending.frame;
    feed->pending = turn;
    uv_mutex_unlock(&inference->lock);
    uv_cond_signal(&inference->wake); /* the lock is free for it by now */
    feed->turns += old == NULL;
    frame_unref(old);
    return old != NULL;
}

bool inference_feed_is_idle(const struct inference_feed *feed)
{
    return feed->turns == 0;
}

/* ---- Life ----------------------------------------------------------------------------------- */

const struct inference_stats *inference_stats(const struct inference *inference)
{
    return &inference->stats;
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
    inference->config.engine.is_canceled = &inference->is_closed;
    inference->config.archive_fd = fcntl(config->archive_fd, F_DUPFD_CLOEXEC, 0); /* locked, too */
    inference->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    inference->reported = INSTANT_PAST;
    inference->poll.data = inference;
    if (inference->bell >= 0 && inference->config.archive_fd >= 0 &&
        uv_poll_init(config->loop, &inference->poll, inference->bell) == 0) {
        return inference;
    }
    destroy(inference);
    return NULL;
}

int inference_open(struct inference **ret, const struct inference_config *config,
                   struct baton_error *reterr)
{
    struct inference *inference = make(config);

    if (!inference) {
        return error_set(reterr, BATON_ENOMEM, "out of memory or descriptors");
    }
    (void)uv_poll_start(&inference->poll, UV_READABLE,
                        on_bell); /* cannot fail: it is not closing */
    if (uv_thread_create(&inference->thread, work, inference) != 0) {
        uv_close((uv_handle_t *)&inference->poll, on_handle_closed);
        return error_set(reterr, BATON_EIO, "no further thread");
    }
    *ret = inference;
    return 0;
}

void inference_close(struct inference *inference)
{
    if (inference && !inference->is_closed) {
        uv_mutex_lock(&inference->lock);
        inference->is_closed = true;
        uv_cond_signal(&inference->wake);
        uv_mutex_unlock(&inference->lock);
        ring(inference); /* the thread may have ended before */
    }
}
