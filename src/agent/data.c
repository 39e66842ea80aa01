/* State and channels, on the agent's own provider: what they call back outlives a process. */
#include "agent/agent_int.h"
#include "provider/get_each.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* ---- Bytes in JSON --------------------------------------------------------------------------- */

/* False, and the client was refused: the message has no bytes, or wrong ones. */
static bool take_bytes(struct local_bytes *ret, struct client *client, const json_t *message)
{
    bool has_bytes = local_take_bytes(ret, message);

    if (!has_bytes) {
        client_fail(client, request_id(message), BATON_EINVAL,
                    "has no \"text\" and no \"base64\", or they are wrong");
    }
    return has_bytes;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A subscriber that is further behind misses messages, and is not closed: one more always fits. */
enum { MESSAGE_BACKLOG_MAX = LOCAL_QUEUE_MAX - LOCAL_LINE_MAX - 1 };

static void on_listed(void *userdata, int code, const struct provider_value *values, size_t count)
{
    int64_t id;
    struct client *client = client_settle(userdata, &id);

    if (client && code != BATON_OK) {
        client_fail(client, id, code, baton_strerror(code));
    } else if (client) {
        list_reply(client, id, values, count);
    }
}

static void on_got(void *userdata, int code, const struct provider_value *values, size_t count)
{
    int64_t id;
    struct client *client = client_settle(userdata, &id);
    bool is_there = count > 0 && values[0].revision != 0 && values[0].data;

    if (client && code != BATON_OK) {
        client_fail(client, id, code, baton_strerror(code));
    } else if (client && !is_there) {
        client_fail(client, id, BATON_ENOENT, "there is no such key");
    } else if (client) {
        list_reply(client, id, values, 1);
    }
}

static bool has(struct client *client, const json_t *message, enum provider_feature feature,
                const char *what)
{
    bool is_there = (client->agent->config.provider->ops->features & feature) != 0;

    if (!is_there) {
        client_fail(client, request_id(message), BATON_ENOTSUP, what);
    }
    return is_there;
}

static bool has_state(struct client *client, const json_t *message)
{
    return has(client, message, PROVIDER_STATE, "the agent's provider has no state");
}

static bool has_channels(struct client *client, const json_t *message)
{
    return has(client, message, PROVIDER_CHANNELS, "the agent's provider has no channels");
}

static void fail_pending(struct pending *pending, int code, const struct baton_error *error)
{
    if (code != BATON_OK) {
        client_done(pending, code, error);
    }
}

/* Their number; 0: they are none, or wrong. */
static size_t read_keys(const char *ret[static PROVIDER_EACH_MAX], const json_t *list)
{
    size_t count = json_array_size(list);

    for (size_t i = 0; i < count && count <= PROVIDER_EACH_MAX; i++) {
        const json_t *key = json_array_get(list, i);

        ret[i] = json_string_value(key);
        if (!ret[i] || strlen(ret[i]) != json_string_length(key)) {
            return 0;
        }
    }
    return count <= PROVIDER_EACH_MAX ? count : 0;
}

static void get_each(struct client *client, const json_t *message, const json_t *list)
{
    struct provider *base = client->agent->config.provider;
    const char *keys[PROVIDER_EACH_MAX];
    size_t count = read_keys(keys, list);
    struct baton_error error = {0};
    struct pending *pending;

    if (count == 0) {
        client_fail(client, request_id(message), BATON_EINVAL,
                    "\"keys\": must be 1 to 64 texts without a NUL");
    } else if ((pending = client_pend(client, request_id(message)))) {
        fail_pending(pending, provider_get_each(base, keys, count, on_listed, pending, &error),
                     &error);
    }
}

void data_get(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    const json_t *keys = json_object_get(message, "keys");
    struct baton_error error = {0};
    struct pending *pending;
    const char *key;

    if (keys && has_state(client, message)) {
        get_each(client, message, keys);
    } else if (!keys && has_state(client, message) &&
               (key = request_text(client, message, "key")) &&
               (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending, base->ops->get(base, key, on_got, pending, &error), &error);
    }
}

void data_list(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    struct baton_error error = {0};
    struct pending *pending;
    const char *prefix;

    if (has_state(client, message) && (prefix = request_text(client, message, "prefix")) &&
        (pending = client_pend(client, request_id(message)))) {
        fail_pending(pending, base->ops->list(base, prefix, on_listed, pending, &error), &error);
    }
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    const char *text = error ? error->message : baton_strerror(code);
    int64_t id;
    struct client *client = client_settle(userdata, &id);

    if (client && code == BATON_OK) {
        client_reply(client, id, json_pack("{s:I}", "revision", (json_int_t)revision));
    } else if (client && code == BATON_ECONFLICT) { /* the only failure whose reply has more */
        client_send(client, json_pack("{s:I, s:b, s:s, s:s, s:I}", "id", (json_int_t)id, "ok", 0,
                                      "code", local_code_name(code), "error", text, "revision",
                                      (json_int_t)revision));
    } else if (client) {
        client_fail(client, id, code, text);
    }
}

void data_put(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    const json_t *revision = json_object_get(message, "revision");
    double lifetime_ms = json_number_value(json_object_get(message, "lifetime_ms"));
    struct baton_error error = {0};
    struct pending *pending;
    struct local_bytes bytes = {0};
    const char *key;

    if (!has_state(client, message) || !(key = request_text(client, message, "key")) ||
        (!json_is_true(json_object_get(message, "nothing")) &&
         !take_bytes(&bytes, client, message))) {
        return;
    }
    lifetime_ms = lifetime_ms > 0 && lifetime_ms < 1e13 ? lifetime_ms : 0;
    pending = client_pend(client, request_id(message));
    if (pending) {
        fail_pending(pending,
                     base->ops->put(base, key, bytes.data, bytes.count,
                                    json_is_integer(revision)
                                        ? (uint64_t)json_integer_value(revision)
                                        : PROVIDER_ANY_REVISION,
                                    SPAN_NS(lifetime_ms * 1e6), on_put, pending, &error),
                     &error);
    }
    free(bytes.own);
}

/* ---- Feeds ----------------------------------------------------------------------------------- */

static void on_change(void *userdata, int code, const struct provider_value *values, size_t count)
{
    const struct feed *feed = userdata;

    if (code == BATON_OK) {
        list_change(feed->client, feed->id, values, count);
    }
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    const struct feed *feed = userdata;
    json_t *message;

    if (local_backlog(feed->client->local) > MESSAGE_BACKLOG_MAX) {
        feed->client->agent->messages_dropped++;
        return;
    }
    message = json_pack("{s:s, s:s}", "event", "message", "channel", channel);

    if (message) {
        local_put_bytes(message, data, bytes);
    }
    client_send(feed->client, message);
}

/* NULL, and the client was refused. */
static struct feed *add_feed(struct client *client, int64_t request, int64_t id, const char *name)
{
    struct feed *feed = client->feed_count < AGENT_FEEDS_MAX && strlen(name) <= PROVIDER_KEY_MAX
                            ? calloc(1, sizeof(*feed))
                            : NULL;

    if (!feed) {
        client_fail(client, request, BATON_ETOOBIG,
                    "a client has at most 256 watches and subscriptions, and a name 512 bytes");
        return NULL;
    }
    feed->client = client;
    feed->id = id;
    memcpy(feed->name, name, strlen(name) + 1);
    LL_PREPEND(client->feeds, feed);
    client->feed_count++;
    return feed;
}

static void forget_feed(struct feed *feed)
{
    LL_DELETE(feed->client->feeds, feed);
    feed->client->feed_count--;
    free(feed);
}

static void end_feed(struct feed *feed)
{
    struct provider *base = feed->client->agent->config.provider;

    if (feed->id != 0) {
        base->ops->unwatch(base, feed->name, feed);
        list_unwatch(feed->client, feed->id);
    } else {
        base->ops->unsubscribe(base, feed->name, feed);
    }
    forget_feed(feed);
}

void data_end(struct client *client)
{
    while (client->feeds) {
        end_feed(client->feeds);
    }
}

/* The reply comes first: the present values are an event. */
void data_watch(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    int64_t id = request_id(message);
    struct baton_error error = {0};
    const char *prefix;
    struct feed *feed;

    if (!has_state(client, message) || !(prefix = request_text(client, message, "prefix")) ||
        !(feed = add_feed(client, id, id, prefix))) {
        return;
    }
    client_reply(client, id, NULL);
    if (base->ops->watch(base, feed->name, on_change, feed, &error) != BATON_OK) {
        client_send(client, json_pack("{s:s, s:I, s:s}", "event", "unwatched", "watch",
                                      (json_int_t)id, "error", error.message));
        forget_feed(feed);
    }
}

void data_subscribe(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    int64_t id = request_id(message);
    struct baton_error error = {0};
    const char *channel;
    struct feed *feed;
    int code;

    if (!has_channels(client, message) || !(channel = request_text(client, message, "channel")) ||
        !(feed = add_feed(client, id, 0, channel))) {
        return;
    }
    code = base->ops->subscribe(base, feed->name, on_message, feed, &error);
    if (code != BATON_OK) {
        forget_feed(feed);
        client_fail(client, id, code, error.message);
        return;
    }
    client_reply(client, id, NULL);
}

static void end_found(struct client *client, int64_t request, struct feed *feed)
{
    if (feed) {
        end_feed(feed);
        client_reply(client, request, NULL);
    } else {
        client_fail(client, request, BATON_ENOENT, "there is no such watch or subscription");
    }
}

void data_unwatch(struct client *client, const json_t *message)
{
    int64_t id = json_integer_value(json_object_get(message, "watch"));
    struct feed *feed = client->feeds;

    while (feed && (feed->id != id || id == 0)) {
        feed = feed->next;
    }
    end_found(client, request_id(message), feed);
}

void data_unsubscribe(struct client *client, const json_t *message)
{
    const char *channel = request_text(client, message, "channel");
    struct feed *feed = client->feeds;

    while (feed && channel && (feed->id != 0 || strcmp(feed->name, channel) != 0)) {
        feed = feed->next;
    }
    if (channel) {
        end_found(client, request_id(message), feed);
    }
}

void data_publish(struct client *client, const json_t *message)
{
    struct provider *base = client->agent->config.provider;
    struct baton_error error = {0};
    struct pending *pending;
    struct local_bytes bytes;
    const char *channel;

    if (!has_channels(client, message) || !(channel = request_text(client, message, "channel")) ||
        !take_bytes(&bytes, client, message)) {
        return;
    }
    pending = client_pend(client, request_id(message));
    if (pending) {
        fail_pending(pending,
                     base->ops->publish(base, channel, bytes.data, bytes.count, client_done,
                                        pending, &error),
                     &error);
    }
    free(bytes.own);
}
