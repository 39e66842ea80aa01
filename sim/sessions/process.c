#include "sim/sessions/process.h"

#include "sim/sessions/acting.h"
#include "sim/sessions/log.h"
#include "sim/sessions/profile.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

#include <stdio.h>

static const struct drift_clock *clock_of(const struct assembly *assembly,
                                          const struct assembly_process *process)
{
    return &assembly->agents[process->host].clock;
}

/* ---- Orders ---------------------------------------------------------------------------------- */

static void order_about(struct assembly *assembly, const struct assembly_process *process,
                        enum session_order_type type, int election, uint64_t epoch)
{
    struct session_order order = {.type = type,
                                  .session = process->update.epoch,
                                  .epoch = epoch,
                                  .is_eligible = true,
                                  .priority = (process->number + election) % 3};

    (void)snprintf(order.name, sizeof(order.name), "%s", assembly_name(election));
    assembly_say(assembly, process->number, -1, "orders %d of %s, epoch %llu", (int)type,
                 order.name, (unsigned long long)epoch);
    log_order(assembly, process->host, &order);
}

/* It stops acting first. */
static void give_up(struct assembly *assembly, struct assembly_process *process, int election,
                    bool is_late)
{
    struct assembly_holding *holding = &process->holdings[election];

    if (holding->epoch == 0) {
        return;
    }
    holding->given_up = holding->epoch;
    if (is_late) {
        struct assembly_event *event = assembly_push_process(
            assembly, process, ASSEMBLY_VOID, assembly->now + 8 * assembly_way(assembly));
        event->election = election;
        event->number = holding->epoch;
    } else {
        holding->epoch = 0;
    }
}

void process_resign(struct assembly *assembly, struct assembly_process *process, int election)
{
    struct assembly_holding *holding = &process->holdings[election];

    if (process->is_up && process_has_session(assembly, process) && holding->epoch != 0 &&
        holding->epoch != holding->given_up) {
        give_up(assembly, process, election, ASSEMBLY_MUTANT(RESIGNS_BEFORE_VOID));
        order_about(assembly, process, SESSION_RESIGN, election, holding->given_up);
    }
}

void process_set_wanted(struct assembly *assembly, struct assembly_process *process, int election,
                        bool is_wanted)
{
    struct assembly_holding *holding = &process->holdings[election];
    uint64_t epoch = holding->epoch;

    if (!process->is_up || holding->is_wanted == is_wanted) {
        return;
    }
    holding->is_wanted = is_wanted;
    if (!is_wanted) {
        give_up(assembly, process, election, ASSEMBLY_MUTANT(WITHDRAWS_BEFORE_VOID));
    }
    if (process_has_session(assembly, process)) {
        order_about(assembly, process, is_wanted ? SESSION_ENTER : SESSION_WITHDRAW, election,
                    epoch);
    }
}

/* ---- The lease of its session ---------------------------------------------------------------- */

void process_rearm(struct assembly *assembly, struct assembly_process *process)
{
    int64_t at = drift_true(clock_of(assembly, process), process->update.deadline);

    process->tick++;
    if (process->is_up && at != INT64_MAX) {
        assembly_push_process(assembly, process, ASSEMBLY_TICK, at)->number = process->tick;
    }
}

static void send(struct assembly *assembly, struct assembly_process *process,
                 const struct lease_command *command)
{
    struct session_order order = {.node = (uint64_t)process->host + 1,
                                  .request = process->life << 32 | command->request};

    switch (command->type) {
    case LEASE_TAKE:
        process->asked = command->request;
        order.type = SESSION_OPEN;
        order.lifetime = process->settings.lease;
        (void)snprintf(order.name, sizeof(order.name), "%d", process->number);
        log_order(assembly, process->host, &order);
        break;
    case LEASE_RENEW:
        log_renew(assembly, process, command->epoch, command->request);
        break;
    case LEASE_RELEASE:
        order.type = SESSION_END;
        order.session = command->epoch;
        order.end = SESSION_END_LEFT;
        if (command->epoch != LEASE_EPOCH_UNKNOWN) {
            log_order(assembly, process->host, &order);
        }
        break;
    case LEASE_LOOK:
        break;
    }
}

