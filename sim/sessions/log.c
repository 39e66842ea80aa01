#include "sim/sessions/log.h"

#include "base/invariant.h"
#include "sim/sessions/checks.h"
#include "sim/sessions/report.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

#include <string.h>

enum { MS = 1000000, LATE_COMMIT_PPM = 300000, PROOF_PPM = 300000, REFUSED_AFTER = 20 * MS };

static instant local(const struct assembly *assembly, const struct assembly_agent *agent)
{
    return drift_local(&agent->clock, assembly->now);
}

/* By its own clock, as the leader of the log. */
static bool leads(const struct assembly *assembly, const struct assembly_agent *agent)
{
    return agent->is_up && agent->led_term != 0 &&
           instant_before(local(assembly, agent), agent->lease_end);
}

/* ---- Applying -------------------------------------------------------------------------------- */

static void rearm(struct assembly *assembly, struct assembly_agent *agent)
{
    int64_t at = drift_true(&agent->clock, keeper_deadline(&agent->keeper));

    agent->tick++;
    if (at != INT64_MAX) {
        assembly_push_agent(assembly, agent, ASSEMBLY_KEEP, at)->number = agent->tick;
    }
}

static void step_down(struct assembly_agent *agent)
{
    agent->led_term = 0;
    keeper_stop(&agent->keeper);
}

static void begin_keeping(struct assembly *assembly, struct assembly_agent *agent)
{
    keeper_begin(&agent->keeper, agent->sessions, local(assembly, agent));
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        keeper_prove(&agent->keeper, i + 1, agent->proved[i], local(assembly, agent));
        if (!ASSEMBLY_MUTANT(FENCE_FORGOTTEN)) {
            keeper_prove_host(&agent->keeper, i + 1, agent->fenced[i], local(assembly, agent));
        }
    }
    rearm(assembly, agent);
}

static void apply_first(struct assembly *assembly, struct assembly_agent *agent, uint64_t term)
{
    if (term > agent->led_term) {
        step_down(agent);
    } else if (term == agent->led_term && !ASSEMBLY_MUTANT(KEEPS_BEFORE_ITS_ENTRY)) {
        begin_keeping(assembly, agent);
    }
}

static void apply_next(struct assembly *assembly, struct assembly_agent *agent)
{
    const struct assembly_entry *entry = &assembly->log[agent->applied++];
    int code;

    if (entry->is_first) {
        apply_first(assembly, agent, entry->term);
        return;
    }
    code = sessions_carry_out(agent->sessions, &entry->order, agent->applied);
    if (code == BATON_OK &&
        (entry->order.type == SESSION_OPEN ||
         (entry->order.type == SESSION_RESUME && !SESSION_MUTANT(RESUMED_NOT_KEPT)))) {
        keeper_opened(&agent->keeper,
                      entry->order.type == SESSION_OPEN ? agent->applied : entry->order.session,
                      local(assembly, agent));
        rearm(assembly, agent);
    }
    report_reply(assembly, agent, &entry->order, code);
}

static void apply(struct assembly *assembly, struct assembly_agent *agent, uint64_t until)
{
    while (agent->applied < until) {
        apply_next(assembly, agent);
    }
    if (agent->applied == assembly->length && random_chance(&assembly->random, 100000)) {
        assembly_check_same(assembly, agent);
    }
}

/* ---- The log --------------------------------------------------------------------------------- */

static void append(struct assembly *assembly, const struct assembly_entry *entry)
{
    INVARIANT(assembly->length < ASSEMBLY_LOG_MAX);
    assembly->log[assembly->length++] = *entry;
    assembly->result.counts[ASSEMBLY_COUNT_ENTRIES]++;
    if (!entry->is_first) {
        bool is_over =
            sessions_carry_out(assembly->truth, &entry->order, assembly->length) == BATON_OK;
        if (is_over && entry->order.type == SESSION_END &&
            entry->order.end == SESSION_END_EXPIRED) {
            assembly->has_expired[entry->order.session] = true;
        }
        assembly_check_truth(assembly);
    }
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        assembly_push_agent(assembly, &assembly->agents[i], ASSEMBLY_APPLY,
                            assembly->now + assembly_way(assembly))
            ->number = assembly->length;
    }
}

