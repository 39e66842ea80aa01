#include "net/redis/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 500,   /* interval of the timer */
    CALM_LOOKS = 20, /* ask once in so many intervals while all is well */
    STALE_LOOKS = 4, /* after so many answers with a master that fails, ask another Sentinel */
};

struct sentinel {
    uv_loop_t *loop;
    struct logger *logger;
    struct redis_address address; /* of the current Sentinel */
    char service[REDIS_SERVICE_MAX];
    struct redis_host hosts[REDIS_SENTINELS_MAX];
    int count;
    int current;
    int failures;               /* consecutive */
    struct baton_error failure; /* this round's latest, or one that an operator can mend */
    bool is_urgent;
    bool is_asking;
    bool is_closing;
    int looks;
    struct redis *asked;
    struct redis *subscribed; /* subscribed to +switch-master */
    uv_timer_t timer;
    void (*on_master)(void *userdata, const char *host, int port);
    void (*on_down)(void *userdata, const struct baton_error *error);
    void *userdata;
    int open_handles;
    void (*closed)(void *userdata);
    void *closed_userdata;
};

/* ---- Answers --------------------------------------------------------------------------------- */

static void tell(struct sentinel *sentinel, const char *host, int port)
{
    log_debug(sentinel->logger, "sentinel-master", LOG_STR("service", sentinel->service),
              LOG_STR("host", host), LOG_I64("port", port));
    sentinel->on_master(sentinel->userdata, host, port);
}

static void tell_unknown(struct sentinel *sentinel)
{
    struct baton_error error;

    (void)error_set(&error, BATON_ENOENT,
                    "Redis Sentinel knows no service \"%s\": the URL's path must be a name that it "
                    "monitors (SENTINEL MASTERS lists them)",
                    sentinel->service);
    sentinel->on_down(sentinel->userdata, &error);
}

static void tell_refused(struct sentinel *sentinel, const redisReply *reply)
{
    const struct redis_host *host = &sentinel->hosts[sentinel->current];
    struct baton_error error;

    (void)redis_fault_error(reply, &error);
    (void)error_wrap(&error, "Sentinel at %.200s:%d", host->host, host->port);
    sentinel->on_down(sentinel->userdata, &error);
}

