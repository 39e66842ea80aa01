/* The consensus core: elections, leases and the log of a group, as a pure function.
 *
 *                    input, now                                   update
 *   network ──┐   ┌──────────────┐    ┌─────────────┐    ┌──────────────────────┐
 *   disk    ──┼──▶│ raft_input   │───▶│  raft_step  │───▶│ lease to publish      │
 *   timers  ──┤   └──────────────┘    └─────────────┘    │ messages, write       │
 *   user    ──┘                                          │ entries to apply      │
 *                                                        │ events, next deadline │
 *                                                        └──────────────────────┘
 *
 * It has no I/O, no clock, no thread, and no randomness but the seed that it was given: the same
 * inputs at the same instants give the same updates, so sim/ can replay every run. One thread owns
 * a `struct raft`.
 *
 * What the caller ("the driver") does with an update, in this order:
 *   1. publishes update->lease before anything leaves this process: first void, then transfer;
 *   2. sends the messages whose `after_write` is 0;
 *   3. stores update->write (all of it or nothing, one fsync) and reports it with RAFT_IN_WRITTEN;
 *      a failure is reported with RAFT_IN_STORAGE_FAILED, and never retried;
 *   4. sends a message with `after_write` = n once write n, and every write before it, is stored;
 *   5. applies the entries of update->apply, in order, and reports that with RAFT_IN_APPLIED;
 *   6. passes the events on, and comes back with RAFT_IN_TICK at update->deadline at the latest;
 *   7. tries to decode the state of update->offer, keeps it apart, and says with RAFT_IN_SNAPSHOT
 *      whether it could; only then is that snapshot stored and installed.
 * The driver may store within step 3 or in another thread.
 *
 * Messages may be lost, delayed, repeated and reordered, but not forged: the driver authenticates.
 *
 * The lease (docs/raft.md says why each rule is needed):
 *   - a heartbeat asks for a lease of L; a voter that answers it promises the sender's incarnation
 *     no vote, no pre-vote and no candidacy of its own for the granted time;
 *   - a vote that makes the candidate the leader comes with such a promise;
 *   - the leader counts each grant from the moment that the request was sent, shortened by the
 *     drift factor (1 - rho) / (1 + rho), and leads until the latest instant that a quorum covers;
 *   - a voter that starts is silent for the longest time that it may have promised before;
 *   - only a proof ends a promise early (RAFT_IN_PROOF and the messages that carry one).
 */
#ifndef RAFT_RAFT_H
#define RAFT_RAFT_H

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t raft_id; /* a node; never changes; 0 is no node */
typedef uint64_t raft_term;
typedef uint64_t raft_index; /* of a log entry; the first is 1 */

#define RAFT_NOBODY    ((raft_id)0)
#define RAFT_EVERYBODY ((raft_id)UINT64_MAX) /* only where it is said */

enum {
    RAFT_NAME_MAX = 64,      /* bytes of a member's name, with the NUL */
    RAFT_ADDRESS_MAX = 128,  /* bytes of a member's address, with the NUL */
    RAFT_MEMBERS_MAX = 1024, /* members of one group, learners included */
};

/* ---- Membership ------------------------------------------------------------------------------ */

enum raft_kind {
    RAFT_VOTER,   /* votes and may lead */
    RAFT_WITNESS, /* votes, never leads */
    RAFT_LEARNER, /* stores the log, does not vote: its weight is 0 */
};

struct raft_member {
    raft_id id;
    uint64_t birth; /* of its data directory; 0: not known yet. The core does not read it */
    enum raft_kind kind;
    uint32_t weight;     /* a quorum has more than half of the sum of weights */
    uint32_t old_weight; /* its weight in the outgoing half of a joint configuration */
    bool is_leaving;     /* only in the outgoing half of a joint configuration */
    int32_t priority;    /* the healthy member with the highest leads; usually 0 */
    char name[RAFT_NAME_MAX];
    char address[RAFT_ADDRESS_MAX]; /* the core does not read it */
};

/* Members in the order of their ids. While it is joint, a quorum needs both halves. */
struct raft_configuration {
    uint64_t group;              /* identity; 0: not formed yet. The core does not read it */
    struct raft_member *members; /* the owner of the struct owns it */
    size_t count;
    bool is_joint;
};

