/* The replicated log as the Raft core promises it, and the agents that apply it. */
#ifndef SIM_SESSIONS_LOG_H
#define SIM_SESSIONS_LOG_H

#include "sim/sessions/assembly.h"

void log_begin(struct assembly *assembly);
void log_end(struct assembly *assembly); /* frees what the run holds */

/* Sends an order, or a renewal of a session, from a host to the log's leader. */
void log_order(struct assembly *assembly, int host, const struct session_order *order);
void log_renew(struct assembly *assembly, const struct assembly_process *process, uint64_t session,
               uint64_t request);

void log_happen(struct assembly *assembly, const struct assembly_event *event);

/* Faults. */
void agent_crash(struct assembly *assembly, struct assembly_agent *agent);
void agent_install(struct assembly *assembly, struct assembly_agent *agent);
void agent_pass_log(struct assembly *assembly);
void agent_set_rate(struct assembly *assembly, struct assembly_agent *agent, int64_t ppm);

#endif
