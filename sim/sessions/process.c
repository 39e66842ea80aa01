#include "sim/sessions/process.h"

#include "base/invariant.h"
#include "sim/sessions/acting.h"
#include "sim/sessions/log.h"
#include "sim/sessions/profile.h"
#include "sim/sessions/report.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

#include <stdio.h>
#include <string.h>

enum { WRONG_SESSION_PPM = 100000 };

static const struct drift_clock *clock_of(const struct assembly *assembly,
                                          const struct assembly_process *process)
{
    return &assembly->agents[process->host].clock;
}

/* ---- The driver of its client ---------------------------------------------------------------- */

void process_rearm(struct assembly *assembly, struct assembly_process *process)
{
    int64_t at;

    process->tick++;
    if (process->client) {
        at = drift_true(clock_of(assembly, process), session_client_deadline(process->client));
        if (at != INT64_MAX) {
            assembly_push_process(assembly, process, ASSEMBLY_TICK, at)->number = process->tick;
        }
    }
}

static int election_of(const struct assembly_process *process, const void *userdata)
{
    return (int)((const bool *)userdata - process->is_wanted);
}

/* The client acts by a lease of its own now; unless the process has thought better of it. */
static void take_acquired(struct assembly_process *process, int election, uint64_t epoch)
{
    struct assembly_memory *memory = &process->of[election];

    memory->known = epoch;
    memory->epoch = 0;
    if (epoch <= memory->regrets) {
        (void)session_client_resign(process->client, assembly_name(election), epoch, 0);
    }
}

static void take_lost(struct assembly_process *process, const struct session_event *event)
{
    struct assembly_memory *memory = &process->of[election_of(process, event->userdata)];

    if (event->loss == LEASE_LOSS_RESIGNED && event->epoch > memory->given_up) {
        memory->given_up = event->epoch;
    }
}

static void note(struct assembly *assembly, struct assembly_process *process,
                 const struct session_event *event)
{
    const char *name =
        event->userdata ? assembly_name(election_of(process, event->userdata)) : "its session";

    if (event->type == SESSION_EV_ACQUIRED) {
        take_acquired(process, election_of(process, event->userdata), event->epoch);
        assembly->result.counts[ASSEMBLY_COUNT_GRANTS]++;
        assembly_say(assembly, process->number, -1, "LEADS %s, epoch %llu", name,
                     (unsigned long long)event->epoch);
    } else if (event->type == SESSION_EV_ASKED) {
        (void)session_client_resign(process->client, name, event->epoch, 0);
    } else {
        if (event->type == SESSION_EV_LOST) {
            take_lost(process, event);
        }
        assembly_say(assembly, process->number, -1, "event %d of %s, epoch %llu", (int)event->type,
                     name, (unsigned long long)event->epoch);
    }
}

static void drive(struct assembly *assembly, struct assembly_process *process)
{
    struct session_event event;
    struct session_order order;
    uint64_t session, request;

    while (session_client_next_event(process->client, &event)) {
        note(assembly, process, &event);
    }
    while (session_client_next_renewal(process->client, &session, &request)) {
        log_renew(assembly, process, session, request);
    }
    while (session_client_next_order(process->client, process_local(assembly, process), &order)) {
        assembly_say(assembly, process->number, -1, "orders %d of %s, epoch %llu", (int)order.type,
                     order.name, (unsigned long long)order.epoch);
        order.node = (uint64_t)process->host + 1;
        order.request = assembly_pack_request(process, order.request);
        log_order(assembly, process->host, &order);
    }
    process_rearm(assembly, process);
}

static void step(struct assembly *assembly, struct assembly_process *process,
                 const struct session_input *input)
{
    session_client_step(process->client, input, process_local(assembly, process),
                        random_next(&assembly->random));
    drive(assembly, process);
}

/* ---- What its user does ---------------------------------------------------------------------- */

static void enter(struct assembly_process *process, int election)
{
    int code =
        session_client_enter(process->client, assembly_name(election),
                             (process->number + election) % 3, true, &process->is_wanted[election]);

    INVARIANT(code == BATON_OK);
}

/* Enters an election, and first tells a new client what it does not know of it. */
static void claim(struct assembly *assembly, struct assembly_process *process, int election)
{
    struct assembly_memory *memory = &process->of[election];
    bool acts = memory->epoch != 0 && memory->epoch == memory->known &&
                instant_before(process_local(assembly, process), memory->end);
    int code = BATON_OK;

    if (!memory->is_claimed) {
        memory->is_claimed = true;
        code = memory->known == 0 ? BATON_OK
                                  : session_client_recall(process->client, assembly_name(election),
                                                          memory->known, acts);
    }
    INVARIANT(code == BATON_OK);
    enter(process, election);
}

