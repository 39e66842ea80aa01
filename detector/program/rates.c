#include "detector/program/rates.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct rates {
    char *identifier;
    instant begin;              /* of the window */
    uint64_t first[RATE_COUNT]; /* counters then */
    double last[RATE_COUNT];    /* a second, over the last window */
    bool is_whole, was_seen;
    UT_hash_handle hh;
};

static void add(struct rates **rates, struct rates *camera)
{
    HASH_ADD_KEYPTR(hh, *rates, camera->identifier, strlen(camera->identifier), camera);
}

/* NULL: out of memory; then it is tried again with the next look. */
static struct rates *find_or_add(struct rates **rates, const char *identifier)
{
    struct rates *camera = NULL;

    HASH_FIND_STR(*rates, identifier, camera);
    if (camera) {
        return camera;
    }
    camera = calloc(1, sizeof(*camera));
    if (!camera || !(camera->identifier = strdup(identifier))) {
        free(camera);
        return NULL;
    }
    add(rates, camera);
    return camera;
}

void rates_count(struct rates **rates, const char *identifier, const struct camera_stats *stats,
                 instant now)
{
    const uint64_t counts[RATE_COUNT] = {stats->received, stats->decoded, stats->dropped,
                                         stats->shown};
    struct rates *camera = find_or_add(rates, identifier);
    bool begins = camera && camera->begin.ns == 0;
    double seconds;

    if (!camera) {
        return;
    }
    camera->was_seen = true;
    seconds = (double)instant_since(now, camera->begin).ns / 1e9;
    for (int i = 0; i < RATE_COUNT; i++) {
        begins = begins || counts[i] < camera->first[i];
    }
    if (begins) {
        camera->is_whole = false;
        memset(camera->last, 0, sizeof(camera->last));
    } else if (seconds > 0 && (!camera->is_whole || seconds >= RATES_WINDOW_S)) {
        for (int i = 0; i < RATE_COUNT; i++) {
            camera->last[i] = (double)(counts[i] - camera->first[i]) / seconds;
        }
    }
    if (begins || seconds >= RATES_WINDOW_S) {
        camera->is_whole = !begins;
        camera->begin = now;
        memcpy(camera->first, counts, sizeof(camera->first));
    }
}

/* Builds the table anew from those that were seen. */
void rates_sweep(struct rates **rates)
{
    struct rates *camera = *rates;

    HASH_CLEAR(hh, *rates);
    while (camera) {
        struct rates *next = camera->hh.next;
        if (camera->was_seen) {
            camera->was_seen = false;
            add(rates, camera);
        } else {
            free(camera->identifier);
            free(camera);
        }
        camera = next;
    }
}

void rates_of(const struct rates *rates, const char *identifier, double ret[RATE_COUNT])
{
    const struct rates *camera = NULL;

    HASH_FIND_STR(rates, identifier, camera);
    memset(ret, 0, RATE_COUNT * sizeof(*ret));
    if (camera) {
        memcpy(ret, camera->last, sizeof(camera->last));
    }
}