/* False: the log refused it. */
static bool propose(struct assembly *assembly, const struct assembly_agent *agent,
                    const struct session_order *order)
{
    struct assembly_event *event;

    if (!assembly->is_calm && random_chance(&assembly->random, assembly->profile.loss_ppm)) {
        return false; /* its queue was full */
    }
    event = assembly_push(assembly, ASSEMBLY_COMMIT,
                          assembly->now + assembly_way(assembly) + assembly_way(assembly));
    event->term = agent->led_term;
    event->order = *order;
    return true;
}

/* The new leader has some of what the one before proposed and did not commit. */
static void commit_leftovers(struct assembly *assembly)
{
    size_t kept = 0;

    for (size_t i = 0; i < assembly->queued; i++) {
        struct assembly_event event = assembly->queue[i];
        if (event.kind == ASSEMBLY_COMMIT && event.term + 1 == assembly->term &&
            random_chance(&assembly->random, LATE_COMMIT_PPM)) {
            const struct assembly_entry entry = {.term = event.term, .order = event.order};
            assembly->queue[i].kind = ASSEMBLY_FAULT; /* append() may add to the queue */
            assembly->queue[i].term = UINT64_MAX;
            append(assembly, &entry);
        }
    }
    for (size_t i = 0; i < assembly->queued; i++) {
        if (assembly->queue[i].term != UINT64_MAX) {
            assembly->queue[kept++] = assembly->queue[i];
        }
    }
    assembly->queued = kept;
}

static span shorten(const struct assembly *assembly, span lease)
{
    int64_t rho = assembly->profile.settings.clock_drift_ppm;
    return SPAN_NS(lease.ns / (1000000 + rho) * (1000000 - rho));
}

static void extend_lease(struct assembly *assembly, struct assembly_agent *agent)
{
    agent->lease_end =
        instant_add(local(assembly, agent), shorten(assembly, assembly->profile.log_lease));
}

static int any_agent(struct assembly *assembly)
{
    return (int)random_below(&assembly->random, assembly->profile.agents);
}

/* `from`, or the first agent after it that can. */
static void elect(struct assembly *assembly, int from)
{
    const struct assembly_entry first = {.term = assembly->term + 1, .is_first = true};

    for (size_t i = 0; i < assembly->profile.agents; i++) {
        int at = (from + (int)i) % (int)assembly->profile.agents;
        struct assembly_agent *agent = &assembly->agents[at];
        if (agent->is_up && assembly->now >= agent->cut_until) {
            assembly->term++;
            assembly->leader = at;
            assembly->result.counts[ASSEMBLY_COUNT_TERMS]++;
            assembly_say(assembly, -1, at, "leads the log, term %llu",
                         (unsigned long long)assembly->term);
            commit_leftovers(assembly);
            agent->led_term = assembly->term;
            keeper_stop(&agent->keeper);
            extend_lease(assembly, agent);
            if (ASSEMBLY_MUTANT(KEEPS_BEFORE_ITS_ENTRY)) {
                begin_keeping(assembly, agent);
            }
            append(assembly, &first);
            return;
        }
    }
}

