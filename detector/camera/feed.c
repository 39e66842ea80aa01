#include "detector/camera/camera_int.h"

#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

enum {
    LOOK_MS = 1000,
    MUTE_MS = 5000,  /* a child reports every second that it lives */
    GRACE_MS = 1000, /* a child that does not open in time can say why, so it gets this long */
    MS_MAX = 24 * 60 * 60 * 1000,
    LABELS_MAX = 256, /* in a line of the log */
    LOGIN_TRIES_MAX = 3,
};

static void on_timer(uv_timer_t *timer);

/* ---- the cameras of a feed ---- */

static void on_feed_closed(uv_handle_t *handle)
{
    struct feed *feed = handle->data;

    explicit_bzero(&feed->config, sizeof(feed->config));
    free(feed);
}

static void keep_newest(struct feed *feed, const struct frame *frame)
{
    frame_unref(feed->newest);
    feed->newest = frame != NULL ? frame_ref(frame) : NULL;
}

static void feed_close(struct feed *feed)
{
    LL_DELETE(feed->pool->feeds, feed);
    keep_newest(feed, NULL);
    child_stop(feed, false);
    uv_close((uv_handle_t *)&feed->timer, on_feed_closed);
}

void feed_sweep(struct feed *feed)
{
    struct camera *camera = NULL, *next = NULL;

    if (feed->walks != 0) {
        return;
    }
    LL_FOREACH_SAFE (feed->cameras, camera, next) {
        if (camera->is_closed) {
            LL_DELETE(feed->cameras, camera);
            free(camera);
        }
    }
    if (feed->cameras == NULL) {
        feed_close(feed);
    }
}

static void tell_online(struct camera *camera, bool is_online)
{
    bool is_news = camera->is_online != is_online;

    camera->is_online = is_online;
    if (is_news && camera->callbacks.online != NULL) {
        camera->callbacks.online(camera->callbacks.userdata, is_online);
    }
}

static void tell_away(struct camera *camera, bool is_over)
{
    tell_online(camera, false);
    if (is_over && !camera->is_closed && camera->callbacks.ended != NULL) {
        camera->callbacks.ended(camera->callbacks.userdata);
    }
}

static void show_to(struct camera *camera, const struct frame *frame, bool is_asked_for)
{
    tell_online(camera, true);
    if (camera->is_closed) {
        return;
    }
    if (camera->motion_permille > 0 &&
        motion_measure(&camera->motion, frame) < camera->motion_permille && !is_asked_for) {
        camera->still++;
        return;
    }
    camera->feed->stats.shown++;
    camera->callbacks.frame(camera->callbacks.userdata, frame);
}

/* Shows the frame to all cameras, or tells them that the feed is away. A callback may close any
 * camera: it is freed after the last one. */
static void tell_all(struct feed *feed, const struct frame *frame)
{
    bool is_over = feed->state == FEED_OVER;

    feed->walks++;
    for (struct camera *camera = feed->cameras; camera != NULL; camera = camera->next) {
        if (!camera->is_closed && frame != NULL) {
            show_to(camera, frame, false);
        } else if (!camera->is_closed) {
            tell_away(camera, is_over);
        }
    }
    feed->walks--;
    feed_sweep(feed);
}

/* After a sleep of the machine the next one may be late before the feed is offline. */
void camera_show_newest(struct camera *camera)
{
    struct feed *feed = camera != NULL ? camera->feed : NULL;
    span most;

    if (feed == NULL || feed->newest == NULL) {
        return;
    }
    most.ns = camera->interval.ns + SPAN_MS(feed->config.options.stall_ms).ns;
    if (instant_since(clock_now(), feed->newest->captured).ns <= most.ns) {
        feed->walks++; /* the callback may close the camera */
        show_to(camera, feed->newest, true);
        feed->walks--;
        feed_sweep(feed);
    }
}

/* ---- a feed and its child ---- */

/* Returns the shortest interval of its cameras. */
static span interval_of(const struct feed *feed)
{
    span least = SPAN_MS(MS_MAX);

    for (const struct camera *camera = feed->cameras; camera != NULL; camera = camera->next) {
        if (!camera->is_closed && camera->interval.ns < least.ns) {
            least = camera->interval;
        }
    }
    return least;
}

void feed_update_interval(struct feed *feed)
{
    if (feed->child != NULL) {
        child_set_interval(feed->child, interval_of(feed));
    }
}

