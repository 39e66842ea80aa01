/* Keys with revisions and lifetimes, channels, and their subscribers. */
#include "provider/memory/hub.h"

#include "provider/limits.h"
#include "provider/listing.h"

#include <stdlib.h>
#include <string.h>

/* ---- Telling subscribers --------------------------------------------------------------------- */

static void post(const struct subscriber *subscriber, const char *name, const void *data,
                 size_t bytes, uint64_t revision)
{
    struct notification *notification = calloc(1, sizeof(*notification));

    if (!notification) {
        return;
    }
    notification->subscriber = subscriber->id;
    notification->name = strdup(name);
    notification->data = data ? malloc(bytes + 1) : NULL;
    notification->bytes = bytes;
    notification->revision = revision;
    if (!notification->name || (data && !notification->data)) {
        notification_free(notification);
        return;
    }
    if (data && bytes > 0) {
        memcpy(notification->data, data, bytes);
    }
    hub_post(subscriber->memory, notification);
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void post_change(struct hub *hub, const char *name, const void *data, size_t bytes)
{
    for (struct subscriber *subscriber = hub->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (subscriber->is_watch && begins_with(name, subscriber->name)) {
            post(subscriber, name, data, bytes, hub->revision);
        }
    }
}

void subscribers_deliver(struct memory *memory, const struct notification *notification)
{
    struct subscriber *subscriber = memory->subscribers;

    while (subscriber && subscriber->id != notification->subscriber) {
        subscriber = subscriber->next_own;
    }
    if (!subscriber) {
        return; /* it unsubscribed before the notification came */
    }
    if (subscriber->is_watch) {
        struct provider_value value = {.key = notification->name,
                                       .data = notification->data,
                                       .bytes = notification->bytes,
                                       .revision = notification->revision};
        subscriber->on_change(subscriber->userdata, BATON_OK, &value, 1);
    } else {
        subscriber->on_message(subscriber->userdata, notification->name, notification->data,
                               notification->bytes);
    }
}

static void reader_add(struct memory *memory, struct subscriber *subscriber)
{
    struct subscriber **last = &memory->subscribers;

    while (*last) {
        last = &(*last)->next_own;
    }
    *last = subscriber;
    hub_lock(memory->hub);
    subscriber->id = ++memory->hub->ids;
    subscriber->next = memory->hub->subscribers;
    memory->hub->subscribers = subscriber;
    hub_unlock(memory->hub);
}

static struct subscriber *reader_new(struct memory *memory, const char *name, void *userdata)
{
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber));

    if (subscriber) {
        subscriber->memory = memory;
        subscriber->userdata = userdata;
        subscriber->name = strdup(name);
        if (!subscriber->name) {
            free(subscriber);
            subscriber = NULL;
        }
    }
    return subscriber;
}

static void reader_remove(struct memory *memory, struct subscriber **own)
{
    struct subscriber *subscriber = *own;
    struct subscriber **at = &memory->hub->subscribers;

    *own = subscriber->next_own;
    hub_lock(memory->hub);
    while (*at != subscriber) {
        at = &(*at)->next;
    }
    *at = subscriber->next;
    hub_unlock(memory->hub);
    free(subscriber->name);
    free(subscriber);
}

static void reader_off(struct memory *memory, const char *name, bool is_watch, void *userdata)
{
    for (struct subscriber **at = &memory->subscribers; *at; at = &(*at)->next_own) {
        if ((*at)->is_watch == is_watch && (*at)->userdata == userdata &&
            strcmp((*at)->name, name) == 0) {
            reader_remove(memory, at);
            return;
        }
    }
}

void readers_end(struct memory *memory)
{
    while (memory->subscribers) {
        reader_remove(memory, &memory->subscribers);
    }
}

/* ---- Channels -------------------------------------------------------------------------------- */

