/* A whole group in one thread: real cores under a virtual clock, and everything that goes wrong.
 * Here is the state of it; each file below has its own header.
 *
 *   play.c      the run: a phase with faults, then one without in which work must get done
 *   faults.c    the faults of the first phase              client.c  the requests of users
 *   series.c    crashes of winners, one after another      directory.c  data directories: emptied,
 *                                                          or put back from a copy
 *   node.c      one process: the driver's contract of raft.h, step by step
 *   program.c   the program beside a process, which may outlive it
 *   watch.c     the guardian that kills a process for a hang
 *   fences.c    fences of silent hosts
 *   proofs.c    certificates, greetings, ends of connections: true, late, repeated, worthless
 *   disk.c      writes, crashes, fsync errors              network.c  messages in flight
 *   checks.c    the rules that must hold after every event;
 *               checks_votes.c those of votes and promises, members.c those of members,
 *               seen.c and journal.c what they remember, verdict.c the end of a run
 *   acting.c    which processes and programs act           profile.c  draws the kind of world
 *   queue.c     the queue of events, by true time          clock.c    each node's own clock
 *   trace.c     the story of the run                       arena.c    memory
 *
 * True time is an int64_t of nanoseconds that no node can see. The memory of a run comes from one
 * arena that is emptied between runs.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "guardian/hang.h"
#include "provider/raft/fence.h"
#include "raft/mutants.h"
#include "raft/raft.h"
#include "sim/arena.h"
#include "sim/drift.h"
#include "sim/game.h"
#include "sim/random.h"
#include "sim/story.h"

#include <setjmp.h>

enum {
    SIM_STRANGER = 9,  /* no user asks it to join, though it may be a member from the start */
    SIM_NODES_MAX = 9, /* ids 1 to 9: members from the start, and nodes that join later */
    SIM_SNAPSHOT_MAX = 4096,
    SIM_READS_KEPT = 256,
};

/* ---- The profile ----------------------------------------------------------------------------- */

/* Faults, and requests that come like faults. X(name, text) */
#define SIM_FAULTS(X)                                                                              \
    X(CRASH, "crash")                                                                              \
    X(CRASH_LEADER, "crash-leader")                                                                \
    X(CRASH_SERIES, "crash-series")                                                                \
    X(PAUSE, "pause")                                                                              \
    X(PAUSE_LEADER, "pause-leader")                                                                \
    X(PARTITION, "partition")                                                                      \
    X(ISOLATE_LEADER, "isolate-leader")                                                            \
    X(DIVIDE, "divide")                                                                            \
    X(RESET, "reset")                                                                              \
    X(OLD_CERTIFICATE, "old-certificate")                                                          \
    X(REPLAY, "replay")                                                                            \
    X(SLOW_DISK, "slow-disk")                                                                      \
    X(BAD_DISK, "bad-disk")                                                                        \
    X(CLOCK_RATE, "clock-rate")                                                                    \
    X(COPY_DIRECTORY, "copy-directory")                                                            \
    X(REPLACE_DIRECTORY, "replace-directory")                                                      \
    X(CORDON, "cordon")                                                                            \
    X(TRANSFER, "transfer")                                                                        \
    X(RECONFIGURE, "reconfigure")                                                                  \
    X(COMPACT, "compact")

enum sim_fault {
#define SIM_FAULT_ENUM(name, text) SIM_FAULT_##name,
    SIM_FAULTS(SIM_FAULT_ENUM)
#undef SIM_FAULT_ENUM
        SIM_FAULT_COUNT
};

enum sim_drift { SIM_DRIFT_NONE, SIM_DRIFT_RANDOM, SIM_DRIFT_EXTREME };

