/* Gives equal runs of bytes the same number: 0, 1, 2 … in the order in which they come. */
#ifndef WORK_PLACEMENT_INTERN_H
#define WORK_PLACEMENT_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

struct interned {
    const void *bytes; /* borrowed */
    size_t count;
    uint64_t hash;
};

/* The caller owns both arrays: `known` has room for all that will be added, `slots` is a power of
 * two of at least twice as many, and zero. */
struct intern {
    struct interned *known;
    uint32_t count;
    uint32_t *slots; /* number + 1; 0: empty */
    uint32_t mask;   /* slots - 1 */
};

/* How many slots `count` different runs need. */
size_t intern_slots(size_t count);
uint32_t intern_add(struct intern *intern, const void *bytes, size_t count);
/* INTERN_NONE: it was not added. */
uint32_t intern_find(const struct intern *intern, const void *bytes, size_t count);

#endif
