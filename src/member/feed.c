#include "member/feed.h"

#include <stdlib.h>
#include <string.h>

struct feed {
    struct member *member;
    feed_value_cb on_value;     /* of keys; else NULL */
    feed_message_cb on_message; /* of a channel; else NULL */
    void *userdata;
    unsigned running; /* calls of its function under way: it is freed after them */
    bool is_stopped;
    char name[]; /* the prefix of keys, or the channel */
};

static void leave(struct feed *feed)
{
    if (--feed->running == 0 && feed->is_stopped) {
        free(feed);
    }
}

static void on_message(void *userdata, const char *channel, const void *data, size_t bytes)
{
    struct feed *feed = userdata;

    feed->running++;
    feed->on_message(feed->userdata, channel, data, bytes);
    leave(feed);
}

static void on_values(void *userdata, int code, const struct provider_value *values, size_t count)
{
    struct feed *feed = userdata;

    feed->running++;
    for (size_t i = 0; code == BATON_OK && i < count && !feed->is_stopped; i++) {
        feed->on_value(feed->userdata, &values[i]);
    }
    leave(feed);
}

static struct feed *feed_new(struct member *member, const char *name, void *userdata,
                             struct baton_error *reterr)
{
    size_t bytes = strlen(name) + 1;
    struct feed *feed = calloc(1, sizeof(*feed) + bytes);

    if (feed) {
        feed->member = member;
        feed->userdata = userdata;
        feed->running = 1; /* the opening function: the first values may come inside it */
        memcpy(feed->name, name, bytes);
    } else {
        (void)error_set(reterr, BATON_ENOMEM, "\"%.60s\": out of memory", name);
    }
    return feed;
}

int feed_watch(struct feed **ret, struct member *member, const char *prefix, feed_value_cb on_value,
               void *userdata, struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = member_need(member, PROVIDER_STATE, "state", reterr);
    struct feed *feed = code ? NULL : feed_new(member, prefix, userdata, reterr);

    if (!feed) {
        return code ? code : BATON_ENOMEM;
    }
    *ret = feed;
    feed->on_value = on_value;
    code = provider->ops->watch(provider, feed->name, on_values, feed, reterr);
    if (code != BATON_OK) {
        *ret = NULL;
        feed->is_stopped = true;
    }
    leave(feed);
    return code;
}

int feed_subscribe(struct feed **ret, struct member *member, const char *channel,
                   feed_message_cb on_message_fn, void *userdata, struct baton_error *reterr)
{
    struct provider *provider = member_provider(member);
    int code = member_need(member, PROVIDER_CHANNELS, "channels", reterr);
    struct feed *feed = code ? NULL : feed_new(member, channel, userdata, reterr);

    if (!feed) {
        return code ? code : BATON_ENOMEM;
    }
    *ret = feed;
    feed->on_message = on_message_fn;
    code = provider->ops->subscribe(provider, feed->name, on_message, feed, reterr);
    if (code != BATON_OK) {
        *ret = NULL;
        feed->is_stopped = true;
    }
    leave(feed);
    return code;
}

void feed_stop(struct feed *feed)
{
    struct provider *provider = feed ? member_provider(feed->member) : NULL;

    if (!feed || feed->is_stopped) {
        return;
    }
    if (provider && feed->on_value) {
        provider->ops->unwatch(provider, feed->name, feed);
    } else if (provider) {
        provider->ops->unsubscribe(provider, feed->name, feed);
    }
    feed->is_stopped = true;
    feed->running++;
    leave(feed);
}
