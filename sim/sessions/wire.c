#include "sim/sessions/wire.h"

#include "sim/sessions/trace.h"

/* Few events are scheduled at once, so a search through all of them is quick enough. */
struct assembly_event *assembly_push(struct assembly *assembly, enum assembly_event_kind kind,
                                     int64_t at)
{
    struct assembly_event *event;

    if (assembly->queued == ASSEMBLY_EVENTS_MAX) {
        assembly_violated(assembly, "storm", "%d events are to come at once", ASSEMBLY_EVENTS_MAX);
    }
    event = &assembly->queue[assembly->queued++];
    *event = (struct assembly_event){.at = at > assembly->now ? at : assembly->now,
                                     .rank = assembly->ranks++,
                                     .kind = kind,
                                     .process = -1,
                                     .agent = NO_AGENT};
    return event;
}

struct assembly_event *assembly_push_process(struct assembly *assembly,
                                             const struct assembly_process *process,
                                             enum assembly_event_kind kind, int64_t at)
{
    struct assembly_event *event = assembly_push(assembly, kind, at);

    event->process = process->number;
    event->life = process->life;
    return event;
}

struct assembly_event *assembly_push_agent(struct assembly *assembly,
                                           const struct assembly_agent *agent,
                                           enum assembly_event_kind kind, int64_t at)
{
    struct assembly_event *event = assembly_push(assembly, kind, at);

    event->agent = agent->number;
    event->life = agent->life;
    return event;
}

bool assembly_pop(struct assembly *assembly, struct assembly_event *ret)
{
    size_t first = 0;

    if (assembly->queued == 0) {
        return false;
    }
    for (size_t i = 1; i < assembly->queued; i++) {
        const struct assembly_event *a = &assembly->queue[i];
        const struct assembly_event *b = &assembly->queue[first];
        if (a->at < b->at || (a->at == b->at && a->rank < b->rank)) {
            first = i;
        }
    }
    *ret = assembly->queue[first];
    assembly->queue[first] = assembly->queue[--assembly->queued];
    return true;
}

int64_t assembly_way(struct assembly *assembly)
{
    const struct assembly_profile *p = &assembly->profile;
    int64_t way = p->delay + random_between(&assembly->random, 0, p->jitter);

    if (!assembly->is_calm && random_chance(&assembly->random, p->tail_ppm)) {
        way += random_between(&assembly->random, 0, p->tail);
    }
    return way;
}

int64_t assembly_arrival(struct assembly *assembly, int from, int to)
{
    const struct assembly_agent *a = &assembly->agents[from];
    const struct assembly_agent *b = &assembly->agents[to];
    int64_t cut = a->cut_until > b->cut_until ? a->cut_until : b->cut_until;

    if (!assembly->is_calm && random_chance(&assembly->random, assembly->profile.loss_ppm)) {
        return INT64_MAX;
    }
    if (from != to && assembly->now < cut) {
        return random_chance(&assembly->random, 500000) ? INT64_MAX : cut + assembly_way(assembly);
    }
    return assembly->now + assembly_way(assembly);
}
