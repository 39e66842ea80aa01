/* What the rooms of src/raft/ share, and nobody else sees.
 *
 * Who calls whom: step.c takes an input and calls one recv_*.c, election.c, transfer.c …; those
 * change the role through convert.c alone, and leave what is to be done in update.c, which turns it
 * into the raft_update at the end of the step. The innermost rooms (log, quorum, peer, promise)
 * know only themselves.
 */
#ifndef RAFT_INTERNAL_H
#define RAFT_INTERNAL_H

#include "raft/mutants.h"
#include "raft/raft.h"

enum {
    RAFT_READS_MAX = 1024,     /* read requests that wait at once */
    RAFT_ELECTIONS_KEPT = 256, /* of the last hour, remembered */
    RAFT_SNAPSHOT_CHUNK_MIN = 1024,
    RAFT_SNAPSHOT_BYTES_MAX = 1 << 30,
};

/* No index is as high: the first entry of this leadership is still to come. */
#define RAFT_NOT_YET (UINT64_MAX / 2)

/* Indexes and terms beyond this do not come from an honest peer: no arithmetic here overflows. */
#define RAFT_SANE_MAX ((uint64_t)1 << 56)

/* Nor does a term that is above the own one by so many elections: it would bring the own term near
 * that limit, at which nobody can be elected any more. */
#define RAFT_TERMS_AHEAD_MAX ((uint64_t)1 << 32)

/* ---- sane.c: what no honest peer says ----------------------------------------------------------
 */

/* Whether an honest peer could have sent it, whatever this node knows. */
bool sane_message(const struct raft *raft, const struct raft_message *message);
/* An entry of a kind that there is; if it is a configuration, one that can be in force. */
bool sane_entry(const struct raft_entry *entry);
/* Whether it says otherwise than what is committed here: then it is told, and true. The peer is of
 * another group, or one of the two has lost what it had stored. */
bool sane_contradicts(struct raft *raft, const struct raft_message *message);
/* Whether this node listens to its sender at all; docs/raft.md, "Who is listened to". */
bool sane_is_heard(const struct raft *raft, const struct raft_message *message);

/* ---- log.c: the entries after the snapshot, in memory ---------------------------------------- */

struct raft_log {
    struct raft_entry *entries; /* entries[0] is at snapshot_index + 1; data owned */
    uint64_t *write_ids;        /* which write stores entries[i]; 0: stored before the start */
    size_t count;
    size_t capacity;
    raft_index snapshot_index;
    raft_term snapshot_term;
};

/* A copy that the caller owns; NULL for no bytes; BATON_ENOMEM. */
int data_copy(void **ret, const void *data, size_t bytes);

void log_fini(struct raft_log *log);
raft_index log_last_index(const struct raft_log *log);
raft_term log_last_term(const struct raft_log *log);
/* The term at `index`; 0 if it is compacted away or not there. The snapshot's own index counts. */
raft_term log_term_at(const struct raft_log *log, raft_index index);
const struct raft_entry *log_at(const struct raft_log *log, raft_index index); /* NULL: not there */
/* Copies the entries' data; all or none; BATON_ENOMEM. */
int log_append(struct raft_log *log, const struct raft_entry *entries, size_t count,
               uint64_t write_id);
void log_truncate(struct raft_log *log, raft_index from); /* drops from on */
void log_compact(struct raft_log *log, raft_index through, raft_term term);
void log_reset(struct raft_log *log, raft_index snapshot_index, raft_term snapshot_term);
/* The highest index so that it and all before it are covered by writes up to write_id. */
raft_index log_stored_through(const struct raft_log *log, raft_index from, uint64_t write_id);
/* How many entries from `first` on fit into bytes_max: at least one, if there is one. */
size_t log_fitting(const struct raft_log *log, raft_index first, size_t bytes_max);

/* ---- peer.c: what a node knows of another ---------------------------------------------------- */

