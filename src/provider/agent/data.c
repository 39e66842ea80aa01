/* State and channels. */
#include "provider/agent/remote.h"
#include "provider/limits.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- Values ---------------------------------------------------------------------------------- */

static int add_value(struct listing *listing, const char *key, const json_t *json)
{
    struct local_bytes bytes = {.data = NULL};
    bool has_bytes = local_take_bytes(&bytes, json);
    int code = BATON_OK;

    if (has_bytes || json_object_get(json, "nothing")) {
        uint64_t revision = (uint64_t)json_integer_value(json_object_get(json, "revision"));
        code =
            listing_add(listing, &(struct provider_value){key, bytes.data, bytes.count, revision});
        if (code == BATON_OK && !has_bytes) {
            listing->values[listing->count - 1].data = NULL; /* deleted, and not empty */
        }
    }
    free(bytes.own);
    return code;
}

/* What are no values is left out. */
static int add_values(struct listing *listing, const json_t *list)
{
    int code = BATON_OK;

    for (size_t i = 0; i < json_array_size(list) && code == BATON_OK; i++) {
        const json_t *json = json_array_get(list, i);
        const char *key = json_string_value(json_object_get(json, "key"));
        code = key ? add_value(listing, key, json) : BATON_OK;
    }
    return code;
}

int call_take_part(struct call *call, const json_t *part)
{
    int code = add_values(&call->parts, json_object_get(part, "values"));

    return code == BATON_OK && call->parts.bytes > LOCAL_LIST_MAX ? BATON_ETOOBIG : code;
}

static void on_values(struct call *call, int code, const json_t *reply)
{
    struct baton_error error = {0};

    if (reply) {
        code = remote_code(reply, &error);
    }
    if (code == BATON_OK) { /* the last part, or the only one */
        code = add_values(&call->parts, json_object_get(reply, "values"));
    }
    call->then.values(call->userdata, code, call->parts.values,
                      code == BATON_OK ? call->parts.count : 0);
}

/* A key that is absent is a value without data, as other providers have it. */
static void on_got(struct call *call, int code, const json_t *reply)
{
    const char *key = json_string_value(json_object_get(call->message, "key"));
    struct baton_error error = {0};

    if (reply && remote_code(reply, &error) == BATON_ENOENT) {
        const struct provider_value absent = {.key = key};
        call->then.values(call->userdata, BATON_OK, &absent, 1);
    } else {
        on_values(call, code, reply);
    }
}

static int ask_values(struct remote *remote, json_t *message,
                      void (*done)(struct call *call, int code, const json_t *reply),
                      provider_values_cb then, void *userdata, struct baton_error *reterr)
{
    struct call *call;
    int code = remote_ask(&call, remote, message, done, userdata, reterr);

    if (code == BATON_OK) {
        call->then.values = then;
        remote_step(remote);
    }
    return code;
}

int remote_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr)
{
    return ask_values((struct remote *)provider, json_pack("{s:s, s:s}", "do", "get", "key", key),
                      on_got, done, userdata, reterr);
}

int remote_get_each(struct provider *provider, const char *const *keys, size_t count,
                    provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_string(keys[i]));
    }
    return ask_values(
        (struct remote *)provider,
        json_array_size(list) == count ? json_pack("{s:s, s:o}", "do", "get", "keys", list) : NULL,
        on_values, done, userdata, reterr);
}

int remote_list(struct provider *provider, const char *prefix, provider_values_cb done,
                void *userdata, struct baton_error *reterr)
{
    return ask_values((struct remote *)provider,
                      json_pack("{s:s, s:s}", "do", "list", "prefix", prefix), on_values, done,
                      userdata, reterr);
}

static int code_of(int code, const json_t *reply, struct baton_error *reterr)
{
    return reply ? remote_code(reply, reterr)
                 : error_set(reterr, code, "the agent went away, or did not reply in time");
}

static void on_put(struct call *call, int code, const json_t *reply)
{
    const json_t *revision = json_object_get(reply, "revision");
    struct baton_error error = {0};

    code = code_of(code, reply, &error);
    call->then.put(call->userdata, code, (uint64_t)json_integer_value(revision), &error);
}