/* Extends the leader's lease, or elects when that is over. */
static void lead(struct assembly *assembly)
{
    struct assembly_agent *agent = &assembly->agents[assembly->leader];
    bool is_gone = !agent->is_up || agent->led_term != assembly->term;

    assembly_push(assembly, ASSEMBLY_LEAD,
                  assembly->now +
                      random_between(&assembly->random, 1, assembly->profile.log_lease.ns / 3));
    if (!is_gone && assembly->now >= agent->cut_until) {
        extend_lease(assembly, agent);
    } else if (assembly->now >= drift_true(&agent->clock, agent->lease_end) ||
               (is_gone && random_chance(&assembly->random, PROOF_PPM))) {
        elect(assembly, any_agent(assembly));
    }
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* To the log's leader, or now and then to an agent that only believes that it is. */
static int leader_as_known(struct assembly *assembly)
{
    int other = (int)random_below(&assembly->random, assembly->profile.agents);

    return assembly->agents[other].led_term != 0 ? other : assembly->leader;
}

static void send_order(struct assembly *assembly, int host, const struct session_order *order)
{
    int to = leader_as_known(assembly);
    int64_t at = assembly_arrival(assembly, host, to);

    if (at != INT64_MAX) {
        assembly_push_agent(assembly, &assembly->agents[to], ASSEMBLY_PROPOSE, at)->order = *order;
    }
}

void log_order(struct assembly *assembly, int host, const struct session_order *order)
{
    if (!assembly->agents[host].is_up) {
        return;
    }
    send_order(assembly, host, order);
    if (!assembly->is_calm && random_chance(&assembly->random, assembly->profile.repeat_ppm)) {
        send_order(assembly, host, order);
    }
}

void log_renew(struct assembly *assembly, const struct assembly_process *process, uint64_t session,
               uint64_t request)
{
    int to = leader_as_known(assembly);
    int64_t at = assembly_arrival(assembly, process->host, to);
    struct assembly_event *event;

    if (at != INT64_MAX && !assembly->is_calm &&
        random_chance(&assembly->random, assembly->profile.late_renewal_ppm)) {
        at += random_between(&assembly->random, 0, assembly->profile.settings.lease.ns);
    }
    if (assembly->agents[process->host].is_up && at != INT64_MAX) {
        event = assembly_push_agent(assembly, &assembly->agents[to], ASSEMBLY_RENEW, at);
        event->process = process->number;
        event->session = session;
        event->number = request;
        event->term = process->life;
    }
}

/* A renewal that reached an agent which leads no more goes on to the one that does. */
static void pass_on(struct assembly *assembly, const struct assembly_agent *agent,
                    const struct assembly_event *event)
{
    int64_t at = assembly_arrival(assembly, agent->number, assembly->leader);
    struct assembly_event *next;

    if (at != INT64_MAX) {
        next =
            assembly_push_agent(assembly, &assembly->agents[assembly->leader], ASSEMBLY_RENEW, at);
        next->process = event->process;
        next->session = event->session;
        next->number = event->number;
        next->term = event->term;
    }
}

static void renew(struct assembly *assembly, struct assembly_agent *agent,
                  const struct assembly_event *event)
{
    const struct assembly_process *process = &assembly->processes[event->process];
    struct assembly_event *answer;
    bool is_renewed;
    int64_t at;

    if (agent->number != assembly->leader && random_chance(&assembly->random, 500000)) {
        pass_on(assembly, agent, event);
        return;
    }
    if ((!leads(assembly, agent) && !ASSEMBLY_MUTANT(RENEWS_WITHOUT_LEASE)) ||
        !agent->keeper.is_keeping) {
        return;
    }
    is_renewed = keeper_renew(&agent->keeper, event->session, local(assembly, agent));
    if (is_renewed) {
        assembly_check_renewed(assembly, agent, event->session);
    }
    at = assembly_arrival(assembly, agent->number, process->host);
    if (at != INT64_MAX && process->life == event->term) {
        answer = assembly_push_process(assembly, process, ASSEMBLY_RENEWED, at);
        answer->input = (struct session_input){.type = SESSION_IN_RENEWED,
                                               .request = event->number,
                                               .code = is_renewed ? BATON_OK : BATON_ENOENT,
                                               .session = event->session};
    }
}

static void keep(struct assembly *assembly, struct assembly_agent *agent)
{
    struct session_order order;

    while (keeper_overdue(&agent->keeper, local(assembly, agent), &order)) {
        assembly_say(assembly, -1, agent->number, "lets session %llu end",
                     (unsigned long long)order.session);
        if (!propose(assembly, agent, &order) && !agent->is_refused &&
            order.session % 2 == 0) { /* else it was lost */
            agent->is_refused = true;
            assembly_push_agent(assembly, agent, ASSEMBLY_REFUSED, assembly->now + REFUSED_AFTER);
        }
    }
    assembly_check_fenced(assembly, agent);
    rearm(assembly, agent);
}

/* ---- Life of an agent ------------------------------------------------------------------------ */

static struct sessions *copy_of_truth(struct assembly *assembly)
{
    struct sessions *copy = NULL;
    struct buffer bytes;

    buffer_init(&bytes, 1 << 22);
    sessions_snapshot(assembly->truth, &bytes);
    if (bytes.failed || sessions_restore(&copy, bytes.data, bytes.bytes) != BATON_OK) {
        buffer_fini(&bytes);
        assembly_violated(assembly, "snapshot", "a snapshot cannot be restored");
    }
    buffer_fini(&bytes);
    return copy;
}

/* The agents hear, or some do, that the incarnations of this one up to `incarnation` are dead. */
static void prove(struct assembly *assembly, const struct assembly_agent *dead,
                  uint64_t incarnation)
{
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        struct assembly_event *event;
        if (random_chance(&assembly->random, assembly->profile.certificate_ppm)) {
            event = assembly_push_agent(assembly, &assembly->agents[i], ASSEMBLY_PROOF,
                                        assembly->now + assembly_way(assembly));
            event->host = dead->number;
            event->number = incarnation;
        }
    }
}

