/* A binary heap of events by true time; those of equal times in the order in which they came. */
#include "sim/work/wire.h"

#include "base/invariant.h"
#include "sim/work/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- The queue ------------------------------------------------------------------------------- */

static bool comes_before(const struct yard_event *a, const struct yard_event *b)
{
    return a->at < b->at || (a->at == b->at && a->rank < b->rank);
}

struct yard_event *yard_push(struct yard *yard, enum yard_event_kind kind, int64_t at)
{
    struct yard_event *heap = yard->queue;
    size_t hole = yard->queued;
    struct yard_event event = {.at = at > yard->now ? at : yard->now,
                               .rank = yard->ranks++,
                               .kind = kind,
                               .process = YARD_NOBODY};

    if (yard->queued == YARD_EVENTS_MAX) {
        yard_violated(yard, "storm", "%d events are to come at once", YARD_EVENTS_MAX);
    }
    yard->queued++;
    while (hole > 0 && comes_before(&event, &heap[(hole - 1) / 2])) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = event;
    return &heap[hole];
}

struct yard_event *yard_push_process(struct yard *yard, const struct yard_process *process,
                                     enum yard_event_kind kind, int64_t at)
{
    struct yard_event *event = yard_push(yard, kind, at);

    event->process = process->number;
    event->life = process->life;
    return event;
}

void yard_push_again(struct yard *yard, struct yard_event *event, int64_t at)
{
    struct yard_event *later = yard_push(yard, event->kind, at);
    uint64_t rank = later->rank;

    at = later->at;
    *later = *event;
    later->at = at;
    later->rank = rank;
    event->value = NULL;
    event->letter = NULL;
}

static void sink(struct yard *yard, const struct yard_event *event)
{
    struct yard_event *heap = yard->queue;
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < yard->queued && comes_before(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (child >= yard->queued || !comes_before(&heap[child], event)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = *event;
}

bool yard_pop(struct yard *yard, struct yard_event *ret)
{
    struct yard_event last;

    if (yard->queued == 0) {
        return false;
    }
    *ret = yard->queue[0];
    last = yard->queue[--yard->queued];
    if (yard->queued > 0) {
        sink(yard, &last);
    }
    return true;
}

void yard_event_fini(struct yard_event *event)
{
    yard_value_unref(event->value);
    yard_letter_unref(event->letter);
    event->value = NULL;
    event->letter = NULL;
}

void yard_drain(struct yard *yard)
{
    for (size_t i = 0; i < yard->queued; i++) {
        yard_event_fini(&yard->queue[i]);
    }
    yard->queued = 0;
}

/* ---- What travels ---------------------------------------------------------------------------- */

struct yard_value *yard_value_new(const void *data, size_t bytes)
{
    struct yard_value *value = malloc(sizeof(*value) + bytes);

    INVARIANT(value != NULL);
    value->references = 1;
    value->bytes = bytes;
    if (bytes > 0) {
        memcpy(value->data, data, bytes);
    }
    return value;
}

struct yard_value *yard_value_ref(struct yard_value *value)
{
    if (value) {
        value->references++;
    }
    return value;
}

void yard_value_unref(struct yard_value *value)
{
    if (value && --value->references == 0) {
        free(value);
    }
}

struct yard_letter *yard_letter_new(struct yard *yard, const void *data, size_t bytes)
{
    struct yard_letter *letter = calloc(1, sizeof(*letter));
    struct baton_error error;

    INVARIANT(letter != NULL);
    letter->references = 1;
    if (work_message_read(&letter->message, data, bytes, &error) != BATON_OK) {
        free(letter);
        yard_violated(yard, "unreadable", "%s: %.*s", error.message, (int)bytes,
                      (const char *)data);
    }
    return letter;
}

void yard_letter_unref(struct yard_letter *letter)
{
    if (letter && --letter->references == 0) {
        work_message_fini(&letter->message);
        free(letter);
    }
}

static void deliver_once(struct yard *yard, const struct yard_process *from,
                         const struct yard_process *to, enum yard_event_kind kind,
                         struct yard_letter *letter)
{
    int64_t at = yard_arrival(yard, from);

    if (at != INT64_MAX && to->cut_until > at) {
        at = random_chance(&yard->random, 500000) ? INT64_MAX : to->cut_until + yard_way(yard);
    }
    if (at != INT64_MAX) {
        letter->references++;
        yard_push_process(yard, to, kind, at)->letter = letter;
    }
}

void yard_deliver(struct yard *yard, const struct yard_process *from, const struct yard_process *to,
                  enum yard_event_kind kind, struct yard_letter *letter)
{
    deliver_once(yard, from, to, kind, letter);
    if (!yard->is_calm && random_chance(&yard->random, yard->profile.twice_ppm)) {
        deliver_once(yard, from, to, kind, letter);
    }
}

int64_t yard_way(struct yard *yard)
{
    const struct yard_profile *p = &yard->profile;
    int64_t way = p->delay + random_between(&yard->random, 0, p->jitter);

    if (!yard->is_calm && random_chance(&yard->random, p->tail_ppm)) {
        way += random_between(&yard->random, 0, p->tail);
    }
    return way;
}

int64_t yard_arrival(struct yard *yard, const struct yard_process *process)
{
    if (!yard->is_calm && random_chance(&yard->random, yard->profile.loss_ppm)) {
        return INT64_MAX;
    }
    if (process && yard->now < process->cut_until) {
        return random_chance(&yard->random, 500000) ? INT64_MAX
                                                    : process->cut_until + yard_way(yard);
    }
    return yard->now + yard_way(yard);
}

instant yard_local(const struct yard *yard, const struct yard_process *process)
{
    return drift_local(&process->clock, yard->now);
}

int64_t yard_unix_ms(const struct yard *yard, const struct yard_process *process)
{
    return yard_local(yard, process).ns / 1000000 + process->wall_offset_ms;
}
