#include "net/redis/outbox.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 64 * 1024, HEAD_BYTES = 16, ROOM_BYTES = BLOCK_BYTES - HEAD_BYTES };

struct outbox_block {
    struct outbox_block *next;
    size_t used;
    uint8_t bytes[ROOM_BYTES];
};

_Static_assert(sizeof(struct outbox_block) == BLOCK_BYTES, "whole pages");

/* Blocks come from mmap(): malloc() could not return a burst's memory to the kernel as long as a
 * small allocation lies above it. */
static struct outbox_block *block_new(void)
{
    void *memory =
        mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        memory = NULL;
    }
    return memory; /* all zeros */
}

static void block_free(struct outbox_block *block)
{
    (void)munmap(block, BLOCK_BYTES);
}

void outbox_init(struct outbox *outbox, size_t max_bytes)
{
    *outbox = (struct outbox){.max_bytes = max_bytes};
}

void outbox_clear(struct outbox *outbox)
{
    while (outbox->first) {
        struct outbox_block *block = outbox->first;
        outbox->first = block->next;
        block_free(block);
    }
    outbox_init(outbox, outbox->max_bytes);
}

static struct outbox_block *add_block(struct outbox *outbox)
{
    struct outbox_block *block = block_new();

    if (!block) {
        return NULL;
    }
    if (outbox->last) {
        outbox->last->next = block;
    } else {
        outbox->first = block;
    }
    outbox->last = block;
    return block;
}

bool outbox_put(struct outbox *outbox, const void *data, size_t bytes)
{
    const uint8_t *from = data;

    if (bytes > outbox->max_bytes - outbox->bytes) {
        return false;
    }
    while (bytes > 0) {
        struct outbox_block *block = outbox->last;
        size_t room;
        if ((!block || block->used == ROOM_BYTES) && !(block = add_block(outbox))) {
            return false;
        }
        room = ROOM_BYTES - block->used;
        room = room < bytes ? room : bytes;
        memcpy(block->bytes + block->used, from, room);
        block->used += room;
        outbox->bytes += room;
        from += room;
        bytes -= room;
    }
    return true;
}

const void *outbox_first(const struct outbox *outbox, size_t *ret_bytes)
{
    if (outbox->bytes == 0) {
        return NULL;
    }
    *ret_bytes = outbox->first->used;
    return outbox->first->bytes;
}

/* Keeps the last block for reuse. */
void outbox_drop_first(struct outbox *outbox)
{
    struct outbox_block *block = outbox->first;

    outbox->bytes -= block->used;
    if (block->next) {
        outbox->first = block->next;
        block_free(block);
    } else {
        block->used = 0;
    }
}
