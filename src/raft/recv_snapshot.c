/* A snapshot arrives in chunks; when the last one is there the driver tries to take it in; and if
 * it could, the snapshot takes the place of the log. One that it could not is not stored.
 *
 *   chunk, chunk, … ──whole──▶ offered ──taken────▶ stored, installed, acknowledged
 *                                  └─────refused──▶ dropped, the leader is told
 */
#include "raft/internal.h"

#include <stdlib.h>
#include <string.h>

void incoming_snapshot_drop(struct raft *raft)
{
    free(raft->incoming.data);
    raft_configuration_fini(&raft->incoming.configuration);
    raft->incoming = (struct incoming_snapshot){0};
}

static struct raft_message *answer(struct raft *raft, raft_id to, raft_index index,
                                   uint64_t next_offset)
{
    struct raft_message *reply = update_message(raft, RAFT_MSG_SNAPSHOT_REPLY, to, AFTER_ALL);
    if (reply) {
        reply->snapshot_reply.index = index;
        reply->snapshot_reply.next_offset = next_offset;
    }
    return reply;
}

static bool belongs(const struct incoming_snapshot *incoming, const struct raft_message *message)
{
    return incoming->from == message->from && incoming->index == message->snapshot.index &&
           incoming->term == message->snapshot.snapshot_term &&
           incoming->total_bytes == message->snapshot.total_bytes;
}

static int begin(struct raft *raft, const struct raft_message *message)
{
    struct raft_configuration copy;

    if (raft_configuration_copy(&copy, message->snapshot.configuration) != BATON_OK) {
        return BATON_ENOMEM;
    }
    incoming_snapshot_drop(raft);
    raft->incoming = (struct incoming_snapshot){
        .from = message->from,
        .index = message->snapshot.index,
        .term = message->snapshot.snapshot_term,
        .configuration = copy,
        .total_bytes = message->snapshot.total_bytes,
    };
    return BATON_OK;
}

static int add_chunk(struct incoming_snapshot *incoming, const struct raft_message *message)
{
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

static int install(struct raft *raft)
{
    struct incoming_snapshot *incoming = &raft->incoming;
    struct raft_configuration copy = {0};

    if (raft_configuration_copy(&copy, &incoming->configuration) != BATON_OK) {
        return BATON_ENOMEM;
    }
    if (!RAFT_MUTANT(SNAPSHOT_WITHOUT_MEMBERS) &&
        configuration_enter(raft, &copy, incoming->index) != BATON_OK) {
        raft_configuration_fini(&copy);
        return BATON_ENOMEM;
    }
    free((void *)raft->snapshot.data);
    raft_configuration_fini(&raft->snapshot.configuration);
    raft->snapshot = (struct raft_snapshot){.index = incoming->index,
                                            .term = incoming->term,
                                            .configuration = incoming->configuration,
                                            .data = incoming->data,
                                            .bytes = (size_t)incoming->bytes};
    incoming->configuration = (struct raft_configuration){0};
    incoming->data = NULL;

    log_reset(&raft->log, raft->snapshot.index, raft->snapshot.term);
    raft->commit = raft->handed = raft->applied = raft->snapshot.index;
    raft->stored_index = raft->snapshot.index;
    raft->out.snapshot_replaced = true;
    raft->out.truncates = true;
    raft->out.truncate_from = raft->snapshot.index + 1;
    raft->install = true;
    return BATON_OK;
}

static void offer(struct raft *raft)
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

int incoming_snapshot_end(struct raft *raft, const struct raft_input *input)
{
    struct incoming_snapshot *incoming = &raft->incoming;
    raft_id from = incoming->from;
    raft_index index = incoming->index;
    uint64_t bytes = incoming->bytes;
    bool is_new = index > raft->commit;

    if (!incoming->is_offered || input->snapshot.index != index || raft->storage_failed) {
        return BATON_EINVAL;
    }
    if (!input->snapshot.is_taken) {
        struct raft_message *reply = answer(raft, from, index, 0);
        if (reply) {
            reply->snapshot_reply.rejected = true;
            reply->snapshot_reply.format = input->snapshot.format;
        }
    } else if (is_new && install(raft) != BATON_OK) {
        raft->out.out_of_memory = true;
    } else {
        (void)answer(raft, from, index, bytes);
    }
    incoming_snapshot_drop(raft);
    return BATON_OK;
}

void recv_snapshot(struct raft *raft, const struct raft_message *message)
{
    struct incoming_snapshot *incoming = &raft->incoming;
    raft_index index = message->snapshot.index;

    if ((message->term >= raft->hard.term && sane_contradicts(raft, message)) ||
        !recv_from_leader(raft, message)) {
        return;
    }
    if (index <= raft->commit ||
        log_term_at(&raft->log, index) == message->snapshot.snapshot_term) {
        replicate_commit_to(raft, index); /* nothing in it that we do not have */
        (void)answer(raft, message->from, index, message->snapshot.total_bytes);
        return;
    }
    if (incoming->is_offered && belongs(incoming, message)) {
        return;
    }
    if (message->snapshot.offset == 0 && begin(raft, message) != BATON_OK) {
        raft->out.out_of_memory = true;
        return;
    }
    if (!belongs(incoming, message) || incoming->bytes != message->snapshot.offset) {
        (void)answer(raft, message->from, index, belongs(incoming, message) ? incoming->bytes : 0);
        return;
    }
    if (add_chunk(incoming, message) != BATON_OK) {
        incoming_snapshot_drop(raft);
        raft->out.out_of_memory = true;
    } else if (incoming->bytes == incoming->total_bytes) {
        offer(raft);
        if (RAFT_MUTANT(SNAPSHOT_UNTRIED)) {
            (void)install(raft);
        }
    } else {
        (void)answer(raft, message->from, index, incoming->bytes);
    }
}

/* It is sent anew from the first chunk: later, since the same state would be refused again. */
static void take_refusal(struct raft *raft, struct peer *peer, uint32_t format)
{
    struct raft_event *event = update_event(raft, RAFT_EV_SNAPSHOT_REFUSED);

    event->node = peer->id;
    event->count = format;
    peer->snapshot_offset = 0;
    peer->inflight = 1;
    peer->sent_at = instant_add(raft->now, raft->settings.heartbeat_timeout);
}

void recv_snapshot_reply(struct raft *raft, const struct raft_message *message)
{
    struct peer *peer = peer_find(raft, message->from);

    if (message->term > raft->hard.term) {
        convert_adopt_term(raft, message->term);
        return;
    }
    if (!peer || raft->role != RAFT_LEADER || message->term != raft->hard.term ||
        peer->state != REPLICATION_SNAPSHOT ||
        message->snapshot_reply.index != raft->snapshot.index ||
        message->snapshot_reply.next_offset > raft->snapshot.bytes) {
        return;
    }
    if (message->snapshot_reply.rejected) {
        take_refusal(raft, peer, message->snapshot_reply.format);
        return;
    }
    peer->inflight = 0;
    peer->snapshot_offset = message->snapshot_reply.next_offset;
    if (peer->snapshot_offset == raft->snapshot.bytes) {
        if (peer->match < raft->snapshot.index) {
            peer->match = raft->snapshot.index;
        }
        peer->next = peer->match + 1;
        peer->state = REPLICATION_PROBE;
        replicate_commit(raft);
        peer = peer_find(raft, message->from);
    }
    if (peer && raft->role == RAFT_LEADER) {
        replicate_to(raft, peer);
    }
}