int remote_put(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
               struct baton_error *reterr)
{
    struct remote *remote = (struct remote *)provider;
    struct call *call;
    json_t *message;
    int code = limits_check(key, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    message = json_pack("{s:s, s:s}", "do", "put", "key", key);
    if (message && data) {
        local_put_bytes(message, data, bytes);
    } else if (message) {
        (void)json_object_set_new(message, "nothing", json_true());
    }
    if (message && revision != PROVIDER_ANY_REVISION) {
        (void)json_object_set_new(message, "revision", json_integer((json_int_t)revision));
    }
    if (message && lifetime.ns > 0) {
        (void)json_object_set_new(message, "lifetime_ms", json_real((double)lifetime.ns / 1e6));
    }
    code = remote_ask(&call, remote, message, on_put, userdata, reterr);
    if (code == BATON_OK) {
        call->then.put = done;
        remote_step(remote);
    }
    return code;
}

static void on_published(struct call *call, int code, const json_t *reply)
{
    struct baton_error error = {0};

    code = code_of(code, reply, &error);
    call->then.done(call->userdata, code, &error);
}

int remote_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                   provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct remote *remote = (struct remote *)provider;
    struct call *call;
    json_t *message;
    int code = limits_check(channel, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    message = json_pack("{s:s, s:s}", "do", "publish", "channel", channel);
    if (message) {
        local_put_bytes(message, data, bytes);
    }
    code = remote_ask(&call, remote, message, on_published, userdata, reterr);
    if (code == BATON_OK) {
        call->then.done = done;
        remote_step(remote);
    }
    return code;
}

/* ---- Feeds ----------------------------------------------------------------------------------- */

/* A key that a watch has reported. */
struct seen {
    uint64_t revision;
    bool is_there; /* in the list that a new connection reports */
    UT_hash_handle hh;
    char key[];
};

static void forget(struct feed *feed, struct seen *seen)
{
    /* The analyzer does not see that the table links its neighbours anew.
     * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    HASH_DEL(feed->seen, seen);
    free(seen);
}

static void remember(struct feed *feed, const char *key, uint64_t revision)
{
    struct seen *seen;
    size_t bytes = strlen(key) + 1;

    HASH_FIND_STR(feed->seen, key, seen);
    if (!seen && (seen = calloc(1, sizeof(*seen) + bytes))) {
        memcpy(seen->key, key, bytes);
        HASH_ADD_STR(feed->seen, key, seen);
        if (!seen->hh.tbl) {
            free(seen);
            return;
        }
    }
    if (seen) { /* out of memory: it may be reported twice */
        seen->revision = revision;
        seen->is_there = true;
    }
}

/* Leaves out of the list what was reported before the connection was lost. */
static json_t *only_news(struct feed *feed, const json_t *list)
{
    json_t *news = json_array();

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *json = json_array_get(list, i);
        const char *key = json_string_value(json_object_get(json, "key"));
        struct seen *seen = NULL;
        if (key) {
            HASH_FIND_STR(feed->seen, key, seen);
        }
        if (seen &&
            seen->revision == (uint64_t)json_integer_value(json_object_get(json, "revision"))) {
            seen->is_there = true;
        } else if (news) {
            (void)json_array_append(news, json);
        }
    }
    return news;
}

/* What was there and is no longer, in the first list of a connection: deleted meanwhile. */
static void report_deleted(struct feed *feed)
{
    struct seen *seen = feed->seen, *next;

    for (; seen && !feed->has_ended; seen = next) {
        next = seen->hh.next;
        if (!seen->is_there) {
            const struct provider_value gone = {.key = seen->key, .revision = seen->revision};
            feed->on_change(feed->userdata, BATON_OK, &gone, 1);
            forget(feed, seen);
        }
    }
}

static void note(struct feed *feed, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *json = json_array_get(list, i);
        const char *key = json_string_value(json_object_get(json, "key"));
        struct seen *seen = NULL;
        if (key && json_object_get(json, "nothing")) {
            HASH_FIND_STR(feed->seen, key, seen);
            if (seen) {
                forget(feed, seen);
            }
        } else if (key) {
            remember(feed, key, (uint64_t)json_integer_value(json_object_get(json, "revision")));
        }
    }
}

static void report(struct feed *feed, const json_t *list)
{
    struct listing listing = {0};
    int code = add_values(&listing, list);

    feed->on_change(feed->userdata, code, listing.values, code == BATON_OK ? listing.count : 0);
    listing_fini(&listing);
}

/* Of a new connection, the first list: it may come in parts. */
static void take_change(struct feed *feed, const json_t *list, bool has_more)
{
    json_t *news = feed->is_anew ? only_news(feed, list) : json_incref((json_t *)list);

    note(feed, news);
    if (feed->is_anew && !has_more) {
        feed->is_anew = false;
        report_deleted(feed);
    }
    if (!feed->has_ended && json_array_size(news) > 0) {
        report(feed, news);
    }
    json_decref(news);
}

void feeds_take(struct remote *remote, const char *event, const json_t *message)
{
    const char *channel = json_string_value(json_object_get(message, "channel"));
    int64_t watch = json_integer_value(json_object_get(message, "watch"));
    struct local_bytes bytes = {.data = NULL};
    bool is_change = strcmp(event, "change") == 0;

    if (!is_change &&
        (strcmp(event, "message") != 0 || !channel || !local_take_bytes(&bytes, message))) {
        return;
    }
    for (struct feed *feed = remote->feeds; feed; feed = feed->next) {
        if (feed->has_ended || feed->is_watch != is_change) {
            continue;
        }
        if (is_change && feed->id == watch) {
            take_change(feed, json_object_get(message, "values"),
                        json_is_true(json_object_get(message, "more")));
        } else if (!is_change && strcmp(feed->name, channel) == 0) {
            feed->on_message(feed->userdata, channel, bytes.data, bytes.count);
        }
    }
    free(bytes.own);
}

