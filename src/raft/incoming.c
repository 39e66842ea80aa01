/* The snapshot that a leader is sending to this node, chunk by chunk. */
#include "raft/incoming.h"

#include "raft/state.h"

#include <stdlib.h>
#include <string.h>

void incoming_drop(struct raft *raft)
{
    free(raft->incoming.data);
    raft_configuration_fini(&raft->incoming.configuration);
    raft->incoming = (struct incoming_snapshot){0};
}

bool incoming_is_of(const struct raft *raft, const struct raft_message *message)
{
    const struct incoming_snapshot *incoming = &raft->incoming;

    return incoming->from == message->from && incoming->index == message->snapshot.index &&
           incoming->term == message->snapshot.snapshot_term &&
           incoming->total_bytes == message->snapshot.total_bytes;
}

int incoming_begin(struct raft *raft, const struct raft_message *message)
{
    struct raft_configuration copy;

    if (raft_configuration_copy(&copy, message->snapshot.configuration) != BATON_OK) {
        return BATON_ENOMEM;
    }
    incoming_drop(raft);
    raft->incoming = (struct incoming_snapshot){
        .from = message->from,
        .index = message->snapshot.index,
        .term = message->snapshot.snapshot_term,
        .configuration = copy,
        .total_bytes = message->snapshot.total_bytes,
    };
    return BATON_OK;
}

int incoming_add(struct raft *raft, const struct raft_message *message)
{
    struct incoming_snapshot *incoming = &raft->incoming;
    size_t bytes = message->snapshot.bytes;
    uint8_t *data;

    if (bytes == 0) {
        return BATON_OK;
    }
    data = realloc(incoming->data, incoming->bytes + bytes);
    if (!data) {
        return BATON_ENOMEM;
    }
    memcpy(data + incoming->bytes, message->snapshot.data, bytes);
    incoming->data = data;
    incoming->bytes += bytes;
    return BATON_OK;
}

void incoming_offer(struct raft *raft)
{
    struct incoming_snapshot *incoming = &raft->incoming;

    incoming->is_offered = true;
    raft->offer = true;
    raft->offered = (struct raft_snapshot){.index = incoming->index,
                                           .term = incoming->term,
                                           .configuration = incoming->configuration,
                                           .data = incoming->data,
                                           .bytes = (size_t)incoming->bytes};
}
