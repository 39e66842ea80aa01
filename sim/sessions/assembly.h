/* Processes that hold elections by sessions on a replicated log, in one thread: the real state
 * machine on every agent, the real keeper at the log's leader, the real client in each process, and
 * everything that goes wrong between them. The log is modelled by what the Raft core promises:
 * one order of entries, and never two leaders of it at one instant.
 *
 *   profile.c  draws from the seed what kind of assembly this is
 *   log.c      the log: its leader, proposals, commits; agents that apply them, late or anew
 *   report.c   what an agent reports to the processes of its host
 *   process.c  a process: the driver of its session's client
 *   wire.c     the queue of events; how long messages take, and which are lost
 *   faults.c   the faults                            checks.c  the rules after every event
 *   fences.c   hosts that are switched off, and what proves it
 *   play.c     the run: faults, then none            trace.c   the story of the run
 *
 * True time is an int64_t of nanoseconds that no process can see. A host is an agent, some
 * processes and their clock.
 */
#ifndef SIM_SESSIONS_ASSEMBLY_H
#define SIM_SESSIONS_ASSEMBLY_H

#include "sessions/client.h"
#include "sessions/keeper.h"
#include "sessions/mutants.h"
#include "sim/drift.h"
#include "sim/game.h"
#include "sim/random.h"
#include "sim/story.h"

#include <setjmp.h>

enum {
    AGENTS_MAX = 5,
    PROCESSES_MAX = 8,
    ASSEMBLY_ELECTIONS = 3,
    ASSEMBLY_EVENTS_MAX = 8192, /* scheduled at once */
    ASSEMBLY_LOG_MAX = 16384,
    NO_AGENT = -1,
};

/* ---- Planted bugs of the model; those of the core are in sessions/mutants.h ------------------ */

/* X(name, description) */
#define ASSEMBLY_MUTANTS(X)                                                                        \
    X(KEEPS_BEFORE_ITS_ENTRY, "a new leader renews sessions before it knows all earlier entries")  \
    X(RENEWS_WITHOUT_LEASE, "a leader renews sessions after its own lease has ended")              \
    X(CERTIFIED_WHILE_STOPPED, "an agent takes a stopped process for a dead one")                  \
    X(CERTIFIES_THE_NEXT_LIFE, "a certificate ends the session of the process's next life")        \
    X(OLD_LEADER_COMMITS, "an entry of an earlier leader commits after a new one's first")         \
    X(FENCE_ANY_EXIT, "a fence command that failed counts as a proof")                             \
    X(FENCE_COUNTS_TO_ITS_END, "a fence ends the sessions that attached while its command ran")    \
    X(FENCE_FORGOTTEN, "an agent that begins to lead the log does not count its earlier fences")

enum assembly_mutant {
    ASSEMBLY_MUTANT_NONE,
#define ASSEMBLY_MUTANT_ENUM(name, text) ASSEMBLY_MUTANT_##name,
    ASSEMBLY_MUTANTS(ASSEMBLY_MUTANT_ENUM)
#undef ASSEMBLY_MUTANT_ENUM
        ASSEMBLY_MUTANT_COUNT
};

extern _Thread_local enum assembly_mutant assembly_mutant;
#define ASSEMBLY_MUTANT(name) (assembly_mutant == ASSEMBLY_MUTANT_##name)

/* ---- The profile ----------------------------------------------------------------------------- */

/* X(name, text) */
#define ASSEMBLY_FAULTS(X)                                                                         \
    X(CRASH, "crash")                                                                              \
    X(PAUSE, "pause")                                                                              \
    X(PAUSE_HOLDER, "pause-holder")                                                                \
    X(LEAVE, "leave")                                                                              \
    X(RESIGN, "resign")                                                                            \
    X(WANT, "want")                                                                                \
    X(PASS, "pass")                                                                                \
    X(CORDON, "cordon")                                                                            \
    X(AGENT_CRASH, "agent-crash")                                                                  \
    X(AGENT_LAG, "agent-lag")                                                                      \
    X(AGENT_INSTALL, "agent-install")                                                              \
    X(CUT, "cut")                                                                                  \
    X(CUT_LEADER, "cut-leader")                                                                    \
    X(PASS_LOG, "pass-log")                                                                        \
    X(CLOCK_RATE, "clock-rate")

