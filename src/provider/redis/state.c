/* Small values under keys: scripts that compare and set, and watches.
 *
 * The script that makes a change publishes it with its value. Messages arrive at most once, and the
 * end of a lifetime sends none: so a watch also lists its keys when the connection comes back, and
 * every second, and reports the changes that it missed.
 */
#include "provider/redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The last state of a key that a watch has reported. */
struct known {
    char *name;
    uint64_t revision;
    uint64_t listed; /* its revision in the latest list that had it */
    int unlisted;    /* consecutive lists without it */
    bool is_there;   /* as it was reported */
    UT_hash_handle hh;
};

struct asked {
    struct client *client;
    provider_values_cb on_values;
    provider_put_cb on_put;
    void *userdata;
    char *name;
};

/* ---- Questions ------------------------------------------------------------------------------- */

static int check(const struct client *client, const char *name, size_t bytes,
                 struct baton_error *reterr)
{
    if (strlen(name) > PROVIDER_KEY_MAX || bytes > PROVIDER_VALUE_MAX) {
        return error_set(reterr, BATON_ETOOBIG,
                         "key \"%.40s\": %zu bytes under a name of %zu; at most %d under %d are "
                         "taken",
                         name, bytes, strlen(name), PROVIDER_VALUE_MAX, PROVIDER_KEY_MAX);
    }
    if (client->server_count > 1) {
        return error_set(reterr, BATON_ENOTSUP,
                         "key \"%.60s\": several independent servers keep no state in common",
                         name);
    }
    if (!redis_is_up(client->commands)) {
        const char *trouble = client->servers[0].trouble;
        char where[REDIS_HOST_MAX];
        redis_address_name(&client->address, where, sizeof(where));
        return error_set(reterr, BATON_EUNAVAILABLE, "key \"%.60s\": %s%s%s", name,
                         trouble[0] ? trouble : "Redis at ", trouble[0] ? "" : where,
                         trouble[0] ? "" : " cannot be reached now");
    }
    return BATON_OK;
}

static struct asked *asked_new(struct client *client, const char *name, void *userdata)
{
    struct asked *asked = calloc(1, sizeof(*asked));

    if (asked) {
        asked->client = client;
        asked->userdata = userdata;
        asked->name = strdup(name);
        if (!asked->name) {
            free(asked);
            asked = NULL;
        }
    }
    return asked;
}

static void asked_free(struct asked *asked)
{
    free(asked->name);
    free(asked);
}

static int submit(struct asked *asked, enum script_name script, int key_count, int count,
                  const char **arguments, const size_t *lengths, redis_reply_cb on_reply,
                  struct baton_error *reterr)
{
    int code =
        client_run(asked->client, script, key_count, count, arguments, lengths, on_reply, asked, 0);

    if (code != BATON_OK) {
        (void)error_set(reterr, code, "key \"%.60s\": %s", asked->name, baton_strerror(code));
        asked_free(asked);
    }
    return code;
}

static void on_got(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct asked *asked = userdata;
    struct provider_value value;
    bool is_there = false;
    (void)tag;
    (void)sent;

    client_enter(asked->client);
    if (!reply || parse_value(&value, &is_there, reply) != BATON_OK) {
        asked->on_values(asked->userdata, client_refused(asked->client, reply), NULL, 0);
    } else {
        value.key = asked->name;
        asked->on_values(asked->userdata, BATON_OK, is_there ? &value : NULL, is_there);
    }
    client_exit(asked->client);
    asked_free(asked);
}

static void full_key(const struct client *client, const char *name, char *ret, size_t ret_bytes)
{
    (void)snprintf(ret, ret_bytes, "%skey:%s", client->prefix, name);
}

enum { FULL_KEY_MAX = PROVIDER_KEY_MAX + 160 };

