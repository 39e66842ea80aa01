/* The queue of events, and how messages travel. */
#ifndef SIM_SESSIONS_WIRE_H
#define SIM_SESSIONS_WIRE_H

#include "sim/sessions/assembly.h"

struct assembly_event *assembly_push(struct assembly *assembly, enum assembly_event_kind kind,
                                     int64_t at);
/* For a process in its present life, or an agent in its. */
struct assembly_event *assembly_push_process(struct assembly *assembly,
                                             const struct assembly_process *process,
                                             enum assembly_event_kind kind, int64_t at);
struct assembly_event *assembly_push_agent(struct assembly *assembly,
                                           const struct assembly_agent *agent,
                                           enum assembly_event_kind kind, int64_t at);
bool assembly_pop(struct assembly *assembly, struct assembly_event *ret);

/* How long a message takes. */
int64_t assembly_way(struct assembly *assembly);
/* When a message between the hosts arrives; INT64_MAX: it is lost. */
int64_t assembly_arrival(struct assembly *assembly, int from, int to);

#endif
