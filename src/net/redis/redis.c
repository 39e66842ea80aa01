/* The life of a connection: greeting, checking, going down, and reconnecting. */
#include "net/redis/redis_int.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

struct channel {
    struct channel *next;
    char name[];
};

static void connect_now(struct redis *redis);

/* ---- Going down ------------------------------------------------------------------------------ */

void redis_arm_timer(struct redis *redis, uv_timer_cb on_timer, int64_t ms)
{
    if (redis->state != CLOSING) {
        uv_update_time(redis->loop);
        (void)uv_timer_start(&redis->timer, on_timer, ms > 0 ? (uint64_t)ms : 0, 0);
    }
}

static void on_retry(uv_timer_t *timer)
{
    connect_now(timer->data);
}

/* A hint for the likely cause that only one side uses TLS, which neither side can report.
 */
static const char *hint(const struct redis *redis, int code, const char *reason)
{
    const bool is_dialed = stream_peer_address(redis->stream)[0] != '\0';
    const bool is_tls = code == BATON_EAUTH && !strstr(reason, "wrong version number");

    if (redis->state == CONNECTING && redis->tls && is_dialed && !is_tls) {
        return ": no TLS handshake; if it does not speak TLS there, the URL begins with redis://";
    }
    if (redis->state == GREETING && !redis->tls && !redis->address.path[0] && redis->is_mute) {
        return ", before any answer; if it speaks TLS there, the URL begins with rediss://";
    }
    return "";
}

static void explain(struct redis *redis, int code, const char *reason)
{
    char where[REDIS_HOST_MAX];

    redis_address_name(&redis->address, where, sizeof(where));
    (void)error_set(&redis->error, code, "Redis at %s: %s%s", where, reason,
                    hint(redis, code, reason));
}

void redis_take_down(struct redis *redis, int code, const char *reason)
{
    if (redis->stream && redis->error.code == BATON_OK) {
        explain(redis, code, reason);
        stream_close(redis->stream);
    }
}

static void plan_retry(struct redis *redis)
{
    unsigned char chance = 128;

    (void)RAND_bytes(&chance, 1);
    redis->state = WAITING;
    redis_arm_timer(redis, on_retry, redis->retry_ms / 2 + redis->retry_ms * chance / 512);
    redis->retry_ms = redis->retry_ms * 2 < RETRY_MAX_MS ? redis->retry_ms * 2 : RETRY_MAX_MS;
}

static void free_all(struct redis *redis)
{
    while (redis->channels) {
        struct channel *channel = redis->channels;
        redis->channels = channel->next;
        free(channel);
    }
    outbox_clear(&redis->output);
    free(redis->pending);
    redis_reader_fini(&redis->reader);
    tls_free(redis->tls);
    OPENSSL_cleanse(&redis->address, sizeof(redis->address));
    free(redis);
}