static void agent_start(struct assembly *assembly, struct assembly_agent *agent)
{
    uint64_t stored = (uint64_t)random_between(&assembly->random, 0, (int64_t)agent->applied);

    agent->is_up = true;
    agent->sessions = sessions_new(report_change, agent);
    INVARIANT(agent->sessions != NULL);
    agent->applied = 0;
    agent->is_silent = true;
    agent->is_refused = false;
    apply(assembly, agent, stored);
    agent->is_silent = false;
    assembly_say(assembly, -1, agent->number, "starts with %llu entries applied",
                 (unsigned long long)stored);
    assembly_push_agent(assembly, agent, ASSEMBLY_APPLY, assembly->now + assembly_way(assembly))
        ->number = assembly->length;
    assembly_push_agent(assembly, agent, ASSEMBLY_NAG, assembly->now + assembly->profile.nag_every);
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        if (assembly->processes[i].is_up && assembly->processes[i].host == agent->number) {
            assembly_push_process(assembly, &assembly->processes[i], ASSEMBLY_FIND, assembly->now);
        }
    }
    prove(assembly, agent, agent->life); /* it has counted its starts */
}

void agent_crash(struct assembly *assembly, struct assembly_agent *agent)
{
    assembly_say(assembly, -1, agent->number, "is killed");
    step_down(agent);
    agent->is_up = false;
    prove(assembly, agent, assembly_incarnation(agent));
    agent->life++;
    memset(agent->proved, 0, sizeof(agent->proved));
    memset(agent->fenced, 0, sizeof(agent->fenced));
    sessions_free(agent->sessions);
    agent->sessions = NULL;
    assembly_push_agent(assembly, agent, ASSEMBLY_AGENT_UP,
                        assembly->now +
                            random_between(&assembly->random, 0, assembly->profile.down_time));
}

void agent_install(struct assembly *assembly, struct assembly_agent *agent)
{
    if (agent->is_up && agent->applied < assembly->length && agent->led_term != assembly->term) {
        assembly_say(assembly, -1, agent->number, "installs a snapshot");
        step_down(agent);
        agent->applied = assembly->length;
        sessions_install(agent->sessions, copy_of_truth(assembly));
        assembly_check_same(assembly, agent);
    }
}

/* The leader hands over: its lease is void first. Often to the agent that has applied least, since
 * having stored all entries is all that the Raft core asks of it. */
void agent_pass_log(struct assembly *assembly)
{
    struct assembly_agent *agent = &assembly->agents[assembly->leader];
    int to = any_agent(assembly);

    for (int i = 0; i < (int)assembly->profile.agents && to % 2 == 0; i++) {
        to = assembly->agents[i].applied < assembly->agents[to].applied ? i : to;
    }
    agent->lease_end = INSTANT_PAST;
    elect(assembly, to);
}

void agent_set_rate(struct assembly *assembly, struct assembly_agent *agent, int64_t ppm)
{
    drift_set_rate(&agent->clock, assembly->now, ppm);
    if (agent->is_up) {
        rearm(assembly, agent);
    }
}

void log_begin(struct assembly *assembly)
{
    assembly->truth = sessions_new(assembly_note_truth, assembly);
    INVARIANT(assembly->truth != NULL);
    assembly->leader = 0;
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        agent_start(assembly, &assembly->agents[i]);
    }
    elect(assembly, 0);
    assembly_push(assembly, ASSEMBLY_LEAD, 0);
}

