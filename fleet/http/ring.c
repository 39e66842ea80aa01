#include "fleet/http/ring.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_BYTES = 128 }; /* all of an event's text but its data */

void ring_init(struct ring *ring, uint32_t run)
{
    *ring = (struct ring){.run = run, .next = 1};
}

static struct ring_event *place(struct ring *ring, uint64_t number)
{
    return &ring->events[number % RING_EVENTS];
}

static void drop_oldest(struct ring *ring)
{
    struct ring_event *event = place(ring, ring_oldest(ring));

    ring->bytes -= event->bytes;
    ring->count--;
    free(event->text);
    *event = (struct ring_event){.text = NULL};
}

void ring_fini(struct ring *ring)
{
    while (ring->count > 0) {
        drop_oldest(ring);
    }
}

uint64_t ring_oldest(const struct ring *ring)
{
    return ring->next - ring->count;
}

/* Names come from other processes too: a line's end in one would make an event of its own. */
static bool fits(const char *name, const char *data, size_t bytes)
{
    size_t length =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    return length > 0 && length <= RING_NAME_MAX && name[length] == '\0' &&
           bytes <= RING_DATA_MAX && memchr(data, '\n', bytes) == NULL &&
           memchr(data, '\r', bytes) == NULL;
}

bool ring_add(struct ring *ring, const char *name, const char *data, size_t bytes)
{
    size_t room = bytes + FRAME_BYTES;
    char *text = fits(name, data, bytes) ? malloc(room) : NULL;
    int head, used;

    if (text == NULL) { /* the number is missing, so all that were before it go, too */
        while (ring->count > 0) {
            drop_oldest(ring);
        }
        ring->next++;
        return false;
    }
    head = snprintf(text, room, "id: %08" PRIx32 "-%" PRIu64 "\nevent: ", ring->run, ring->next);
    used = head +
           snprintf(text + head, room - (size_t)head, "%s\ndata: %.*s\n\n", name, (int)bytes, data);
    while (ring->count == RING_EVENTS ||
           (ring->count > 0 && ring->bytes + (size_t)used > RING_BYTES)) {
        drop_oldest(ring);
    }
    *place(ring, ring->next) = (struct ring_event){text, (size_t)used, (size_t)head, strlen(name)};
    ring->bytes += (size_t)used;
    ring->count++;
    ring->next++;
    return true;
}

uint64_t ring_begin(const struct ring *ring, const char *last_id, bool *ret_has_missed)
{
    char *end;
    unsigned long long run, number;

    *ret_has_missed = false;
    if (last_id == NULL || *last_id == '\0') {
        return ring->next;
    }
    run = strtoull(last_id, &end, 16);
    number = *end == '-' ? strtoull(end + 1, &end, 10) : UINT64_MAX;
    *ret_has_missed =
        *end != '\0' || run != ring->run || number >= ring->next || number + 1 < ring_oldest(ring);
    return *ret_has_missed ? ring->next : number + 1;
}

static bool is_wanted(const char *only, const struct ring_event *event)
{
    const char *name = event->text + event->name_at;

    while (only != NULL && *only != '\0') {
        size_t word = strcspn(only, ",");

        if (word == event->name_bytes && memcmp(only, name, word) == 0) {
            return true;
        }
        only += word + (only[word] == ',');
    }
    return only == NULL;
}

void ring_put(const struct ring *ring, uint64_t *at, const char *only, size_t bytes,
              struct buffer *out)
{
    for (; *at < ring->next && out->bytes < bytes; (*at)++) {
        const struct ring_event *event = &ring->events[*at % RING_EVENTS];

        if (is_wanted(only, event)) {
            buffer_put(out, event->text, event->bytes);
        }
    }
}
