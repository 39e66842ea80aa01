/* What a fence proves, and when. The agreement on it is played by sim/fences.c; here one agent has
 * it.
 *
 *   begins ──▶ the host is switched off ──▶ it may be on again ──▶ the command has ended: the proof
 *     │                                                                  │
 *     └─ index: entries that the asking agent has applied ───────────────┘ ends what they attached
 */
#include "sim/sessions/fences.h"

#include "sim/sessions/faults.h"
#include "sim/sessions/process.h"
#include "sim/sessions/trace.h"
#include "sim/sessions/wire.h"

enum { FAILURE_PPM = 300000, OFF_ANYWAY_PPM = 500000, CUT_PPM = 500000, LEADER_PPM = 700000 };

static struct assembly_agent *any_agent(struct assembly *assembly)
{
    return &assembly->agents[random_below(&assembly->aside, assembly->profile.agents)];
}

/* Mostly the leader of the log; another one's proof counts once it leads. */
static struct assembly_agent *any_asker(struct assembly *assembly)
{
    return random_chance(&assembly->aside, LEADER_PPM) ? &assembly->agents[assembly->leader]
                                                       : any_agent(assembly);
}

static void begin(struct assembly *assembly)
{
    const struct assembly_agent *asker = any_asker(assembly), *host = any_agent(assembly);
    int64_t most = assembly->profile.down_time;
    int64_t off = assembly->now + random_between(&assembly->aside, 0, most);
    int64_t end = off + random_between(&assembly->aside, 0, 2 * most);
    bool fails = random_chance(&assembly->aside, FAILURE_PPM);
    struct assembly_event *event;

    if (asker == host || !asker->is_up || assembly->now < assembly->fence.until) {
        return;
    }
    assembly->fence = (struct assembly_fence){
        .number = assembly->fence.number + 1,
        .host = host->number,
        .index = asker->applied,
        .incarnation = host->is_up ? assembly_incarnation(host) : host->life,
        .until = end};
    assembly_say(assembly, -1, asker->number, "fences a%d", host->number);
    if (random_chance(&assembly->aside, CUT_PPM)) {
        assembly->agents[host->number].cut_until = off;
    }
    if (!fails || random_chance(&assembly->aside, OFF_ANYWAY_PPM)) {
        event = assembly_push(assembly, ASSEMBLY_OFF, off);
        event->host = host->number;
        event->number = fails ? 0 : assembly->fence.number;
    }
    assembly_push_agent(assembly, asker, ASSEMBLY_FENCED, end)->number = assembly->fence.number;
}

static void switch_off(struct assembly *assembly, const struct assembly_event *event)
{
    assembly_say(assembly, -1, event->host, "is switched off");
    for (size_t i = 0; i < assembly->profile.processes; i++) {
        struct assembly_process *process = &assembly->processes[i];
        if (process->is_up && process->host == event->host) {
            process_crash(assembly, process);
            process->dead_session = 0; /* no agent has seen it die */
        }
    }
    assembly_crash_agent(assembly, &assembly->agents[event->host]);
    assembly->fence.is_off = assembly->fence.is_off || event->number == assembly->fence.number;
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void schedule(struct assembly *assembly)
{
    (void)assembly_push(assembly, ASSEMBLY_FENCE,
                        assembly->now +
                            random_between(&assembly->aside, 0, 2 * assembly->profile.fence_every));
}

void assembly_fences_begin(struct assembly *assembly)
{
    if (assembly->profile.fence_every > 0) {
        schedule(assembly);
    }
}

void assembly_fences_happen(struct assembly *assembly, const struct assembly_event *event)
{
    if (assembly->is_calm) {
        return;
    }
    if (event->kind == ASSEMBLY_OFF) {
        switch_off(assembly, event);
    } else {
        begin(assembly);
        schedule(assembly);
    }
}