/* ---- Settings -------------------------------------------------------------------------------- */

/* Times are spans of nanoseconds by the node's own clock. The presets set all of them together;
 * each comment says why one would change a single one, and what it must fit to. Members may differ
 * in all of them: a leader counts what each voter granted, and the widest drift bound of all. */
struct raft_settings {
    /* How often a leader asks for its lease again. Lower: a lost heartbeat matters less, idle
     * followers learn of commits sooner, and a lost append is repeated sooner; each costs two
     * messages for each follower and interval. Higher: fewer messages. Must fit twice into the
     * lease that is left after drift, so that one lost heartbeat ends no leadership. */
    span heartbeat_interval;
    /* How long a follower waits for a silent leader, and the longest promise that it gives: at most
     * one hour. Lower: a leader that hangs or is cut off is replaced sooner, and a restarted voter
     * is silent for a shorter time; but a pause of the network, a disk or a process that lasts as
     * long costs an election. Higher: the reverse. A crash with a proof does not wait for it. */
    span heartbeat_timeout;
    /* What a leader asks its voters to promise; usually the heartbeat timeout. Lower: the leader
     * stops acting sooner when it is cut off, which gains nothing for its successor, since voters
     * wait for the heartbeat timeout all the same. Must not exceed the heartbeat timeout: voters
     * promise no longer than that, and what they do not promise protects no lease. */
    span lease;
    /* A round of votes ends after a random time between min and max, and the wait before a round is
     * spread over max - min. Both should exceed the slowest round trip plus two disk writes, else
     * rounds end before the votes arrive (after three in vain they grow, up to the heartbeat
     * timeout, and what is random in them by as much again). Higher: each split vote costs more
     * time. Closer together: votes split more often; raft_settings_check_spread asks for max
     * >= 1.25 x min. Max is one hour at most. */
    span election_timeout_min;
    span election_timeout_max;
    /* rho, in 10^-6: no clock runs faster or slower than true time by more. Safety rests on it.
     * Higher: tolerates worse clocks and shortens every lease by (1 - rho) / (1 + rho); 10000,
     * which is 1 %, costs 2 % of the lease. Lower: never below what the clocks of all members
     * really do, or two nodes may lead at once. Below 1000000. */
    uint32_t clock_drift_ppm;
    /* How long a member of higher priority must have been active before it gets leadership. Lower:
     * the preferred member leads again sooner, but one that restarts again and again moves
     * leadership each time. 0: with the next heartbeat. No effect where priorities are equal. */
    span preferred_stable;
    /* More elections than this within an hour raise RAFT_EV_TOO_MANY_ELECTIONS; 0: never. It only
     * reports. A node remembers 256 elections, so a limit above 255 never reports. */
    uint32_t elections_per_hour_max;
    /* Bytes of entries in one append, of a chunk of a snapshot (1024 at least), and of the largest
     * proposal. Higher: a follower catches up in fewer messages, but a heartbeat waits behind them
     * on a slow connection; a message should take much less than a heartbeat interval to send.
     * Lower: more messages. Above 0. */
    uint32_t message_bytes_max;
    /* Appends to one follower that have no reply yet. Higher: more throughput over a long round
     * trip, for up to message_bytes_max x inflight_max bytes of memory for each follower, all of
     * which is sent again after a loss. Lower: 1 sends one append a round trip. Above 0. */
    uint32_t inflight_max;
    /* Bytes of entries that the leader has not committed yet; beyond it proposals are refused with
     * BATON_EBUSY. Higher: rides out a longer stall of the quorum, for as much memory. Lower:
     * proposers learn of a stall sooner. Must not be below message_bytes_max. */
    uint32_t log_bytes_max;
};

/* "default", "lan", "wan" (seed 003) and "fast"; BATON_ENOENT names the known ones. */
int raft_settings_preset(struct raft_settings *ret, const char *preset, struct baton_error *reterr);

/* BATON_EUNSAFE and the inequality that fails, with its numbers, where the lease would not be safe;
 * BATON_EINVAL where the settings could not work. */
int raft_settings_check(const struct raft_settings *settings, struct baton_error *reterr);
/* A further check of what a person configures: that candidates do not wait almost equally long,
 * which is safe but splits every vote. The core itself takes such settings. BATON_EINVAL. */