struct profile {
    const char *name;
    struct raft_settings settings; /* the other times are drawn in relation to these */
    uint32_t programs_ppm;         /* of a million nodes have a program that may outlive them */
    bool settings_differ;          /* between nodes, and between the lives of one */
    size_t nodes;                  /* members at the start */
    size_t spares;                 /* nodes that may join later */
    uint32_t events;               /* how many the phase with faults has */
    enum sim_drift drift;
    int64_t drift_ppm; /* the real bound of clocks; above the declared one with --break-drift */
    int64_t delay;     /* of a message, at least, in ns */
    int64_t jitter;    /* on top, at most */
    int64_t tail;      /* a straggler's delay, at most */
    uint32_t loss_ppm, duplicate_ppm, tail_ppm;
    int64_t disk_delay, disk_jitter;
    int64_t lateness;  /* of a tick, at most */
    int64_t down_time; /* of a crashed node, at most */
    int64_t fault_every, client_every;
    uint32_t luck_ppm;        /* chance of a write under way to be stored when the process dies */
    uint32_t certificate_ppm; /* chance of a certificate for each death */
    uint32_t certificate_late_ppm, certificate_again_ppm;
    span hang;                       /* after which a guardian kills; 0: never */
    span fence_after, fence_timeout; /* 0: no host is fenced */
    size_t host_nodes;               /* that share a host */
    uint32_t fault_weight[SIM_FAULT_COUNT];
    uint32_t fault_weight_sum;
};

/* ---- Events ---------------------------------------------------------------------------------- */

enum event_kind {
    EVENT_TICK,
    EVENT_MESSAGE,
    EVENT_DISK,       /* the oldest pending write ends */
    EVENT_APPLIED,    /* .number: the index */
    EVENT_PROOF,      /* .proof */
    EVENT_CONNECTION, /* .peer, .number: up */
    EVENT_RESTART,
    EVENT_HEAL, /* .partition */
    EVENT_FAULT,
    EVENT_CLIENT,
    EVENT_DRAINED, /* the program of the leader has stopped */
    EVENT_LOOK,    /* .number: the life that its guardian looks at */
    EVENT_KILLED,  /* .number: the life that its guardian has killed is dead */
    EVENT_FENCE_LOOK,
    EVENT_FENCE_NOTE,  /* .note */
    EVENT_FENCE_ENDED, /* the command of this node */
    EVENT_FENCE_OFF,   /* .number: a host */
    EVENT_GUARDIAN,    /* .number: the life; its guardian has ended the program that outlived it */
};

struct proof_input {
    enum raft_proof_kind kind;
    struct raft_proof proof;
    raft_id heir;
};

/* A message about fences. */
struct fence_note {
    enum { NOTE_PROBE, NOTE_ALIVE, NOTE_ASK, NOTE_ANSWER, NOTE_RELEASE } kind;
    raft_id from;
    uint64_t incarnation, round, host;
    enum fence_refusal refusal;
    span hold;
};

struct event {
    int64_t at;
    uint64_t order; /* equal times: first in, first out */
    enum event_kind kind;
    raft_id node; /* the node that takes it */
    raft_id peer;
    uint64_t life; /* the incarnation that takes it; 0: any */
    uint64_t number;
    union {
        const struct raft_message *message;
        const struct proof_input *proof;
        const struct partition *partition;
        const struct fence_note *note;
    };
};

struct queue {
    struct event *heap;
    size_t count, capacity;
    uint64_t order;
};

/* ---- Logs ------------------------------------------------------------------------------------ */

struct record {
    raft_term term;
    enum raft_entry_kind kind;
    const void *data; /* in the arena */
    size_t bytes;
    uint64_t chain; /* hash over this entry and all before it */
};

/* A node's log, as it is on the disk or as it will be after all writes under way. */
struct journal {
    raft_index base; /* of the snapshot */
    raft_term base_term;
    uint64_t base_chain;
    struct record *records; /* records[0] is at base + 1 */
    size_t count, capacity;
};

struct stored_snapshot {
    raft_index index;
    raft_term term;
    struct raft_configuration configuration; /* in the arena, as the data */
    const void *data;
    size_t bytes;
};

struct pending_write {
    struct pending_write *next;
    struct raft_write write; /* deep copy in the arena */
    uint64_t base_chain;     /* of the snapshot, if there is one */
};

