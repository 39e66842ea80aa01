/* The memory of one run: taken piece by piece, given back at once. */
#include "sim/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 18 };

struct arena_block {
    struct arena_block *next;
    size_t bytes;
    _Alignas(16) unsigned char data[];
};

static void *must(void *memory)
{
    if (!memory) {
        (void)fputs("baton-sim: out of memory\n", stderr);
        exit(3);
    }
    return memory;
}

static struct arena_block *new_block(size_t bytes)
{
    size_t wanted = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    struct arena_block *block = must(malloc(sizeof(*block) + wanted));
    *block = (struct arena_block){.bytes = wanted};
    return block;
}

void *arena_take(struct arena *arena, size_t bytes)
{
    void *taken;

    bytes = (bytes + 15) & ~(size_t)15;
    if (!arena->first) {
        arena->first = arena->now = new_block(bytes);
    }
    while (arena->used + bytes > arena->now->bytes) {
        if (!arena->now->next) {
            arena->now->next = new_block(bytes);
        }
        arena->now = arena->now->next;
        arena->used = 0;
    }
    taken = arena->now->data + arena->used;
    arena->used += bytes;
    return taken;
}

void *arena_copy(struct arena *arena, const void *data, size_t bytes)
{
    void *copy = arena_take(arena, bytes);
    if (bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

void arena_empty(struct arena *arena)
{
    arena->now = arena->first;
    arena->used = 0;
}

void arena_free(struct arena *arena)
{
    struct arena_block *block = arena->first;
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (struct arena){0};
}

void *grow_array(void *array, size_t *capacity, size_t wanted, size_t size)
{
    size_t grown = *capacity ? *capacity : 64;

    if (wanted <= *capacity) {
        return array;
    }
    while (grown < wanted) {
        grown *= 2;
    }
    *capacity = grown;
    return must(realloc(array, grown * size));
}