int raft_settings_check_spread(const struct raft_settings *settings, struct baton_error *reterr);

/* A granted time as the leader may count it: granted * (1 - rho) / (1 + rho). */
span raft_settings_shorten(const struct raft_settings *settings, span granted);

/* What `baton explain` prints: bounds from the settings alone, without network and disk delays. */
struct raft_bounds {
    span lease;               /* effective: after the drift factor */
    span hang;                /* silence to a new leader, at worst: promise, wait, one round */
    span crash_without_proof; /* the same */
    span restart_silence;     /* how long a voter is silent after a start */
    span round;               /* one failed election, at worst */
};
struct raft_bounds raft_settings_bounds(const struct raft_settings *settings);

/* ---- Log and stored state -------------------------------------------------------------------- */

enum raft_entry_kind {
    RAFT_ENTRY_NOOP,          /* the first entry of a leadership */
    RAFT_ENTRY_DATA,          /* a proposal of the user */
    RAFT_ENTRY_CONFIGURATION, /* encoded by raft_configuration_encode */
};

struct raft_entry {
    raft_term term;
    enum raft_entry_kind kind;
    const void *data; /* borrowed from the giver of the struct; NULL if bytes is 0 */
    size_t bytes;
};

/* The state that a node must not forget. Stored whole with each write that changes it. */
struct raft_hard_state {
    raft_term term;
    raft_id vote;           /* in `term`; RAFT_NOBODY if none */
    span promised_max;      /* the longest promise this node may have given; 0: none ever */
    raft_term pledged_term; /* the node votes in no lower term, and in this one only for */
    raft_id pledged_to;     /* `pledged_to`; 0: it never pledged */
};

/* It replaces the log up to `index`: `data` is the user's state and `configuration` the members at
 * that index. Index 0 without data is the empty state of a new group, with its first members. */
struct raft_snapshot {
    raft_index index;
    raft_term term;
    struct raft_configuration configuration;
    const void *data; /* borrowed */
    size_t bytes;
};

/* Stored together, in this order: all of it, or nothing. */
struct raft_write {
    uint64_t id;                          /* 1, 2, 3, … in this process */
    const struct raft_hard_state *hard;   /* NULL: unchanged */
    const struct raft_snapshot *snapshot; /* NULL: none; else it replaces all entries up to its
                                             index, and the snapshot before it */
    bool truncates;                       /* drop all entries from truncate_from on */
    raft_index truncate_from;
    raft_index first_index; /* of entries[0] */
    const struct raft_entry *entries;
    size_t entry_count;
};

/* ---- Messages -------------------------------------------------------------------------------- */

/* Proof that leadership ended: the incarnations of `node` up to `incarnation` will not lead in any
 * term up to `through_term` (RAFT_TERM_FOREVER: they are dead). `node` RAFT_NOBODY: no proof. */
struct raft_proof {
    raft_id node;
    uint64_t incarnation;
    raft_term through_term;
};

#define RAFT_TERM_FOREVER UINT64_MAX

enum raft_message_type {
    RAFT_MSG_PRE_VOTE = 1,
    RAFT_MSG_PRE_VOTE_REPLY,
    RAFT_MSG_VOTE,
    RAFT_MSG_VOTE_REPLY,
    RAFT_MSG_HEARTBEAT,
    RAFT_MSG_HEARTBEAT_REPLY,
    RAFT_MSG_APPEND,
    RAFT_MSG_APPEND_REPLY,
    RAFT_MSG_SNAPSHOT,
    RAFT_MSG_SNAPSHOT_REPLY,
    RAFT_MSG_TIMEOUT_NOW, /* to the heir: campaign at once; the sender has voided its lease */
    RAFT_MSG_RESIGN,      /* to the others: the sender has voided its lease */
    RAFT_MSG_READ,        /* a follower asks for a read index */
    RAFT_MSG_READ_REPLY,
};

