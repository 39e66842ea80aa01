#include "fleet/detections/known.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 1024 };

/* 0 is an empty slot. The keys are hashes, so that their low bits are spread. */
static uint64_t *slot_of(const struct known_table *table, uint64_t key)
{
    size_t at = (size_t)key & (table->capacity - 1);

    while (table->slots[at] != 0 && table->slots[at] != key) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->slots[at];
}

static bool has(const struct known_table *table, uint64_t key)
{
    return table->capacity > 0 && *slot_of(table, key) == key;
}

static bool grow(struct known_table *table)
{
    struct known_table larger = {.capacity =
                                     table->capacity > 0 ? 2 * table->capacity : CAPACITY_MIN,
                                 .count = table->count};

    larger.slots = calloc(larger.capacity, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != 0) {
            *slot_of(&larger, table->slots[i]) = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
    return true;
}

void known_fini(struct known *known)
{
    free(known->young.slots);
    free(known->old.slots);
    *known = (struct known){0};
}

static void grow_old(struct known *known)
{
    free(known->old.slots);
    known->old = known->young;
    known->young = (struct known_table){0};
}

bool known_add(struct known *known, uint64_t key)
{
    struct known_table *young = &known->young;

    key = key != 0 ? key : 1;
    if (has(young, key) || has(&known->old, key)) {
        return false;
    }
    if (young->count == KNOWN_KEYS) {
        grow_old(known);
    }
    if (2 * (young->count + 1) > young->capacity && !grow(young)) {
        grow_old(known);
        if (!grow(young)) {
            return true;
        }
    }
    *slot_of(young, key) = key;
    young->count++;
    return true;
}
