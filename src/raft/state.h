/* The state of one node, which every file of this folder works on.
 *
 * Only data stands here: the functions on it are in the header of the file that defines them.
 * Files depend on each other in one direction, from the top of this list to its bottom:
 *
 *   start, status                               make a node from its stored state, describe it
 *   step                                        takes one input, returns one update
 *   recv_append recv_heartbeat recv_read recv_snapshot recv_vote    one message each
 *   election                                    campaigns, counts votes
 *   leader                                      what a leader does as time passes
 *   commit, reconfigure, transfer, drain        commits entries, changes members, hands over
 *   leader_lease, heartbeat, heir, replicate    the parts of leading
 *   convert                                     every change of role
 *   candidacy, election_rate, incoming, read    when to campaign; small ledgers
 *   sane, pledge, promise                       what a message may say, what binds a vote
 *   membership, peer, quorum, update            members in force, their progress, the output
 *   configuration, log                          pure data
 */
#ifndef RAFT_STATE_H
#define RAFT_STATE_H

#include "raft/log.h"
#include "raft/raft.h"

enum {
    RAFT_READS_MAX = 1024,     /* read requests that wait at once */
    RAFT_ELECTIONS_KEPT = 256, /* instants of elections that are remembered */
    RAFT_SNAPSHOT_CHUNK_MIN = 1024,
    RAFT_SNAPSHOT_BYTES_MAX = 1 << 30,
};

/* The value of `term_start` before the leader has appended its first entry: above every index. */
#define RAFT_NOT_YET (UINT64_MAX / 2)

/* Indexes and terms at or above this limit are refused, so no arithmetic on them overflows. */
#define RAFT_SANE_MAX ((uint64_t)1 << 56)

/* A term that is further ahead of the own one is refused: adopting it would bring the own term
 * near RAFT_SANE_MAX, where no node can be elected any more. */
#define RAFT_TERMS_AHEAD_MAX ((uint64_t)1 << 32)

enum replication {
    REPLICATION_PROBE,    /* one append at a time, until the logs are found to agree */
    REPLICATION_PIPELINE, /* appends leave ahead of their replies */
    REPLICATION_SNAPSHOT, /* the follower needs entries that are compacted away */
};

enum vote_answer { VOTE_UNKNOWN, VOTE_GRANTED, VOTE_REFUSED };

/* What this node knows of one member. */
struct peer {
    raft_id id;
    bool is_up;           /* the driver has a connection */
    uint64_t incarnation; /* the highest heard of */
    bool is_outlived;     /* by its program, in this or an earlier incarnation */

    /* Accepted proofs are kept, so that a delayed message cannot undo them. */
    uint64_t dead_through; /* incarnations up to this one are dead; 0: none known */
    uint64_t resigned_incarnation;
    raft_term resigned_through;

    /* used by a candidate */
    enum vote_answer vote;
    span vote_promise; /* came with the vote; 0: none */

    /* used by a leader */
    enum replication state;
    raft_index match;          /* the follower has stored the log up to here */
    raft_index next;           /* first entry of the next append */
    uint32_t inflight;         /* messages without a reply; PIPELINE: 0 only if next == match + 1 */
    instant sent_at;           /* the last append or snapshot chunk */
    raft_index announced;      /* the highest commit index sent to it */
    raft_index awaited;        /* the last entry whose commit the follower waits for */
    raft_index awaited_by_all; /* and the last one for which all do */
    instant announced_at;      /* the last append without entries */
    uint64_t snapshot_offset;
    raft_index snapshot_index; /* the snapshot that is being sent */
    bool is_active;
    bool may_lead;
    instant silent_until; /* by the leader's clock: until then it does not vote */
    instant active_since;
    instant heard;
    instant granted_until; /* by the leader's clock, already shortened for drift */
    span round_trip;
    uint64_t read_round; /* the last read round that it replied to */
};

/* Until `until` this node votes for no node but `to` and does not campaign. */
struct promise {
    raft_id to; /* RAFT_NOBODY: none */
    uint64_t incarnation;
    bool is_outlived; /* by its program; known here too, as it may be a member no more */
    raft_term term;
    instant until;
};

/* What this life knows of the stored pledge (raft_hard_state). */
struct pledge {
    uint64_t write;       /* stores the pledge; 0: it was stored before the start */
    bool is_of_this_life; /* given since the start: its heir has not campaigned on it before */
    raft_id leader;       /* asked for it; RAFT_NOBODY: not heard from since the start */
    uint64_t incarnation;
    raft_term term; /* of that leader */
};

struct pending_read {
    uint64_t context;
    raft_id from; /* RAFT_NOBODY: this node's own */
    uint64_t round;
    raft_index index; /* committed when the read was asked */
};

