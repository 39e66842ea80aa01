#include "fleet/outlets/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message *message_new(const char *event, const char *body, size_t bytes)
{
    struct message *message = malloc(sizeof(*message) + bytes + 1);

    if (message == NULL) {
        return NULL;
    }
    message->references = 1;
    (void)snprintf(message->event, sizeof(message->event), "%s", event);
    message->bytes = bytes;
    memcpy(message->body, body, bytes);
    message->body[bytes] = '\0';
    return message;
}

struct message *message_ref(struct message *message)
{
    message->references++;
    return message;
}

void message_unref(struct message *message)
{
    if (message != NULL && --message->references == 0) {
        free(message);
    }
}

bool queue_put(struct queue *queue, struct message *message)
{
    bool has_room = queue->count < QUEUE_MAX;

    if (!has_room) {
        message_unref(queue_take(queue));
    }
    queue->messages[(queue->first + queue->count++) % QUEUE_MAX] = message_ref(message);
    return has_room;
}

struct message *queue_take(struct queue *queue)
{
    struct message *message = queue->messages[queue->first];

    if (queue->count == 0) {
        return NULL;
    }
    queue->first = (queue->first + 1) % QUEUE_MAX;
    queue->count--;
    return message;
}

void queue_clear(struct queue *queue)
{
    while (queue->count > 0) {
        message_unref(queue_take(queue));
    }
}
