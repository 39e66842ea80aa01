#include "provider/raft/fence.h"

#include "provider/raft/fence_mutants.h"

#include <stdlib.h>
#include <string.h>

#ifdef BATON_MUTANTS
enum fence_mutant fence_mutant;
#endif

enum { ROUND_MS_MIN = 100, ROUND_MS_MAX = 1000 };

/* ---- Members --------------------------------------------------------------------------------- */

void fence_init(struct fence *fence, const struct fence_settings *settings, raft_id self,
                span granted_max, instant now)
{
    *fence = (struct fence){.settings = *settings,
                            .self = self,
                            .looked = INSTANT_PAST,
                            .granted_until = INSTANT_PAST,
                            .silent_until = instant_add(now, granted_max)};
}

void fence_fini(struct fence *fence)
{
    free(fence->members);
    fence->members = NULL;
    fence->count = 0;
}

struct fence_member *fence_find(const struct fence *fence, raft_id id)
{
    for (size_t i = 0; i < fence->count; i++) {
        if (fence->members[i].id == id) {
            return &fence->members[i];
        }
    }
    return NULL;
}

int fence_set_members(struct fence *fence, const struct fence_member *members, size_t count,
                      bool is_joint, instant now)
{
    struct fence_member *copy = calloc(count + 1, sizeof(*copy));

    if (!copy) {
        return BATON_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct fence_member *before = fence_find(fence, members[i].id);
        copy[i] = members[i];
        copy[i].heard = before ? before->heard : now;
        copy[i].retry = before ? before->retry : INSTANT_PAST;
        copy[i].failures = before ? before->failures : 0;
        copy[i].has_granted = before && before->has_granted;
    }
    free(fence->members);
    fence->members = copy;
    fence->count = count;
    fence->is_joint = is_joint;
    return BATON_OK;
}

void fence_heard(struct fence *fence, raft_id id, instant now)
{
    struct fence_member *member = fence_find(fence, id);

    if (member) {
        member->heard = now;
        member->failures = 0;
        member->retry = INSTANT_PAST;
    }
}

bool fence_wants_probe(const struct fence *fence, const struct fence_member *member, instant now)
{
    return member->id != fence->self &&
           instant_since(now, member->heard).ns >= fence->settings.after.ns / 4;
}

/* ---- Times ----------------------------------------------------------------------------------- */

span fence_look_every(const struct fence *fence)
{
    return SPAN_NS(fence->settings.after.ns / FENCE_LOOKS);
}

static span round_of(const struct fence *fence)
{
    int64_t ns = fence->settings.after.ns / 2;

    ns = ns < SPAN_MS(ROUND_MS_MIN).ns ? SPAN_MS(ROUND_MS_MIN).ns : ns;
    return SPAN_NS(ns > SPAN_MS(ROUND_MS_MAX).ns ? SPAN_MS(ROUND_MS_MAX).ns : ns);
}

/* The command is begun within a round of the asking, and killed within another of its limit. */
span fence_hold(const struct fence *fence)
{
    int64_t needed = fence->settings.timeout.ns + 2 * round_of(fence).ns;
    int64_t ppm = fence->settings.drift_ppm;

    return SPAN_NS(needed / (1000000 - ppm) * (1000000 + ppm) + SPAN_MS(1).ns);
}

static instant silent_since(const struct fence *fence, uint64_t host)
{
    instant since = INSTANT_PAST;

    for (size_t i = 0; i < fence->count; i++) {
        if (fence->members[i].host == host) {
            since = instant_max(since, fence->members[i].heard);
        }
    }
    return since;
}

static bool is_silent(const struct fence *fence, uint64_t host, instant now)
{
    return instant_since(now, silent_since(fence, host)).ns >= fence->settings.after.ns;
}

/* ---- Whose turn it is ------------------------------------------------------------------------ */

static enum fence_worth worth_of(const struct fence *fence, uint64_t host)
{
    enum fence_worth worth = FENCE_NOTHING;

    for (size_t i = 0; i < fence->count; i++) {
        if (fence->members[i].host == host && fence->members[i].worth > worth) {
            worth = fence->members[i].worth;
        }
    }
    return worth;
}

static bool is_on(const struct fence *fence, raft_id id, uint64_t host)
{
    const struct fence_member *member = fence_find(fence, id);
    return member && member->host == host;
}

/* A member that is heard leads: only it may fence. Else the heir is first, then the others by their
 * ids, each one `after` later. Negative: it is never this member's turn. */