/* What the step under way leaves to be done; update.c turns it into a raft_update. */
struct outbox {
    struct raft_message *messages;
    size_t message_count;
    size_t message_capacity;
    struct raft_event *events;
    size_t event_count;
    size_t event_capacity;
    struct raft_read *reads;
    size_t read_count;
    size_t read_capacity;

    bool hard_changed;
    bool hard_needed; /* a message waits for this write */
    bool snapshot_replaced;
    bool truncates;
    raft_index truncate_from;
    raft_index append_from; /* 0: nothing appended */
    bool out_of_memory;

    struct raft_hard_state hard;
    struct raft_snapshot snapshot;
    struct raft_write write;
    struct raft_update update;
};

/* A member that left with the last change and has not been sent the committed result yet. */
struct departed {
    raft_id id;
    raft_index match;
};

struct transfer {
    bool is_wanted;
    raft_id to; /* RAFT_NOBODY: the best placed */
    instant deadline;
    bool or_stay;
};

/* A hand-over that the core begins by itself: the programs under the lease are asked to stop. */
struct drain {
    bool is_announced;
    bool is_over;
    raft_id to; /* RAFT_NOBODY: this node leaves the group */
    instant deadline;
};

struct incoming_snapshot {
    raft_id from; /* RAFT_NOBODY: none */
    raft_index index;
    raft_term term;
    struct raft_configuration configuration;
    uint8_t *data;
    uint64_t bytes; /* received so far */
    uint64_t total_bytes;
    bool is_offered; /* complete; the driver tries to decode it */
};

struct raft {
    raft_id id;
    uint64_t incarnation;
    bool is_outlived;
    struct raft_settings settings;
    uint64_t random_state;
    instant now; /* of the current step */

    /* stored, or handed out to be stored */
    struct raft_hard_state hard;
    struct raft_log log;
    struct raft_snapshot snapshot; /* data and configuration are owned */
    uint64_t last_write;           /* handed out */
    uint64_t stored_write;         /* reported back as stored */
    raft_index stored_index;
    uint64_t needed_write; /* the last write that votes and promises wait for */
    instant store_at;      /* when to store a hard state that no message waits for */
    bool storage_failed;

    struct raft_configuration configuration; /* the last one in the log, committed or not */
    raft_index configuration_index;
    struct peer *peers; /* one for each member, in the order of the configuration */
    size_t peer_count;
    struct departed *departed; /* leader */
    size_t departed_count;
    struct quorum_item *scratch; /* room for peer_count */

    enum raft_role role;
    raft_id leader;
    uint64_t leader_incarnation;
    instant leader_until; /* the leader is not doubted before */
    raft_id heir_named;   /* in the leader's last heartbeat */
    raft_index commit;
    raft_index commit_before; /* leader: at the last heartbeat */
    raft_index handed;        /* handed out to be applied */
    raft_index applied;
    bool eligible;

    struct promise promise;
    struct pledge pledge;
    instant silent_until;
    struct raft_proof proof; /* that the last leader is gone; our vote requests carry it */

    raft_id contradicted_by; /* the peer that the last RAFT_EV_CONTRADICTED named */
    uint64_t contradicted_incarnation;

    bool must_help;           /* refused a candidate for its shorter log: see candidacy.c */
    instant election_at;      /* follower: doubts the leader; candidate: the round ends */
    uint64_t vote_write;      /* candidate: the write that stores the vote for itself */
    instant campaigned_at;    /* candidate: when it asked for the votes of its term */
    raft_term completed_term; /* the last one whose winner is known */
    uint32_t lost_rounds;     /* terms entered since an entry of the own term was committed */
    instant elections[RAFT_ELECTIONS_KEPT];
    uint32_t election_count; /* ever; elections[] is a ring */
    bool elections_warned;

    /* leader */
    struct raft_lease lease;
    instant leader_since;
    raft_index term_start; /* this leadership's first entry; RAFT_NOT_YET */
    instant open_term_at;  /* when that entry is due */
    bool is_own_tick;      /* this step's input is RAFT_IN_TICK */
    instant heartbeat_at;
    instant announce_at; /* when idle followers are sent a new commit index */
    instant jeopardy_at; /* INSTANT_NEVER: reported, or the lease has no end */
    raft_id heir;
    uint64_t heir_incarnation;
    raft_term heir_term;
    struct transfer transfer;
    struct drain drain;
    uint64_t read_round;

    struct pending_read reads[RAFT_READS_MAX];
    size_t read_count;
    size_t uncommitted_bytes;

    struct incoming_snapshot incoming;
    bool install; /* this step replaced the user's state */
    bool offer;   /* this step completed `incoming` */
    struct raft_snapshot offered;
    struct outbox out;
};

#endif