void log_end(struct assembly *assembly)
{
    for (size_t i = 0; i < assembly->profile.agents; i++) {
        sessions_free(assembly->agents[i].sessions);
        assembly->agents[i].sessions = NULL;
    }
    sessions_free(assembly->truth);
    assembly->truth = NULL;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void certify(struct assembly *assembly, struct assembly_agent *agent)
{
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        const struct assembly_process *process = &assembly->processes[i];
        struct session_order order = {
            .type = SESSION_END, .end = SESSION_END_CERTIFIED, .session = process->dead_session};
        if (process->host != agent->number || order.session == 0 ||
            !sessions_find(agent->sessions, order.session)) {
            continue;
        }
        if (ASSEMBLY_MUTANT(CERTIFIES_THE_NEXT_LIFE) && process->client &&
            session_client_lease(process->client).is_held) {
            order.session = session_client_lease(process->client).session;
        }
        log_order(assembly, agent->number, &order);
    }
    assembly_push_agent(assembly, agent, ASSEMBLY_NAG, assembly->now + assembly->profile.nag_every);
}

static void hear_of_entries(struct assembly *assembly, struct assembly_agent *agent,
                            uint64_t number)
{
    int64_t free_at = agent->lags_until > agent->cut_until ? agent->lags_until : agent->cut_until;

    if (assembly->now < free_at) {
        assembly_push_agent(assembly, agent, ASSEMBLY_APPLY, free_at + assembly_way(assembly))
            ->number = number;
    } else {
        apply(assembly, agent, number);
    }
}

static void hear_of_proof(struct assembly *assembly, struct assembly_agent *agent, int dead,
                          uint64_t incarnation)
{
    if (incarnation > agent->proved[dead]) {
        agent->proved[dead] = incarnation;
        keeper_prove(&agent->keeper, (uint64_t)dead + 1, incarnation, local(assembly, agent));
        rearm(assembly, agent);
    }
}

/* Its fence command has ended. The proof covers what had attached to the host when it began: the
 * host may be on again. */
static void hear_of_fence(struct assembly *assembly, struct assembly_agent *agent, uint64_t number)
{
    const struct assembly_fence *fence = &assembly->fence;
    uint64_t index = ASSEMBLY_MUTANT(FENCE_COUNTS_TO_ITS_END) ? agent->applied : fence->index;

    if (number != fence->number || !(fence->is_off || ASSEMBLY_MUTANT(FENCE_ANY_EXIT))) {
        return;
    }
    assembly_say(assembly, -1, agent->number, "has fenced a%d, of the entries up to %llu",
                 fence->host, (unsigned long long)index);
    agent->fenced[fence->host] = index;
    hear_of_proof(assembly, agent, fence->host, fence->incarnation);
    keeper_prove_host(&agent->keeper, (uint64_t)fence->host + 1, index, local(assembly, agent));
    keep(assembly, agent);
}

static void take(struct assembly *assembly, struct assembly_agent *agent,
                 const struct assembly_event *event)
{
    switch (event->kind) {
    case ASSEMBLY_PROPOSE:
        if (agent->led_term != 0) {
            (void)propose(assembly, agent, &event->order);
        }
        break;
    case ASSEMBLY_RENEW:
        renew(assembly, agent, event);
        break;
    case ASSEMBLY_APPLY:
        hear_of_entries(assembly, agent, event->number);
        break;
    case ASSEMBLY_PROOF:
        hear_of_proof(assembly, agent, event->host, event->number);
        break;
    case ASSEMBLY_FENCED:
        hear_of_fence(assembly, agent, event->number);
        break;
    case ASSEMBLY_REFUSED:
        agent->is_refused = false;
        keeper_refused(&agent->keeper, local(assembly, agent));
        keep(assembly, agent);
        break;
    case ASSEMBLY_KEEP:
        if (event->number == agent->tick) {
            keep(assembly, agent);
        }
        break;
    default:
        certify(assembly, agent);
        break;
    }
}

void log_happen(struct assembly *assembly, const struct assembly_event *event)
{
    struct assembly_agent *agent = event->agent >= 0 ? &assembly->agents[event->agent] : NULL;

    if (event->kind == ASSEMBLY_COMMIT) {
        const struct assembly_entry entry = {.term = event->term, .order = event->order};
        if (event->term == assembly->term || ASSEMBLY_MUTANT(OLD_LEADER_COMMITS)) {
            append(assembly, &entry);
        }
    } else if (event->kind == ASSEMBLY_LEAD) {
        lead(assembly);
    } else if (agent && event->kind == ASSEMBLY_AGENT_UP) {
        if (!agent->is_up && agent->life == event->life) {
            agent_start(assembly, agent);
        }
    } else if (agent && agent->is_up && agent->life == event->life) {
        take(assembly, agent, event);
    }
}
