/* Writes in two steps: the second one begins when all of the first were stored. */
#include "fleet/master/master_int.h"

#include "base/error.h"
#include "base/invariant.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 320 };

struct change {
    struct change *next;
    struct round *round;
    json_t *json; /* NULL: it deletes */
    uint64_t revision;
    char key[KEY_MAX];
};

struct round {
    struct master *master; /* NULL: dropped */
    struct change *changes[STEPS];
    struct change **last[STEPS];
    enum step step;
    size_t waiting; /* for answers, and for the step's begin to end */
    bool has_failed;
};

struct round *round_new(void)
{
    struct round *round = calloc(1, sizeof(*round));

    for (int i = 0; round && i < STEPS; i++) {
        round->last[i] = &round->changes[i];
    }
    return round;
}

void round_free(struct round *round)
{
    for (int i = 0; round && i < STEPS; i++) {
        struct change *next;
        for (struct change *at = round->changes[i]; at; at = next) {
            next = at->next;
            json_decref(at->json);
            free(at);
        }
    }
    free(round);
}

int round_add(struct round *round, enum step step, const char *key, json_t *json, bool deletes,
              uint64_t revision)
{
    struct change *change = json || deletes ? calloc(1, sizeof(*change)) : NULL;
    size_t bytes = strlen(key) + 1;

    if (!change || bytes > KEY_MAX) {
        json_decref(json);
        free(change);
        return BATON_ENOMEM;
    }
    memcpy(change->key, key, bytes);
    change->round = round;
    change->json = json;
    change->revision = revision;
    *round->last[step] = change;
    round->last[step] = &change->next;
    return BATON_OK;
}

static void begin_step(struct round *round);

/* An answer came, or the step's begin has ended. */
static void count_off(struct round *round)
{
    struct master *master = round->master;

    if (--round->waiting > 0) {
        return;
    }
    if (master && !round->has_failed && round->step + 1 < STEPS) {
        round->step++;
        begin_step(round);
        return;
    }
    if (master) {
        bool is_stored = !round->has_failed;
        master->round = NULL;
        round_free(round);
        master_on_round(master, is_stored);
        return;
    }
    round_free(round);
}

static void note(struct round *round, int code, const struct baton_error *error)
{
    struct master *master = round->master;

    round->has_failed |= code != BATON_OK;
    if (!master) {
        return;
    }
    master->counters.writes += code == BATON_OK;
    master->counters.conflicts += code == BATON_ECONFLICT;
    master->counters.failures += code != BATON_OK && code != BATON_ECONFLICT;
    if (code != BATON_OK && code != BATON_ECONFLICT && error) {
        master_complain(master, error);
    }
}

static void on_put(void *userdata, int code, uint64_t revision, const struct baton_error *error)
{
    struct change *change = userdata;

    (void)revision;
    note(change->round, code, error);
    count_off(change->round);
}

/* The lease is read before each write. */
static void begin_step(struct round *round)
{
    round->waiting = 1;
    for (struct change *at = round->changes[round->step]; at && round->master; at = at->next) {
        struct baton_error error = {0};
        int code = BATON_ENOTLEADER;
        round->waiting++;
        if (master_may_write(round->master)) {
            code = fleet_state_put_json(round->master->config.state, at->key, at->json,
                                        at->revision, on_put, at, &error);
        }
        if (code != BATON_OK) {
            note(round, code, code == BATON_ENOTLEADER ? NULL : &error);
            round->waiting--;
        }
    }
    count_off(round);
}

void round_begin(struct round *round, struct master *master)
{
    INVARIANT(!master->round);
    round->master = master;
    master->round = round;
    begin_step(round);
}

void round_drop(struct round *round)
{
    if (round) {
        round->master->round = NULL;
        round->master = NULL;
    }
}
