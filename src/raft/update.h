/* The outbox of a step: messages, events and writes are gathered here while the step runs. */
#ifndef RAFT_UPDATE_H
#define RAFT_UPDATE_H

#include "raft/raft.h"

/* The write that a message must wait for. */
enum message_after {
    AFTER_NOTHING,
    AFTER_HARD, /* the last hard state that votes and promises depend on */
    AFTER_ALL,  /* every write so far: the message reports what the log holds */
};

enum hard_change {
    HARD_NEEDED, /* messages that follow depend on it */
    HARD_SOON,   /* a pledge: stored with this step, but no message waits for it */
    HARD_LATER,  /* covered by a pledge: stored with the next write, or an election timeout later */
};

void update_begin(struct raft *raft);
const struct raft_update *update_finish(struct raft *raft);
void update_fini(struct raft *raft);

/* Adds a message from this node, in its term; NULL when out of memory. */
struct raft_message *update_message(struct raft *raft, enum raft_message_type type, raft_id to,
                                    enum message_after after);
/* Adds an event; never NULL. */
struct raft_event *update_event(struct raft *raft, enum raft_event_type type);
void update_read(struct raft *raft, uint64_t context, raft_index index);
void update_hard_changed(struct raft *raft, enum hard_change change);
/* The id of the write that this step will ask for. */
uint64_t update_write_id(const struct raft *raft);

#endif
