/* A binary heap of events by true time; those of equal times in the order in which they came. */
#include "sim/queue.h"

#include "sim/arena.h"

static bool comes_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void queue_push(struct world *world, struct event event)
{
    struct queue *queue = &world->queue;
    size_t at = queue->count++;

    queue->heap = grow_array(queue->heap, &queue->capacity, queue->count, sizeof(*queue->heap));
    event.order = queue->order++;
    if (event.at < world->now) {
        event.at = world->now;
    }
    while (at > 0 && comes_before(&event, &queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = event;
}

static void sink(struct queue *queue, const struct event *event)
{
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < queue->count &&
            comes_before(&queue->heap[child + 1], &queue->heap[child])) {
            child++;
        }
        if (child >= queue->count || !comes_before(&queue->heap[child], event)) {
            break;
        }
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    queue->heap[at] = *event;
}

bool queue_pop(struct world *world, struct event *ret)
{
    struct queue *queue = &world->queue;
    struct event last;

    if (queue->count == 0) {
        return false;
    }
    *ret = queue->heap[0];
    last = queue->heap[--queue->count];
    if (queue->count > 0) {
        sink(queue, &last);
    }
    return true;
}