struct raft_message {
    enum raft_message_type type;
    raft_id from;
    raft_id to;
    uint64_t incarnation; /* of the sender's process; the driver knows it from the connection */
    bool is_outlived;     /* a program that acts for the sender may outlive it; as above */
    raft_term term;       /* the sender's; in a pre-vote the term it would campaign in */
    uint64_t after_write; /* outgoing only: wait for this write; 0: send at once */
    union {
        struct { /* PRE_VOTE, VOTE */
            raft_index last_index;
            raft_term last_term;
            struct raft_proof proof; /* ends the voter's promise to that node */
        } vote;
        struct { /* PRE_VOTE_REPLY (term: the one asked for if granted), VOTE_REPLY */
            bool granted;
            span promised;        /* VOTE_REPLY, as a heartbeat's reply grants it; 0: none */
            uint64_t promised_to; /* the candidate's incarnation */
        } vote_reply;
        struct {                 /* HEARTBEAT */
            instant sent;        /* by the leader's clock; comes back untouched */
            span lease;          /* the leader asks for it */
            raft_index commit;   /* at most what the follower is known to have */
            raft_id heir;        /* campaigns first if this leader is proved gone */
            raft_term heir_term; /* in which it does; the voters pledge to it; 0: no heir */
            uint64_t read_round;
        } heartbeat;
        struct { /* HEARTBEAT_REPLY */
            instant sent;
            span granted; /* promised; 0: none */
            uint64_t read_round;
            bool may_lead; /* not cordoned, so it may be the heir */
            span silence; /* what is left of the silence after its start; until then it votes not */
        } heartbeat_reply;
        struct { /* APPEND */
            raft_index prev_index;
            raft_term prev_term;
            raft_index commit;
            const struct raft_entry *entries; /* borrowed until the next step */
            size_t entry_count;
            bool is_awaited; /* it has, or commits, what RAFT_EVERYBODY waits for */
        } append;
        struct { /* APPEND_REPLY */
            bool rejected;
            raft_index index; /* stored up to here; rejected: the refused prev_index */
            raft_index hint;  /* rejected: the logs may agree up to here */
            raft_term hint_term;
            bool is_awaited; /* as in the append; outgoing only */
        } append_reply;
        struct { /* SNAPSHOT: one chunk; the configuration comes with the first (offset 0) */
            raft_index index;
            raft_term snapshot_term;
            const struct raft_configuration *configuration; /* NULL after the first chunk */
            uint64_t offset;
            uint64_t total_bytes;
            const void *data;
            size_t bytes;
        } snapshot;
        struct { /* SNAPSHOT_REPLY */
            raft_index index;
            uint64_t next_offset; /* total_bytes when installed */
            bool rejected;        /* complete, but the follower cannot decode the state */
            uint32_t format;      /* rejected: the highest format that it can decode; 0: unknown */
        } snapshot_reply;
        struct { /* TIMEOUT_NOW, RESIGN: the proof is (from, incarnation, term) */
            raft_id heir;
        } resign;
        struct { /* READ, READ_REPLY */
            uint64_t context;
            raft_index index; /* reply; 0: refused */
        } read;
    };
};

/* ---- Inputs ---------------------------------------------------------------------------------- */

/* What a proof rests on (docs/raft.md, R6); events report it. RAFT_PROOF_EOF_ONLY is no proof. */
enum raft_proof_kind {
    RAFT_PROOF_RESIGNATION, /* (a) authenticated, lease voided first */
    RAFT_PROOF_PIDFD,       /* (b) same host: the kernel says that the process is gone */
    RAFT_PROOF_GUARDIAN,    /* (c) a certificate of the authenticated guardian */
    RAFT_PROOF_GREETING,    /* (d) a higher incarnation holds the data directory's lock */
    RAFT_PROOF_REFUSED,     /* (e) end-of-file and a refused reconnect, on a trusted path */
    RAFT_PROOF_EOF_ONLY,    /* a connection ended: proves nothing and changes nothing */
    RAFT_PROOF_VOTE,        /* a candidate's request carried it */
};

