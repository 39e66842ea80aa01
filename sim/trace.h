/* Writes the story of a run. */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include "sim/world.h"

/* Adds a line, and the event to the hash. */
void trace_say(struct world *world, raft_id node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a line that the hash covers already: only if trace_wants(). */
void trace_show(struct world *world, raft_id node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void trace_event(struct world *world, const struct event *event);
static inline bool trace_wants(const struct world *world)
{
    return world->story.keeps;
}

#endif