static void release(struct redis *redis)
{
    void (*closed)(void *) = redis->closed;
    void *userdata = redis->closed_userdata;

    if (--redis->open_handles == 0) {
        free_all(redis);
        if (closed) {
            closed(userdata);
        }
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_close(struct stream *stream, int code, const char *reason, void *userdata)
{
    struct redis *redis = userdata;
    struct baton_error error;
    (void)stream;

    if (redis->error.code == BATON_OK) {
        explain(redis, code != BATON_OK ? code : BATON_EUNAVAILABLE,
                reason && reason[0] ? reason : "the server closed the connection");
    }
    redis->stream = NULL;
    error = redis->error;
    outbox_clear(&redis->output);
    (void)uv_prepare_stop(&redis->flush);
    if (redis->state == CLOSING) {
        redis_fail_all(redis);
        release(redis);
        return;
    }
    plan_retry(redis);
    redis_fail_all(redis);
    redis->callbacks.on_down(redis->userdata, &error);
    if (redis->state != CLOSING) {
        log_info(redis->logger, "redis-down", LOG_STR("reason", error.message));
    }
    release(redis); /* the stream's reference */
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* A server's role may change without a new greeting. */
static void on_news(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct redis *redis = userdata;
    struct redis_identity now;
    (void)tag;
    (void)sent;

    if (reply && reply->type == REDIS_REPLY_STRING) {
        redis_identity_parse(&now, reply->str, (size_t)reply->len);
        redis->identity.is_master = now.is_master;
        redis->identity.was_promoted = now.was_promoted;
        memcpy(redis->identity.history, now.history, sizeof(now.history));
        if (redis->wants_master && !now.is_master) {
            redis_take_down(redis, BATON_EUNAVAILABLE, "is a replica now, and not the master");
        }
    }
}

static void on_silence(uv_timer_t *timer)
{
    redis_take_down(timer->data, BATON_ETIMEDOUT, "no answer in time");
}

/* A connection can end without notice, which a side that only reads would never see. */
static void on_look(uv_timer_t *timer)
{
    struct redis *redis = timer->data;
    const char *ping[] = {"PING"};
    const char *info[] = {"INFO", "replication"};

    if (redis->state != UP) {
        return;
    }
    if (!redis->callbacks.on_message) {
        (void)redis_send(redis, 2, info, NULL, on_news, redis, 0);
    } else if (redis->has_heard) {
        redis->has_heard = false;
    } else if (!uv_is_active((uv_handle_t *)&redis->timer)) {
        (void)redis_send(redis, 1, ping, NULL, NULL, NULL, 0);
        redis_arm_timer(redis, on_silence, redis->answer_timeout.ns / 1000000 + 1);
    }
}

/* ---- The greeting ---------------------------------------------------------------------------- */

static void send_subscription(struct redis *redis, const char *verb, const char *channel)
{
    const char *arguments[] = {verb, channel};

    (void)redis_send(redis, 2, arguments, NULL, NULL, NULL, 0);
}

static void come_up(struct redis *redis)
{
    char where[REDIS_HOST_MAX];

    redis->state = UP;
    redis->has_heard = true;
    if (redis->callbacks.on_message) {
        (void)uv_timer_stop(&redis->timer);
    }
    for (struct channel *channel = redis->channels; channel; channel = channel->next) {
        send_subscription(redis, "SUBSCRIBE", channel->name);
    }
    redis_address_name(&redis->address, where, sizeof(where));
    log_info(redis->logger, "redis-up", LOG_STR("server", where),
             LOG_STR("version", redis->identity.version));
    redis->callbacks.on_up(redis->userdata, &redis->identity);
}

void redis_refuse(struct redis *redis, const redisReply *reply)
{
    struct baton_error error;

    (void)redis_fault_error(reply, &error);
    redis_take_down(redis, error.code, error.message);
}

/* AUTH, SELECT, CLIENT SETNAME: any reply but an error is accepted; SETNAME may fail. */
static void on_greeted(void *userdata, uint64_t may_fail, const redisReply *reply, instant sent)
{
    struct redis *redis = userdata;
    (void)sent;

    if (reply && redis_fault_of(reply) != REDIS_FINE && !may_fail) {
        redis_refuse(redis, reply);
    }
}

static void on_loaded(void *userdata, uint64_t number, const redisReply *reply, instant sent)
{
    struct redis *redis = userdata;
    struct redis_script *script = &redis->scripts[number];
    (void)sent;

    if (!reply) {
        return;
    }
    if (reply->type == REDIS_REPLY_STRING && (size_t)reply->len < sizeof(script->sha)) {
        memcpy(script->sha, reply->str, (size_t)reply->len + 1);
    } else {
        redis_refuse(redis, reply);
    }
}

/* The greeting's last reply. */
static void on_info(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct redis *redis = userdata;
    (void)tag;
    (void)sent;

    if (!reply || redis->error.code != BATON_OK || redis->state != GREETING) {
        return;
    }
    if (reply->type != REDIS_REPLY_STRING) {
        redis_refuse(redis, reply);
        return;
    }
    redis_identity_parse(&redis->identity, reply->str, (size_t)reply->len);
    if (redis->wants_master && !redis->identity.is_master) {
        redis_take_down(redis, BATON_EUNAVAILABLE, "is a replica, and not the master (yet)");
        return;
    }
    come_up(redis);
}

void redis_load_scripts(struct redis *redis)
{
    for (size_t i = 0; i < redis->script_count; i++) {
        const char *arguments[] = {"SCRIPT", "LOAD", redis->scripts[i].text};
        (void)redis_send(redis, 3, arguments, NULL, on_loaded, redis, i);
    }
}

static void on_open(struct stream *stream, void *userdata)
{
    struct redis *redis = userdata;
    const struct redis_address *address = &redis->address;
    const char *arguments[3];
    char number[12];
    (void)stream;

    redis->state = GREETING;
    if (address->password[0]) {
        arguments[0] = "AUTH";
        arguments[1] = address->user[0] ? address->user : address->password;
        arguments[2] = address->password;
        (void)redis_send(redis, address->user[0] ? 3 : 2, arguments, NULL, on_greeted, redis, 0);
    }
    if (address->database > 0) {
        (void)snprintf(number, sizeof(number), "%d", address->database);
        arguments[0] = "SELECT";
        arguments[1] = number;
        (void)redis_send(redis, 2, arguments, NULL, on_greeted, redis, 0);
    }
    if (redis->name[0]) {
        arguments[0] = "CLIENT";
        arguments[1] = "SETNAME";
        arguments[2] = redis->name;
        (void)redis_send(redis, 3, arguments, NULL, on_greeted, redis, 1);
    }
    redis_load_scripts(redis);
    arguments[0] = "INFO";
    (void)redis_send(redis, 1, arguments, NULL, on_info, redis, 0);
}

/* ---- Coming and going ------------------------------------------------------------------------ */

static void limit_connecting(struct redis *redis);

static void on_connect_overdue(uv_timer_t *timer)
{
    struct redis *redis = timer->data;

    if (stream_is_resolving(redis->stream)) {
        limit_connecting(redis);
    } else {
        redis->overdue++;
        redis_take_down(redis, BATON_ETIMEDOUT, "no connection in time");
    }
}

/* The time of a look-up does not count, as a new one would take as long: the resolver has limits of
 * its own, by default 5 s for each name server that does not answer. */
static void limit_connecting(struct redis *redis)
{
    redis_arm_timer(redis, on_connect_overdue, redis->answer_timeout.ns / 1000000 + 1);
}

static int dial(struct redis *redis)
{
    struct stream_options options = {
        .loop = redis->loop,
        .callbacks = {.on_open = on_open, .on_data = redis_take_data, .on_close = on_close},
        .userdata = redis,
        .queue_bytes_max = QUEUE_BYTES_MAX,
        .tls = redis->tls,
        .turn = redis->overdue,
    };
    const struct redis_address *address = &redis->address;

    if (redis->tls && !address->tls.is_unverified) {
        options.peer_name = address->tls.name[0] ? address->tls.name : address->host;
    }

    return address->path[0]
               ? stream_connect_unix(&redis->stream, &options, address->path, NULL)
               : stream_connect(&redis->stream, &options, address->host, address->port, NULL);
}

static void connect_now(struct redis *redis)
{
    if (!redis->address.host[0] && !redis->address.path[0]) {
        return; /* waits for redis_move() */
    }
    redis->error = (struct baton_error){.code = BATON_OK};
    redis->state = CONNECTING;
    redis->is_mute = true;
    redis_reader_fini(&redis->reader);
    if (!redis_reader_init(&redis->reader) || dial(redis) != BATON_OK) {
        redis->stream = NULL;
        plan_retry(redis);
        return;
    }
    redis->open_handles++;
    limit_connecting(redis);
}

static void on_first(uv_timer_t *timer)
{
    connect_now(timer->data);
}

static const char *file(const char *name)
{
    return name[0] ? name : NULL;
}

/* Without TLS *ret stays NULL. */
static int make_tls(struct tls **ret, const struct redis_address *address,
                    struct baton_error *reterr)
{
    const struct redis_tls *tls = &address->tls;
    struct tls_client_options options = {.ca_file = file(tls->ca),
                                         .certificate_file = file(tls->certificate),
                                         .key_file = file(tls->key),
                                         .trusts_anybody = tls->is_unverified};

    return address->is_tls ? tls_new_client(ret, &options, reterr) : BATON_OK;
}

int redis_check_files(const struct redis_address *address, struct baton_error *reterr)
{
    struct tls *tls = NULL;
    int r = make_tls(&tls, address, reterr);

    tls_free(tls);
    return r;
}

int redis_renew(struct redis *redis, const struct redis_address *from, struct baton_error *reterr)
{
    struct redis_address *address = &redis->address;
    bool is_new = strcmp(address->password, from->password) != 0;
    struct tls *fresh = NULL;
    int r = redis->tls ? make_tls(&fresh, from, reterr) : BATON_OK;

    if (r != BATON_OK) {
        return r;
    }
    if (fresh) {
        tls_adopt(redis->tls, fresh);
    }
    memcpy(address->password, from->password, sizeof(address->password));
    if (redis->state == WAITING && is_new && uv_is_active((uv_handle_t *)&redis->timer)) {
        redis->retry_ms = RETRY_MIN_MS;
        redis_arm_timer(redis, on_retry, 0);
    }
    return BATON_OK;
}

int redis_open(struct redis **ret, const struct redis_options *options, struct baton_error *reterr)
{
    struct redis *redis = calloc(1, sizeof(*redis));
    int r;

    if (!redis) {
        return error_set(reterr, BATON_ENOMEM, "Redis: out of memory");
    }
    redis->loop = options->loop;
    redis->logger = options->logger;
    redis->address = *options->address;
    r = make_tls(&redis->tls, &redis->address, reterr);
    if (r != BATON_OK) {
        free(redis);
        return r;
    }
    if (redis->tls && redis->address.tls.is_unverified) {
        log_warning(redis->logger, "redis-unverified",
                    LOG_STR("problem", "verify=off: the server's certificate is not checked"));
    }
    (void)snprintf(redis->name, sizeof(redis->name), "%s", options->name ? options->name : "");
    redis->answer_timeout = options->answer_timeout;
    redis->wants_master = options->wants_master;
    redis->scripts = options->scripts;
    redis->script_count = options->script_count;
    redis->callbacks = options->callbacks;
    redis->userdata = options->userdata;
    redis->retry_ms = RETRY_MIN_MS;
    outbox_init(&redis->output, QUEUE_BYTES_MAX);
    (void)uv_timer_init(redis->loop, &redis->timer);
    (void)uv_timer_init(redis->loop, &redis->look);
    (void)uv_prepare_init(redis->loop, &redis->flush);
    redis->timer.data = redis->look.data = redis->flush.data = redis;
    redis->open_handles = 3;
    if (options->look_interval.ns > 0) {
        uint64_t every = (uint64_t)options->look_interval.ns / 1000000 + 1;
        (void)uv_timer_start(&redis->look, on_look, every, every);
    }
    redis_arm_timer(redis, on_first, 0);
    *ret = redis;
    return BATON_OK;
}

void redis_close(struct redis *redis, void (*closed)(void *userdata), void *userdata)
{
    redis->state = CLOSING;
    redis->closed = closed;
    redis->closed_userdata = userdata;
    if (redis->stream) {
        size_t bytes;
        const void *data;
        while ((data = outbox_first(&redis->output, &bytes))) {
            (void)stream_write(redis->stream, data,
                               bytes); /* last writes, such as a release, are still sent */
            outbox_drop_first(&redis->output);
        }
        (void)error_set(&redis->error, BATON_ECANCELED, "closed");
        stream_close(redis->stream);
    }
    redis_fail_all(redis);
    uv_close((uv_handle_t *)&redis->timer, on_handle_closed);
    uv_close((uv_handle_t *)&redis->look, on_handle_closed);
    uv_close((uv_handle_t *)&redis->flush, on_handle_closed);
}

void redis_move(struct redis *redis, const char *host, int port, bool at_once)
{
    struct redis_address *address = &redis->address;

    if ((strcmp(address->host, host) == 0 && address->port == port) || redis->state == CLOSING ||
        strlen(host) >= sizeof(address->host)) {
        return;
    }
    if (at_once) {
        redis->retry_ms = RETRY_MIN_MS;
    }
    redis_take_down(redis, BATON_ECANCELED, "another server is to be used now");
    (void)snprintf(address->host, sizeof(address->host), "%s", host);
    address->port = port;
    if (redis->state == WAITING && (at_once || !uv_is_active((uv_handle_t *)&redis->timer))) {
        redis_arm_timer(redis, on_retry, 0);
    }
}

void redis_where(const struct redis *redis, struct redis_host *ret)
{
    memcpy(ret->host, redis->address.host, sizeof(ret->host));
    ret->port = redis->address.port;
}

const char *redis_peer_address(const struct redis *redis)
{
    return redis->stream ? stream_peer_address(redis->stream) : "";
}

const struct redis_identity *redis_identity_of(const struct redis *redis)
{
    return &redis->identity;
}

bool redis_is_up(const struct redis *redis)
{
    return redis->state == UP;
}

/* ---- Subscriptions --------------------------------------------------------------------------- */

int redis_subscribe(struct redis *redis, const char *name)
{
    size_t bytes = strlen(name) + 1;
    struct channel *channel = malloc(sizeof(*channel) + bytes);

    if (!channel) {
        return BATON_ENOMEM;
    }
    memcpy(channel->name, name, bytes);
    channel->next = redis->channels;
    redis->channels = channel;
    if (redis->state == UP) {
        send_subscription(redis, "SUBSCRIBE", name);
    }
    return BATON_OK;
}

void redis_unsubscribe(struct redis *redis, const char *name)
{
    for (struct channel **at = &redis->channels; *at; at = &(*at)->next) {
        struct channel *channel = *at;
        if (strcmp(channel->name, name) == 0) {
            *at = channel->next;
            if (redis->state == UP) {
                send_subscription(redis, "UNSUBSCRIBE", name);
            }
            free(channel);
            return;
        }
    }
}