enum raft_input_type {
    RAFT_IN_TICK,           /* time has passed */
    RAFT_IN_MESSAGE,        /* .message, authenticated */
    RAFT_IN_WRITTEN,        /* .write_id is stored */
    RAFT_IN_STORAGE_FAILED, /* a write may have failed: the node steps down and votes no more */
    RAFT_IN_APPLIED,        /* .index has been applied */
    RAFT_IN_PROOF,          /* .proof: that a leader has ended; the driver authenticated it */
    RAFT_IN_CONNECTION,     /* .connection: a peer is connected or not, which proves nothing */
    RAFT_IN_PROPOSE,        /* .propose: append data entries; leader only */
    RAFT_IN_RECONFIGURE,    /* .configuration: the wanted members; leader only; joint inside */
    RAFT_IN_SNAPSHOT,       /* .snapshot: whether the state of update->offer could be decoded */
    RAFT_IN_TRANSFER,       /* .transfer: hand over to a node, or the best; leader only */
    RAFT_IN_DRAINED,        /* no program acts any more: the hand-over of RAFT_EV_DRAIN may begin */
    RAFT_IN_ELIGIBLE,       /* .eligible: may campaign (a cordoned node votes, but never leads) */
    RAFT_IN_READ,           /* .read: ask for a read index; any role */
    RAFT_IN_COMPACT,        /* .compact: the state up to an applied index is in this snapshot */
    RAFT_IN_DRIFT,          /* .drift_ppm: the bound of a peer, before its first message */
};

struct raft_proposal {
    const void *data; /* copied */
    size_t bytes;
    raft_id asker; /* the member that waits for the commit; RAFT_NOBODY, RAFT_EVERYBODY */
};

struct raft_input {
    enum raft_input_type type;
    union {
        const struct raft_message *message;
        uint64_t write_id;
        raft_index index;
        struct {
            enum raft_proof_kind kind;
            struct raft_proof proof;
            raft_id heir; /* the certificate names it; RAFT_NOBODY: the last heartbeat did */
        } proof;
        struct {
            raft_id peer;
            bool is_up;
        } connection;
        struct {
            const struct raft_proposal *items; /* in this order, in one write */
            size_t count;
            size_t *ret_taken; /* so many were appended, from the first on; NULL allowed */
        } propose;
        struct {                                            /* see raft_check_change */
            const struct raft_configuration *configuration; /* not joint; copied */
            bool is_forced;                                 /* even if that may stop the group */
        };
        struct {
            raft_index index; /* of the offer */
            bool is_taken;
            uint32_t format; /* refused: the highest format that can be decoded; 0: unknown */
        } snapshot;
        struct {
            raft_id to;       /* RAFT_NOBODY: the best placed */
            instant deadline; /* resign without an heir if no node has caught up by then */
            bool or_stay;     /* stay leader at the deadline instead */
        } transfer;
        bool eligible;
        uint32_t drift_ppm; /* grants are shortened by the largest bound of all */
        struct {
            uint64_t context;
            bool by_lease; /* trust the own lease; else ask a quorum, which needs no clocks */
        } read;
        struct {
            raft_index index;
            const void *data; /* copied */
            size_t bytes;
        } compact;
    };
};

/* ---- Updates --------------------------------------------------------------------------------- */

enum raft_role { RAFT_FOLLOWER, RAFT_PRE_CANDIDATE, RAFT_CANDIDATE, RAFT_LEADER };

enum raft_loss {
    RAFT_LOSS_EXPIRED,     /* the lease ran out before a quorum renewed it */
    RAFT_LOSS_SUPERSEDED,  /* a higher term was seen */
    RAFT_LOSS_RESIGNED,    /* handed over */
    RAFT_LOSS_LOST_QUORUM, /* elected, but never had a lease: the quorum did not answer */
    RAFT_LOSS_STORAGE,     /* the disk failed */
    RAFT_LOSS_REMOVED,     /* no longer a voter of the group */
};

