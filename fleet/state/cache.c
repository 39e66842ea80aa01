#include "fleet/state/cache.h"

#include "base/error.h"
#include "base/invariant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 16, NUMBER_MAX = 24, SUBSCRIPTION_USES = 3 };

void cache_init(struct cache *cache)
{
    *cache = (struct cache){.is_loading = true};
    names_init(&cache->by_key, offsetof(struct cached, key));
    uses_init(&cache->uses);
}

/* ---- Orders ---------------------------------------------------------------------------------- */

size_t cache_position(const struct order *order, const char *key)
{
    size_t low = 0, high = order->count;

    if (high > 0 && strcmp(order->of[high - 1]->key, key) < 0) {
        return high; /* a list comes in this order */
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(order->of[middle]->key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Room for one more. False: out of memory. */
static bool order_reserve(struct order *order)
{
    size_t room = order->room > 0 ? 2 * order->room : ROOM_MIN;
    struct cached **of;

    if (order->count < order->room) {
        return true;
    }
    of = realloc((void *)order->of, room * sizeof(struct cached *));
    if (of) {
        order->of = of;
        order->room = room;
    }
    return of != NULL;
}

static void order_add(struct order *order, struct cached *cached)
{
    size_t at = cache_position(order, cached->key);

    INVARIANT(order->count < order->room);
    memmove((void *)(order->of + at + 1), (const void *)(order->of + at),
            (order->count - at) * sizeof(struct cached *));
    order->of[at] = cached;
    order->count++;
}

static void order_remove(struct order *order, const struct cached *cached)
{
    size_t at = cache_position(order, cached->key);

    INVARIANT(at < order->count && order->of[at] == cached);
    order->count--;
    memmove((void *)(order->of + at), (const void *)(order->of + at + 1),
            (order->count - at) * sizeof(struct cached *));
}

static struct order *order_of(struct cache *cache, const struct cached *cached)
{
    return &cache->orders[cached->value    ? (int)cached->value->section
                          : cached->reason ? (int)ORDER_FOREIGN
                                           : (int)ORDER_TOMBSTONES];
}

/* ---- Uses ------------------------------------------------------------------------------------ */

static void drop_uses(struct cache *cache, struct use *uses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uses_remove(&cache->uses, &uses[i]);
    }
    free(uses);
}

/* A subscription's are distinguished from those of an assignment by the section of what is named.
 */
static int add_use(struct cache *cache, struct use *use, enum section named, const char *id,
                   const struct cached *by)
{
    char key[VALUE_KEY_MAX];

    return uses_add(&cache->uses, use, value_key_of(key, named, id), by);
}

static int use_of_subscription(struct cache *cache, struct use *uses,
                               const struct fleet_object *object, const struct cached *by)
{
    char number[NUMBER_MAX];
    int code = add_use(cache, &uses[0], SECTION_DISPLAY, object->subscription.display, by);

    (void)snprintf(number, sizeof(number), "%" PRId64, object->subscription.model);
    code = code ? code : add_use(cache, &uses[1], SECTION_CAMERA, object->subscription.camera, by);
    return code ? code : add_use(cache, &uses[2], SECTION_MODEL, number, by);
}

/* *ret NULL and 0: the value uses nothing. */
static int make_uses(struct cache *cache, const struct value *value, const struct cached *by,
                     struct use **ret, size_t *ret_count)
{
    bool is_subscription = value->section == SECTION_SUBSCRIPTION;
    size_t count = is_subscription                      ? SUBSCRIPTION_USES
                   : value->section == SECTION_ASSIGNED ? value->assigned.count
                                                        : 0;
    struct use *uses = count > 0 ? calloc(count, sizeof(*uses)) : NULL;
    int code = count > 0 && !uses ? BATON_ENOMEM : BATON_OK;

    if (uses && is_subscription) {
        code = use_of_subscription(cache, uses, value->object, by);
    }
    for (size_t i = 0; uses && !is_subscription && i < count && code == BATON_OK; i++) {
        code = add_use(cache, &uses[i], SECTION_SUBSCRIPTION, value->assigned.subscriptions[i], by);
    }
    if (code != BATON_OK) {
        drop_uses(cache, uses, uses ? count : 0);
        return code;
    }
    *ret = uses;
    *ret_count = count;
    return BATON_OK;
}

/* ---- Entries --------------------------------------------------------------------------------- */

static bool is_tombstone(const struct cached *cached)
{
    return !cached->value && !cached->reason;
}

/* A tombstone of revision 0, which any news replace. NULL: out of memory. */
static struct cached *cached_new(struct cache *cache, const char *key)
{
    size_t bytes = strlen(key) + 1;
    struct cached *cached = calloc(1, sizeof(*cached) + bytes);
    const char *slash;

    if (!cached) {
        return NULL;
    }
    memcpy(cached->key, key, bytes);
    slash = strchr(cached->key, '/');
    cached->id = slash ? slash + 1 : cached->key + bytes - 1;
    if (!order_reserve(&cache->orders[ORDER_TOMBSTONES]) ||
        names_add(&cache->by_key, cached) != BATON_OK) {
        free(cached);
        return NULL;
    }
    order_add(&cache->orders[ORDER_TOMBSTONES], cached);
    return cached;
}

/* Takes it out of its order, with what it has. */
static void empty(struct cache *cache, struct cached *cached)
{
    order_remove(order_of(cache, cached), cached);
    drop_uses(cache, cached->uses, cached->use_count);
    cached->uses = NULL;
    cached->use_count = 0;
    value_free(cached->value);
    cached->value = NULL;
    free(cached->reason);
    cached->reason = NULL;
}

static void erase(struct cache *cache, struct cached *cached)
{
    empty(cache, cached);
    names_remove(&cache->by_key, cached);
    free(cached);
}

void cache_fini(struct cache *cache)
{
    for (int i = 0; i < ORDERS; i++) {
        while (cache->orders[i].count > 0) {
            erase(cache, cache->orders[i].of[cache->orders[i].count - 1]);
        }
        free((void *)cache->orders[i].of);
    }
    names_fini(&cache->by_key);
    uses_fini(&cache->uses);
}

/* A tombstone that no late news can contradict is gone. */
static void sweep(struct cache *cache, struct cached *cached)
{
    if (is_tombstone(cached) && !cached->is_ahead && cached->holds == 0 && !cache->is_loading) {
        erase(cache, cached);
    }
}

void cache_loaded(struct cache *cache)
{
    const struct order *tombstones = &cache->orders[ORDER_TOMBSTONES];

    cache->is_loading = false;
    for (size_t i = tombstones->count; i > 0; i--) {
        sweep(cache, tombstones->of[i - 1]);
    }
}

int cache_hold(struct cache *cache, const char *key)
{
    struct cached *cached = names_find(&cache->by_key, key);

    cached = cached ? cached : cached_new(cache, key);
    if (!cached) {
        return BATON_ENOMEM;
    }
    cached->holds++;
    return BATON_OK;
}

void cache_release(struct cache *cache, const char *key)
{
    struct cached *cached = names_find(&cache->by_key, key);

    INVARIANT(cached && cached->holds > 0);
    cached->holds--;
    sweep(cache, cached);
}

/* ---- News ------------------------------------------------------------------------------------ */

static bool is_deletion(const struct cache_news *news)
{
    return !news->value && !news->reason;
}

/* Of a feed, about a key that is known. */
static bool feed_counts(struct cached *cached, const struct cache_news *news)
{
    if (is_tombstone(cached)) {
        return is_deletion(news) ? news->revision >= cached->revision
                                 : news->revision > cached->revision;
    }
    if (cached->is_ahead && news->revision < cached->revision) {
        return false;
    }
    if (news->revision == cached->revision && !is_deletion(news)) {
        cached->is_ahead = false; /* the feed has reached it */
        return false;
    }
    return true;
}

static bool counts(const struct cache *cache, struct cached *cached, const struct cache_news *news)
{
    uint64_t present = cached && !is_tombstone(cached) ? cached->revision : 0;

    switch (news->source) {
    case CACHE_FEED:
        return cached ? feed_counts(cached, news) : !is_deletion(news) || cache->is_loading;
    case CACHE_LIST:
        return !is_deletion(news) && (!cached || news->revision > cached->revision);
    case CACHE_OWN:
        return is_deletion(news) ? present > 0 && present == news->asked
                                 : !cached || news->revision > cached->revision;
    case CACHE_READ:
        return present == news->asked &&
               (is_deletion(news) ? present > 0
                : present > 0     ? present != news->revision
                                  : !cached || news->revision > cached->revision);
    }
    return false;
}

/* Deleted: a tombstone, as long as older news may come. */
static int bury(struct cache *cache, struct cached *cached, const struct cache_news *news)
{
    struct order *tombstones = &cache->orders[ORDER_TOMBSTONES];

    if (!is_tombstone(cached)) {
        if (!order_reserve(tombstones)) {
            return BATON_ENOMEM;
        }
        empty(cache, cached);
        order_add(tombstones, cached);
    }
    cached->is_ahead = news->source != CACHE_FEED;
    if (news->revision > cached->revision) {
        cached->revision = news->revision;
    }
    sweep(cache, cached);
    return BATON_OK;
}

static void fill(struct cached *cached, const struct cache_news *news, char *reason,
                 struct use *uses, size_t use_count)
{
    cached->revision = news->revision;
    cached->is_ahead = news->source != CACHE_FEED;
    cached->value = news->value;
    cached->reason = reason;
    cached->uses = uses;
    cached->use_count = use_count;
    cached->foreign = (struct fleet_foreign){cached->key, reason, news->revision};
    if (news->value) {
        news->value->worker.id = news->value->assigned.worker = cached->id;
        news->value->worker.revision = news->value->assigned.revision = news->revision;
        news->value->move.subscription = cached->id;
        news->value->move.revision = news->revision;
    }
}

/* A value, of ours or foreign. BATON_ENOMEM: it is as before. */
static int install(struct cache *cache, struct cached *cached, const struct cache_news *news)
{
    struct order *order =
        &cache->orders[news->value ? (int)news->value->section : (int)ORDER_FOREIGN];
    char *reason = news->value ? NULL : strdup(news->reason);
    struct use *uses = NULL;
    size_t use_count = 0;

    if ((!news->value && !reason) || !order_reserve(order) ||
        (news->value && make_uses(cache, news->value, cached, &uses, &use_count) != BATON_OK)) {
        free(reason);
        return BATON_ENOMEM;
    }
    empty(cache, cached);
    fill(cached, news, reason, uses, use_count);
    order_add(order, cached);
    return BATON_OK;
}

static int take(struct cache *cache, struct cached *cached, const struct cache_news *news,
                struct cache_change *ret)
{
    bool was_there = cached && cached->value;
    bool is_mark = was_there && news->value && value_has_same_lists(cached->value, news->value);
    struct fleet_object *before = was_there ? cached->value->object : NULL;
    int code;

    if (!cached && !(cached = cached_new(cache, news->key))) {
        value_free(news->value);
        return BATON_ENOMEM;
    }
    before = before ? fleet_object_ref(before) : NULL;
    code = is_deletion(news) ? bury(cache, cached, news) : install(cache, cached, news);
    if (code != BATON_OK) {
        fleet_object_unref(before);
        value_free(news->value);
        return code;
    }
    *ret = (struct cache_change){.is_changed = was_there || news->value,
                                 .is_mark = is_mark,
                                 .is_foreign = news->reason != NULL,
                                 .before = before};
    return BATON_OK;
}

int cache_take(struct cache *cache, const struct cache_news *news, struct cache_change *ret)
{
    struct cached *cached = names_find(&cache->by_key, news->key);

    *ret = (struct cache_change){0};
    if (!counts(cache, cached, news)) {
        value_free(news->value);
        return BATON_OK;
    }
    return take(cache, cached, news, ret);
}

/* ---- Reading --------------------------------------------------------------------------------- */

const struct cached *cache_find(const struct cache *cache, enum section section, const char *id)
{
    char key[VALUE_KEY_MAX];
    const struct cached *cached = names_find(&cache->by_key, value_key_of(key, section, id));

    return cached && cached->value ? cached : NULL;
}

uint64_t cache_revision(const struct cache *cache, const char *key)
{
    const struct cached *cached = names_find(&cache->by_key, key);

    return cached && !is_tombstone(cached) ? cached->revision : 0;
}

const char *cache_foreign(const struct cache *cache, const char *key)
{
    const struct cached *cached = names_find(&cache->by_key, key);

    return cached ? cached->reason : NULL;
}

const struct use *cache_uses(const struct cache *cache, enum section section, const char *id)
{
    char key[VALUE_KEY_MAX];

    return uses_of(&cache->uses, value_key_of(key, section, id));
}