int redis_state_get(struct provider *provider, const char *key, provider_values_cb done,
                    void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    char full[FULL_KEY_MAX];
    const char *arguments[] = {full};
    struct asked *asked;
    int code = check(client, key, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    full_key(client, key, full, sizeof(full));
    asked = asked_new(client, key, userdata);
    if (!asked) {
        return error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", key);
    }
    asked->on_values = done;
    return submit(asked, SCRIPT_GET, 1, 1, arguments, NULL, on_got, reterr);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Skips foreign values, and logs them. */
static int values_of(struct client *client, const redisReply *reply, struct provider_value **ret,
                     size_t *ret_count)
{
    struct baton_error error;
    size_t odd = 0;
    int code = reply ? parse_values(ret, ret_count, &odd, reply) : BATON_EPROTO;

    if (code == BATON_EPROTO) {
        return client_refused(client, reply);
    }
    if (odd > 0) {
        (void)error_set(&error, BATON_EPROTO,
                        "%zu of the keys in %sindex are none of ours, and left out", odd,
                        client->prefix);
        client_warn(client, &error);
    }
    return code;
}

static void on_listed(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct asked *asked = userdata;
    struct provider_value *values = NULL;
    size_t count = 0;
    int code = values_of(asked->client, reply, &values, &count);
    (void)tag;
    (void)sent;

    client_enter(asked->client);
    asked->on_values(asked->userdata, code, values, count);
    client_exit(asked->client);
    free(values);
    asked_free(asked);
}

static int run_list(struct client *client, const char *prefix, redis_reply_cb on_reply,
                    void *userdata)
{
    char index[160];
    char keys[160];
    const char *arguments[] = {index, prefix, keys};

    (void)snprintf(index, sizeof(index), "%sindex", client->prefix);
    (void)snprintf(keys, sizeof(keys), "%skey:", client->prefix);
    return client_run(client, SCRIPT_LIST, 1, 3, arguments, NULL, on_reply, userdata, 0);
}

int redis_state_list(struct provider *provider, const char *prefix, provider_values_cb done,
                     void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct asked *asked;
    int code = check(client, prefix, 0, reterr);

    if (code != BATON_OK) {
        return code;
    }
    asked = asked_new(client, prefix, userdata);
    if (!asked) {
        return error_set(reterr, BATON_ENOMEM, "keys \"%.60s\": out of memory", prefix);
    }
    asked->on_values = done;
    code = run_list(client, prefix, on_listed, asked);
    if (code != BATON_OK) {
        (void)error_set(reterr, code, "keys \"%.60s\": %s", prefix, baton_strerror(code));
        asked_free(asked);
    }
    return code;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void on_put(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct asked *asked = userdata;
    struct baton_error error = {0};
    uint64_t revision = 0;
    int code = reply ? parse_put(&revision, reply) : BATON_EPROTO;
    (void)tag;
    (void)sent;

    if (code == BATON_EPROTO) {
        code = redis_fault_error(reply, &error);
    } else if (code == BATON_ECONFLICT) {
        (void)error_set(&error, code, "key \"%.60s\": is at revision %llu; read it again",
                        asked->name, (unsigned long long)revision);
    }
    asked->on_put(asked->userdata, code, revision, &error);
    asked_free(asked);
}

int redis_state_put(struct provider *provider, const char *key, const void *data, size_t bytes,
                    uint64_t revision, span lifetime, provider_put_cb done, void *userdata,
                    struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    char keys[3][160];
    char full[FULL_KEY_MAX];
    char at[24] = "any";
    char lifetime_ms[24];
    struct asked *asked;
    int code = check(client, key, bytes, reterr);

    if (code != BATON_OK) {
        return code;
    }
    full_key(client, key, full, sizeof(full));
    (void)snprintf(keys[0], sizeof(keys[0]), "%srevision", client->prefix);
    (void)snprintf(keys[1], sizeof(keys[1]), "%sindex", client->prefix);
    (void)snprintf(keys[2], sizeof(keys[2]), "%schanges", client->prefix);
    (void)snprintf(lifetime_ms, sizeof(lifetime_ms), "%lld",
                   (long long)((lifetime.ns + 999999) / 1000000));
    if (revision != PROVIDER_ANY_REVISION) {
        (void)snprintf(at, sizeof(at), "%llu", (unsigned long long)revision);
    }
    asked = asked_new(client, key, userdata);
    if (!asked) {
        return error_set(reterr, BATON_ENOMEM, "key \"%.60s\": out of memory", key);
    }
    asked->on_put = done;
    const char *arguments[] = {
        full, keys[0], keys[1], keys[2], key, data ? data : "", data ? "1" : "0", at, lifetime_ms};
    const size_t lengths[] = {strlen(full),
                              strlen(keys[0]),
                              strlen(keys[1]),
                              strlen(keys[2]),
                              strlen(key),
                              data ? bytes : 0,
                              1,
                              strlen(at),
                              strlen(lifetime_ms)};
    return submit(asked, SCRIPT_PUT, 4, 9, arguments, lengths, on_put, reterr);
}

/* ---- Watches --------------------------------------------------------------------------------- */

void known_free(struct subscriber *subscriber)
{
    struct known *known = subscriber->known;

    HASH_CLEAR(hh, subscriber->known); /* the table; its members are still a list */
    while (known) {
        struct known *next = known->hh.next;
        free(known->name);
        free(known);
        known = next;
    }
}

static struct known *known_of(struct subscriber *subscriber, const char *name)
{
    struct known *known;

    HASH_FIND_STR(subscriber->known, name, known);
    if (!known && (known = calloc(1, sizeof(*known)))) {
        known->name = strdup(name);
        if (known->name) {
            HASH_ADD_KEYPTR(hh, subscriber->known, known->name, strlen(known->name), known);
        }
        if (!known->hh.tbl) {
            free(known->name);
            free(known);
            return NULL;
        }
    }
    return known;
}

/* Whether it is to be reported, which it then counts as: neither it nor a later change was. */
static bool is_news(struct subscriber *subscriber, const struct provider_value *value)
{
    struct known *known = known_of(subscriber, value->key);

    if (!known || value->revision <= known->revision || subscriber->is_gone) {
        return false;
    }
    known->revision = value->revision;
    known->is_there = value->data != NULL;
    if (value->revision > subscriber->revision) {
        subscriber->revision = value->revision;
    }
    return true;
}

/* A change was reported while a list is under way, which may be older: that one contradicts
 * nothing. */
static void outlive_list(struct subscriber *subscriber, const char *name)
{
    struct known *known = known_of(subscriber, name);

    if (known) {
        known->unlisted = -1; /* take_unlisted() adds one */
        known->listed = 0;
    }
}

/* A list has the present keys. It may be older than changes that were reported since. But if two
 * lists in a row contradict a change, the server has forgotten it, or the change was forged. */
static bool is_news_of_list(struct subscriber *subscriber, const struct provider_value *value)
{
    struct known *known = known_of(subscriber, value->key);

    if (!known) {
        return false;
    }
    if (value->revision < known->revision && value->revision == known->listed) {
        known->revision = 0;
        subscriber->revision = 0;
    } else if (value->revision == known->revision && !known->is_there) {
        known->revision--; /* an older list lacked it, and it was reported as deleted */
    }
    known->listed = value->revision;
    known->unlisted = -1; /* take_unlisted() adds one */
    return is_news(subscriber, value);
}

/* Keys that the list lacks are deleted; returns how many of them are news. Each is remembered for
 * one more list, since a change of it may be late; not longer, since the number of names is
 * unbounded. */
static size_t take_unlisted(struct provider_value *news, struct subscriber *subscriber)
{
    struct known *next;
    size_t count = 0;

    for (struct known *known = subscriber->known; known; known = next) {
        next = known->hh.next;
        if (++known->unlisted > 0 && known->is_there) {
            known->is_there = false;
            news[count++] =
                (struct provider_value){.key = known->name, .revision = subscriber->revision};
        } else if (known->unlisted > 1) {
            /* The analyzer does not see that the table links its neighbours anew.
             * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
            HASH_DEL(subscriber->known, known);
            free(known->name);
            free(known);
        }
    }
    return count;
}

/* All at once: a reader that has to queue them knows then how many they are. */
static void report_list(struct subscriber *subscriber, const struct provider_value *values,
                        size_t count)
{
    size_t room = count + HASH_COUNT(subscriber->known), used = 0;
    struct provider_value *news = calloc(room + 1, sizeof(*news));

    for (size_t i = 0; news && i < count; i++) {
        if (is_news_of_list(subscriber, &values[i])) {
            news[used++] = values[i];
        }
    }
    used += news ? take_unlisted(news + used, subscriber) : 0;
    if (used > 0 && !subscriber->is_gone) {
        subscriber->on_change(subscriber->userdata, BATON_OK, news, used);
    }
    free(news); /* out of memory: the next list has them */
}

static void on_watched(void *userdata, uint64_t tag, const redisReply *reply, instant sent)
{
    struct subscriber *subscriber = userdata;
    struct client *client = subscriber->client;
    struct provider_value *values = NULL;
    size_t count = 0;
    (void)tag;
    (void)sent;

    subscriber->is_listing = false;
    client_enter(client);
    if (values_of(client, reply, &values, &count) == BATON_OK) {
        report_list(subscriber, values, count);
        free(values);
    }
    client_exit(client);
}

static void look(struct subscriber *subscriber)
{
    if (!subscriber->is_listing && !subscriber->is_gone) {
        subscriber->is_listing =
            run_list(subscriber->client, subscriber->name, on_watched, subscriber) == BATON_OK;
    }
}

void redis_state_look_again(struct client *client)
{
    for (struct subscriber *subscriber = client->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (subscriber->is_watch && client->server_count == 1 && redis_is_up(client->commands)) {
            look(subscriber);
        }
    }
}

int redis_state_watch(struct provider *provider, const char *prefix, provider_values_cb on_change,
                      void *userdata, struct baton_error *reterr)
{
    struct client *client = (struct client *)provider;
    struct subscriber *subscriber;
    int code = client->server_count > 1 ? check(client, prefix, 0, reterr) : BATON_OK;

    if (code != BATON_OK) {
        return code;
    }
    subscriber = calloc(1, sizeof(*subscriber));
    if (!subscriber || !(subscriber->name = strdup(prefix))) {
        free(subscriber);
        return error_set(reterr, BATON_ENOMEM, "keys \"%.60s\": out of memory", prefix);
    }
    subscriber->client = client;
    subscriber->is_watch = true;
    subscriber->on_change = on_change;
    subscriber->userdata = userdata;
    subscriber->next = client->subscribers;
    client->subscribers = subscriber;
    look(subscriber);
    return BATON_OK;
}

void redis_state_unwatch(struct provider *provider, const char *prefix, void *userdata)
{
    struct client *client = (struct client *)provider;

    client_enter(client);
    for (struct subscriber *subscriber = client->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (!subscriber->is_gone && subscriber->is_watch && subscriber->userdata == userdata &&
            strcmp(subscriber->name, prefix) == 0) {
            subscriber->is_gone = true;
            break;
        }
    }
    client_exit(client);
}

void redis_state_deliver(struct client *client, const char *text, size_t bytes)
{
    struct provider_value value;
    char name[PROVIDER_KEY_MAX + 1];

    if (!parse_change(&value, name, text, bytes)) {
        return;
    }
    for (struct subscriber *subscriber = client->subscribers; subscriber;
         subscriber = subscriber->next) {
        if (subscriber->is_watch && !subscriber->is_gone &&
            strncmp(name, subscriber->name, strlen(subscriber->name)) == 0 &&
            is_news(subscriber, &value)) {
            if (subscriber->is_listing) {
                outlive_list(subscriber, name);
            }
            subscriber->on_change(subscriber->userdata, BATON_OK, &value, 1);
        }
    }
}