enum assembly_fault {
#define ASSEMBLY_FAULT_ENUM(name, text) ASSEMBLY_FAULT_##name,
    ASSEMBLY_FAULTS(ASSEMBLY_FAULT_ENUM)
#undef ASSEMBLY_FAULT_ENUM
        ASSEMBLY_FAULT_COUNT
};

struct assembly_profile {
    const char *name;
    struct lease_settings settings; /* of each session; its lease is at least least_lease */
    span least_lease;
    int64_t renew_percent; /* the renew interval, of the lease */
    span log_lease;        /* of the log's leader */
    size_t agents, processes;
    uint32_t events;   /* of the phase with faults */
    int64_t delay;     /* of a message, at least, in ns */
    int64_t jitter;    /* on top, at most */
    int64_t tail;      /* a straggler's, at most */
    int64_t down_time; /* of a process or an agent, at most */
    int64_t nag_every; /* how often a process looks whether its orders were carried out */
    int64_t drift_ppm; /* the real bound of clocks; above the declared one with --break-drift */
    uint32_t loss_ppm, tail_ppm, certificate_ppm, own_ppm;
    uint32_t repeat_ppm;       /* an order is proposed twice */
    uint32_t late_renewal_ppm; /* a renewal is under way for up to a lease */
    int64_t fault_every;
    int64_t fence_every; /* 0: never */
    uint32_t fault_weight[ASSEMBLY_FAULT_COUNT];
    uint32_t fault_weight_sum;
};

/* ---- Agents and the log ---------------------------------------------------------------------- */

struct assembly_entry {
    uint64_t term;
    bool is_first; /* of its term; holds no order */
    struct session_order order;
};

struct assembly;

struct assembly_agent {
    struct assembly *assembly;
    int number; /* 0, 1, … */
    bool is_up;
    uint64_t life;
    struct drift_clock clock;  /* the host's */
    struct sessions *sessions; /* as of `applied`; NULL while it is down */
    uint64_t applied;
    bool is_silent;       /* reports no change: it catches up after a start */
    bool is_refused;      /* an END, and that is told in a moment */
    struct keeper keeper; /* begun if it leads the log */
    uint64_t led_term;    /* in which it leads, as it believes; 0: none */
    instant lease_end;    /* by its own clock */
    uint64_t tick;        /* number of the valid tick of the keeper */
    int64_t cut_until;    /* neither its own messages nor those of its processes get through */
    int64_t lags_until;   /* it applies nothing before */
    uint64_t proved[AGENTS_MAX]; /* the incarnations of each agent up to this are dead */
    uint64_t fenced[AGENTS_MAX]; /* and the processes that had attached there by this entry */
};

/* The latest fence: one runs at a time in a group. */
struct assembly_fence {
    uint64_t number;
    int host;
    uint64_t index;       /* that the asking agent had applied when the command began */
    uint64_t incarnation; /* of the host's agent then */
    bool is_off;          /* the host has been switched off since */
    int64_t until;        /* the command runs */
};

/* ---- Processes ------------------------------------------------------------------------------- */

/* What a process knows of an election, whatever becomes of its agent. */
struct assembly_memory {
    uint64_t known;    /* the latest epoch in which it has acted */
    uint64_t given_up; /* the latest epoch that it has given up */
    uint64_t epoch;    /* in which it acts by an earlier agent's lease; 0: it does not */
    instant end;       /* of that lease */
    uint64_t regrets;  /* given up before the present client knew that it acts there */
    bool is_claimed;   /* of the present client */
};

struct assembly_process {
    int number;
    int host; /* number of its agent */
    bool is_up;
    uint64_t life;                 /* of its client */
    uint32_t starts;               /* each has a secret of its own */
    bool is_own;                   /* its agent's own process: they die together */
    bool is_attached;              /* its agent has its client: it acts on when the agent dies */
    struct session_client *client; /* NULL while it is down, or its agent is that has it */
    uint64_t session;              /* of the client before; 0: none */
    struct assembly_memory of[ASSEMBLY_ELECTIONS];
    bool is_wanted[ASSEMBLY_ELECTIONS];
    uint64_t tick;        /* number of the valid tick */
    int64_t paused_until; /* it is stopped until then, and hears its agent only `wake` later */
    int64_t wake;
    int64_t heard_at;      /* the last message of its agent arrives */
    uint64_t dead_session; /* of the life before, which its agent may certify; 0: none */
};

