/* Handing leadership over: wait until the heir has everything, void the lease, then send the heir
 * the request to campaign. */
#include "raft/transfer.h"

#include "raft/convert.h"
#include "raft/log.h"
#include "raft/mutants.h"
#include "raft/peer.h"
#include "raft/replicate.h"
#include "raft/state.h"
#include "raft/update.h"

static bool has_everything(const struct raft *raft, const struct peer *peer)
{
    return peer && peer_is_ready(raft, peer) && peer->match == log_last_index(&raft->log) &&
           member_may_lead(peer_member(raft, peer));
}

static struct peer *ready_heir(const struct raft *raft)
{
    struct peer *peer;

    if (raft->transfer.to != RAFT_NOBODY) {
        peer = peer_find(raft, raft->transfer.to);
        return has_everything(raft, peer) ? peer : NULL;
    }
    peer = peer_find(raft, raft->heir);
    if (has_everything(raft, peer)) {
        return peer;
    }
    for (size_t i = 0; i < raft->peer_count; i++) {
        peer = &raft->peers[i];
        if (peer->id != raft->id && has_everything(raft, peer)) {
            return peer;
        }
    }
    return NULL;
}

static void send_resignation(struct raft *raft, raft_id to)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        raft_id id = raft->peers[i].id;
        struct raft_message *message;
        if (id == raft->id) {
            continue;
        }
        message = update_message(raft, id == to ? RAFT_MSG_TIMEOUT_NOW : RAFT_MSG_RESIGN, id,
                                 AFTER_NOTHING);
        if (message) {
            message->resign.heir = to;
        }
    }
}

/* The lease is void in the same update that carries the messages, and the driver publishes it
 * before it sends: the heir can never lead beside this node. */
void transfer_now(struct raft *raft, raft_id to, enum raft_loss loss)
{
    if (RAFT_MUTANT(TRANSFER_BEFORE_VOID)) {
        raft->transfer = (struct transfer){0};
        send_resignation(raft, to);
        return;
    }
    convert_lose(raft, loss);
    send_resignation(raft, to);
}

static bool anyone_else_may_lead(const struct raft *raft)
{
    for (size_t i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id != raft->id && member_may_lead(peer_member(raft, &raft->peers[i]))) {
            return true;
        }
    }
    return false;
}

void transfer_tick(struct raft *raft)
{
    struct peer *heir;

    if (raft->role != RAFT_LEADER || !raft->transfer.is_wanted) {
        return;
    }
    heir = ready_heir(raft);
    if (heir) {
        transfer_now(raft, heir->id, RAFT_LOSS_RESIGNED);
    } else if (!instant_before(raft->now, raft->transfer.deadline)) {
        raft_id to = raft->transfer.to;
        if (raft->transfer.or_stay) {
            raft->transfer = (struct transfer){0};
            update_event(raft, RAFT_EV_TRANSFER_FAILED)->node = to;
        } else {
            transfer_now(raft, raft->heir, RAFT_LOSS_RESIGNED);
        }
    }
}

int transfer_begin(struct raft *raft, raft_id to, instant deadline, bool or_stay)
{
    const struct peer *peer = peer_find(raft, to);

    if (raft->role != RAFT_LEADER) {
        return BATON_ENOTLEADER;
    }
    if (to != RAFT_NOBODY &&
        (to == raft->id || !peer || !member_may_lead(peer_member(raft, peer)))) {
        return BATON_EINVAL;
    }
    if (raft->transfer.is_wanted && raft->transfer.to != to && !raft->transfer.or_stay) {
        return BATON_EBUSY;
    }
    raft->transfer =
        (struct transfer){.is_wanted = true, .to = to, .deadline = deadline, .or_stay = or_stay};
    if (!anyone_else_may_lead(raft) && !or_stay) {
        transfer_now(raft, RAFT_NOBODY, RAFT_LOSS_RESIGNED);
        return BATON_OK;
    }
    transfer_tick(raft);
    if (raft->role == RAFT_LEADER) {
        replicate_to_all(raft);
    }
    return BATON_OK;
}
