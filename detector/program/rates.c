#include "detector/program/rates.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct counted {
    char *identifier;
    instant begin;                 /* of the window */
    uint64_t first[RATES_COUNTED]; /* counters then */
    double last[RATES_COUNTED];    /* a second, over the last window */
    bool is_whole, was_seen;
    UT_hash_handle hh;
};

struct rates {
    struct counted *all;
};

struct rates *rates_new(void)
{
    return calloc(1, sizeof(struct rates));
}

static void counted_free(struct counted *counted)
{
    free(counted->identifier);
    free(counted);
}

void rates_free(struct rates *rates)
{
    struct counted *counted = rates ? rates->all : NULL;

    if (rates) {
        HASH_CLEAR(hh, rates->all); /* the table; the entries are still a list */
    }
    while (counted) {
        struct counted *next = counted->hh.next;
        counted_free(counted);
        counted = next;
    }
    free(rates);
}

static void begin(struct counted *counted, const uint64_t now_at[RATES_COUNTED], instant now)
{
    memcpy(counted->first, now_at, sizeof(counted->first));
    counted->begin = now;
}

static struct counted *find(const struct rates *rates, const char *identifier)
{
    struct counted *counted = NULL;

    HASH_FIND_STR(rates->all, identifier, counted);
    return counted;
}

/* NULL: out of memory; then it is tried again with the next look. */
static struct counted *add(struct rates *rates, const char *identifier,
                           const uint64_t now_at[RATES_COUNTED], instant now)
{
    struct counted *counted = calloc(1, sizeof(*counted));

    if (!counted || !(counted->identifier = strdup(identifier))) {
        free(counted);
        return NULL;
    }
    begin(counted, now_at, now);
    HASH_ADD_KEYPTR(hh, rates->all, counted->identifier, strlen(counted->identifier), counted);
    return counted;
}

static bool went_back(const struct counted *counted, const uint64_t now_at[RATES_COUNTED])
{
    for (int i = 0; i < RATES_COUNTED; i++) {
        if (now_at[i] < counted->first[i]) {
            return true;
        }
    }
    return false;
}

void rates_count(struct rates *rates, const char *identifier, const struct camera_stats *stats,
                 instant now)
{
    const uint64_t now_at[RATES_COUNTED] = {stats->received, stats->decoded, stats->dropped,
                                            stats->shown};
    struct counted *counted = find(rates, identifier);
    double seconds;

    counted = counted ? counted : add(rates, identifier, now_at, now);
    if (!counted) {
        return;
    }
    counted->was_seen = true;
    if (went_back(counted, now_at)) {
        begin(counted, now_at, now);
        counted->is_whole = false;
        memset(counted->last, 0, sizeof(counted->last));
        return;
    }
    seconds = (double)instant_since(now, counted->begin).ns / 1e9;
    if (seconds <= 0 || (counted->is_whole && seconds < RATES_WINDOW_S)) {
        return;
    }
    for (int i = 0; i < RATES_COUNTED; i++) {
        counted->last[i] = (double)(now_at[i] - counted->first[i]) / seconds;
    }
    if (seconds >= RATES_WINDOW_S) {
        counted->is_whole = true;
        begin(counted, now_at, now);
    }
}

/* Builds the table anew from the entries that were seen. */
void rates_sweep(struct rates *rates)
{
    struct counted *counted = rates->all;

    HASH_CLEAR(hh, rates->all);
    while (counted) {
        struct counted *next = counted->hh.next;
        if (counted->was_seen) {
            counted->was_seen = false;
            HASH_ADD_KEYPTR(hh, rates->all, counted->identifier, strlen(counted->identifier),
                            counted);
        } else {
            counted_free(counted);
        }
        counted = next;
    }
}

struct rate_figures rates_of(const struct rates *rates, const char *identifier)
{
    const struct counted *counted = find(rates, identifier);

    return counted ? (struct rate_figures){counted->last[0], counted->last[1], counted->last[2],
                                           counted->last[3]}
                   : (struct rate_figures){0};
}