/* ---- Events ---------------------------------------------------------------------------------- */

enum assembly_event_kind {
    ASSEMBLY_TICK,     /* of a process's client; .number */
    ASSEMBLY_NAG,      /* a process, or an agent for the dead ones, looks and asks again */
    ASSEMBLY_START,    /* a process that was down starts */
    ASSEMBLY_FIND,     /* a process finds that its agent has started */
    ASSEMBLY_HEAR,     /* .input: a process hears its agent, in order */
    ASSEMBLY_RENEWED,  /* .input: the reply to a renewal reaches a process */
    ASSEMBLY_PROOF,    /* .number: an agent hears that these incarnations of .host are dead */
    ASSEMBLY_RENEW,    /* .session, .number: the request: reaches the log's leader */
    ASSEMBLY_PROPOSE,  /* .order reaches the log's leader */
    ASSEMBLY_COMMIT,   /* .order, .term */
    ASSEMBLY_APPLY,    /* an agent hears that .number entries are committed */
    ASSEMBLY_KEEP,     /* tick of a keeper; .number */
    ASSEMBLY_REFUSED,  /* an agent hears that the log refused an END */
    ASSEMBLY_LEAD,     /* the log's leader extends its lease, or another one follows */
    ASSEMBLY_AGENT_UP, /* an agent that was down starts */
    ASSEMBLY_FENCE,    /* an agent begins to fence a host */
    ASSEMBLY_OFF,      /* .host is switched off by the fence of this .number */
    ASSEMBLY_FENCED,   /* an agent's fence command of this .number has ended */
    ASSEMBLY_FAULT,
};

struct assembly_event {
    int64_t at;
    uint64_t rank; /* equal times: first in, first out */
    enum assembly_event_kind kind;
    int process; /* number, or -1 */
    int agent;   /* number, or NO_AGENT */
    uint64_t life;
    uint64_t number;
    uint64_t term;
    uint64_t session;
    int election;
    int host;
    union {
        struct session_order order;
        struct session_input input;
    };
};

/* ---- The run --------------------------------------------------------------------------------- */

enum {
    ASSEMBLY_COUNT_GRANTS,
    ASSEMBLY_COUNT_ENTRIES,
    ASSEMBLY_COUNT_CRASHES,
    ASSEMBLY_COUNT_TERMS
};

struct assembly {
    struct options options;
    struct assembly_profile profile;
    struct random random;
    struct random aside; /* of fences: without them a seed plays what it did before */
    struct assembly_agent agents[AGENTS_MAX];
    struct assembly_process processes[PROCESSES_MAX];
    struct assembly_event queue[ASSEMBLY_EVENTS_MAX];
    size_t queued;
    uint64_t ranks;
    struct assembly_entry log[ASSEMBLY_LOG_MAX];
    uint64_t length;                        /* of the log */
    bool has_expired[ASSEMBLY_LOG_MAX + 1]; /* by session: an entry ended it for its lifetime */
    struct sessions *truth;                 /* after all entries */
    uint64_t term;
    int leader; /* of the log; NO_AGENT */
    struct story story;
    int64_t now;
    bool is_calm;
    struct assembly_fence fence;
    uint64_t highest[ASSEMBLY_ELECTIONS]; /* epoch in which a process has acted */
    jmp_buf violated;
    struct result result;
};

static inline const char *assembly_name(int election)
{
    static const char *const names[ASSEMBLY_ELECTIONS] = {"red", "green", "blue"};
    return names[election];
}

static inline int assembly_election_of(const char *name)
{
    int election = 0;

    while (election < ASSEMBLY_ELECTIONS - 1 && name[0] != assembly_name(election)[0]) {
        election++;
    }
    return election;
}

/* A number of an order that says whose it is. */
static inline uint64_t assembly_pack_request(const struct assembly_process *process,
                                             uint64_t request)
{
    return request == 0 ? 0 : process->life << 44 | (uint64_t)process->number << 40 | request;
}

static inline uint64_t assembly_incarnation(const struct assembly_agent *agent)
{
    return agent->life + 1;
}

/* A process names its sessions by its number. */
static inline int assembly_number_of(const char *name)
{
    return name[0] - '0';
}

#endif
