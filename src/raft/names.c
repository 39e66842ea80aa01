#include "raft/raft.h"

#define NAME_OR_UNKNOWN(table, index)                                                              \
    ((size_t)(index) < sizeof(table) / sizeof((table)[0]) && (table)[index] ? (table)[index]       \
                                                                            : "unknown")

const char *raft_role_name(enum raft_role role)
{
    static const char *const names[] = {"follower", "pre-candidate", "candidate", "leader"};
    return NAME_OR_UNKNOWN(names, role);
}

const char *raft_message_name(enum raft_message_type type)
{
    static const char *const names[] = {
        [RAFT_MSG_PRE_VOTE] = "pre-vote",
        [RAFT_MSG_PRE_VOTE_REPLY] = "pre-vote-reply",
        [RAFT_MSG_VOTE] = "vote",
        [RAFT_MSG_VOTE_REPLY] = "vote-reply",
        [RAFT_MSG_HEARTBEAT] = "heartbeat",
        [RAFT_MSG_HEARTBEAT_REPLY] = "heartbeat-reply",
        [RAFT_MSG_APPEND] = "append",
        [RAFT_MSG_APPEND_REPLY] = "append-reply",
        [RAFT_MSG_SNAPSHOT] = "snapshot",
        [RAFT_MSG_SNAPSHOT_REPLY] = "snapshot-reply",
        [RAFT_MSG_TIMEOUT_NOW] = "timeout-now",
        [RAFT_MSG_RESIGN] = "resign",
        [RAFT_MSG_READ] = "read",
        [RAFT_MSG_READ_REPLY] = "read-reply",
    };
    return NAME_OR_UNKNOWN(names, type);
}

const char *raft_loss_name(enum raft_loss loss)
{
    static const char *const names[] = {"expired",     "superseded", "resigned",
                                        "lost-quorum", "storage",    "removed"};
    return NAME_OR_UNKNOWN(names, loss);
}

const char *raft_proof_name(enum raft_proof_kind kind)
{
    static const char *const names[] = {"resignation", "pidfd",    "guardian", "greeting",
                                        "refused",     "eof-only", "vote"};
    return NAME_OR_UNKNOWN(names, kind);
}
