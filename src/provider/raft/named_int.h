/* For the files of named elections only. */
#ifndef PROVIDER_RAFT_NAMED_INT_H
#define PROVIDER_RAFT_NAMED_INT_H

#include "provider/heirs.h"
#include "provider/raft/named.h"
#include "provider/raft/node.h"
#include "provider/raft/session_host.h"

/* An election of one process. */
struct named_election {
    struct provider_election base;
    struct named *named;
    struct lease_cell *cell;
    provider_event_cb on_event;
    void *userdata;
    uint64_t epoch;   /* held last */
    instant drain_by; /* INSTANT_NEVER: nobody asks for it */
    int32_t priority; /* added to the node's */
    bool is_eligible;
    bool is_held;
    bool is_stopped;
    struct named_election *prev, *next;   /* of the process */
    struct named_election *prior, *later; /* of those that it holds */
    char name[];
};

/* What one process takes part in: the node's own, or one that is attached to it. */
struct named {
    struct provider base; /* of an attached one: its handle */
    struct node *node;
    struct session_tenant *tenant;
    struct named_election *all, *held;
    uint64_t session; /* 0: none */
    instant end;      /* of the session's lease as published last */
    char *metadata;   /* as ordered last; NULL: none */
    bool is_own;      /* the node's */
    bool is_closing;
    void (*on_session)(void *userdata, uint64_t session);
    void *userdata;
    void (*closed)(void *userdata);
    void *closed_userdata;
    struct named *prev, *next; /* of this node's */
};

/* A node's own process is `is_own`, and has no secret. BATON_ENOMEM. */
int named_attach(struct named *named, struct node *node, const struct provider_process *process,
                 struct baton_error *reterr);
/* All elections get their last event, and those that are held no other. */
void named_stop_all(struct named *named);
/* Makes the node a member, if it is none yet. BATON_ECLOSED, or why it cannot start. */
int named_ensure_begun(struct node *node, struct baton_error *reterr);

/* ---- line.c: the group's view of an election ------------------------------------------------- */

/* NULL: it has no contender. */
const struct session_election *line_of(const struct node *node, const char *election);
/* The name of the contender's process. */
const char *line_name(const struct node *node, const struct session_contender *contender);
/* id "" and epoch 0: none. */
void line_leader(const struct named *named, const char *election, struct baton_member *ret,
                 uint64_t *ret_epoch);
/* The contender named `to`, or with NULL the next one that answers, which may take over from the
 * holder; NULL: none, and `heirs` has those that could. */
const struct session_contender *line_heir(const struct node *node,
                                          const struct session_election *line, const char *to,
                                          struct heirs *heirs);

#endif