/* A refused password is a failure of its own kind: each further try may lock the user out. */
static bool is_refusal(const struct feed *feed, const struct baton_error *error)
{
    return error->code == BATON_EAUTH && feed->config.parts.has_user;
}

/* What became of all URLs of a login. */
struct login {
    bool is_accepted; /* by one of them, and not refused there since */
    unsigned trying, refused;
    instant until; /* the end of all their pauses */
};

static bool has_login(const struct feed *feed, const struct feed *other)
{
    return feed->config.parts.has_user && other->config.parts.login == feed->config.parts.login;
}

/* A camera that locks a user out counts the tries of all its URLs: streams and snapshots, and all
 * cameras of a recorder. So of one login at most three are tried or refused at a time, until one is
 * online: from then on a refusal is the URL's own affair, also while all of them are away. After
 * three refusals one is tried at a time, when the pauses of all are over. */
static struct login login_of(const struct feed *feed)
{
    struct login login = {0};

    for (const struct feed *other = feed->pool->feeds; other != NULL; other = other->next) {
        if (has_login(feed, other)) {
            login.is_accepted = login.is_accepted || other->is_accepted;
            login.trying += other->state == FEED_STARTING;
            login.refused += other->refused_until.ns > 0;
            login.until = instant_max(login.until, other->refused_until);
        }
    }
    return login;
}

/* A URL that took the password refuses it: it may have been changed, unless another one has it now.
 */
static void doubt_login(const struct feed *feed)
{
    for (struct feed *other = feed->pool->feeds; other != NULL; other = other->next) {
        if (has_login(feed, other)) {
            other->is_accepted = other->state == FEED_ONLINE;
        }
    }
}

static span refusal_pause(struct feed *feed, uint32_t random)
{
    struct login login;
    bool is_known;
    span pause;

    if (feed->is_accepted) {
        doubt_login(feed);
    }
    login = login_of(feed);
    is_known = !login.is_accepted && login.refused >= LOGIN_TRIES_MAX;
    pause = refusal_pause_after(++feed->refusals + is_known,
                                SPAN_MS(feed->pool->config.backoff_max_ms), random);
    if (!login.is_accepted) {
        feed->refused_until = instant_add(clock_now(), pause);
    }
    return pause;
}

static span next_pause(struct feed *feed, const struct baton_error *error)
{
    uint32_t random = 0;
    span online = {0};

    if (feed->state == FEED_ONLINE) {
        online = instant_since(clock_now(), feed->online_since);
    }
    feed->failures = failures_after(feed->failures, online);
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* 0: no spread */
    if (is_refusal(feed, error)) {
        return refusal_pause(feed, random);
    }
    return backoff_after(feed->failures, SPAN_MS(feed->pool->config.backoff_min_ms),
                         SPAN_MS(feed->pool->config.backoff_max_ms), random);
}

/* Lists the users of a camera as "display;one, display;two". All cameras of one recorder have the
 * same host. */
static const char *labels_of(const struct feed *feed, char ret[LABELS_MAX])
{
    size_t bytes = 0;

    ret[0] = '\0';
    for (const struct camera *camera = feed->cameras; camera != NULL; camera = camera->next) {
        if (!camera->is_closed && camera->callbacks.label != NULL && bytes < LABELS_MAX) {
            bytes += (size_t)snprintf(ret + bytes, LABELS_MAX - bytes, "%s%s",
                                      bytes > 0 ? ", " : "", camera->callbacks.label);
        }
    }
    return ret;
}

/* Keeps the reason, with what is known here of a refused password. */
static void explain(struct feed *feed, const struct baton_error *error, span pause)
{
    char more[96] = "";

    if (is_refusal(feed, error)) {
        (void)snprintf(more, sizeof(more),
                       "; next try in %lld s, or at once with another name or "
                       "password",
                       (long long)(pause.ns / 1000000000));
    } else if (error->code == BATON_EAUTH) {
        (void)snprintf(more, sizeof(more), "; the URL has none");
    }
    (void)snprintf(feed->stats.last_error, sizeof(feed->stats.last_error), "%.400s%s",
                   error->message, more);
}

static void measure(struct feed *feed, instant now)
{
    struct camera_stats *stats = &feed->stats;
    const struct camera_counts *counts = &stats->counts;

    stats->fps = (struct camera_fps){rate_count(&feed->rates.received, counts->received, now),
                                     rate_count(&feed->rates.decoded, counts->decoded, now),
                                     rate_count(&feed->rates.dropped, counts->dropped, now),
                                     rate_count(&feed->rates.shown, stats->shown, now)};
}