/* It stops acting by what an earlier agent granted. */
static void regret(struct assembly_process *process, int election)
{
    struct assembly_memory *memory = &process->of[election];

    if (memory->epoch != 0 && memory->is_claimed) {
        memory->regrets = memory->epoch;
    }
    if (memory->epoch > memory->given_up) {
        memory->given_up = memory->epoch;
    }
    memory->epoch = 0;
}

void process_resign(struct assembly *assembly, struct assembly_process *process, int election)
{
    const char *name = assembly_name(election);

    regret(process, election);
    if (process->client) {
        (void)session_client_resign(process->client, name,
                                    session_client_epoch(process->client, name), 0);
        drive(assembly, process);
    }
}

void process_set_wanted(struct assembly *assembly, struct assembly_process *process, int election,
                        bool is_wanted)
{
    if (!process->is_up || process->is_wanted[election] == is_wanted) {
        return;
    }
    process->is_wanted[election] = is_wanted;
    if (!is_wanted) {
        regret(process, election);
    }
    if (!process->client) {
        return;
    }
    if (is_wanted) {
        claim(assembly, process, election);
    } else {
        session_client_withdraw(process->client, assembly_name(election));
    }
    drive(assembly, process);
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Of whatever process. */
static uint64_t any_session(struct assembly *assembly)
{
    const struct session *at = NULL;
    uint64_t found = 0, seen = 0;

    while ((at = sessions_next(assembly->truth, at))) {
        if (random_below(&assembly->random, ++seen) == 0) {
            found = at->id;
        }
    }
    return found;
}

static struct session_client *new_client(struct assembly *assembly,
                                         const struct assembly_process *process)
{
    struct session_client_options options = {.lease = assembly->profile.settings,
                                             .resume = process->session};
    struct session_client *client;

    options.lease.lease = assembly_draw_lease(assembly);
    options.lease.renew_interval =
        SPAN_NS(options.lease.lease.ns / 100 * assembly->profile.renew_percent);
    options.incarnation =
        process->is_own ? assembly_incarnation(&assembly->agents[process->host]) : 0;
    (void)snprintf(options.name, sizeof(options.name), "%d", process->number);
    options.secret[0] = (uint8_t)process->number;
    memcpy(options.secret + 1, &process->starts, sizeof(process->starts));
    if (options.resume != 0 && random_chance(&assembly->random, WRONG_SESSION_PPM)) {
        options.resume = any_session(assembly);
    }
    client = session_client_new(&options);
    INVARIANT(client != NULL);
    return client;
}

/* Whether it is the agent's own process in this life. */
static bool draw_is_own(struct assembly *assembly, const struct assembly_process *process)
{
    bool is_own = assembly->agents[process->host].is_up &&
                  random_chance(&assembly->random, assembly->profile.own_ppm);

    for (size_t i = 0; i < assembly->profile.processes; i++) {
        const struct assembly_process *other = &assembly->processes[i];
        is_own = is_own && !(other->is_up && other->is_own && other->host == process->host);
    }
    return is_own;
}

/* What it wants, it claims at once or later. */
static void begin_client(struct assembly *assembly, struct assembly_process *process)
{
    process->life++;
    process->client = new_client(assembly, process);
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        process->of[i].is_claimed = false;
        process->of[i].regrets = 0;
        if (process->is_wanted[i] && random_chance(&assembly->random, 500000)) {
            claim(assembly, process, i);
        }
    }
    report_greeting(assembly, process);
    assembly_push_process(assembly, process, ASSEMBLY_NAG,
                          assembly->now + assembly->profile.nag_every);
}

void process_start(struct assembly *assembly, struct assembly_process *process)
{
    process->is_own = draw_is_own(assembly, process);
    process->is_attached = !process->is_own && random_chance(&assembly->random, 500000);
    process->is_up = true;
    process->starts++;
    process->paused_until = process->wake = 0;
    process->session = 0;
    memset(process->of, 0, sizeof(process->of));
    assembly_say(assembly, process->number, -1, "starts%s",
                 process->is_own ? ", as its agent's own" : "");
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        process->is_wanted[i] = random_chance(&assembly->random, 800000);
    }
    if (!process->is_attached || assembly->agents[process->host].is_up) {
        begin_client(assembly, process);
    }
}

void process_lose_agent(struct assembly *assembly, struct assembly_process *process)
{
    const struct session_client_lease lease = session_client_lease(process->client);

    if (!process->is_attached) {
        (void)report_speak(assembly, process, SESSION_IN_DOWN);
        return;
    }
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        uint64_t epoch = session_client_epoch(process->client, assembly_name(i));
        if (epoch != 0) {
            process->of[i].epoch = epoch;
            process->of[i].end = lease.end;
        } else if (lease.session != 0 && lease.session != process->session) {
            process->of[i].epoch = 0;
        }
    }
    process->session = lease.session != 0 ? lease.session : process->session;
    session_client_free(process->client);
    process->client = NULL;
    process->life++; /* what was said to this client reaches no other */
    process->tick++;
}