static void note(struct assembly *assembly, struct assembly_process *process,
                 const struct lease_event *event)
{
    if (event->type == LEASE_EV_LOST) {
        assembly_say(assembly, process->number, -1, "loses its session %llu",
                     (unsigned long long)event->epoch);
        for (int i = 0; i < ASSEMBLY_ELECTIONS && !ASSEMBLY_MUTANT(HOLDS_WITHOUT_SESSION); i++) {
            process->holdings[i].epoch = 0;
        }
    } else if (event->type == LEASE_EV_ACQUIRED) {
        assembly_say(assembly, process->number, -1, "has session %llu",
                     (unsigned long long)event->epoch);
        for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
            if (process->holdings[i].is_wanted) {
                order_about(assembly, process, SESSION_ENTER, i, 0);
            }
        }
    }
}

static void step(struct assembly *assembly, struct assembly_process *process,
                 const struct lease_input *input)
{
    lease_step(&process->lease, &process->settings, input, process_local(assembly, process),
               random_next(&assembly->random), &process->update);
    for (uint32_t i = 0; i < process->update.event_count; i++) {
        note(assembly, process, &process->update.events[i]);
    }
    for (uint32_t i = 0; i < process->update.command_count; i++) {
        send(assembly, process, &process->update.commands[i]);
    }
    process_rearm(assembly, process);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void process_start(struct assembly *assembly, struct assembly_process *process)
{
    struct lease_input up = {.type = LEASE_IN_UP};

    process->is_up = true;
    process->life++;
    process->settings = assembly->profile.settings;
    process->settings.lease = assembly_draw_lease(assembly);
    process->settings.renew_interval =
        SPAN_NS(process->settings.lease.ns / 100 * assembly->profile.renew_percent);
    process->asked = 0;
    process->paused_until = 0;
    process->update = (struct lease_update){.end = INSTANT_PAST};
    assembly_say(assembly, process->number, -1, "starts");
    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        process->holdings[i] =
            (struct assembly_holding){.is_wanted = random_chance(&assembly->random, 800000)};
    }
    lease_init(&process->lease, true, 0);
    step(assembly, process, &up);
    assembly_push_process(assembly, process, ASSEMBLY_NAG,
                          assembly->now + assembly->profile.nag_every);
}

static void end(struct assembly *assembly, struct assembly_process *process)
{
    process->is_up = false;
    assembly_push_process(assembly, process, ASSEMBLY_START,
                          assembly->now +
                              random_between(&assembly->random, 0, assembly->profile.down_time));
}

void process_crash(struct assembly *assembly, struct assembly_process *process)
{
    bool is_certified = random_chance(&assembly->random, assembly->profile.certificate_ppm);

    assembly_say(assembly, process->number, -1, "is killed");
    assembly->result.counts[ASSEMBLY_COUNT_CRASHES]++;
    process->dead_session = is_certified && process->update.held ? process->update.epoch : 0;
    end(assembly, process);
}

void process_leave(struct assembly *assembly, struct assembly_process *process)
{
    struct lease_input leave = {.type = LEASE_IN_LEAVE};

    assembly_say(assembly, process->number, -1, "leaves");
    step(assembly, process, &leave);
    end(assembly, process);
}

void process_pause(struct assembly *assembly, struct assembly_process *process, int64_t until)
{
    assembly_say(assembly, process->number, -1, "is stopped");
    process->paused_until = until;
    if (ASSEMBLY_MUTANT(CERTIFIED_WHILE_STOPPED) && process->update.held) {
        process->dead_session = process->update.epoch;
    }
}

/* ---- What its agent reports ------------------------------------------------------------------ */

static bool is_ours(const struct assembly *assembly, const struct assembly_process *process,
                    uint64_t session)
{
    return process_has_session(assembly, process) &&
           (session == process->update.epoch || ASSEMBLY_MUTANT(OLD_SESSION_HOLDS));
}

