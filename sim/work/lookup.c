#include "sim/work/lookup.h"

#include "base/invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct yard_key *yard_key_of(struct yard *yard, const char *name)
{
    struct yard_key *key;
    size_t bytes = strlen(name) + 1;

    HASH_FIND_STR(yard->store.keys, name, key);
    if (!key) {
        key = calloc(1, sizeof(*key));
        INVARIANT(key != NULL && bytes <= sizeof(key->name));
        memcpy(key->name, name, bytes);
        HASH_ADD_STR(yard->store.keys, name, key);
    }
    return key;
}

struct yard_key *yard_key_named(struct yard *yard, char kind, const char *name)
{
    char text[YARD_KEY_MAX];

    (void)snprintf(text, sizeof(text), "%c/%s", kind, name);
    return yard_key_of(yard, text);
}

struct yard_key *yard_drain_key(struct yard *yard, const struct yard_process *process)
{
    char name[8];

    (void)snprintf(name, sizeof(name), "%d", process->number);
    return yard_key_named(yard, 'd', name);
}

bool yard_is_draining(struct yard *yard, const struct yard_process *process)
{
    return yard_drain_key(yard, process)->value != NULL;
}

struct yard_item *yard_item_find(struct yard *yard, const char *id)
{
    for (size_t i = 0; i < yard->item_count; i++) {
        if (strcmp(yard->items[i].id, id) == 0) {
            return &yard->items[i];
        }
    }
    return NULL;
}

bool election_is_held_by(const struct yard *yard, int election, const struct yard_process *process,
                         uint64_t epoch)
{
    const struct yard_election *e = &yard->elections[election];

    return e->holder == process->number && e->life == process->life && e->epoch == epoch &&
           yard->now < e->until;
}

struct yard_copy *copy_of_item(struct yard *yard, const struct yard_item *item)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        if (yard->copies[i].is_running && yard->copies[i].item == item) {
            return &yard->copies[i];
        }
    }
    return NULL;
}

struct yard_copy *copy_of_process(struct yard *yard, const struct yard_process *process)
{
    for (size_t i = 0; i < YARD_COPIES_MAX; i++) {
        if (yard->copies[i].is_running && yard->copies[i].process == process->number) {
            return &yard->copies[i];
        }
    }
    return NULL;
}
