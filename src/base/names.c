/* Linear probing. What is removed leaves no mark: the items behind it move up. */
#include "base/names.h"

#include "base/error.h"
#include "base/invariant.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 8 };

void names_init(struct names *names, size_t offset)
{
    *names = (struct names){.offset = offset};
}

void names_fini(struct names *names)
{
    free((void *)names->slots);
    *names = (struct names){.offset = names->offset};
}

static const char *name_of(const struct names *names, const void *item)
{
    return (const char *)item + names->offset;
}

/* Where the name's items begin: FNV-1a. */
static size_t home_of(const struct names *names, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (const char *at = name; *at; at++) {
        hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    }
    return (size_t)(hash ^ hash >> 32) & (names->capacity - 1);
}

static size_t after(const struct names *names, size_t slot)
{
    return (slot + 1) & (names->capacity - 1);
}

/* The slot of this name, or the empty one where it would be. */
static size_t slot_of(const struct names *names, const char *name)
{
    size_t slot = home_of(names, name);

    while (names->slots[slot] && strcmp(name_of(names, names->slots[slot]), name) != 0) {
        slot = after(names, slot);
    }
    return slot;
}

static int resize(struct names *names, size_t capacity)
{
    struct names wanted = *names;

    wanted.capacity = capacity;
    wanted.slots = (void **)calloc(capacity, sizeof(void *));
    if (!wanted.slots) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < names->capacity; i++) {
        if (names->slots[i]) {
            wanted.slots[slot_of(&wanted, name_of(names, names->slots[i]))] = names->slots[i];
        }
    }
    free((void *)names->slots);
    *names = wanted;
    return BATON_OK;
}

int names_add(struct names *names, void *item)
{
    size_t slot;

    if (4 * (names->count + 1) > 3 * names->capacity &&
        resize(names, names->capacity ? 2 * names->capacity : CAPACITY_MIN) != BATON_OK) {
        return BATON_ENOMEM;
    }
    slot = slot_of(names, name_of(names, item));
    INVARIANT(!names->slots[slot]);
    names->slots[slot] = item;
    names->count++;
    return BATON_OK;
}

/* Whether an item whose probing begins at `home` and that lies in `slot` is found past `hole`. */
static bool is_found_past(size_t hole, size_t home, size_t slot)
{
    return hole <= slot ? hole < home && home <= slot : hole < home || home <= slot;
}

void names_remove(struct names *names, const void *item)
{
    size_t hole = names->count > 0 ? slot_of(names, name_of(names, item)) : 0;

    INVARIANT(names->count > 0 && names->slots[hole] == item);
    for (size_t slot = after(names, hole); names->slots[slot]; slot = after(names, slot)) {
        size_t home = home_of(names, name_of(names, names->slots[slot]));
        if (!is_found_past(hole, home, slot)) {
            names->slots[hole] = names->slots[slot];
            hole = slot;
        }
    }
    names->slots[hole] = NULL;
    names->count--;
    if (names->capacity > CAPACITY_MIN && 8 * names->count < names->capacity) {
        (void)resize(names, names->capacity / 2); /* the larger table serves as well */
    }
}

void *names_find(const struct names *names, const char *name)
{
    return names->count > 0 ? names->slots[slot_of(names, name)] : NULL;
}