enum raft_event_type {
    RAFT_EV_ROLE,               /* .role */
    RAFT_EV_LEADER,             /* .node, .incarnation: this node follows it; RAFT_NOBODY: none */
    RAFT_EV_ACQUIRED,           /* the first lease of a leadership: .term is its epoch */
    RAFT_EV_LOST,               /* .loss, .term */
    RAFT_EV_ELECTION_STARTED,   /* .term */
    RAFT_EV_ELECTION_COMPLETED, /* .term, .node: this node won it, as far as is known */
    RAFT_EV_ELECTION_FAILED,    /* .term: this node's round ended without a winner */
    RAFT_EV_JEOPARDY,           /* .left: the lease ends after that unless it is renewed */
    RAFT_EV_TOO_MANY_ELECTIONS, /* .count in the last hour */
    RAFT_EV_PROOF_ACCEPTED,     /* .proof_kind, .node, .incarnation */
    RAFT_EV_PROOF_IGNORED,      /* the same; it fits neither the promise nor the leader */
    RAFT_EV_MEMBERSHIP,         /* the configuration in force changed */
    RAFT_EV_PEER,               /* leader only: .node replies (.is_active) or has fallen silent */
    RAFT_EV_DRAIN,              /* leader only: .node shall lead (RAFT_NOBODY: this one leaves the
                                   group), once RAFT_IN_DRAINED says that no program acts under the
                                   lease any more, or after .left */
    RAFT_EV_TRANSFER_FAILED,    /* .node was not ready in time; this node goes on leading */
    RAFT_EV_CONTRADICTED,       /* .node, .incarnation, .term: a leader's message differs from what
                                   is committed here and was refused; once an incarnation */
    RAFT_EV_SNAPSHOT_REFUSED,   /* leader only: .node cannot decode the state; .count: the highest
                                   format that it can, 0: unknown. The snapshot is sent again after
                                   a heartbeat timeout, and at once after RAFT_IN_COMPACT, which
                                   may replace it by one in an older format */
};

struct raft_event {
    enum raft_event_type type;
    enum raft_role role;
    enum raft_loss loss;
    enum raft_proof_kind proof_kind;
    raft_id node;
    uint64_t incarnation;
    raft_term term;
    span left;
    uint32_t count;
    bool is_active;
};

/* is_leader() is true at an instant t if held && t < end. */
struct raft_lease {
    bool held;
    instant end;
    raft_term epoch; /* the term; strictly grows over all leaders of the group */
};

struct raft_read {
    uint64_t context;
    raft_index index; /* serve the read once this is applied; 0: refused, ask again */
};

/* Borrowed from the raft until its next step. */
struct raft_update {
    struct raft_lease lease;
    const struct raft_message *messages;
    size_t message_count;
    const struct raft_write *write; /* NULL: nothing to store */
    raft_index apply_first;         /* of apply[0] */
    const struct raft_entry *apply; /* committed and stored here */
    size_t apply_count;
    const struct raft_snapshot *install; /* replaces the user's state, before `apply`; or NULL */
    const struct raft_snapshot *offer;   /* to be decoded; reply with RAFT_IN_SNAPSHOT; or NULL */
    const struct raft_read *reads;
    size_t read_count;
    const struct raft_event *events;
    size_t event_count;
    instant deadline; /* INSTANT_NEVER: none */
    raft_id heir;     /* leader only: for the guardian */
};

/* ---- The core -------------------------------------------------------------------------------- */

struct raft; /* opaque */

struct raft_start {
    raft_id id;
    uint64_t incarnation; /* grows with every start of this node; its data directory holds it */
    uint64_t seed;        /* of the random waits */
    struct raft_settings settings;
    struct raft_hard_state hard;      /* all 0 for a new node */
    struct raft_snapshot snapshot;    /* with the first configuration; copied */
    const struct raft_entry *entries; /* entries[0] has index snapshot.index + 1; copied */
    size_t entry_count;
    bool eligible;    /* may campaign */
    bool is_outlived; /* a program that acts for this node may outlive this process */
};

/* BATON_EINVAL, BATON_EUNSAFE: the settings; BATON_ECORRUPT: the stored state contradicts itself;
 * BATON_ENOMEM. The first step should follow at once: its update has the first deadline. */
int raft_new(struct raft **ret, const struct raft_start *start, instant now,
             struct baton_error *reterr);
void raft_free(struct raft *raft); /* NULL allowed */

/* Takes one input. *ret is written on failure too, and the driver must do what it asks for then as
 * well. `now` never goes back (an earlier instant counts as the latest one).
 *   BATON_ENOTLEADER   PROPOSE, RECONFIGURE, TRANSFER on another role
 *   BATON_EBUSY        PROPOSE: log_bytes_max; RECONFIGURE, TRANSFER: another is under way, or no
 *                      entry of this term is committed yet
 *   BATON_EINVAL       RECONFIGURE: no voter, a double id …; TRANSFER: not a voter that may lead;
 *                      SNAPSHOT: that snapshot is not on offer any more
 *   BATON_EUNSAFE      RECONFIGURE: as raft_check_change
 *   BATON_EUNSAFE, BATON_EINVAL  DRIFT: with this bound the settings could not work
 *   BATON_ETOOBIG      PROPOSE: larger than message_bytes_max
 *   BATON_ENOMEM       the input may be lost, like a message in the network; nothing else is lost
 */