/* A message in the arena, and when it left the core by its sender's clock. */
struct outgoing {
    struct raft_message message;
    instant made;
};

struct held_message {
    struct held_message *next;
    const struct raft_message *message;
    uint64_t after_write;
};

/* ---- Nodes ----------------------------------------------------------------------------------- */

/* The content of a data directory. */
struct directory {
    uint64_t incarnation;
    struct raft_hard_state hard;
    struct stored_snapshot snapshot;
    struct journal journal;
};

/* The program of a node: it acts until the end of the lease at the latest. */
struct program {
    bool runs;
    uint64_t life;           /* the incarnation that started it */
    bool was_endless;        /* that process was a quorum alone in between */
    struct raft_lease lease; /* as that process last published it */
};

/* The guardian of a process: watch.c. */
struct watch {
    struct hang hang;
    instant beat;       /* of a process that is stopped: the latest */
    int64_t stopped_at; /* true time */
    int64_t asleep_until;
    int64_t awake_since;
    bool is_looking; /* a look is under way */
    bool has_killed; /* the process is not dead yet */
};

/* A voter's latest grant, which the checks remember even if the voter forgets it. */
struct granted {
    raft_id to;
    uint64_t incarnation, round;
    instant until; /* by the voter's clock */
};

/* A node's part in fences: fences.c. */
struct fencer {
    struct fence fence;
    span granted_max; /* as its data directory has it */
    struct granted granted;
    uint64_t known[SIM_NODES_MAX + 1]; /* incarnations that it has heard */
    uint64_t at_fence[SIM_NODES_MAX + 1];
    int64_t heard_at[SIM_NODES_MAX + 1]; /* true time */
    bool runs;                           /* its command, until */
    int64_t ends_at;                     /* in true time */
    int exit_code;
    bool was_in_time;
};

struct node {
    raft_id id;
    struct fencer fencer;
    struct watch watch;
    bool is_outlived; /* its program may outlive it */
    struct program program;
    bool is_refused;              /* the others refuse its data directory: it never starts again */
    const struct directory *copy; /* made earlier; NULL: none */
    bool exists;
    bool is_up;
    bool is_paused;
    int64_t paused_until;
    uint64_t incarnation;
    bool eligible;
    struct raft_settings settings; /* of this life */
    struct raft *raft;

    struct drift_clock clock;

    struct raft_lease lease;   /* as published */
    struct raft_status status; /* after the last step */
    enum raft_role role;
    raft_term role_term;
    raft_id heir;
    raft_index offered; /* a snapshot that this process could decode; 0: none */
    int64_t tick_at;    /* true time of the tick under way; INT64_MAX: none */
    raft_index applied;
    raft_index applied_reported;
    raft_index seen_commit;

    /* disk */
    struct raft_hard_state hard;  /* stored */
    struct raft_hard_state asked; /* as the last write has it */
    struct stored_snapshot snapshot;
    struct journal disk;
    struct journal memory;
    struct raft_configuration base_members; /* of `memory`, in the arena */
    struct pending_write *writes, **writes_end;
    int64_t disk_free_at;
    int64_t disk_slow_until;
    bool disk_fails_next;
    bool disk_failed; /* for this process: the disk reports success but stores nothing */
    uint64_t stored_write;
    struct held_message *held, **held_end;
};

/* ---- The memory of the checks ---------------------------------------------------------------- */

struct seen { /* a place in a small hash table; raising the stamp empties the table */
    uint64_t key_a, key_b;
    uint64_t value;
    uint64_t stamp;
};

enum { SIM_SEEN_SIZE = 1 << 14 };

struct committed {
    raft_term term;
    raft_term committed_in; /* term of the first node that committed it */
    uint64_t chain;
};

/* A promise of a voter to a leader whose reply has left. The checks remember it even if the voter
 * forgets it. */
struct promise {
    raft_term term;
    uint64_t incarnation; /* of the leader: the latest */
    instant until;        /* by the voter's clock */
};

/* A committed change of members, in the arena. */
struct committed_members {
    const struct committed_members *before;
    raft_index index;
    struct raft_configuration members;
};