static void on_answer(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct sentinel *sentinel = userdata;
    char host[REDIS_HOST_MAX];
    int port;
    (void)tag;
    (void)sent;

    sentinel->is_asking = false;
    if (!reply) {
        return; /* on_asked_down follows */
    }
    if (reply->type == REDIS_REPLY_NIL) {
        tell_unknown(sentinel);
    } else if (sentinel_parse_master(reply, host, &port)) {
        tell(sentinel, host, port);
    } else {
        tell_refused(sentinel, reply);
    }
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static void ask(struct sentinel *sentinel)
{
    const char *arguments[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel->service};

    if (!sentinel->is_asking) {
        sentinel->is_asking =
            redis_command(sentinel->asked, 3, arguments, NULL, on_answer, sentinel, 0) == BATON_OK;
    }
}

static void turn_to_next(struct sentinel *sentinel, bool at_once)
{
    const struct redis_host *host;

    sentinel->current = (sentinel->current + 1) % sentinel->count;
    sentinel->looks = 0;
    host = &sentinel->hosts[sentinel->current];
    redis_move(sentinel->asked, host->host, host->port, at_once);
    redis_move(sentinel->subscribed, host->host, host->port, at_once);
}

/* Another Sentinel may have newer information. */
static void on_look(uv_timer_t *timer)
{
    struct sentinel *sentinel = timer->data;

    sentinel->looks++;
    if (sentinel->is_urgent && sentinel->looks > STALE_LOOKS && sentinel->count > 1) {
        turn_to_next(sentinel, true);
    } else if (sentinel->is_urgent || sentinel->looks >= CALM_LOOKS) {
        sentinel->looks = sentinel->is_urgent ? sentinel->looks : 0;
        ask(sentinel);
    }
}

static void on_asked_up(void *userdata, const struct redis_identity *identity)
{
    struct sentinel *sentinel = userdata;
    (void)identity;

    sentinel->failures = 0;
    ask(sentinel);
}

/* Tries all Sentinels without a pause, then pauses for the connection's delay, which grows. */
static void on_asked_down(void *userdata, const struct baton_error *reason)
{
    struct sentinel *sentinel = userdata;
    struct baton_error *error = &sentinel->failure;
    bool is_last;

    if (reason->code == BATON_ECANCELED) {
        return; /* caused by turn_to_next */
    }
    is_last = ++sentinel->failures % sentinel->count == 0;
    if (error->code != BATON_EAUTH || reason->code == BATON_EAUTH) {
        *error = *reason;
    }
    if (is_last) {
        (void)error_wrap(error, "no Sentinel of service \"%s\" answers (%d asked%s); one of them",
                         sentinel->service, sentinel->count,
                         error->code == BATON_EAUTH ? "; their own password is sentinel-password"
                                                    : "");
        sentinel->on_down(sentinel->userdata, error);
        *error = (struct baton_error){.code = BATON_OK};
    }
    if (!sentinel->is_closing && sentinel->count > 1) {
        turn_to_next(sentinel, !is_last);
    }
}

static void on_heard_up(void *userdata, const struct redis_identity *identity)
{
    struct sentinel *sentinel = userdata;
    (void)identity;

    ask(sentinel); /* the master may have moved before we subscribed */
}

static void on_heard_down(void *userdata, const struct baton_error *error)
{
    (void)userdata;
    (void)error; /* the other connection to this Sentinel reports it too */
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct sentinel *sentinel = userdata;
    char host[REDIS_HOST_MAX];
    int port;
    (void)channel;

    if (sentinel_parse_switch(sentinel->service, data, bytes, host, &port)) {
        tell(sentinel, host, port);
    }
}

void sentinel_set_urgent(struct sentinel *sentinel, bool is_urgent)
{
    if (is_urgent && !sentinel->is_urgent) {
        sentinel->looks = 0;
        ask(sentinel);
    }
    sentinel->is_urgent = is_urgent;
}

void sentinel_renew(struct sentinel *sentinel, const struct redis_address *from)
{
    struct redis_address address;

    redis_address_of_sentinel(from, &address);
    (void)redis_renew(sentinel->asked, &address, NULL); /* without TLS it cannot fail */
    (void)redis_renew(sentinel->subscribed, &address, NULL);
    explicit_bzero(&address, sizeof(address));
}

/* ---- Opening and closing --------------------------------------------------------------------- */

static void release(struct sentinel *sentinel)
{
    if (--sentinel->open_handles == 0) {
        void (*closed)(void *) = sentinel->closed;
        void *userdata = sentinel->closed_userdata;
        explicit_bzero(sentinel->address.password, sizeof(sentinel->address.password));
        free(sentinel);
        if (closed) {
            closed(userdata);
        }
    }
}

static void on_part_closed(void *userdata)
{
    release(userdata);
}

static void on_timer_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void sentinel_close(struct sentinel *sentinel, void (*closed)(void *userdata), void *userdata)
{
    struct redis *const parts[] = {sentinel->asked, sentinel->subscribed};

    sentinel->is_closing = true;
    sentinel->closed = closed;
    sentinel->closed_userdata = userdata;
    uv_close((uv_handle_t *)&sentinel->timer, on_timer_closed);
    for (size_t i = 0; i < 2; i++) {
        if (parts[i]) {
            redis_close(parts[i], on_part_closed, sentinel);
        }
    }
}

static int open_both(struct sentinel *sentinel, const struct sentinel_options *options,
                     struct baton_error *reterr)
{
    struct redis_options redis = {
        .loop = options->loop,
        .logger = options->logger,
        .address = &sentinel->address,
        .name = options->name,
        .answer_timeout = options->answer_timeout,
        .look_interval = SPAN_S(10),
        .callbacks = {.on_up = on_asked_up, .on_down = on_asked_down},
        .userdata = sentinel,
    };
    int r = redis_open(&sentinel->asked, &redis, reterr);

    if (r == BATON_OK) {
        sentinel->open_handles++;
        redis.callbacks = (struct redis_callbacks){
            .on_up = on_heard_up, .on_down = on_heard_down, .on_message = on_message};
        r = redis_open(&sentinel->subscribed, &redis, reterr);
    }
    if (r == BATON_OK) {
        sentinel->open_handles++;
        r = redis_subscribe(sentinel->subscribed, "+switch-master");
    }
    return r;
}

int sentinel_open(struct sentinel **ret, const struct sentinel_options *options,
                  struct baton_error *reterr)
{
    const struct redis_address *address = options->address;
    struct sentinel *sentinel = calloc(1, sizeof(*sentinel));
    int r;

    if (!sentinel) {
        return error_set(reterr, BATON_ENOMEM, "Sentinel: out of memory");
    }
    sentinel->loop = options->loop;
    sentinel->logger = options->logger;
    sentinel->count = address->sentinel_count;
    memcpy(sentinel->hosts, address->sentinels, sizeof(sentinel->hosts));
    memcpy(sentinel->service, address->service, sizeof(sentinel->service));
    redis_address_of_sentinel(address, &sentinel->address);
    sentinel->on_master = options->on_master;
    sentinel->on_down = options->on_down;
    sentinel->userdata = options->userdata;
    (void)uv_timer_init(sentinel->loop, &sentinel->timer);
    sentinel->timer.data = sentinel;
    (void)uv_timer_start(&sentinel->timer, on_look, LOOK_MS, LOOK_MS);
    sentinel->open_handles = 1;
    r = open_both(sentinel, options, reterr);
    if (r != BATON_OK) {
        sentinel_close(sentinel, NULL, NULL);
        return r;
    }
    *ret = sentinel;
    return BATON_OK;
}
