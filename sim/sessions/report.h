/* What an agent reports to the processes of its host. */
#ifndef SIM_SESSIONS_REPORT_H
#define SIM_SESSIONS_REPORT_H

#include "sim/sessions/assembly.h"

/* A message, which arrives after those that were sent before; the caller fills it in. */
struct session_input *report_speak(struct assembly *assembly, struct assembly_process *process,
                                   enum session_input_type type);
/* Greets a process, and reports where its session stands; nothing while the agent is down. */
void report_greeting(struct assembly *assembly, struct assembly_process *process);
/* A session_change_cb; `userdata` is the agent. */
void report_change(void *userdata, const struct session_change *change);
/* The outcome of the order of a process of this host. */
void report_reply(struct assembly *assembly, const struct assembly_agent *agent,
                  const struct session_order *order, int code);

#endif