static void go_waiting(struct feed *feed, span pause)
{
    feed->state = FEED_WAITING;
    memset(&feed->rates, 0, sizeof(feed->rates));
    feed->stats.fps = (struct camera_fps){0};
    (void)uv_timer_start(&feed->timer, on_timer, (uint64_t)(pause.ns / 1000000 + 1), 0);
}

/* Ends the child after any fault, and starts another one after a pause. */
static void feed_fail(struct feed *feed, const struct baton_error *error)
{
    span pause = next_pause(feed, error);
    char labels[LABELS_MAX];

    child_stop(feed, true);
    keep_newest(feed, NULL);
    explain(feed, error, pause);
    log_warning(feed->pool->config.logger, "camera-offline",
                LOG_STR("camera", feed->config.parts.masked),
                LOG_STR("subscriptions", labels_of(feed, labels)),
                LOG_STR("reason", feed->stats.last_error), LOG_U64("failures", feed->failures),
                LOG_I64("retry_ms", pause.ns / 1000000));
    go_waiting(feed, pause);
    tell_all(feed, NULL);
}

static void go_online(struct feed *feed)
{
    char labels[LABELS_MAX];

    feed->state = FEED_ONLINE;
    feed->refusals = 0;
    feed->refused_until = (instant){0};
    feed->is_accepted = feed->config.parts.has_user;
    feed->online_since = clock_now();
    log_info(feed->pool->config.logger, "camera-online",
             LOG_STR("camera", feed->config.parts.masked),
             LOG_STR("subscriptions", labels_of(feed, labels)), LOG_STR("codec", feed->stats.codec),
             LOG_I64("width", feed->stats.width), LOG_I64("height", feed->stats.height),
             LOG_STR("hardware", feed->stats.hardware));
}

static void show(struct feed *feed, struct frame *frame)
{
    if (feed->config.kind == SOURCE_SNAPSHOT) {
        frame->source = IMAGE_SNAPSHOT;
        keep_newest(feed, frame);
    }
    feed->stats.width = frame->width;
    feed->stats.height = frame->height;
    if (feed->state == FEED_STARTING) {
        go_online(feed);
    }
    tell_all(feed, frame);
}

void feed_hear(struct feed *feed, const struct camera_message *message, uint64_t missed,
               struct frame *frame)
{
    struct camera_stats *stats = &feed->stats;

    feed->is_opened = feed->is_opened || message->type == MESSAGE_OPENED;
    feed->looks = feed->is_opened ? 0 : feed->looks;
    if (message->type == MESSAGE_OPENED) {
        stats->width = (int)(message->width & 0xffff);
        stats->height = (int)(message->height & 0xffff);
        stats->nominal_fps = message->fps_milli / 1000.0;
        stats->duration = SPAN_MS(message->duration_ms);
        (void)snprintf(stats->codec, sizeof(stats->codec), "%s", message->codec);
        (void)snprintf(stats->hardware, sizeof(stats->hardware), "%s", message->hardware);
        return;
    }
    stats->counts = message->counts;
    stats->skipped += missed;
    if (frame != NULL) {
        show(feed, frame);
    }
}

void feed_end(struct feed *feed, const struct baton_error *error)
{
    if (error->code != 0 || feed->config.kind != SOURCE_FILE) {
        feed_fail(feed, error);
        return;
    }
    child_stop(feed, false);
    feed->state = FEED_OVER;
    (void)uv_timer_stop(&feed->timer);
    tell_all(feed, NULL);
}

static void start_child(struct feed *feed)
{
    struct baton_error error;
    instant began = clock_now();
    int rc;

    feed->stats.restarts += feed->failures > 0;
    feed->state = FEED_STARTING;
    feed->is_opened = false;
    feed->looks = 0;
    feed->config.counts = feed->stats.counts;
    rc = child_start(feed, &error);
    feed->pool->start_at = start_after(began, clock_now());
    if (rc != 0) {
        feed_fail(feed, &error);
        return;
    }
    feed_update_interval(feed);
    (void)uv_timer_start(&feed->timer, on_timer, LOOK_MS, LOOK_MS);
}

