/* One input, one update. Nothing else changes the state. */
#include "raft/candidacy.h"
#include "raft/commit.h"
#include "raft/convert.h"
#include "raft/election.h"
#include "raft/heartbeat.h"
#include "raft/heir.h"
#include "raft/leader.h"
#include "raft/leader_lease.h"
#include "raft/log.h"
#include "raft/membership.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/promise.h"
#include "raft/reconfigure.h"
#include "raft/recv_append.h"
#include "raft/recv_heartbeat.h"
#include "raft/recv_read.h"
#include "raft/recv_snapshot.h"
#include "raft/recv_vote.h"
#include "raft/replicate.h"
#include "raft/sane.h"
#include "raft/state.h"
#include "raft/transfer.h"
#include "raft/update.h"

#include <stdlib.h>
#include <string.h>

static void take_message(struct raft *raft, const struct raft_message *message)
{
    bool is_leader_gone;

    if (raft->storage_failed || !sane_message(raft, message)) {
        return;
    }
    if (!sane_is_heard(raft, message)) {
        replicate_to_stranger(raft, message);
        return;
    }
    if (!promise_observe_incarnation(raft, message, &is_leader_gone)) {
        return;
    }
    if (is_leader_gone) {
        election_inherit(raft, raft->heir_named);
    }
    switch (message->type) {
    case RAFT_MSG_PRE_VOTE:
        recv_pre_vote(raft, message);
        break;
    case RAFT_MSG_PRE_VOTE_REPLY:
        recv_pre_vote_reply(raft, message);
        break;
    case RAFT_MSG_VOTE:
        recv_vote(raft, message);
        break;
    case RAFT_MSG_VOTE_REPLY:
        recv_vote_reply(raft, message);
        break;
    case RAFT_MSG_HEARTBEAT:
        recv_heartbeat(raft, message);
        break;
    case RAFT_MSG_HEARTBEAT_REPLY:
        recv_heartbeat_reply(raft, message);
        break;
    case RAFT_MSG_APPEND:
        recv_append(raft, message);
        break;
    case RAFT_MSG_APPEND_REPLY:
        recv_append_reply(raft, message);
        break;
    case RAFT_MSG_SNAPSHOT:
        recv_snapshot(raft, message);
        break;
    case RAFT_MSG_SNAPSHOT_REPLY:
        recv_snapshot_reply(raft, message);
        break;
    case RAFT_MSG_TIMEOUT_NOW:
    case RAFT_MSG_RESIGN:
        recv_resign(raft, message);
        break;
    case RAFT_MSG_READ:
        recv_read(raft, message->read.context, message->from, false);
        break;
    case RAFT_MSG_READ_REPLY:
        recv_read_reply(raft, message);
        break;
    }
}

static void take_written(struct raft *raft, uint64_t id)
{
    if (id > raft->stored_write && id <= raft->last_write) {
        raft->stored_write = id;
        raft->stored_index = log_stored_through(&raft->log, raft->stored_index, id);
    }
    if (raft->role == RAFT_LEADER) {
        commit_advance(raft);
        transfer_tick(raft);
    } else if (raft->role == RAFT_CANDIDATE) {
        election_count_vote(raft);
    }
}

/* A write that failed may or may not be on the disk. So this node may not vote, promise or lead any
 * more, until it has started again from the state that the disk really holds. */
static void take_storage_failure(struct raft *raft)
{
    if (raft->storage_failed || RAFT_MUTANT(STORAGE_FAILURE_IGNORED)) {
        return;
    }
    if (raft->role == RAFT_LEADER) {
        transfer_now(raft, raft->heir, RAFT_LOSS_STORAGE);
    }
    if (raft->role != RAFT_LEADER) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
    }
    raft->storage_failed = true;
    raft->election_at = INSTANT_NEVER;
}

