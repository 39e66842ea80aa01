/* The memory of one run: taken piece by piece, given back at once. */
#ifndef SIM_ARENA_H
#define SIM_ARENA_H

#include <stddef.h>

struct arena {
    struct arena_block *first, *now;
    size_t used;
};

/* These never fail: they end the program when there is no memory left. */
void *arena_take(struct arena *arena, size_t bytes);
void *arena_copy(struct arena *arena, const void *data, size_t bytes);
void *grow_array(void *array, size_t *capacity, size_t wanted, size_t size);

void arena_empty(struct arena *arena);
void arena_free(struct arena *arena);

#endif