/* Returns how long this feed waits for its login. */
static span login_pause(struct feed *feed, instant now)
{
    const struct login login = login_of(feed);
    bool is_free = login.is_accepted || login.trying + login.refused < LOGIN_TRIES_MAX;

    if (!is_free && instant_before(now, login.until)) {
        (void)snprintf(feed->stats.last_error, sizeof(feed->stats.last_error),
                       "not tried: the camera refuses name or password at other URLs; next try in "
                       "%lld s, or at once with another name or password",
                       (long long)(instant_since(login.until, now).ns / 1000000000));
    }
    if (!is_free && login.trying > 0) {
        return SPAN_MS(LOOK_MS);
    }
    return is_free ? (span){0} : instant_since(login.until, now);
}

/* Starts children one after the other, with turns of the loop in between: the starts of many
 * cameras together would keep it from its other work for seconds. */
void feed_start(struct feed *feed)
{
    instant now = clock_now();
    span left = instant_since(feed->pool->start_at, now);

    left = left.ns > 0 ? left : login_pause(feed, now);
    if (left.ns > 0) {
        go_waiting(feed, left);
    } else {
        start_child(feed);
    }
}

/* Ends a child that was not heard of for long, by turns of this loop: if the machine stood still,
 * the child did, too. A stall of its camera ends the child by itself. */
static void look(struct feed *feed)
{
    int limit_ms = feed->is_opened ? MUTE_MS : feed->config.options.open_ms + GRACE_MS;
    struct baton_error error;

    if (++feed->looks * LOOK_MS < (unsigned)limit_ms) {
        return;
    }
    if (feed->is_opened) {
        (void)error_set(&error, BATON_ETIMEDOUT, "its process does not answer, and is killed");
    } else {
        (void)error_set(&error, BATON_ETIMEDOUT, "not opened within %d ms; its process is killed",
                        feed->config.options.open_ms);
    }
    feed_fail(feed, &error);
}

static void on_timer(uv_timer_t *timer)
{
    struct feed *feed = timer->data;

    child_reap_brokers();
    if (feed->state == FEED_WAITING) {
        feed_start(feed);
    } else if (feed->state != FEED_OVER) {
        measure(feed, clock_now());
        look(feed);
    }
}

/* ---- new feeds ---- */

static int read_url(struct camera_config *config, bool allows_files, const char *url,
                    struct baton_error *reterr)
{
    int rc;

    INVARIANT(strlen(url) <= MESSAGE_URL_MAX);
    if (allows_files && strstr(url, "://") == NULL) {
        config->kind = SOURCE_FILE;
        (void)snprintf(config->url, sizeof(config->url), "file:%s", url);
        (void)snprintf(config->parts.masked, sizeof(config->parts.masked), "%s", url);
        return 0;
    }
    rc = url_parse(&config->parts, url, reterr);
    if (rc == 0) {
        bool is_http = strncmp(config->parts.scheme, "http", 4) == 0;
        config->kind = is_http ? SOURCE_SNAPSHOT : SOURCE_RTSP;
        url_without_tls(config->url, sizeof(config->url), &config->parts, url);
    }
    return rc;
}

static int or_default(int given, int fallback)
{
    return given > 0 && given <= MS_MAX ? given : fallback;
}

/* Of the same URL; capitals of its scheme do not count. */
static struct feed *find_same(const struct feed *feed)
{
    struct feed *other = feed->pool->feeds;

    while (other != NULL && (strcmp(other->config.url, feed->config.url) != 0 ||
                             strcmp(other->config.parts.scheme, feed->config.parts.scheme) != 0)) {
        other = other->next;
    }
    return other;
}

int feed_of(struct feed **ret, struct camera_pool *pool, const char *url,
            const struct camera_options *options, struct baton_error *reterr)
{
    struct feed *feed = calloc(1, sizeof(*feed));
    int rc;

    if (feed == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for a camera");
    }
    feed->pool = pool;
    rc = read_url(&feed->config, pool->config.allows_files, url, reterr);
    *ret = rc == 0 ? find_same(feed) : NULL;
    if (rc != 0 || *ret != NULL) {
        explicit_bzero(&feed->config, sizeof(feed->config));
        free(feed);
        return rc;
    }
    feed->config.version = MESSAGE_VERSION;
    feed->config.options = *options;
    feed->config.options.stall_ms = or_default(options->stall_ms, CAMERA_STALL_MS);
    feed->config.options.open_ms = or_default(options->open_ms, CAMERA_OPEN_MS);
    feed->config.options.uses_udp &= strcmp(feed->config.parts.scheme, "rtsp") == 0;
    feed->state = FEED_OVER;
    (void)uv_timer_init(pool->config.loop, &feed->timer);
    feed->timer.data = feed;
    LL_PREPEND(pool->feeds, feed);
    *ret = feed;
    return 0;
}