enum replication {
    REPLICATION_PROBE,    /* one message at a time, until the logs are found to agree */
    REPLICATION_PIPELINE, /* messages go out ahead of their answers */
    REPLICATION_SNAPSHOT, /* too far behind for the log */
};

enum vote_answer { VOTE_UNKNOWN, VOTE_GRANTED, VOTE_REFUSED };

struct peer {
    raft_id id;
    bool is_up;           /* the driver has a connection */
    uint64_t incarnation; /* highest heard of */
    bool is_outlived;     /* by its program, in this or an earlier incarnation */

    /* Proofs kept, so that a message that was long on its way cannot undo them. */
    uint64_t dead_through; /* incarnations up to this one are dead; 0: none known */
    uint64_t resigned_incarnation;
    raft_term resigned_through;

    enum vote_answer vote; /* candidate */

    /* leader */
    enum replication state;
    raft_index match;
    raft_index next;
    uint32_t inflight; /* messages; PIPELINE: 0 only if next == match + 1 */
    instant sent_at;   /* of the last append or snapshot chunk */
    raft_index told_commit;
    instant told_at; /* by an append without entries */
    uint64_t snapshot_offset;
    raft_index snapshot_index; /* which one is being sent */
    bool is_active;
    bool may_lead;
    instant active_since;
    instant heard;
    instant granted_until; /* by the leader's clock, already shortened */
    span round_trip;
    uint64_t read_round; /* answered */
};

/* ---- promise.c ------------------------------------------------------------------------------- */

/* No vote, no pre-vote and no candidacy for or by anyone but `to` before `until`. */
struct promise {
    raft_id to; /* RAFT_NOBODY: none */
    uint64_t incarnation;
    raft_term term;
    instant until;
};

/* ---- pledge.c -------------------------------------------------------------------------------- */

/* What is known of the stored pledge (raft_hard_state) in this life. */
struct pledge {
    uint64_t write;       /* that stores it; 0: stored before the start */
    bool is_of_this_life; /* given since the start: its heir has not run on it before */
    raft_id leader;       /* whose heir it is for; RAFT_NOBODY: not heard since the start */
    uint64_t incarnation;
    raft_term term; /* of that leader */
};

/* ---- read.c ---------------------------------------------------------------------------------- */

struct pending_read {
    uint64_t context;
    raft_id from; /* RAFT_NOBODY: this node's own */
    uint64_t round;
    raft_index index; /* what had been committed when it was asked */
};

/* ---- update.c: what a step leaves to be done ------------------------------------------------- */

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
    bool hard_needed; /* by a message: it waits for this write */
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

/* ---- The node -------------------------------------------------------------------------------- */

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

/* A hand-over that the group wants, not who leads: what acts under the lease is told to stop, and
 * waited for. */
struct drain {
    bool is_told;
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
    uint64_t bytes; /* received */
    uint64_t total_bytes;
    bool is_offered; /* whole; the driver tries to take it in */
};

struct raft {
    raft_id id;
    uint64_t incarnation;
    bool is_outlived;
    struct raft_settings settings;
    uint64_t random_state;
    instant now; /* of the current step */

    /* stored, or on its way to the disk */
    struct raft_hard_state hard;
    struct raft_log log;
    struct raft_snapshot snapshot; /* data and configuration owned */
    uint64_t last_write;           /* given out */
    uint64_t stored_write;         /* reported back */
    raft_index stored_index;
    uint64_t needed_write; /* the last one that votes and promises wait for */
    instant store_at;      /* a hard state that nobody waits for; INSTANT_NEVER: none */
    bool storage_failed;

    struct raft_configuration configuration; /* the last one in the log, committed or not */
    raft_index configuration_index;
    struct peer *peers; /* one for each member, in the order of the configuration */
    size_t peer_count;
    struct departed *departed; /* leader: left with the last configuration, not told yet */
    size_t departed_count;
    struct quorum_item *scratch; /* room for peer_count */

