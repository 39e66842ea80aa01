/* A snapshot arrives in chunks. When the last one is there the driver tries to decode the state; if
 * it can, the snapshot takes the place of the log. A snapshot that it cannot decode is not stored.
 *
 *   chunk, chunk, … ──complete──▶ offered ──taken────▶ stored, installed, acknowledged
 *                                     └─────refused──▶ dropped; the reply says so
 */
#include "raft/recv_snapshot.h"

#include "raft/commit.h"
#include "raft/convert.h"
#include "raft/incoming.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/recv_heartbeat.h"
#include "raft/replicate.h"
#include "raft/sane.h"
#include "raft/state.h"
#include "raft/update.h"

#include <stdlib.h>

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

static int install(struct raft *raft)
{
    struct incoming_snapshot *incoming = &raft->incoming;
    struct raft_configuration copy = {0};

    if (raft_configuration_copy(&copy, &incoming->configuration) != BATON_OK) {
        return BATON_ENOMEM;
    }
    if (!RAFT_MUTANT(SNAPSHOT_WITHOUT_MEMBERS) &&
        membership_enter(raft, &copy, incoming->index) != BATON_OK) {
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

int recv_snapshot_tried(struct raft *raft, const struct raft_input *input)
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
    incoming_drop(raft);
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
        commit_to(raft, index); /* the log has all of it */
        (void)answer(raft, message->from, index, message->snapshot.total_bytes);
        return;
    }
    if (incoming->is_offered && incoming_is_of(raft, message)) {
        return;
    }
    if (message->snapshot.offset == 0 && incoming_begin(raft, message) != BATON_OK) {
        raft->out.out_of_memory = true;
        return;
    }
    if (!incoming_is_of(raft, message) || incoming->bytes != message->snapshot.offset) {
        (void)answer(raft, message->from, index,
                     incoming_is_of(raft, message) ? incoming->bytes : 0);
        return;
    }
    if (incoming_add(raft, message) != BATON_OK) {
        incoming_drop(raft);
        raft->out.out_of_memory = true;
    } else if (incoming->bytes == incoming->total_bytes) {
        incoming_offer(raft);
        if (RAFT_MUTANT(SNAPSHOT_UNTRIED)) {
            (void)install(raft);
        }
    } else {
        (void)answer(raft, message->from, index, incoming->bytes);
    }
}

/* The same state would be refused again, so the snapshot is sent anew only after a while. */
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
        commit_advance(raft);
        peer = peer_find(raft, message->from);
    }
    if (peer && raft->role == RAFT_LEADER) {
        replicate_to(raft, peer);
    }
}
