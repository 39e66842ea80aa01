#include "work/placement_intern.h"

#include <string.h>

size_t intern_slots(size_t count)
{
    size_t slots = 2;

    while (slots < 2 * count) {
        slots *= 2;
    }
    return slots;
}

/* FNV-1a, whose low bits are mixed with its high ones. */
static uint64_t hash_of(const unsigned char *bytes, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash ^ (hash >> 32);
}

/* The slot of these bytes, or the empty one where they belong. */
static uint32_t *slot_of(const struct intern *intern, const void *bytes, size_t count,
                         uint64_t hash)
{
    for (uint32_t at = (uint32_t)hash & intern->mask;; at = (at + 1) & intern->mask) {
        uint32_t *slot = &intern->slots[at];
        const struct interned *known = *slot != 0 ? &intern->known[*slot - 1] : NULL;
        if (!known || (known->hash == hash && known->count == count &&
                       memcmp(known->bytes, bytes, count) == 0)) {
            return slot;
        }
    }
}

uint32_t intern_add(struct intern *intern, const void *bytes, size_t count)
{
    uint64_t hash = hash_of(bytes, count);
    uint32_t *slot = slot_of(intern, bytes, count, hash);

    if (*slot == 0) {
        intern->known[intern->count] = (struct interned){bytes, count, hash};
        *slot = ++intern->count;
    }
    return *slot - 1;
}

uint32_t intern_find(const struct intern *intern, const void *bytes, size_t count)
{
    uint32_t slot = *slot_of(intern, bytes, count, hash_of(bytes, count));

    return slot != 0 ? slot - 1 : INTERN_NONE;
}