int memory_publish(struct provider *provider, const char *channel, const void *data, size_t bytes,
                   provider_done_cb done, void *userdata, struct baton_error *reterr)
{
    struct hub *hub = ((struct memory *)provider)->hub;
    int code = limits_check(channel, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    hub_lock(hub);
    for (struct subscriber *subscriber = hub->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (!subscriber->is_watch && strcmp(subscriber->name, channel) == 0) {
            post(subscriber, channel, data ? data : "", bytes, 0);
        }
    }
    hub_unlock(hub);
    done(userdata, BATON_OK, NULL);
    return BATON_OK;
}

int memory_subscribe(struct provider *provider, const char *channel, provider_message_cb on_message,
                     void *userdata, struct baton_error *reterr)
{
    struct memory *memory = (struct memory *)provider;
    struct subscriber *subscriber;
    int code = limits_check(channel, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    subscriber = reader_new(memory, channel, userdata);
    if (!subscriber) {
        return error_set(reterr, BATON_ENOMEM, "channel \"%.60s\": out of memory", channel);
    }
    subscriber->on_message = on_message;
    reader_add(memory, subscriber);
    return BATON_OK;
}

void memory_unsubscribe(struct provider *provider, const char *channel, void *userdata)
{
    reader_off((struct memory *)provider, channel, false, userdata);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void key_free(struct hub *hub, struct key *key)
{
    HASH_DEL(hub->keys, key);
    free(key->name);
    free(key->data);
    free(key);
}

void hub_keys_free(struct hub *hub)
{
    while (hub->keys) {
        key_free(hub, hub->keys);
    }
}

void hub_keys_expire(struct hub *hub, instant now)
{
    struct key *next;

    if (instant_before(now, hub->next_expiry)) {
        return;
    }
    hub->next_expiry = INSTANT_NEVER;
    for (struct key *key = hub->keys; key; key = next) {
        next = key->hh.next;
        if (instant_before(now, key->expires)) {
            hub->next_expiry = instant_min(hub->next_expiry, key->expires);
        } else {
            hub->revision++;
            post_change(hub, key->name, NULL, 0);
            key_free(hub, key);
        }
    }
}

/* The loop's clock counts whole milliseconds; a moment late is fine, early would spin. */
void expiry_rearm(struct memory *memory)
{
    instant next;

    hub_lock(memory->hub);
    next = memory->hub->next_expiry;
    hub_unlock(memory->hub);
    if (next.ns == INSTANT_NEVER.ns) {
        (void)uv_timer_stop(&memory->expiry);
    } else {
        span left = instant_since(next, clock_now());
        uint64_t ms = left.ns > 0 ? (uint64_t)left.ns / 1000000 + 1 : 0;
        uv_update_time(memory->loop);
        (void)uv_timer_start(&memory->expiry, memory->expiry.timer_cb, ms, 0);
    }
}

static struct key *key_find(struct hub *hub, const char *name)
{
    struct key *key;

    hub_keys_expire(hub, clock_now());
    HASH_FIND_STR(hub->keys, name, key);
    return key;
}

static int key_add(struct hub *hub, const char *name, struct key **ret)
{
    struct key *key = calloc(1, sizeof(*key));

    if (key && !(key->name = strdup(name))) {
        free(key);
        key = NULL;
    }
    if (!key) {
        return BATON_ENOMEM;
    }
    HASH_ADD_KEYPTR(hh, hub->keys, key->name, strlen(key->name), key);
    if (!key->hh.tbl) {
        free(key->name);
        free(key);
        return BATON_ENOMEM;
    }
    *ret = key;
    return BATON_OK;
}

static int key_set(struct hub *hub, struct key *key, const char *name, const void *data,
                   size_t bytes, span lifetime)
{
    void *copy = malloc(bytes + 1);

    if (!copy || (!key && key_add(hub, name, &key) != BATON_OK)) {
        free(copy);
        return BATON_ENOMEM;
    }
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    free(key->data);
    key->data = copy;
    key->bytes = bytes;
    key->revision = ++hub->revision;
    key->expires = lifetime.ns > 0 ? instant_add(clock_now(), lifetime) : INSTANT_NEVER;
    post_change(hub, name, copy, bytes);
    if (instant_before(key->expires, hub->next_expiry)) {
        hub->next_expiry = key->expires;
        hub_wake_all(hub);
    }
    return BATON_OK;
}

/* *ret_now: the key's revision after it; not set where the key is absent then. */
static int put_locked(struct hub *hub, const char *name, const void *data, size_t bytes,
                      uint64_t revision, span lifetime, uint64_t *ret_now,
                      struct baton_error *reterr)
{
    struct key *key = key_find(hub, name);
    uint64_t before = key ? key->revision : 0;

    if (revision != PROVIDER_ANY_REVISION && revision != before) {
        *ret_now = before;
        return error_set(reterr, BATON_ECONFLICT,
                         "key \"%.60s\": is at revision %llu, not at %llu; read it again", name,
                         (unsigned long long)before, (unsigned long long)revision);
    }
    if (data) {
        int code = key_set(hub, key, name, data, bytes, lifetime);
        if (code != BATON_OK) {
            return error_set(reterr, code, "key \"%.60s\": out of memory", name);
        }
        *ret_now = hub->revision;
        return code;
    }
    if (key) {
        hub->revision++;
        post_change(hub, name, NULL, 0);
        key_free(hub, key);
    }
    return BATON_OK;
}

int memory_put(struct provider *provider, const char *key, const void *data, size_t bytes,
               uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
               struct baton_error *reterr)
{
    struct hub *hub = ((struct memory *)provider)->hub;
    struct baton_error error = {0};
    uint64_t now = 0;
    int code = limits_check(key, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    hub_lock(hub);
    code = put_locked(hub, key, data, bytes, revision, lifetime, &now, &error);
    hub_unlock(hub);
    done(userdata, code, now, &error);
    return BATON_OK;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct provider_value *)a)->key, ((const struct provider_value *)b)->key);
}

/* Copies, so that no callback runs under the lock. */
static int take_listing(struct hub *hub, const char *prefix, bool exact, struct listing *ret)
{
    *ret = (struct listing){0};
    hub_keys_expire(hub, clock_now());
    /* An element that uthash's macro removed is not reachable from the head; the analyzer cannot
     * see it. */
    for (const struct key *key = hub->keys; key; key = key->hh.next) {
        const char *name = key->name; /* NOLINT(clang-analyzer-unix.Malloc) */
        const struct provider_value value = {
            .key = name, .data = key->data, .bytes = key->bytes, .revision = key->revision};
        if ((exact ? strcmp(name, prefix) == 0 : begins_with(name, prefix)) &&
            listing_add(ret, &value) != BATON_OK) {
            listing_fini(ret);
            return BATON_ENOMEM;
        }
    }
    if (ret->count > 1) {
        qsort(ret->values, ret->count, sizeof(*ret->values), compare);
    }
    return BATON_OK;
}

static int read_keys(struct provider *provider, const char *name, bool exact,
                     provider_values_cb done, void *userdata, struct baton_error *reterr)
{
    struct hub *hub = ((struct memory *)provider)->hub;
    struct listing listing;
    int code;

    hub_lock(hub);
    code = take_listing(hub, name, exact, &listing);
    hub_unlock(hub);
    if (code != BATON_OK) {
        return error_set(reterr, code, "key \"%.60s\": out of memory", name);
    }
    done(userdata, BATON_OK, listing.values, listing.count);
    listing_fini(&listing);
    return BATON_OK;
}

int memory_get(struct provider *provider, const char *key, provider_values_cb done, void *userdata,
               struct baton_error *reterr)
{
    return read_keys(provider, key, true, done, userdata, reterr);
}

int memory_list(struct provider *provider, const char *prefix, provider_values_cb done,
                void *userdata, struct baton_error *reterr)
{
    return read_keys(provider, prefix, false, done, userdata, reterr);
}

int memory_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                 void *userdata, struct baton_error *reterr)
{
    struct memory *memory = (struct memory *)provider;
    struct subscriber *subscriber = reader_new(memory, prefix, userdata);
    struct hub *hub = memory->hub;
    struct listing listing;
    int code = BATON_ENOMEM;

    if (subscriber) {
        subscriber->is_watch = true;
        subscriber->on_change = on_change;
        hub_lock(hub);
        code = take_listing(hub, prefix, false, &listing);
        if (code == BATON_OK) { /* at once, so that no change falls between */
            subscriber->id = ++hub->ids;
            subscriber->next = hub->subscribers;
            hub->subscribers = subscriber;
        }
        hub_unlock(hub);
    }
    if (code != BATON_OK) {
        if (subscriber) {
            free(subscriber->name);
            free(subscriber);
        }
        return error_set(reterr, code, "keys \"%.60s\": out of memory", prefix);
    }
    subscriber->next_own = memory->subscribers;
    memory->subscribers = subscriber;
    on_change(userdata, BATON_OK, listing.values, listing.count);
    listing_fini(&listing);
    return BATON_OK;
}

void memory_unwatch(struct provider *provider, const char *prefix, void *userdata)
{
    reader_off((struct memory *)provider, prefix, true, userdata);
}
