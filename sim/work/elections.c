#include "sim/work/elections.h"

#include "sim/work/checks.h"
#include "sim/work/lookup.h"
#include "sim/work/trace.h"
#include "sim/work/wire.h"

void elections_begin(struct yard *yard)
{
    for (int i = 0; i < YARD_ELECTIONS; i++) {
        yard->elections[i] = (struct yard_election){.holder = YARD_NOBODY};
    }
}

/* ---- Grants ---------------------------------------------------------------------------------- */

void election_contend(struct yard *yard, int election)
{
    struct yard_election *e = &yard->elections[election];

    if (e->holder == YARD_NOBODY && !e->is_granting) {
        e->is_granting = true;
        yard_push(yard, YARD_GRANT, yard->now + yard_way(yard))->election = election;
    }
}

static bool is_reachable(const struct yard *yard, const struct yard_process *process)
{
    return process->is_up && yard->now >= process->stopped_until && yard->now >= process->cut_until;
}

/* As the worker whose election it is. */
static bool wants_as_worker(const struct yard *yard, const struct yard_process *process,
                            int election)
{
    return election != YARD_POOL && election_worker(election) == process->number &&
           is_reachable(yard, process) && process->working.core && process->working.session == 0;
}

static bool wants_as_leader(const struct yard *yard, const struct yard_process *process,
                            int election)
{
    if (!process->is_candidate || !is_reachable(yard, process)) {
        return false;
    }
    return election == YARD_POOL
               ? !process->leading.core
               : process->leading.core && election_worker(election) != process->number &&
                     process->leading.is_entered[election_worker(election)];
}

void election_say_epoch(struct yard *yard, const struct yard_process *process, int election)
{
    const struct yard_election *e = &yard->elections[election];
    struct yard_event *event =
        yard_push_process(yard, process, YARD_EPOCH, yard->now + yard_way(yard));

    event->election = election;
    event->epoch = e->epoch;
    event->is_ours = e->is_leaders && e->holder == process->number && e->life == process->life;
}

static void say_elected(struct yard *yard, const struct yard_process *process, int election)
{
    struct yard_event *event =
        yard_push_process(yard, process, YARD_ELECTED, yard->now + yard_way(yard));

    event->election = election;
    event->epoch = yard->elections[election].epoch;
}

/* All that contend for a worker's election hear the epoch. */
static void announce(struct yard *yard, int election)
{
    const struct yard_election *e = &yard->elections[election];

    if (!e->is_leaders) {
        say_elected(yard, &yard->processes[e->holder], election);
    }
    for (size_t i = 0; election != YARD_POOL && i < yard->profile.candidates; i++) {
        const struct yard_process *candidate = &yard->processes[i];
        if (candidate->leading.core && candidate->leading.is_entered[election_worker(election)]) {
            election_say_epoch(yard, candidate, election);
        }
    }
}

static uint64_t next_epoch(struct yard *yard, const struct yard_election *e)
{
    uint64_t next = e->epoch + 1 + random_below(&yard->random, 3);
    uint64_t by_time = 1000 + (uint64_t)yard->now / 1000000;

    return yard->profile.may_forget && by_time > next ? by_time : next;
}

static void grant_to(struct yard *yard, int election, struct yard_process *process, bool is_leaders)
{
    struct yard_election *e = &yard->elections[election];

    e->epoch = next_epoch(yard, e);
    e->holder = process->number;
    e->life = process->life;
    e->is_leaders = is_leaders;
    e->until = INT64_MAX;
    e->number++;
    if (election == YARD_POOL) {
        yard_say(yard, process->number, "is to LEAD, epoch %llu", (unsigned long long)e->epoch);
    } else {
        yard_say(yard, process->number, "gets the election of p%d%s, epoch %llu",
                 election_worker(election), is_leaders ? " as the leader" : "",
                 (unsigned long long)e->epoch);
    }
    announce(yard, election);
}