static int64_t rank_of(const struct fence *fence, const struct fence_situation *situation,
                       uint64_t host, instant now)
{
    const struct fence_member *leader = fence_find(fence, situation->leader);
    int64_t rank = 1;

    if (!situation->may_run || !fence->settings.has_command || is_on(fence, fence->self, host)) {
        return -1;
    }
    if (situation->leads) {
        return 0;
    }
    if (leader && leader->id != fence->self && !is_silent(fence, leader->host, now)) {
        return -1;
    }
    for (size_t i = 0; situation->heir != fence->self && i < fence->count; i++) {
        const struct fence_member *other = &fence->members[i];
        rank += other->id < fence->self && other->id != situation->heir && other->may_lead &&
                other->host != host;
    }
    return situation->heir == fence->self ? 0 : rank;
}

static bool is_due(const struct fence *fence, const struct fence_situation *situation,
                   const struct fence_member *member, instant now)
{
    int64_t rank = rank_of(fence, situation, member->host, now);
    instant since = silent_since(fence, member->host);

    return rank >= 0 && worth_of(fence, member->host) != FENCE_NOTHING &&
           !instant_before(now, member->retry) &&
           instant_since(now, since).ns / (rank + 1) >= fence->settings.after.ns;
}

static const struct fence_member *choose(const struct fence *fence,
                                         const struct fence_situation *situation, instant now)
{
    const struct fence_member *best = NULL;

    for (size_t i = 0; i < fence->count; i++) {
        const struct fence_member *member = &fence->members[i];
        if (is_due(fence, situation, member, now) &&
            (!best || worth_of(fence, member->host) > worth_of(fence, best->host))) {
            best = member;
        }
    }
    return best;
}

/* ---- Grants ---------------------------------------------------------------------------------- */

static bool is_majority(const struct fence *fence, bool of_old_half)
{
    uint64_t all = 0, granted = 0;

    for (size_t i = 0; i < fence->count; i++) {
        const struct fence_member *member = &fence->members[i];
        uint64_t weight = of_old_half ? member->old_weight : member->weight;
        all += weight;
        granted += member->has_granted ? weight : 0;
    }
    return 2 * granted > all;
}

static bool has_quorum(const struct fence *fence)
{
    return FENCE_MUTANT(WITHOUT_QUORUM) ||
           (is_majority(fence, false) && (!fence->is_joint || is_majority(fence, true)));
}

static void give_up_grants(struct fence *fence)
{
    for (size_t i = 0; i < fence->count; i++) {
        fence->members[i].has_granted = false;
    }
    if (fence->granted_to == fence->self) {
        fence->granted_until = INSTANT_PAST;
    }
}

/* Asks itself first: its own grant keeps it from granting to another. */
static enum fence_action ask(struct fence *fence, const struct fence_situation *situation,
                             instant now)
{
    struct fence_member *self = fence_find(fence, fence->self);
    const struct fence_ask own = {.from = fence->self,
                                  .incarnation = situation->incarnation,
                                  .round = ++fence->round,
                                  .hold = fence_hold(fence)};

    give_up_grants(fence);
    fence->state = FENCE_ASKING;
    fence->asked = now;
    fence->refusal = fence_take_ask(fence, &own, now);
    if (!self || fence->refusal != FENCE_GRANTED) { /* it is another member's turn */
        fence->state = FENCE_WATCHING;
        return FENCE_NONE;
    }
    self->has_granted = true;
    return FENCE_ASK;
}

static void put_off(struct fence *fence, instant now)
{
    for (size_t i = 0; i < fence->count; i++) {
        struct fence_member *member = &fence->members[i];
        int64_t wait = fence->settings.after.ns;
        if (member->host != fence->host) {
            continue;
        }
        for (uint32_t doubled = 0;
             doubled < member->failures && wait < SPAN_S(FENCE_BACKOFF_S_MAX).ns; doubled++) {
            wait *= 2;
        }
        if (wait > SPAN_S(FENCE_BACKOFF_S_MAX).ns) {
            wait = SPAN_S(FENCE_BACKOFF_S_MAX).ns;
        }
        member->failures++;
        member->retry = instant_add(now, SPAN_NS(wait));
    }
}

static enum fence_action release(struct fence *fence)
{
    give_up_grants(fence);
    fence->state = FENCE_WATCHING;
    fence->rounds = 0;
    return FENCE_RELEASE;
}

static enum fence_action look_while_asking(struct fence *fence,
                                           const struct fence_situation *situation, instant now)
{
    bool answers = !is_silent(fence, fence->host, now) && !FENCE_MUTANT(ANSWER_IGNORED);
    bool is_over = instant_since(now, fence->asked).ns >= round_of(fence).ns;

    if (answers || worth_of(fence, fence->host) == FENCE_NOTHING ||
        rank_of(fence, situation, fence->host, now) < 0) {
        return release(fence);
    }
    if (!is_over && has_quorum(fence)) {
        fence->state = FENCE_RUNNING;
        fence->rounds = 0;
        return FENCE_RUN;
    }
    if (!is_over) {
        return FENCE_NONE;
    }
    if (++fence->rounds >= FENCE_ROUNDS) {
        put_off(fence, now);
        return release(fence);
    }
    return ask(fence, situation, now);
}

