#include "sim/sessions/report.h"

#include "sim/sessions/wire.h"

/* Messages of an agent to a process arrive in the order in which they were sent. */
struct session_input *report_speak(struct assembly *assembly, struct assembly_process *process,
                                   enum session_input_type type)
{
    int64_t at = assembly->now + assembly_way(assembly);
    struct assembly_event *event;

    process->heard_at = at > process->heard_at ? at : process->heard_at + 1;
    event = assembly_push_process(assembly, process, ASSEMBLY_HEAR, process->heard_at);
    event->input = (struct session_input){.type = type};
    return &event->input;
}

static void standing(struct assembly *assembly, struct assembly_process *process,
                     enum session_change_type type, uint64_t session,
                     const struct session_election *election)
{
    struct session_input *input = report_speak(assembly, process, SESSION_IN_CHANGE);

    input->change.type = type;
    input->change.session = session;
    input->change.epoch = election->epoch;
    input->change.election = assembly_name(assembly_election_of(election->name));
}

static void report_standing(struct assembly *assembly, struct assembly_process *process,
                            uint64_t id)
{
    const struct session *session = sessions_find(assembly->agents[process->host].sessions, id);

    for (const struct session_contender *at = session ? session->first : NULL; at;
         at = at->younger) {
        standing(assembly, process, SESSION_ENTERED, id, at->election);
        if (at->election->holder == at) {
            standing(assembly, process, SESSION_HELD, id, at->election);
        }
        if (at->election->holder == at && (at->election->wanted != 0 || !at->is_eligible)) {
            standing(assembly, process, SESSION_ASKED, id, at->election);
        }
    }
    (void)report_speak(assembly, process, SESSION_IN_REPORTED);
}

/* Greets a process, and reports where its session stands. */
void report_greeting(struct assembly *assembly, struct assembly_process *process)
{
    if (process->client && assembly->agents[process->host].is_up) {
        (void)report_speak(assembly, process, SESSION_IN_UP);
        report_standing(assembly, process, session_client_lease(process->client).session);
    }
}

/* The process of this host that the change is about; NULL: none. */
static struct assembly_process *whose(const struct assembly_agent *agent, uint64_t id)
{
    struct assembly *assembly = agent->assembly;
    const struct session *session = sessions_find(agent->sessions, id);

    if (session) {
        return session->node == (uint64_t)agent->number + 1
                   ? &assembly->processes[assembly_number_of(session->name)]
                   : NULL;
    }
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        struct assembly_process *process = &assembly->processes[i];
        if (process->client && process->host == agent->number &&
            session_client_lease(process->client).session == id) {
            return process;
        }
    }
    return NULL;
}

void report_change(void *userdata, const struct session_change *change)
{
    struct assembly_agent *agent = userdata;
    struct assembly_process *process = agent->is_silent ? NULL : whose(agent, change->session);
    struct session_input *input;

    if (!process || !process->client || change->type == SESSION_OPENED) {
        return;
    }
    input = report_speak(agent->assembly, process, SESSION_IN_CHANGE);
    input->change = *change;
    if (change->election) {
        input->change.election = assembly_name(assembly_election_of(change->election));
    }
}

/* The reply to the order of a process of this host. */
void report_reply(struct assembly *assembly, const struct assembly_agent *agent,
                  const struct session_order *order, int code)
{
    struct assembly_process *process = &assembly->processes[order->request >> 40 & 15];
    struct session_input *input;

    if (agent->is_silent || !process->client || order->request == 0 ||
        order->node != (uint64_t)agent->number + 1 || process->life != order->request >> 44) {
        return;
    }
    input = report_speak(assembly, process, SESSION_IN_REPLY);
    input->request = order->request & ((1ull << 40) - 1);
    input->code = code;
    input->session = order->type == SESSION_OPEN ? agent->applied : order->session;
    input->index = agent->applied;
    if (order->type == SESSION_RESUME && code == BATON_OK) {
        input->lifetime = sessions_find(agent->sessions, order->session)->lifetime;
        report_standing(agent->assembly, process, order->session);
    }
}
