/* Heartbeats: they ask for the lease, announce commits, and name the heir. */
#include "raft/heartbeat.h"

#include "raft/mutants.h"
#include "raft/state.h"
#include "raft/update.h"

static void send_to(struct raft *raft, struct peer *peer)
{
    struct raft_message *message =
        update_message(raft, RAFT_MSG_HEARTBEAT, peer->id, AFTER_NOTHING);

    if (message) {
        message->heartbeat.sent = raft->now;
        message->heartbeat.lease = raft->settings.lease;
        message->heartbeat.commit = raft->commit < peer->match || RAFT_MUTANT(COMMIT_TOLD_TO_ALL)
                                        ? raft->commit
                                        : peer->match;
        peer->announced = message->heartbeat.commit;
        message->heartbeat.heir = raft->heir;
        message->heartbeat.heir_term = raft->heir_term;
        message->heartbeat.read_round = raft->read_round;
    }
}

void heartbeat_send(struct raft *raft)
{
    raft->commit_before = raft->commit;
    for (size_t i = 0; i < raft->peer_count; i++) {
        if (raft->peers[i].id != raft->id) {
            send_to(raft, &raft->peers[i]);
        }
    }
    raft->heartbeat_at = instant_add(raft->now, raft->settings.heartbeat_interval);
}
