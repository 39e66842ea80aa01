#include "provider/raft/metadata.h"

#include "base/json_load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- Our own --------------------------------------------------------------------------------- */

static void send_to(struct connection *connection)
{
    const struct node *node = connection->node;

    if (connection->is_open && connection->id != RAFT_NOBODY) {
        connection_send_description(connection, node->description,
                                    node->eligible ? 0 : GREETING_CORDONED,
                                    node->metadata ? node->metadata : "");
    }
}

void metadata_send(struct connection *connection)
{
    struct node *node = connection->node;

    node->description += node->description == 0;
    send_to(connection);
}

void metadata_send_to_all(struct node *node)
{
    node->description++;
    for (struct connection *one = node->accepted; one; one = one->next) {
        send_to(one);
    }
    for (struct link *link = node->links; link; link = link->next) {
        if (link->connection) {
            send_to(link->connection);
        }
        if (link->beside) {
            send_to(link->beside);
        }
    }
}

int metadata_set(struct node *node, const char *metadata, struct baton_error *reterr)
{
    size_t bytes = metadata ? strlen(metadata) : 0;
    char *copy = NULL;

    if (bytes > FRAME_METADATA_MAX) {
        return error_set(reterr, BATON_ETOOBIG, "metadata: %zu bytes; at most %d", bytes,
                         FRAME_METADATA_MAX);
    }
    if (metadata && !(copy = strdup(metadata))) {
        return error_set(reterr, BATON_ENOMEM, "out of memory for the metadata");
    }
    free(node->metadata);
    node->metadata = copy;
    metadata_send_to_all(node);
    return BATON_OK;
}

/* ---- The peers' ------------------------------------------------------------------------------ */

/* NULL: none, or what no member would send; or out of memory. */
static char *object_of(const void *text, size_t bytes)
{
    json_t *parsed = bytes > 0 ? json_load_bytes(text, bytes, JSON_REJECT_DUPLICATES, NULL) : NULL;
    char *object = json_is_object(parsed) ? strndup(text, bytes) : NULL;

    json_decref(parsed);
    return object;
}

void metadata_receive(struct connection *connection, const struct frame *frame)
{
    struct acquaintance *known = acquaintance_of(connection->node, connection->id);
    bool is_latest = known && (connection->incarnation > known->description_incarnation ||
                               (connection->incarnation == known->description_incarnation &&
                                frame->request_id >= known->description));

    if (!is_latest) {
        return;
    }
    known->description_incarnation = connection->incarnation;
    known->description = frame->request_id;
    known->flags =
        (uint8_t)((known->flags & ~GREETING_CORDONED) | (frame->flags & GREETING_CORDONED));
    free(known->metadata);
    known->metadata = object_of(frame->text, frame->text_bytes);
}

const char *metadata_of(const struct node *node, raft_id id)
{
    const struct acquaintance *known = acquaintance_of(node, id);

    if (id == node->id) {
        return node->metadata;
    }
    return known && known->incarnation == known->description_incarnation ? known->metadata : NULL;
}