static void hear_held(struct assembly *assembly, struct assembly_process *process, int election,
                      uint64_t session, uint64_t epoch)
{
    struct assembly_holding *holding = &process->holdings[election];

    if (!is_ours(assembly, process, session) ||
        (epoch <= holding->given_up && !ASSEMBLY_MUTANT(GIVEN_UP_TAKEN_AGAIN)) ||
        epoch <= holding->epoch) {
        return;
    }
    holding->epoch = epoch;
    if (!holding->is_wanted) {
        give_up(assembly, process, election, false);
        order_about(assembly, process, SESSION_WITHDRAW, election, epoch);
        return;
    }
    assembly->result.counts[ASSEMBLY_COUNT_GRANTS]++;
    assembly_say(assembly, process->number, -1, "LEADS %s, epoch %llu", assembly_name(election),
                 (unsigned long long)epoch);
}

static void hear_asked(struct assembly *assembly, struct assembly_process *process,
                       const struct assembly_event *event)
{
    if (is_ours(assembly, process, event->session) &&
        process->holdings[event->election].epoch == event->number) {
        process_resign(assembly, process, event->election);
    }
}

/* Compares what it wants with what its agent knows. */
static void look_at(struct assembly *assembly, struct assembly_process *process, int election,
                    const struct sessions *sessions)
{
    const struct session_election *there = sessions_election(sessions, assembly_name(election));
    const struct session_contender *me =
        sessions_contender(there, sessions_find(sessions, process->update.epoch));
    struct assembly_holding *holding = &process->holdings[election];
    bool is_holder = me && there->holder == me;

    if (holding->is_wanted && (!me || (!me->is_eligible && assembly->is_calm))) {
        order_about(assembly, process, SESSION_ENTER, election, 0);
    } else if (!holding->is_wanted && me) {
        if (is_holder && there->epoch > holding->given_up) {
            holding->given_up = there->epoch;
            holding->epoch = 0;
        }
        order_about(assembly, process, SESSION_WITHDRAW, election, is_holder ? there->epoch : 0);
    } else if (is_holder && there->epoch <= holding->given_up && holding->epoch == 0) {
        order_about(assembly, process, SESSION_RESIGN, election, there->epoch);
    } else if (is_holder && (there->wanted != 0 || !me->is_eligible)) {
        process_resign(assembly, process, election);
    }
    if (is_holder && holding->is_wanted) {
        hear_held(assembly, process, election, process->update.epoch, there->epoch);
    }
}

static void nag(struct assembly *assembly, struct assembly_process *process)
{
    const struct assembly_agent *agent = &assembly->agents[process->host];

    for (int i = 0; i < ASSEMBLY_ELECTIONS; i++) {
        if (agent->is_up && process_has_session(assembly, process)) {
            look_at(assembly, process, i, agent->sessions);
        }
    }
    assembly_push_process(assembly, process, ASSEMBLY_NAG,
                          assembly->now + assembly->profile.nag_every);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void take(struct assembly *assembly, struct assembly_process *process,
                 const struct assembly_event *event)
{
    struct lease_input tick = {.type = LEASE_IN_TICK};

    switch (event->kind) {
    case ASSEMBLY_TICK:
        if (event->number == process->tick) {
            step(assembly, process, &tick);
        }
        break;
    case ASSEMBLY_REPLY:
        if (event->session == 0) {
            step(assembly, process, &event->input);
        } else if (event->input.reply.request == process->asked) { /* once, and no other */
            process->asked = 0;
            step(assembly, process, &event->input);
        }
        break;
    case ASSEMBLY_HELD:
        hear_held(assembly, process, event->election, event->session, event->number);
        break;
    case ASSEMBLY_ASKED:
        hear_asked(assembly, process, event);
        break;
    case ASSEMBLY_VOID:
        if (process->holdings[event->election].epoch == event->number) {
            process->holdings[event->election].epoch = 0;
        }
        break;
    default:
        nag(assembly, process);
        break;
    }
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
    } else if (process->is_up && assembly->now < process->paused_until) {
        /* What waits is handled in any order, timers before messages or after. */
        struct assembly_event *later = assembly_push(
            assembly, event->kind,
            process->paused_until + random_between(&assembly->random, 0, assembly->profile.delay));
        int64_t at = later->at;
        uint64_t rank = later->rank;
        *later = *event;
        later->at = at;
        later->rank = rank;
    } else if (process->is_up) {
        take(assembly, process, event);
    }
}