/* Two subscribers of a channel have one subscription at the agent. */
static bool is_subscribed(const struct remote *remote, const struct feed *but)
{
    for (const struct feed *feed = remote->feeds; feed; feed = feed->next) {
        if (feed != but && !feed->is_watch && !feed->has_ended && feed->id != 0 &&
            strcmp(feed->name, but->name) == 0) {
            return true;
        }
    }
    return false;
}

/* False: out of memory. */
static bool enter(struct feed *feed)
{
    struct remote *remote = feed->remote;
    struct call *call;

    if (!feed->is_watch && is_subscribed(remote, feed)) {
        feed->id = -1;
        return true;
    }
    call = remote_call(remote,
                       feed->is_watch
                           ? json_pack("{s:s, s:s}", "do", "watch", "prefix", feed->name)
                           : json_pack("{s:s, s:s}", "do", "subscribe", "channel", feed->name),
                       NULL);
    feed->id = call ? call->id : 0;
    return call;
}

/* Without memory the next connection asks for all of them. */
void feeds_enter(struct remote *remote)
{
    for (struct feed *feed = remote->feeds; feed; feed = feed->next) {
        if (!feed->has_ended && !enter(feed)) {
            local_close(remote->local);
            return;
        }
    }
}

void feeds_leave(struct remote *remote)
{
    for (struct feed *feed = remote->feeds; feed; feed = feed->next) {
        feed->id = 0;
        feed->is_anew = true;
        for (struct seen *seen = feed->seen; seen; seen = seen->hh.next) {
            seen->is_there = false;
        }
    }
}

static void free_feed(struct feed *feed)
{
    struct seen *seen;

    while ((seen = feed->seen)) {
        forget(feed, seen); /* NOLINT(clang-analyzer-unix.Malloc) */
    }
    LL_DELETE(feed->remote->feeds, feed);
    free(feed->name);
    free(feed);
}

void feeds_sweep(struct remote *remote)
{
    struct feed *feed = remote->feeds;

    while (feed) {
        struct feed *next = feed->next;
        if (feed->has_ended) {
            free_feed(feed);
        }
        feed = next;
    }
}

void feeds_free(struct remote *remote)
{
    while (remote->feeds) {
        free_feed(remote->feeds); /* NOLINT(clang-analyzer-unix.Malloc) */
    }
}

static int add(struct remote *remote, const struct feed *like, struct baton_error *reterr)
{
    int code = limits_check(like->name, 0, reterr);
    struct feed *feed;
    char *name;

    if (code != BATON_OK) {
        return code;
    }
    feed = malloc(sizeof(*feed));
    name = strdup(like->name);
    if (!feed || !name) {
        free(feed);
        free(name);
        return error_set(reterr, BATON_ENOMEM, "out of memory for \"%.40s\"", like->name);
    }
    *feed = *like;
    feed->remote = remote;
    feed->name = name;
    LL_APPEND(remote->feeds, feed);
    if (remote->is_ready && !enter(feed)) {
        free_feed(feed);
        return error_set(reterr, BATON_ENOMEM, "out of memory for \"%.40s\"", like->name);
    }
    remote_step(remote);
    return BATON_OK;
}

int remote_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr)
{
    const struct feed feed = {
        .name = (char *)prefix, .is_watch = true, .on_change = on_change, .userdata = userdata};

    return add((struct remote *)provider, &feed, reterr);
}

int remote_subscribe(struct provider *provider, const char *channel, provider_message_cb on_message,
                     void *userdata, struct baton_error *reterr)
{
    const struct feed feed = {
        .name = (char *)channel, .on_message = on_message, .userdata = userdata};

    return add((struct remote *)provider, &feed, reterr);
}

static void say_ended(struct feed *feed)
{
    json_t *message = feed->is_watch
                          ? json_pack("{s:s, s:I}", "do", "unwatch", "watch", (json_int_t)feed->id)
                          : json_pack("{s:s, s:s}", "do", "unsubscribe", "channel", feed->name);

    (void)remote_call(feed->remote, message, NULL);
}

static void end(struct remote *remote, const char *name, bool is_watch, const void *userdata)
{
    struct feed *feed = remote->feeds;

    while (feed && (feed->has_ended || feed->is_watch != is_watch || feed->userdata != userdata ||
                    strcmp(feed->name, name) != 0)) {
        feed = feed->next;
    }
    if (!feed) {
        return;
    }
    remote_enter_callback(remote);
    feed->has_ended = true;
    if (remote->is_ready && feed->id != 0 && (is_watch || !is_subscribed(remote, feed))) {
        say_ended(feed);
    }
    remote_leave_callback(remote);
    remote_step(remote);
}

void remote_unwatch(struct provider *provider, const char *prefix, void *userdata)
{
    end((struct remote *)provider, prefix, true, userdata);
}

void remote_unsubscribe(struct provider *provider, const char *channel, void *userdata)
{
    end((struct remote *)provider, channel, false, userdata);
}