struct checks {
    struct promise promises[SIM_NODES_MAX + 1][SIM_NODES_MAX + 1]; /* [voter][leader] */
    struct seen *entries;                                          /* (index, term) -> chain */
    struct seen *votes;                                            /* (node, term) -> candidate */
    struct seen *leaders;                                          /* (term) -> node, incarnation */
    uint64_t stamp;
    raft_term highest_epoch;
    struct committed *committed; /* committed[0] is index 1 */
    size_t committed_count, committed_capacity;
    raft_index read_floor[SIM_READS_KEPT]; /* committed when the read was asked */
    uint64_t reads_asked;
    const struct committed_members *members; /* the latest */
};

/* ---- The world ------------------------------------------------------------------------------- */

/* What a run counts. */
enum { COUNT_ACQUIRED, COUNT_COMMITTED, COUNT_PROOFS, COUNT_CRASHES };

struct partition {
    uint16_t cut[SIM_NODES_MAX + 1]; /* bit j of cut[i]: no message gets from i to j */
};

struct world {
    struct options options;
    struct profile profile;
    struct random random;
    struct random aside; /* for hangs and fences, so that other worlds stay as they are */
    struct arena arena;
    struct queue queue;
    struct story story;
    struct checks checks;
    struct node nodes[SIM_NODES_MAX + 1]; /* by id */
    struct raft_configuration first_members;
    size_t node_count;                                 /* ids 1 to node_count */
    uint8_t cut[SIM_NODES_MAX + 1][SIM_NODES_MAX + 1]; /* how many partitions cut i -> j */
    struct proof_input old_proofs[32];
    size_t old_proof_count;
    int64_t now;
    uint32_t series; /* how many of the next winners crash, with nodes that elected them */
    bool is_calm;    /* the phase without faults */
    bool is_rough;   /* within it: messages are lost, repeated and delayed again */
    bool is_silent;  /* users send no requests */
    bool is_done;    /* a leader committed the last proposal */
    uint64_t proposals;
    raft_index calm_floor; /* committed when the phase without faults began */
    jmp_buf violated;
    struct result result;
};

/* Planted bugs of the driver, the wrapper and the guardian. X(name, description) */
#define SIM_MUTANTS(X)                                                                             \
    X(GREETING_OF_OUTLIVED, "the driver treats a new incarnation as the end of the program")       \
    X(PIDFD_OF_OUTLIVED, "the driver treats the end of the wrapper as the end of its program")     \
    X(TUNNEL_REFUSES, "a refused reconnect through a tunnel counts as a death")                    \
    X(CERTIFIED_WHILE_IT_LIVES, "the guardian certifies before the program has ended")             \
    X(BIRTH_NOT_COMPARED, "an emptied data directory is accepted as the one that it replaces")     \
    X(OLDER_COPY_TAKEN, "a data directory that was put back from a copy is accepted")              \
    X(COMMITMENT_REPLACED, "a greeting of the same incarnation brings another commitment")         \
    X(HANG_CERTIFIED_UNPROVEN, "the guardian certifies a kill that the kernel has not reported")   \
    X(HANG_COUNTED_ASLEEP, "the guardian counts silence while it overslept itself")                \
    X(FENCE_ANY_EXIT, "any exit of a fence command is a proof")                                    \
    X(FENCE_UNGRANTED, "a host is fenced without the grants of a quorum")                          \
    X(FENCE_GRANTED_TWICE, "a voter grants a fence while another has its grant")                   \
    X(FENCE_FORGOTTEN, "a voter grants a fence right after a restart")

enum sim_mutant {
    SIM_MUTANT_NONE = RAFT_MUTANT_COUNT,
#define SIM_MUTANT_ENUM(name, text) SIM_MUTANT_##name,
    SIM_MUTANTS(SIM_MUTANT_ENUM)
#undef SIM_MUTANT_ENUM
};
extern _Thread_local enum sim_mutant sim_mutant;
#define SIM_MUTANT(name) (sim_mutant == SIM_MUTANT_##name)

#endif