/* An attached one resumes its session there. */
static void find_agent(struct assembly *assembly, struct assembly_process *process)
{
    if (process->client) {
        report_greeting(assembly, process);
    } else {
        assembly_say(assembly, process->number, -1, "resumes session %llu",
                     (unsigned long long)process->session);
        begin_client(assembly, process);
    }
}

void process_drop(struct assembly_process *process)
{
    process->is_up = false;
    session_client_free(process->client);
    process->client = NULL;
}

static uint64_t session_of(const struct assembly_process *process)
{
    uint64_t session = process->client ? session_client_lease(process->client).session : 0;

    return session != 0 ? session : process->session;
}

static void end(struct assembly *assembly, struct assembly_process *process)
{
    process_drop(process);

    assembly_push_process(assembly, process, ASSEMBLY_START,
                          assembly->now +
                              random_between(&assembly->random, 0, assembly->profile.down_time));
}

void process_crash(struct assembly *assembly, struct assembly_process *process)
{
    bool is_certified =
        !process->is_own && random_chance(&assembly->random, assembly->profile.certificate_ppm);

    assembly_say(assembly, process->number, -1, "is killed");
    assembly->result.counts[ASSEMBLY_COUNT_CRASHES]++;
    process->dead_session = is_certified ? session_of(process) : 0;
    end(assembly, process);
}

void process_leave(struct assembly *assembly, struct assembly_process *process)
{
    assembly_say(assembly, process->number, -1, "leaves");
    if (process->client) {
        session_client_leave(process->client, process_local(assembly, process),
                             random_next(&assembly->random));
        drive(assembly, process);
    }
    end(assembly, process);
}

void process_pause(struct assembly *assembly, struct assembly_process *process, int64_t until)
{
    if (!process->is_up || assembly->now < process->paused_until + process->wake) {
        return;
    }
    assembly_say(assembly, process->number, -1, "is stopped");
    process->paused_until = until;
    process->wake = random_between(&assembly->random, 0, assembly->profile.delay);
    if (ASSEMBLY_MUTANT(CERTIFIED_WHILE_STOPPED)) {
        process->dead_session = session_of(process);
    }
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Claims what it has not claimed yet. In calm it takes back what operators forbade: then every
 * election that is wanted has a leader. */
static void nag(struct assembly *assembly, struct assembly_process *process)
{
    const struct sessions *sessions = assembly->truth;
    const struct session *session =
        sessions_find(sessions, session_client_lease(process->client).session);

    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        const struct session_contender *me =
            sessions_contender(sessions_election(sessions, assembly_name(i)), session);
        bool is_cordoned = assembly->is_calm && me && !me->is_eligible;
        if (process->is_wanted[i] && (is_cordoned || !process->of[i].is_claimed)) {
            claim(assembly, process, i);
        }
    }
    drive(assembly, process);
    assembly_push_process(assembly, process, ASSEMBLY_NAG,
                          assembly->now + assembly->profile.nag_every);
}

static void take(struct assembly *assembly, struct assembly_process *process,
                 const struct assembly_event *event)
{
    struct session_input input = event->input;

    if (event->kind == ASSEMBLY_TICK && event->number == process->tick) {
        input = (struct session_input){.type = SESSION_IN_TICK};
        step(assembly, process, &input);
    } else if (event->kind == ASSEMBLY_HEAR || event->kind == ASSEMBLY_RENEWED) {
        step(assembly, process, &input);
    } else if (event->kind == ASSEMBLY_NAG) {
        nag(assembly, process);
    }
}

/* A stopped process handles what waits in any order, timers before messages or after; its agent's
 * messages among themselves in the order in which they were sent. */
static bool is_delayed(struct assembly *assembly, const struct assembly_process *process,
                       const struct assembly_event *event)
{
    bool is_in_order = event->kind == ASSEMBLY_HEAR;
    struct assembly_event *later;
    int64_t at;
    uint64_t rank;

    if (assembly->now >= process->paused_until + (is_in_order ? process->wake : 0)) {
        return false;
    }
    later = assembly_push(
        assembly, event->kind,
        process->paused_until +
            (is_in_order ? process->wake
                         : random_between(&assembly->random, 0, assembly->profile.delay)));
    at = later->at;
    rank = later->rank;
    *later = *event;
    later->at = at;
    later->rank = rank;
    return true;
}

void process_happen(struct assembly *assembly, struct assembly_process *process,
                    const struct assembly_event *event)
{
    if (process->life != event->life) {
        return;
    }
    if (event->kind == ASSEMBLY_START) {
        if (!process->is_up) {
            process_start(assembly, process);
        }
    } else if (event->kind == ASSEMBLY_FIND && process->is_up &&
               assembly->agents[process->host].is_up) {
        find_agent(assembly, process);
    } else if (process->client && !is_delayed(assembly, process, event)) {
        take(assembly, process, event);
    }
}
