/* Decides when the silent host of other members is fenced, and which member may do it: a pure
 * function of the instants, replies and exit codes that the caller passes in.
 *
 *   watching ──a host is silent, and worth it──▶ asking ──a quorum grants──▶ running
 *      ▲                                           │                           │ exit 0: proof
 *      └──it answers, is not worth it, refused─────┘                           │ else: later again
 *      └───────────────────────────────────────────────────────────────────────┘
 *
 * A host is silent when none of its members has been heard for `after`, while this process itself
 * ran on time. It is worth a fence only if a proof of the death would free something: the promise
 * to a leader, or elections that a session holds. So a host that was shut down in order is left
 * alone.
 *
 * A grant is a voter's promise that for `hold` it grants no fence to another member. A voter grants
 * only if it finds the host silent, too, by its own `after`. The asker runs the command within the
 * grants of a quorum of weight, counted from the instant at which it asked, so no two commands ever
 * run at once in a group, and none runs beside a process that a quorum can hear. A voter that
 * starts grants nothing for as long as it may have granted before.
 */
#ifndef PROVIDER_RAFT_FENCE_H
#define PROVIDER_RAFT_FENCE_H

#include "raft/raft.h"

enum { FENCE_LOOKS = 8, FENCE_ROUNDS = 4, FENCE_BACKOFF_S_MAX = 300 };

struct fence_settings {
    span after;         /* of silence; 0: takes no part */
    span timeout;       /* of the command */
    uint32_t drift_ppm; /* the widest bound of a member's clock */
    bool has_command;
};

enum fence_state { FENCE_WATCHING, FENCE_ASKING, FENCE_RUNNING };

/* Why a voter refuses. These numbers are on the wire. */
enum fence_refusal {
    FENCE_GRANTED,
    FENCE_OFF,     /* it has no `fence-after` */
    FENCE_UNKNOWN, /* it knows no such member */
    FENCE_ANSWERS, /* a process of that host answers it, or has until lately */
    FENCE_TAKEN,   /* it has granted a fence to another member */
    FENCE_STARTED, /* it has just started, and may have granted one before */
    FENCE_REFUSALS
};

enum fence_worth { FENCE_NOTHING, FENCE_SESSION, FENCE_LEADER };

/* Another member, or this one. The caller sets all down to `worth`, the machine the rest. */
struct fence_member {
    raft_id id;
    uint64_t host; /* equal for members of one host */
    uint32_t weight, old_weight;
    bool may_lead;
    enum fence_worth worth; /* of a proof that it is dead */
    instant heard;
    instant retry; /* not fenced again before */
    uint32_t failures;
    bool has_granted; /* in this round */
};

struct fence {
    struct fence_settings settings;
    raft_id self;
    struct fence_member *members;
    size_t count;
    bool is_joint;
    enum fence_state state;
    uint64_t host; /* asked about, or fenced now */
    uint64_t round;
    unsigned rounds; /* asked in vain */
    instant asked;
    instant looked;             /* the latest look; INSTANT_PAST: none yet */
    enum fence_refusal refusal; /* the latest one, for the log */
    raft_id granted_to;         /* as a voter, by itself or another */
    uint64_t granted_in;        /* that member's incarnation */
    uint64_t granted_round;
    instant granted_until;
    instant silent_until;
};

/* What the caller knows at a look. */
struct fence_situation {
    bool may_run; /* this member may lead, and its storage works */
    bool leads;   /* under a lease */
    raft_id leader;
    raft_id heir;
    uint64_t incarnation;
};

enum fence_action {
    FENCE_NONE,
    FENCE_ASK,     /* all members, about the members of fence->host, with fence_hold() */
    FENCE_RUN,     /* the command, for fence->host, for settings.timeout at most */
    FENCE_RELEASE, /* tell all members that nothing is wanted of them any more */
};

/* `granted_max`: the longest grant of this member's earlier processes. */
void fence_init(struct fence *fence, const struct fence_settings *settings, raft_id self,
                span granted_max, instant now);
void fence_fini(struct fence *fence);
/* Copies them; a member that is new counts as heard now. BATON_ENOMEM: nothing has changed. */
int fence_set_members(struct fence *fence, const struct fence_member *members, size_t count,
                      bool is_joint, instant now);
struct fence_member *fence_find(const struct fence *fence, raft_id id);
void fence_heard(struct fence *fence, raft_id id, instant now);
/* A member that was not heard lately: ask it for a sign of life. */
bool fence_wants_probe(const struct fence *fence, const struct fence_member *member, instant now);
span fence_look_every(const struct fence *fence);
span fence_hold(const struct fence *fence);

/* Call it every fence_look_every(). */
enum fence_action fence_look(struct fence *fence, const struct fence_situation *situation,
                             instant now);
/* A member's reply to the asking of `round`. */
void fence_take_reply(struct fence *fence, raft_id from, uint64_t round,
                      enum fence_refusal refusal);
/* The command has ended. True: it has proved the death of all members of fence->host. */
bool fence_take_exit(struct fence *fence, int exit_code, bool was_in_time, instant now);

struct fence_ask {
    raft_id from;
    uint64_t incarnation;
    uint64_t round;
    const raft_id *ids;
    size_t count;
    span hold;
};

/* As a voter. If it returns FENCE_GRANTED, a hold that is longer than any before must be stored
 * before the reply leaves. */
enum fence_refusal fence_take_ask(struct fence *fence, const struct fence_ask *ask, instant now);
/* Of that round: a late one ends no grant of a later round. */
void fence_take_release(struct fence *fence, raft_id from, uint64_t incarnation, uint64_t round);

const char *fence_refusal_name(enum fence_refusal refusal);

#endif