/* After a look that came late this process had heard no one for a reason of its own. */
static void allow_for_sleep(struct fence *fence, instant now)
{
    span every = fence_look_every(fence);

    if (fence->looked.ns != INSTANT_PAST.ns && !FENCE_MUTANT(COUNTS_ASLEEP) &&
        instant_since(now, fence->looked).ns > 2 * every.ns) {
        for (size_t i = 0; i < fence->count; i++) {
            fence->members[i].heard = now;
        }
    }
    fence->looked = now;
}

enum fence_action fence_look(struct fence *fence, const struct fence_situation *situation,
                             instant now)
{
    const struct fence_member *member;

    allow_for_sleep(fence, now);
    fence_heard(fence, fence->self, now);
    if (fence->state == FENCE_RUNNING) {
        return FENCE_NONE;
    }
    if (fence->state == FENCE_ASKING) {
        return look_while_asking(fence, situation, now);
    }
    member = choose(fence, situation, now);
    if (!member) {
        return FENCE_NONE;
    }
    fence->host = member->host;
    return ask(fence, situation, now);
}

void fence_take_reply(struct fence *fence, raft_id from, uint64_t round, enum fence_refusal refusal)
{
    struct fence_member *member = fence_find(fence, from);

    if (!member || fence->state != FENCE_ASKING || round != fence->round) {
        return;
    }
    member->has_granted = refusal == FENCE_GRANTED;
    if (refusal != FENCE_GRANTED) {
        fence->refusal = refusal;
    }
}

bool fence_take_exit(struct fence *fence, int exit_code, bool was_in_time, instant now)
{
    bool is_proof = (exit_code == 0 && was_in_time) || FENCE_MUTANT(BELIEVES_ANY);

    if (!is_proof) {
        put_off(fence, now);
    }
    (void)release(fence);
    return is_proof;
}

/* ---- As a voter ------------------------------------------------------------------------------ */

/* To another member, to another process of this one, or to a later round of it. */
static bool has_granted_otherwise(const struct fence *fence, const struct fence_ask *ask,
                                  instant now)
{
    return instant_before(now, fence->granted_until) && !FENCE_MUTANT(GRANTS_TWICE) &&
           (fence->granted_to != ask->from || fence->granted_in != ask->incarnation ||
            fence->granted_round > ask->round);
}

static enum fence_refusal check_members(const struct fence *fence, const struct fence_ask *ask,
                                        instant now)
{
    for (size_t i = 0; i < ask->count; i++) {
        const struct fence_member *member = fence_find(fence, ask->ids[i]);
        if (!member) {
            return FENCE_UNKNOWN;
        }
        if (member->id == fence->self || is_on(fence, ask->from, member->host) ||
            !is_silent(fence, member->host, now)) {
            return FENCE_ANSWERS;
        }
    }
    return FENCE_GRANTED;
}

enum fence_refusal fence_take_ask(struct fence *fence, const struct fence_ask *ask, instant now)
{
    enum fence_refusal refusal = FENCE_GRANTED;

    if (fence->settings.after.ns <= 0) {
        return FENCE_OFF;
    }
    if (!fence_find(fence, ask->from)) {
        return FENCE_UNKNOWN;
    }
    if (instant_before(now, fence->silent_until) && !FENCE_MUTANT(FORGETS_GRANTS)) {
        return FENCE_STARTED;
    }
    if (has_granted_otherwise(fence, ask, now)) {
        return FENCE_TAKEN;
    }
    refusal = check_members(fence, ask, now);
    if (refusal == FENCE_GRANTED) {
        fence->granted_to = ask->from;
        fence->granted_in = ask->incarnation;
        fence->granted_round = ask->round;
        fence->granted_until = instant_add(now, ask->hold);
    }
    return refusal;
}

void fence_take_release(struct fence *fence, raft_id from, uint64_t incarnation, uint64_t round)
{
    if (fence->granted_to == from && fence->granted_in == incarnation &&
        fence->granted_round == round) {
        fence->granted_until = INSTANT_PAST;
    }
}

const char *fence_refusal_name(enum fence_refusal refusal)
{
    static const char *const names[FENCE_REFUSALS] = {
        "granted",
        "it has no fence-after",
        "it does not know a member of the host",
        "a process of the host answers it, or has until lately",
        "it has granted a fence to another member",
        "it has just started, and may have granted a fence before",
    };
    return refusal < FENCE_REFUSALS ? names[refusal] : "unknown";
}
