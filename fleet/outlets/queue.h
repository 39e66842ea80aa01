/* Events that wait for an outlet, the oldest first. There are at most QUEUE_MAX: what is late is
 * worth less than what is new, so the oldest makes room. Pure.
 */
#ifndef FLEET_OUTLETS_QUEUE_H
#define FLEET_OUTLETS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

enum { QUEUE_MAX = 1000, MESSAGE_EVENT_MAX = 32 };

/* The pauses between two tries (base/backoff.h). */
enum { RETRIES_MAX = 10, RETRY_FIRST_S = 2, RETRY_MOST_S = 60 };

/* One event for several outlets. */
struct message {
    unsigned references;
    char event[MESSAGE_EVENT_MAX]; /* its name */
    size_t bytes;
    char body[]; /* JSON, NUL-terminated */
};

/* With one reference. NULL: out of memory. */
struct message *message_new(const char *event, const char *body, size_t bytes);
struct message *message_ref(struct message *message);
void message_unref(struct message *message); /* NULL is nothing */

struct queue {
    struct message *messages[QUEUE_MAX];
    size_t first, count;
};

/* Adds a reference. False: there was no room, and the oldest is dropped. */
bool queue_put(struct queue *queue, struct message *message);
/* The oldest, with its reference; NULL: there is none. */
struct message *queue_take(struct queue *queue);
void queue_clear(struct queue *queue);

#endif
