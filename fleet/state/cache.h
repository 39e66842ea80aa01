/* The keys of the fleet as they are known here: by key, in order, and who uses what. Pure.
 *
 * News of a key come from four sources, in any order, so revisions decide:
 *
 *   feed  counts, unless a write or a list of later revision is there already, which it will reach
 *   list  of all keys while loading: counts where it is later than what is there
 *   own   a write that succeeded: likewise; a deletion if the key is as it was when it was written
 *   read  one key read again: counts if the key is as it was when it was asked for
 *
 * A deletion that older news may contradict leaves a tombstone: of an own one until the feed has
 * it; of any while loading, since the list may be older, and while a write of the key or a question
 * for it is under way (cache_hold), since its reply may be.
 */
#ifndef FLEET_STATE_CACHE_H
#define FLEET_STATE_CACHE_H

#include "base/names.h"
#include "fleet/state/uses.h"
#include "fleet/state/value.h"

struct cached {
    uint64_t revision;
    bool is_ahead;       /* of the feed */
    unsigned holds;      /* by cache_hold() */
    struct value *value; /* NULL: foreign, or a tombstone */
    char *reason;        /* of a foreign value; else NULL */
    struct fleet_foreign foreign;
    struct use *uses; /* of a subscription, or of what a worker is assigned */
    size_t use_count;
    const char *id; /* in the key */
    char key[];
};

/* After the sections: */
enum { ORDER_FOREIGN = SECTIONS, ORDER_TOMBSTONES, ORDERS };

struct order {
    struct cached **of; /* by the bytes of their keys */
    size_t count, room;
};

struct cache {
    struct names by_key;
    struct order orders[ORDERS];
    struct uses uses;
    bool is_loading;
};

enum cache_source { CACHE_FEED, CACHE_LIST, CACHE_OWN, CACHE_READ };

struct cache_news {
    enum cache_source source;
    const char *key;
    uint64_t revision;   /* of a deletion: that of the change, or of the value that is gone */
    struct value *value; /* taken in any case; NULL: foreign, or deleted */
    const char *reason;  /* foreign; NULL: it is not */
    uint64_t asked;      /* own deletion, read: cache_revision() when it was asked for */
};

struct cache_change {
    bool is_changed;             /* a value of ours has come, changed or gone */
    bool is_mark;                /* the same lists have come again */
    bool is_foreign;             /* a foreign value has come */
    struct fleet_object *before; /* a reference for the caller; NULL: there was none */
};

void cache_init(struct cache *cache);
void cache_fini(struct cache *cache);

/* BATON_ENOMEM: it is as before. *ret is written in any case. */
int cache_take(struct cache *cache, const struct cache_news *news, struct cache_change *ret);
/* All was listed: tombstones are no longer needed for that. */
void cache_loaded(struct cache *cache);
/* Around each write of a key and each question for it, from the request until its news were taken.
 * BATON_ENOMEM. */
int cache_hold(struct cache *cache, const char *key);
void cache_release(struct cache *cache, const char *key);

/* NULL: there is no value of ours. */
const struct cached *cache_find(const struct cache *cache, enum section section, const char *id);
/* 0: absent. Of a foreign value, too. */
uint64_t cache_revision(const struct cache *cache, const char *key);
/* What is wrong with the key's value; NULL: it is not foreign. */
const char *cache_foreign(const struct cache *cache, const char *key);
/* The position in the order of what comes after `key`, or at it. */
size_t cache_position(const struct order *order, const char *key);
/* The first one that names this: by SECTION_SUBSCRIPTION a display, a camera, a model; by
 * SECTION_ASSIGNED a subscription. Their `by` is a struct cached. */
const struct use *cache_uses(const struct cache *cache, enum section section, const char *id);

#endif