static void take_proof(struct raft *raft, const struct raft_input *input)
{
    raft_id heir = input->proof.heir != RAFT_NOBODY ? input->proof.heir : raft->heir_named;

    if (promise_apply_proof(raft, input->proof.kind, &input->proof.proof) &&
        raft->role != RAFT_LEADER) {
        election_inherit(raft, heir);
    }
    if (raft->role == RAFT_LEADER) {
        heir_choose(raft); /* it may have been the heir that died */
    }
}

static void take_connection(struct raft *raft, raft_id id, bool is_up)
{
    struct peer *peer = peer_find(raft, id);

    if (!peer) {
        return;
    }
    peer->is_up = is_up;
    if (raft->role == RAFT_LEADER && is_up) {
        peer->inflight = 0;
        if (peer->state == REPLICATION_PIPELINE) {
            peer->state = REPLICATION_PROBE;
            peer->next = peer->match + 1;
        }
        heartbeat_send(raft);
        replicate_to(raft, peer);
    }
}

/* They hear of its commit at once. */
static void await_commit(struct raft *raft, raft_id asker)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id == asker || asker == RAFT_EVERYBODY) {
            raft->peers[i].awaited = log_last_index(&raft->log);
            if (asker == RAFT_EVERYBODY) {
                raft->peers[i].awaited_by_all = log_last_index(&raft->log);
            }
        }
    }
}

static int append_proposal(struct raft *raft, const struct raft_proposal *proposal)
{
    const struct raft_entry entry = {.term = raft->hard.term,
                                     .kind = RAFT_ENTRY_DATA,
                                     .data = proposal->data,
                                     .bytes = proposal->bytes};
    int r;

    if (proposal->bytes > raft->settings.message_bytes_max) {
        return BATON_ETOOBIG;
    }
    if (raft->uncommitted_bytes + proposal->bytes > raft->settings.log_bytes_max) {
        return BATON_EBUSY;
    }
    r = replicate_append(raft, &entry);
    if (r == BATON_OK && proposal->asker != RAFT_NOBODY) {
        await_commit(raft, proposal->asker);
    }
    return r;
}

static int take_proposals(struct raft *raft, const struct raft_input *input)
{
    size_t taken = 0;
    int r = raft->role != RAFT_LEADER  ? BATON_ENOTLEADER
            : raft->transfer.is_wanted ? BATON_EBUSY
                                       : leader_open_term(raft);

    while (r == BATON_OK && taken < input->propose.count) {
        r = append_proposal(raft, &input->propose.items[taken]);
        taken += r == BATON_OK;
    }
    if (taken > 0) {
        replicate_to_all(raft);
    }
    if (input->propose.ret_taken) {
        *input->propose.ret_taken = taken;
    }
    return r;
}

static void take_eligible(struct raft *raft, bool eligible)
{
    bool was = raft->eligible;

    raft->eligible = eligible;
    if (raft->role == RAFT_LEADER && !eligible) {
        (void)transfer_begin(raft, RAFT_NOBODY,
                             instant_add(raft->now, raft->settings.heartbeat_timeout), false);
    } else if (eligible && !was && raft->role == RAFT_FOLLOWER && raft->leader == RAFT_NOBODY &&
               !raft->storage_failed) {
        instant soon = candidacy_after(raft, promise_candidacy_at(raft));
        raft->election_at = instant_min(raft->election_at, soon);
    } else if (!eligible && raft->role != RAFT_FOLLOWER) {
        convert_to_follower(raft, RAFT_NOBODY, 0);
    }
}