    enum raft_role role;
    raft_id leader;
    uint64_t leader_incarnation;
    instant leader_until; /* heard of lately: not doubted before */
    raft_id heir_named;   /* by the leader, in its heartbeats */
    raft_index commit;
    raft_index commit_before; /* leader: at the last heartbeat */
    raft_index handed;        /* given out to be applied */
    raft_index applied;
    bool eligible;

    struct promise promise;
    struct pledge pledge;
    instant silent_until;
    struct raft_proof proof; /* why the last leader is gone; carried in our vote requests */

    raft_id contradicted_by; /* the last one that was told of */
    uint64_t contradicted_incarnation;

    bool must_help;           /* refused a candidate whose log was shorter; see election.c */
    instant election_at;      /* follower: doubts the leader; candidate: the round ends */
    uint64_t vote_write;      /* candidate: the write that stores the vote for itself */
    raft_term completed_term; /* the last one whose winner is known */
    uint32_t lost_rounds;     /* terms entered since one of them committed; see election.c */
    instant elections[RAFT_ELECTIONS_KEPT];
    uint32_t election_count; /* ever; elections[] is a ring */
    bool elections_warned;

    /* leader */
    struct raft_lease lease;
    instant leader_since;
    raft_index term_start; /* of this leadership's first entry; RAFT_NOT_YET */
    instant open_term_at;  /* when that entry is due */
    bool is_own_tick;      /* this step is one of time, not of an input */
    instant heartbeat_at;
    instant tell_at;     /* when followers that wait for nothing else are told of a commit */
    instant jeopardy_at; /* INSTANT_NEVER: told, or no lease that can end */
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

/* ---- quorum.c -------------------------------------------------------------------------------- */

struct quorum_item {
    int64_t value;
    uint32_t weight;
};

/* Whether the peers of which `holds` is true are a quorum, in both halves if joint. */
bool quorum_holds(const struct raft *raft, bool (*holds)(const struct raft *, const struct peer *));
/* The largest value that a quorum reaches, in both halves if joint. */
int64_t quorum_value(struct raft *raft, int64_t (*value)(const struct raft *, const struct peer *));
/* Whether this node alone is a quorum. */
bool quorum_is_self(const struct raft *raft);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Whether it has been heard of within the heartbeat timeout, as far as this leader knows. */
bool peer_answers(const struct raft *raft, const struct peer *peer);
bool peer_is_caught_up(const struct raft *raft, const struct peer *peer);
struct peer *peer_find(const struct raft *raft, raft_id id);
const struct raft_member *peer_member(const struct raft *raft, const struct peer *peer);
bool member_votes(const struct raft_member *member);
bool member_may_lead(const struct raft_member *member);
/* Makes raft->peers fit raft->configuration, keeping what is known; BATON_ENOMEM: unchanged. */
int peers_rebuild(struct raft *raft, const struct raft_configuration *configuration);
/* At the start of a leadership. */
void peers_reset(struct raft *raft);

/* ---- configuration.c ------------------------------------------------------------------------- */

/* Takes over `configuration` (emptied on success); BATON_ENOMEM leaves everything. */
int configuration_enter(struct raft *raft, struct raft_configuration *configuration,
                        raft_index index);
/* Before a truncation: back to the last configuration before `from`, in the log or snapshot. */
int configuration_revert(struct raft *raft, raft_index from);
/* Whether it holds in the configuration before the last one, as long as the last one is not known
 * to be committed: until then those who go by the one before may need that node. */
bool configuration_before_holds(const struct raft *raft, raft_id id,
                                bool (*holds)(const struct raft_configuration *, raft_id));
/* One that this core could have made: in order, and somebody may lead in it. */
bool configuration_is_sane(const struct raft_configuration *configuration);
/* A copy of the configuration that was in force at `index`, which is in the log or its snapshot. */
int configuration_at(const struct raft *raft, raft_index index, struct raft_configuration *ret,
                     raft_index *ret_index);

/* ---- promise.c ------------------------------------------------------------------------------- */

bool promise_is_active(const struct raft *raft);
/* May this node vote for (or help) `candidate` now? */
bool promise_allows_vote(const struct raft *raft, raft_id candidate);
bool promise_allows_candidacy(const struct raft *raft);
/* When the own candidacy is allowed at the earliest. */
instant promise_candidacy_at(const struct raft *raft);
/* Promises a heartbeat's sender; the time granted: 0 if it cannot be. */
span promise_give(struct raft *raft, const struct raft_message *heartbeat);
/* Once others have a say: after a restart it is silent for as long as its own program may act. */
void promise_own_lease(struct raft *raft);
/* Whether a proof already held says that this message's sender was no leader any more. */
bool promise_is_disproved(const struct raft *raft, const struct raft_message *message);
/* Ends what the proof ends; true if anything did. */
bool promise_apply_proof(struct raft *raft, enum raft_proof_kind kind,
                         const struct raft_proof *proof);
/* A message of a higher incarnation proves the earlier ones dead, unless a program may outlive
 * them. False: the message is of an earlier one. */
bool promise_observe_incarnation(struct raft *raft, const struct raft_message *message);

/* ---- pledge.c -------------------------------------------------------------------------------- */

/* The term in which this node would run, but for pledge_lets_run: above what it has pledged. */
raft_term pledge_next_term(const struct raft *raft);
/* May it vote for `candidate` in `term`, as far as its pledge goes? */
bool pledge_allows(const struct raft *raft, raft_id candidate, raft_term term);
/* Pledges what a heartbeat, just followed, asks for. */
void pledge_give(struct raft *raft, const struct raft_message *heartbeat);
/* Whether entering `term` and voting there for `candidate` is as good as stored. */
bool pledge_covers(const struct raft *raft, raft_id candidate, raft_term term);
/* Whether this node may run in the pledged term, and at once. */
bool pledge_lets_run(const struct raft *raft);

/* ---- convert.c: every change of role --------------------------------------------------------- */

void convert_to_follower(struct raft *raft, raft_id leader, uint64_t leader_incarnation);
void convert_to_pre_candidate(struct raft *raft);
void convert_to_candidate(struct raft *raft);
void convert_to_leader(struct raft *raft);
/* Gives up a leadership for that reason: the lease is void from here on. Role: follower, no leader.
 */
void convert_lose(struct raft *raft, enum raft_loss loss);
/* A higher term: enters it, as a follower without a leader. */
void convert_adopt_term(struct raft *raft, raft_term term);

/* ---- election.c ------------------------------------------------------------------------------ */

uint64_t election_random(struct raft *raft, uint64_t below);
span election_round_time(struct raft *raft);
/* After a doubt arises: when this node would try, by priority and chance. */
instant election_after(struct raft *raft, instant from);
void election_tick(struct raft *raft);
void election_campaign(struct raft *raft); /* real votes, without asking before */
void election_inherit(struct raft *raft, raft_id heir);
/* A candidate was refused for its log: this node may be the only one that can bring others on. */
void election_note_shorter(struct raft *raft);
/* Runs, or leads, only to hand its longer log on: it never gets a lease. */
bool election_is_caretaker(const struct raft *raft);
void election_count_vote(struct raft *raft);
void election_note(struct raft *raft, raft_term term, raft_id winner);
uint32_t election_last_hour(const struct raft *raft);

/* ---- leader_lease.c -------------------------------------------------------------------------- */

void leader_lease_expire(struct raft *raft, instant last_step);
void leader_lease_renew(struct raft *raft);
void leader_lease_cap(struct raft *raft);
bool leader_lease_is_covered(struct raft *raft); /* by the configuration in force */
void leader_heartbeat(struct raft *raft);
/* The first entry of the term, which commits all before it; BATON_ENOMEM: tried again later. */
int leader_open_term(struct raft *raft);
void leader_tick(struct raft *raft);
void leader_choose_heir(struct raft *raft);

/* ---- replicate.c ----------------------------------------------------------------------------- */

void replicate_to(struct raft *raft, struct peer *peer);
void replicate_to_all(struct raft *raft);
/* The snapshot is another one, or has another form. */
/* To nodes that left with the last configuration, once it is committed: that they did. */
void replicate_farewell(struct raft *raft);
/* To a node that is no member and does not know it: it asks for votes, or refuses an append. */
void replicate_to_stranger(struct raft *raft, const struct raft_message *message);
void replicate_snapshot_anew(struct raft *raft);
int replicate_append(struct raft *raft, const struct raft_entry *entry);
void replicate_commit(struct raft *raft);
/* Commit up to index, as told by the leader or counted. */
void replicate_commit_to(struct raft *raft, raft_index index);

/* ---- recv_*.c, transfer.c, reconfigure.c, read.c --------------------------------------------- */

void recv_pre_vote(struct raft *raft, const struct raft_message *message);
void recv_pre_vote_reply(struct raft *raft, const struct raft_message *message);
void recv_vote(struct raft *raft, const struct raft_message *message);
void recv_vote_reply(struct raft *raft, const struct raft_message *message);
void recv_heartbeat(struct raft *raft, const struct raft_message *message);
void recv_heartbeat_reply(struct raft *raft, const struct raft_message *message);
void recv_append(struct raft *raft, const struct raft_message *message);
void recv_append_reply(struct raft *raft, const struct raft_message *message);
void recv_snapshot(struct raft *raft, const struct raft_message *message);
void recv_snapshot_reply(struct raft *raft, const struct raft_message *message);
void recv_resign(struct raft *raft, const struct raft_message *message);
/* The sender claims to lead in a term of ours or later: follow it. False: it does not lead. */
bool recv_from_leader(struct raft *raft, const struct raft_message *message);
void incoming_snapshot_drop(struct raft *raft);
/* The driver's answer to what was offered. */
int incoming_snapshot_end(struct raft *raft, const struct raft_input *input);

int transfer_begin(struct raft *raft, raft_id to, instant deadline, bool or_stay);
void transfer_tick(struct raft *raft);
/* Whether nothing acts under the lease any more; if that is not asked yet, it is now. */
bool drain_is_over(struct raft *raft, raft_id to);
void drain_end(struct raft *raft); /* it is, or its time is */
void drain_tick(struct raft *raft);
/* Voids the lease, then tells everybody; `to` may be RAFT_NOBODY. */
void transfer_now(struct raft *raft, raft_id to, enum raft_loss loss);

int reconfigure_begin(struct raft *raft, const struct raft_configuration *wanted, bool is_forced);
/* After a commit: a joint configuration is left, a removed leader steps down. */
void reconfigure_advance(struct raft *raft);

void read_ask(struct raft *raft, uint64_t context, raft_id from, bool by_lease);
void read_advance(struct raft *raft);
void read_refuse_all(struct raft *raft);
void read_reply(struct raft *raft, const struct raft_message *message);

/* ---- update.c -------------------------------------------------------------------------------- */

void update_begin(struct raft *raft);
/* What this step, or one before it, has yet to store before a message may leave. */
enum message_after {
    AFTER_NOTHING,
    AFTER_HARD, /* the hard state, where it is needed: votes, promises */
    AFTER_ALL,  /* whatever there is: what is said of the log */
};
/* A message to `to`, from this node, in its term; NULL when out of memory. */
struct raft_message *update_message(struct raft *raft, enum raft_message_type type, raft_id to,
                                    enum message_after after);
struct raft_event *update_event(struct raft *raft, enum raft_event_type type); /* never NULL */
void update_read(struct raft *raft, uint64_t context, raft_index index);
enum hard_change {
    HARD_NEEDED, /* what is said from here on stands on it */
    HARD_SOON,   /* a pledge: stored with this step, waited for by nobody */
    HARD_LATER,  /* covered by a pledge: with the next write, or after an election timeout */
};
void update_hard_changed(struct raft *raft, enum hard_change change);
uint64_t update_write_id(const struct raft *raft); /* of the write that this step will ask for */
const struct raft_update *update_finish(struct raft *raft);
void update_fini(struct raft *raft);

#endif
