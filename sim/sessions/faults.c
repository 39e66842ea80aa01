#include "sim/sessions/faults.h"

#include "sim/sessions/acting.h"
#include "sim/sessions/log.h"
#include "sim/sessions/process.h"
#include "sim/sessions/profile.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

#include <stdio.h>

static struct assembly_process *any_process(struct assembly *assembly)
{
    return &assembly->processes[random_below(&assembly->random, assembly->profile.processes)];
}

static int any_election(struct assembly *assembly)
{
    return (int)random_below(&assembly->random, ASSEMBLY_ELECTIONS);
}

/* A process that acts, if there is one. */
static struct assembly_process *any_holder(struct assembly *assembly, int *ret_election)
{
    struct assembly_process *found = any_process(assembly);
    uint64_t session;
    size_t seen = 0;

    *ret_election = any_election(assembly);
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        for (int election = 0; election < ASSEMBLY_ELECTIONS; election++) {
            if (process_acts(assembly, &assembly->processes[i], election, &session) &&
                random_below(&assembly->random, ++seen) == 0) {
                found = &assembly->processes[i];
                *ret_election = election;
            }
        }
    }
    return found;
}

static struct assembly_agent *any_agent(struct assembly *assembly)
{
    return &assembly->agents[random_below(&assembly->random, assembly->profile.agents)];
}

static int64_t some_time(struct assembly *assembly)
{
    return assembly->now +
           random_between(&assembly->random, 0, 2 * assembly->profile.settings.lease.ns);
}

/* An operator asks about a contender of any session, through any agent. */
static void operate(struct assembly *assembly, enum session_order_type type)
{
    int name = any_election(assembly);
    const struct session_election *election =
        sessions_election(assembly->truth, assembly_name(name));
    const struct session_contender *contender = election ? election->first : NULL;
    uint64_t skip = random_below(&assembly->random, election ? election->count : 1);
    struct session_order order = {.type = type,
                                  .is_eligible = random_chance(&assembly->random, 300000)};

    while (contender && skip-- > 0) {
        contender = contender->next;
    }
    if (contender) {
        order.to = contender->session->id;
        order.session = type == SESSION_PASS ? 0 : contender->session->id;
        (void)snprintf(order.name, sizeof(order.name), "%s", election->name);
        log_order(assembly, any_agent(assembly)->number, &order);
    }
}

static void cut(struct assembly *assembly, struct assembly_agent *agent)
{
    agent->cut_until = some_time(assembly);
    assembly_say(assembly, -1, agent->number, "is cut off");
}

void assembly_crash_agent(struct assembly *assembly, struct assembly_agent *agent)
{
    if (!agent->is_up) {
        return;
    }
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        struct assembly_process *process = &assembly->processes[i];
        if (process->is_up && process->is_own && process->host == agent->number) {
            process_crash(assembly, process);
        }
    }
    agent_crash(assembly, agent);
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        struct assembly_process *process = &assembly->processes[i];
        if (process->client && process->host == agent->number) {
            process_lose_agent(assembly, process);
        }
    }
}

static void strike_process(struct assembly *assembly, enum assembly_fault fault)
{
    int election;
    struct assembly_process *holder = any_holder(assembly, &election);
    struct assembly_process *process =
        random_chance(&assembly->random, 500000) ? holder : any_process(assembly);

    switch (fault) {
    case ASSEMBLY_FAULT_CRASH:
        if (process->is_up && process->is_own) {
            assembly_crash_agent(assembly, &assembly->agents[process->host]);
        } else if (process->is_up) {
            process_crash(assembly, process);
        }
        break;
    case ASSEMBLY_FAULT_LEAVE:
        if (process->is_up) {
            process_leave(assembly, process);
        }
        break;
    case ASSEMBLY_FAULT_PAUSE:
        process_pause(assembly, process, some_time(assembly));
        break;
    case ASSEMBLY_FAULT_PAUSE_HOLDER:
        process_pause(assembly, holder, some_time(assembly));
        break;
    case ASSEMBLY_FAULT_RESIGN:
        process_resign(assembly, holder, election);
        break;
    default:
        process_set_wanted(assembly, process, election, !process->is_wanted[election]);
        if (random_chance(&assembly->random, 500000)) { /* it changes its mind */
            process_set_wanted(assembly, process, election, !process->is_wanted[election]);
        }
        break;
    }
}

static void change_rate(struct assembly *assembly, struct assembly_agent *agent)
{
    agent_set_rate(assembly, agent, assembly_draw_rate(assembly));
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        if (assembly->processes[i].host == agent->number) {
            process_rearm(assembly, &assembly->processes[i]);
        }
    }
}

static void strike(struct assembly *assembly, enum assembly_fault fault)
{
    struct assembly_agent *agent = any_agent(assembly);

    switch (fault) {
    case ASSEMBLY_FAULT_PASS:
        operate(assembly, SESSION_PASS);
        break;
    case ASSEMBLY_FAULT_CORDON:
        operate(assembly, SESSION_ELIGIBLE);
        break;
    case ASSEMBLY_FAULT_AGENT_CRASH:
        assembly_crash_agent(assembly, agent);
        break;
    case ASSEMBLY_FAULT_AGENT_LAG:
        agent->lags_until = some_time(assembly);
        assembly_say(assembly, -1, agent->number, "applies nothing for a while");
        break;
    case ASSEMBLY_FAULT_AGENT_INSTALL:
        agent_install(assembly, agent);
        break;
    case ASSEMBLY_FAULT_CUT:
        cut(assembly, agent);
        break;
    case ASSEMBLY_FAULT_CUT_LEADER:
        cut(assembly, &assembly->agents[assembly->leader]);
        break;
    case ASSEMBLY_FAULT_PASS_LOG:
        agent_pass_log(assembly);
        break;
    case ASSEMBLY_FAULT_CLOCK_RATE:
        change_rate(assembly, agent);
        break;
    default:
        strike_process(assembly, fault);
        break;
    }
}

void assembly_fault_next(struct assembly *assembly)
{
    const struct assembly_profile *p = &assembly->profile;
    uint64_t drawn = random_below(&assembly->random, p->fault_weight_sum);
    int fault = 0;

    while (drawn >= p->fault_weight[fault]) {
        drawn -= p->fault_weight[fault++];
    }
    strike(assembly, (enum assembly_fault)fault);
    assembly_push(assembly, ASSEMBLY_FAULT,
                  assembly->now + random_between(&assembly->random, 0, 2 * p->fault_every));
}

void assembly_faults_stop(struct assembly *assembly)
{
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        assembly->agents[i].cut_until = assembly->agents[i].lags_until = 0;
    }
}