/* The driver's snapshot holds the state up to an applied index, so the entries may be dropped. */
static int take_compaction(struct raft *raft, raft_index index, const void *data, size_t bytes)
{
    struct raft_snapshot taken = {
        .index = index, .term = log_term_at(&raft->log, index), .bytes = bytes};
    raft_index ignored;
    void *copy;

    if (index < raft->log.snapshot_index || index > raft->applied || index == 0) {
        return BATON_EINVAL;
    }
    if (membership_at(raft,
                      RAFT_MUTANT(SNAPSHOT_OF_LATEST_MEMBERS) ? raft->configuration_index : index,
                      &taken.configuration, &ignored) != BATON_OK) {
        return BATON_ENOMEM;
    }
    if (taken.configuration.count == 0) { /* from before this node joined; useless */
        raft_configuration_fini(&taken.configuration);
        return BATON_EINVAL;
    }
    if (data_copy(&copy, data, bytes) != BATON_OK) {
        raft_configuration_fini(&taken.configuration);
        return BATON_ENOMEM;
    }
    free((void *)raft->snapshot.data);
    raft_configuration_fini(&raft->snapshot.configuration);
    taken.data = copy;
    raft->snapshot = taken;
    log_compact(&raft->log, index, taken.term);
    raft->out.snapshot_replaced = true;
    if (raft->role == RAFT_LEADER) {
        replicate_snapshot_anew(raft);
    }
    return BATON_OK;
}

/* No clock may drift by more than the bound, so the widest bound of all members counts. */
static int take_drift(struct raft *raft, uint32_t drift_ppm)
{
    struct raft_settings wider = raft->settings;
    int r;

    if (drift_ppm <= raft->settings.clock_drift_ppm) {
        return BATON_OK;
    }
    wider.clock_drift_ppm = drift_ppm;
    r = raft_settings_check(&wider, NULL);
    if (r == BATON_OK) {
        raft->settings = wider;
    }
    return r;
}

static int dispatch(struct raft *raft, const struct raft_input *input)
{
    switch (input->type) {
    case RAFT_IN_TICK:
        return BATON_OK;
    case RAFT_IN_MESSAGE:
        take_message(raft, input->message);
        return BATON_OK;
    case RAFT_IN_WRITTEN:
        take_written(raft, input->write_id);
        return BATON_OK;
    case RAFT_IN_STORAGE_FAILED:
        take_storage_failure(raft);
        return BATON_OK;
    case RAFT_IN_APPLIED:
        if (input->index > raft->applied && input->index <= raft->handed) {
            raft->applied = input->index;
        }
        return BATON_OK;
    case RAFT_IN_PROOF:
        take_proof(raft, input);
        return BATON_OK;
    case RAFT_IN_CONNECTION:
        take_connection(raft, input->connection.peer, input->connection.is_up);
        return BATON_OK;
    case RAFT_IN_PROPOSE:
        return take_proposals(raft, input);
    case RAFT_IN_RECONFIGURE:
        return reconfigure_begin(raft, input->configuration, input->is_forced);
    case RAFT_IN_SNAPSHOT:
        return recv_snapshot_tried(raft, input);
    case RAFT_IN_TRANSFER:
        return transfer_begin(raft, input->transfer.to, input->transfer.deadline,
                              input->transfer.or_stay);
    case RAFT_IN_DRAINED:
        leader_drained(raft);
        return BATON_OK;
    case RAFT_IN_ELIGIBLE:
        take_eligible(raft, input->eligible);
        return BATON_OK;
    case RAFT_IN_READ:
        recv_read(raft, input->read.context, RAFT_NOBODY, input->read.by_lease);
        return BATON_OK;
    case RAFT_IN_DRIFT:
        return take_drift(raft, input->drift_ppm);
    case RAFT_IN_COMPACT:
        return take_compaction(raft, input->compact.index, input->compact.data,
                               input->compact.bytes);
    }
    return BATON_EINVAL;
}

int raft_step(struct raft *raft, const struct raft_input *input, instant now,
              const struct raft_update **ret)
{
    instant last_step = raft->now;
    int r;

    raft->now = instant_max(raft->now, now);
    update_begin(raft);
    leader_lease_expire(raft, last_step);
    raft->is_own_tick = input->type == RAFT_IN_TICK;
    r = dispatch(raft, input);
    if (raft->role == RAFT_LEADER) {
        leader_tick(raft);
    } else {
        election_tick(raft);
    }
    *ret = update_finish(raft);
    return r == BATON_OK && raft->out.out_of_memory ? BATON_ENOMEM : r;
}
