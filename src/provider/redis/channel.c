/* Messages: at most once, as Redis's publish and subscribe are. */
#include "provider/redis/client.h"

#include "provider/limits.h"

#include <stdlib.h>
#include <string.h>

struct publication {
    provider_done_cb done;
    void *userdata;
};

static void on_published(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct publication *publication = userdata;
    struct baton_error error = {0};
    int code = BATON_OK;
    (void)tag;
    (void)sent;

    if (redis_fault_of(reply) != REDIS_FINE) {
        code = redis_fault_error(reply, &error);
    }
    publication->done(publication->userdata, code, &error);
    free(publication);
}

int channel_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                    provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct publication *publication;
    int code = limits_check(channel, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    publication = malloc(sizeof(*publication));
    if (!publication) {
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    *publication = (struct publication){.done = done, .userdata = userdata};
    if (client_publish(client, channel, data, bytes, on_published, publication) != BATON_OK) {
        free(publication);
        return error_set(reterr, BATON_EUNAVAILABLE, "channel \"%.60s\": Redis cannot be reached",
                         channel);
    }
    return BATON_OK;
}

static bool is_read(const struct client *client, const char *channel)
{
    const struct subscriber *subscriber = client->subscribers;

    while (subscriber && (subscriber->is_gone || subscriber->is_watch ||
                          strcmp(subscriber->name, channel) != 0)) {
        subscriber = subscriber->next;
    }
    return subscriber != NULL;
}

int channel_subscribe(struct provider *provider, const char *channel,
                      provider_message_cb on_message, void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct subscriber *subscriber;
    bool is_first = !is_read(client, channel);
    int code = limits_check(channel, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    subscriber = calloc(1, sizeof(*subscriber));
    if (!subscriber || !(subscriber->name = strdup(channel)) ||
        (is_first && client_subscribe(client, channel) != BATON_OK)) {
        if (subscriber) {
            free(subscriber->name);
        }
        free(subscriber);
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    subscriber->client = client;
    subscriber->on_message = on_message;
    subscriber->userdata = userdata;
    subscriber->next = client->subscribers;
    client->subscribers = subscriber;
    return BATON_OK;
}

void channel_unsubscribe(struct provider *provider, const char *channel, void *userdata)
{
    struct client *client = (struct client *)provider;

    client_enter(client);
    for (struct subscriber *subscriber = client->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (!subscriber->is_gone && !subscriber->is_watch && subscriber->userdata == userdata &&
            strcmp(subscriber->name, channel) == 0) {
            subscriber->is_gone = true;
            if (!is_read(client, channel)) {
                client_unsubscribe(client, channel);
            }
            break;
        }
    }
    client_exit(client);
}

void channel_deliver(struct client *client, const char *channel, const void *data, size_t bytes)
{
    for (struct subscriber *subscriber = client->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (!subscriber->is_gone && !subscriber->is_watch &&
            strcmp(subscriber->name, channel) == 0) {
            subscriber->on_message(subscriber->userdata, channel, data, bytes);
        }
    }
}

/* Keeps a subscriber that waits for a list until the list has come. */
void subscribers_sweep(struct client *client)
{
    struct subscriber **at = &client->subscribers;

    while (*at) {
        struct subscriber *subscriber = *at;
        if (subscriber->is_gone && !subscriber->is_listing) {
            *at = subscriber->next;
            known_free(subscriber);
            free(subscriber->name);
            free(subscriber);
        } else {
            at = &subscriber->next;
        }
    }
}
