/* Deadlines of many structs, the earliest first: a heap.
 *
 * A change costs the logarithm of their number. Each struct has a `struct deadline` in it, by which
 * it is found here; DEADLINE_OF() gives the struct. The heap owns none of them.
 */
#ifndef BASE_DEADLINES_H
#define BASE_DEADLINES_H

#include "base/clock.h"

#include <stddef.h>

/* All zero: it is in no heap. */
struct deadline {
    uint32_t place; /* counted from 1 */
};

/* All zero: an empty heap. */
struct deadlines {
    struct deadlines_entry {
        instant due;
        struct deadline *deadline;
    } * heap;
    uint32_t count, capacity;
};

#define DEADLINE_OF(type, member, deadline) ((type *)((char *)(deadline)-offsetof(type, member)))

void deadlines_fini(struct deadlines *deadlines); /* the structs may be gone already */

/* It must be in no heap. BATON_ENOMEM. */
int deadlines_add(struct deadlines *deadlines, struct deadline *deadline, instant due);
/* It must be in this heap. */
void deadlines_change(struct deadlines *deadlines, const struct deadline *deadline, instant due);
/* Does nothing if it is in no heap. */
void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline);

/* NULL: there is none. */
struct deadline *deadlines_first(const struct deadlines *deadlines);
/* INSTANT_NEVER: there is none. */
instant deadlines_next(const struct deadlines *deadlines);

#endif
