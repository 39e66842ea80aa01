#include "base/deadlines.h"

#include "base/error.h"
#include "base/invariant.h"

#include <stdlib.h>

enum { CAPACITY_MIN = 16 };

void deadlines_fini(struct deadlines *deadlines)
{
    free(deadlines->heap);
    *deadlines = (struct deadlines){.heap = NULL};
}

static void put(struct deadlines *deadlines, uint32_t at, struct deadlines_entry entry)
{
    deadlines->heap[at] = entry;
    entry.deadline->place = at + 1;
}

static void rise(struct deadlines *deadlines, uint32_t at)
{
    struct deadlines_entry entry = deadlines->heap[at];

    while (at > 0 && instant_before(entry.due, deadlines->heap[(at - 1) / 2].due)) {
        put(deadlines, at, deadlines->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(deadlines, at, entry);
}

static void sink(struct deadlines *deadlines, uint32_t at)
{
    struct deadlines_entry entry = deadlines->heap[at];

    for (;;) {
        uint32_t next = 2 * at + 1;
        if (next + 1 < deadlines->count &&
            instant_before(deadlines->heap[next + 1].due, deadlines->heap[next].due)) {
            next++;
        }
        if (next >= deadlines->count || !instant_before(deadlines->heap[next].due, entry.due)) {
            break;
        }
        put(deadlines, at, deadlines->heap[next]);
        at = next;
    }
    put(deadlines, at, entry);
}

int deadlines_add(struct deadlines *deadlines, struct deadline *deadline, instant due)
{
    INVARIANT(deadline->place == 0);
    if (deadlines->count == deadlines->capacity) {
        uint32_t wanted = deadlines->capacity > 0 ? 2 * deadlines->capacity : CAPACITY_MIN;
        struct deadlines_entry *grown = realloc(deadlines->heap, wanted * sizeof(*grown));
        if (!grown) {
            return BATON_ENOMEM;
        }
        deadlines->heap = grown;
        deadlines->capacity = wanted;
    }
    put(deadlines, deadlines->count++, (struct deadlines_entry){due, deadline});
    rise(deadlines, deadlines->count - 1);
    return BATON_OK;
}

void deadlines_change(struct deadlines *deadlines, const struct deadline *deadline, instant due)
{
    struct deadlines_entry *entry = &deadlines->heap[deadline->place - 1];
    bool is_earlier = instant_before(due, entry->due);

    INVARIANT(entry->deadline == deadline);
    entry->due = due;
    if (is_earlier) {
        rise(deadlines, deadline->place - 1);
    } else {
        sink(deadlines, deadline->place - 1);
    }
}

void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline)
{
    uint32_t at = deadline->place - 1;
    struct deadlines_entry last;

    if (deadline->place == 0) {
        return;
    }
    deadline->place = 0;
    last = deadlines->heap[--deadlines->count];
    if (last.deadline != deadline) {
        put(deadlines, at, last);
        rise(deadlines, at);
        sink(deadlines, last.deadline->place - 1);
    }
}

struct deadline *deadlines_first(const struct deadlines *deadlines)
{
    return deadlines->count > 0 ? deadlines->heap[0].deadline : NULL;
}

instant deadlines_next(const struct deadlines *deadlines)
{
    return deadlines->count > 0 ? deadlines->heap[0].due : INSTANT_NEVER;
}
