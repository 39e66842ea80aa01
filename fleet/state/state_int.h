/* The state, which the files of this folder work on; not for others. From below: state.c;
 * state_read.c, write.c; apply.c.
 */
#ifndef FLEET_STATE_STATE_INT_H
#define FLEET_STATE_STATE_INT_H

#include "fleet/state/cache.h"
#include "fleet/state/state.h"
#include "member/feed.h"

struct told;    /* state.c: an event that waits */
struct listing; /* state.c: the list of all keys, asked for */
struct write;   /* write.c */

struct fleet_state {
    struct member *member;
    struct cache cache;
    struct feed *feed;       /* NULL: not begun */
    struct listing *listing; /* under way; NULL: none */
    uv_timer_t timer;        /* loading begins, or is tried again */
    struct fleet_observer *observers;
    void (*on_ready)(void *userdata);
    void *userdata;
    struct told *first_told, **last_told; /* events in their order */
    struct write *writes;                 /* under way */
    struct fleet_state_counters counters;
    uint64_t loaded, load_due; /* numbers of loads: the last one that lacked nothing, the wanted */
    bool is_ready, is_closed, is_telling;
    char name[FLEET_NAME_MAX + 1];
};

enum { STATE_KEY_MAX = FLEET_NAME_MAX + 1 + VALUE_KEY_MAX };

/* "NAME/KEY"; key "": the prefix of all. Returns `ret`. */
const char *state_key(const struct fleet_state *state, const char *key,
                      char ret[static STATE_KEY_MAX]);

/* News of the provider: `value` of a key "NAME/…", or without data. Reads it, and tells. */
void state_take(struct fleet_state *state, const struct provider_value *value,
                enum cache_source source, uint64_t asked);
/* The same of news that were read already. */
void state_take_news(struct fleet_state *state, const struct cache_news *news);

/* Ends all writes with BATON_ECANCELED; they are freed when the provider answers. */
void writes_cancel(struct fleet_state *state);

#endif