static void grant(struct yard *yard, int election)
{
    struct yard_election *e = &yard->elections[election];
    struct yard_process *found = NULL;
    bool is_leaders = false;
    uint64_t seen = 0;

    e->is_granting = false;
    for (size_t i = 0; i < yard->process_count; i++) {
        struct yard_process *process = &yard->processes[i];
        if (wants_as_worker(yard, process, election) && random_below(&yard->random, ++seen) == 0) {
            found = process;
            is_leaders = false;
        }
        if (wants_as_leader(yard, process, election) && random_below(&yard->random, ++seen) == 0) {
            found = process;
            is_leaders = election != YARD_POOL;
        }
    }
    if (found) {
        grant_to(yard, election, found, is_leaders);
    }
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void end_at(struct yard *yard, int election, int64_t at)
{
    struct yard_election *e = &yard->elections[election];
    struct yard_event *event;

    e->until = at > yard->now ? at : yard->now;
    e->number++;
    event = yard_push(yard, YARD_LEASE_END, e->until);
    event->election = election;
    event->number = e->number;
}

static void set_free(struct yard *yard, int election)
{
    struct yard_election *e = &yard->elections[election];

    if (!e->is_leaders) {
        yard_check_session_over(yard, election);
    }
    e->holder = YARD_NOBODY;
    e->number++;
    election_contend(yard, election);
}

void election_release(struct yard *yard, int election, const struct yard_process *process,
                      uint64_t epoch)
{
    if (election_is_held_by(yard, election, process, epoch)) {
        set_free(yard, election);
    }
}

static bool is_holder(const struct yard_election *e, const struct yard_process *process)
{
    return e->holder == process->number && e->life == process->life;
}

static int64_t rest_of_lease(struct yard *yard)
{
    return yard->profile.lease.ns / 100 * random_between(&yard->random, 40, 100);
}

/* A worker's own clock ends its lease before the election does. */
static void end_session_at(struct yard *yard, struct yard_process *process, int64_t at)
{
    int64_t margin = 1 + random_between(&yard->random, 0, yard->profile.lease.ns / 20);

    int64_t early = random_between(&yard->random, 0, yard->profile.lease.ns / 4);

    process->working.session_end = at - margin;
    if (random_chance(&yard->random, 500000)) {
        yard_push_process(yard, process, YARD_JEOPARDY, at - margin - early)->epoch =
            process->working.session;
    }
    yard_push_process(yard, process, YARD_SESSION_END, at - margin)->epoch =
        process->working.session;
}

void elections_unreachable(struct yard *yard, struct yard_process *process, bool is_stopped)
{
    for (int i = 0; i < YARD_ELECTIONS; i++) {
        struct yard_election *e = &yard->elections[i];
        if (!is_holder(e, process) || e->until != INT64_MAX) {
            continue;
        }
        end_at(yard, i, yard->now + rest_of_lease(yard));
        if (i != YARD_POOL && !e->is_leaders && process->working.session == e->epoch) {
            end_session_at(yard, process, e->until);
        }
        if (is_stopped && YARD_MUTANT(STOPPED_IS_DEAD)) {
            end_at(yard, i, yard->now);
        }
    }
}

void elections_reachable(struct yard *yard, struct yard_process *process)
{
    for (int i = 0; i < YARD_ELECTIONS; i++) {
        struct yard_election *e = &yard->elections[i];
        bool is_own = i != YARD_POOL && !e->is_leaders;
        if (is_holder(e, process) && yard->now < e->until &&
            !(is_own && yard->now >= process->working.session_end)) {
            e->until = INT64_MAX;
            e->number++;
            if (is_own) {
                process->working.session_end = INT64_MAX;
                say_elected(yard, process, i);
            }
        }
        election_contend(yard, i);
    }
}

void elections_crash(struct yard *yard, const struct yard_process *process)
{
    for (int i = 0; i < YARD_ELECTIONS; i++) {
        struct yard_election *e = &yard->elections[i];
        bool is_proved = random_chance(&yard->random, yard->profile.proof_ppm);
        int64_t at = yard->now + (is_proved ? yard_way(yard) : rest_of_lease(yard));
        if (is_holder(e, process) && at < e->until) {
            end_at(yard, i, at);
        }
    }
}

void election_depose(struct yard *yard)
{
    const struct yard_election *e = &yard->elections[YARD_POOL];

    if (e->holder != YARD_NOBODY && e->until == INT64_MAX) {
        yard_say(yard, e->holder, "is deposed and does not know it");
        end_at(yard, YARD_POOL, yard->now);
    }
}

/* A leader acts on until it learns of it. */
static void end_lease(struct yard *yard, int election)
{
    const struct yard_election *e = &yard->elections[election];
    struct yard_event *event;

    if (election == YARD_POOL) {
        event = yard_push(yard, YARD_DEPOSED,
                          yard->now + random_between(&yard->random, 0, yard->profile.denial));
        event->process = e->holder;
        event->life = e->life;
        event->epoch = e->epoch;
    }
    yard_say(yard, YARD_NOBODY, "the lease of p%d in election %d ends", e->holder, election);
    set_free(yard, election);
}

void elections_happen(struct yard *yard, const struct yard_event *event)
{
    if (event->kind == YARD_GRANT) {
        grant(yard, event->election);
    } else if (event->kind == YARD_RELEASE) {
        election_release(yard, event->election, &yard->processes[event->process], event->epoch);
    } else if (event->number == yard->elections[event->election].number) {
        end_lease(yard, event->election);
    }
}
