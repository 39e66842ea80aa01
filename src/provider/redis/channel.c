/* Messages: at most once, as Redis's publish and subscribe are. */
#include "provider/redis/client.h"

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

static int check(const char *channel, size_t bytes, struct baton_error *reterr)
{
    size_t name_bytes = strlen(channel);

    if (name_bytes > PROVIDER_KEY_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "channel \"%.40s…\": its name has %zu bytes; at most %d are taken",
                         channel, name_bytes, PROVIDER_KEY_MAX);
    }
    if (bytes > PROVIDER_VALUE_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "channel \"%.40s\": a message of %zu bytes; at most %d are taken, not a "
                         "part of them",
                         channel, bytes, PROVIDER_VALUE_MAX);
    }
    return BATON_OK;
}

int channel_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                    provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct publication *publication;
    int code = check(channel, bytes, reterr);

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
    const struct reader *reader = client->readers;

    while (reader && (reader->is_gone || reader->is_watch || strcmp(reader->name, channel) != 0)) {
        reader = reader->next;
    }
    return reader != NULL;
}

int channel_subscribe(struct provider *provider, const char *channel,
                      provider_message_cb on_message, void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct reader *reader;
    bool is_first = !is_read(client, channel);
    int code = check(channel, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    reader = calloc(1, sizeof(*reader));
    if (!reader || !(reader->name = strdup(channel)) ||
        (is_first && client_subscribe(client, channel) != BATON_OK)) {
        if (reader) {
            free(reader->name);
        }
        free(reader);
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    reader->client = client;
    reader->on_message = on_message;
    reader->userdata = userdata;
    reader->next = client->readers;
    client->readers = reader;
    return BATON_OK;
}

void channel_unsubscribe(struct provider *provider, const char *channel, void *userdata)
{
    struct client *client = (struct client *)provider;

    client_enter(client);
    for (struct reader *reader = client->readers; reader; reader = reader->next) {
        if (!reader->is_gone && !reader->is_watch && reader->userdata == userdata &&
            strcmp(reader->name, channel) == 0) {
            reader->is_gone = true;
            if (!is_read(client, channel)) {
                client_unsubscribe(client, channel);
            }
            break;
        }
    }
    client_exit(client);
}

void channel_told(struct client *client, const char *channel, const void *data, size_t bytes)
{
    for (struct reader *reader = client->readers; reader; reader = reader->next) {
        if (!reader->is_gone && !reader->is_watch && strcmp(reader->name, channel) == 0) {
            reader->on_message(reader->userdata, channel, data, bytes);
        }
    }
}

/* Keeps a reader that waits for a list until the list has come. */
void readers_sweep(struct client *client)
{
    struct reader **at = &client->readers;

    while (*at) {
        struct reader *reader = *at;
        if (reader->is_gone && !reader->is_listing) {
            *at = reader->next;
            known_free(reader);
            free(reader->name);
            free(reader);
        } else {
            at = &reader->next;
        }
    }
}