int raft_step(struct raft *raft, const struct raft_input *input, instant now,
              const struct raft_update **ret);

struct raft_status {
    raft_id id;
    enum raft_role role;
    raft_term term;
    raft_id vote;
    raft_id leader;
    uint64_t leader_incarnation;
    struct raft_lease lease;
    raft_id promised_to; /* RAFT_NOBODY: free to vote */
    uint64_t promised_incarnation;
    instant promised_until;
    instant silent_until;
    raft_index first_index; /* of the log in memory */
    raft_index last_index;
    raft_index stored_index;
    raft_index commit_index;
    raft_index applied_index;
    raft_index configuration_index; /* of the configuration in force */
    raft_id heir;
    raft_term pledged_term; /* as in raft_hard_state */
    raft_id pledged_to;
    bool eligible;
    bool is_changing; /* the last configuration is joint, or not known to be committed */
    bool storage_failed;
    uint32_t elections_last_hour;
};
void raft_get_status(const struct raft *raft, struct raft_status *ret);

/* How a leader sees a member; false if it does not lead or knows no such member. */
struct raft_progress {
    raft_index match_index;
    bool is_active;
    instant heard;
    span round_trip;   /* smoothed; 0: not measured */
    bool is_caught_up; /* replies, and has what was committed a heartbeat ago: fit to vote */
    bool may_lead;     /* replies, and is not cordoned */
    span silence;      /* how long it does not vote yet, because it started lately */
};
bool raft_get_progress(const struct raft *raft, raft_id id, struct raft_progress *ret);

/* Whether a change of members leaves a quorum that replies: members with more than half of the
 * wanted weight have replied within the heartbeat timeout and, if they do not vote yet, have caught
 * up; and one of them may lead. RAFT_IN_RECONFIGURE asks the same unless it is forced, because a
 * joint configuration whose new half does not reply cannot be taken back. So a voter joins as a
 * learner, becomes a voter once its progress says is_caught_up, and is removed if that takes too
 * long: none of these changes needs its reply.
 *   BATON_ENOTLEADER   this node does not lead
 *   BATON_EUNSAFE      no; the text names the members that do not reply or have not caught up
 *   BATON_EBUSY        the same from a leader that is too new to know: ask again
 */
int raft_check_change(const struct raft *raft, const struct raft_configuration *wanted,
                      struct baton_error *reterr);

/* The configuration in force; borrowed until the next step. */
const struct raft_configuration *raft_get_configuration(const struct raft *raft);

/* ---- Configurations, for drivers and tests --------------------------------------------------- */

/* Deep copy; BATON_ENOMEM. */
int raft_configuration_copy(struct raft_configuration *ret, const struct raft_configuration *from);
void raft_configuration_fini(struct raft_configuration *configuration);
const struct raft_member *raft_configuration_find(const struct raft_configuration *configuration,
                                                  raft_id id);
/* Sorts by id and checks: no id and no name occurs twice (a member that leaves may share its name),
 * a learner's weight is 0, a member may lead. */
int raft_configuration_normalise(struct raft_configuration *configuration,
                                 struct baton_error *reterr);
/* As the log stores it: versioned, little-endian. *ret is malloc'ed. */
int raft_configuration_encode(const struct raft_configuration *configuration, void **ret,
                              size_t *ret_bytes);
/* BATON_ECORRUPT for anything that encode would not have written. Bounded by RAFT_MEMBERS_MAX. */
int raft_configuration_decode(struct raft_configuration *ret, const void *data, size_t bytes);

/* Names for logs and traces: "leader", "vote-reply", "lost-quorum" … */
const char *raft_role_name(enum raft_role role);
const char *raft_message_name(enum raft_message_type type);
const char *raft_loss_name(enum raft_loss loss);
const char *raft_proof_name(enum raft_proof_kind kind);

#endif
