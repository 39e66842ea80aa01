/* A few real cores on a virtual clock: the tests decide what arrives, when, and what is stored.
 *
 * Everything is synchronous unless a test says otherwise: a write is stored at once, a message is
 * queued and delivered by cluster_run(), which also lets time pass from deadline to deadline.
 */
#ifndef TESTS_UNIT_RAFT_CLUSTER_H
#define TESTS_UNIT_RAFT_CLUSTER_H

#include "cmocka_all.h"
#include "raft/raft.h"

enum { CLUSTER_MAX = 12, EVENTS_MAX = 4096, QUEUE_MAX = 8192, APPLIED_MAX = 512 };

struct queued {
    struct raft_message message; /* data copied */
    instant arrives;
};

struct node {
    raft_id id;
    uint64_t incarnation;
    struct raft *raft; /* NULL: down */
    bool is_cut;       /* neither sends nor receives */
    bool is_slow;      /* its disk stores nothing until the test says so */

    /* what its disk holds */
    struct raft_hard_state hard;
    struct raft_snapshot snapshot;
    struct raft_entry log[APPLIED_MAX]; /* data owned */
    size_t log_count;
    uint64_t pending_write; /* given out, not stored */

    struct raft_lease lease; /* as published */
    instant deadline;
    raft_id heir;
    struct raft_event events[EVENTS_MAX];
    size_t event_count;
    bool refuses_snapshots;
    size_t refused_snapshots;
    char applied[APPLIED_MAX][32];
    size_t applied_count;
    struct raft_read reads[64];
    size_t read_count;
    int last_code;
};

struct cluster {
    struct node nodes[CLUSTER_MAX];
    size_t count;
    instant now;
    struct raft_settings settings;
    span delay;       /* delay of each message */
    uint64_t seed;    /* of the random waits */
    bool is_outlived; /* each node, by a program of its own */
    struct raft_configuration first;
    struct queued queue[QUEUE_MAX];
    size_t queue_head, queue_tail;
    /* returns false to lose a message */
    bool (*filter)(struct cluster *, const struct raft_message *);
    /* sees each update before the cluster does what it asks for */
    void (*observe)(struct cluster *, struct node *, const struct raft_update *);
    void *observer;
    size_t sent[RAFT_MSG_READ_REPLY + 1];
};

/* `count` voters of weight 1 with ids 1.., preset "fast"; not started yet: change settings or
 * members in between. */
struct cluster *cluster_new(size_t count);
void cluster_free(struct cluster *cluster);
void cluster_start(struct cluster *cluster); /* all nodes */

struct node *node_of(struct cluster *cluster, raft_id id);
void node_start(struct cluster *cluster, raft_id id); /* also a restart: a new incarnation */
void node_crash(struct cluster *cluster, raft_id id); /* what was not stored is lost */
/* One input at the present time; returns raft_step's code. */
int node_step(struct cluster *cluster, raft_id id, const struct raft_input *input);
void node_message(struct cluster *cluster, const struct raft_message *message);
void node_proof(struct cluster *cluster, raft_id id, enum raft_proof_kind kind,
                struct raft_proof proof, raft_id heir);
int node_propose(struct cluster *cluster, raft_id id, const char *text);
int node_transfer(struct cluster *cluster, raft_id id, raft_id to, bool or_stay);
void node_store(struct cluster *cluster, raft_id id);     /* a slow disk catches up */
bool node_is_leader(struct cluster *cluster, raft_id id); /* under a lease, now */
bool node_saw(struct cluster *cluster, raft_id id, enum raft_event_type type);
const struct raft_event *node_last(struct cluster *cluster, raft_id id, enum raft_event_type type);
struct raft_status node_status(struct cluster *cluster, raft_id id);

/* Delivers what is queued, and lets `ms` of virtual time pass. */
void cluster_run(struct cluster *cluster, int64_t ms);
/* Delivers what is queued without letting time pass. */
void cluster_deliver(struct cluster *cluster);
/* Runs until a node leads under a lease; fails the test after 60 s of virtual time. */
raft_id cluster_elect(struct cluster *cluster);
/* Starts all nodes, and runs until one leads and the others know it; returns the leader. */
raft_id cluster_settle(struct cluster *cluster);
raft_id cluster_leader(struct cluster *cluster); /* RAFT_NOBODY if none; fails if two */
/* One of the first two that is not the leader. */
static inline raft_id cluster_follower(raft_id leader)
{
    return leader == 1 ? 2 : 1;
}

#endif
