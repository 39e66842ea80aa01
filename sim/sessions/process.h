/* A process: its session's client, which is the library's, and what its user does with it. */
#ifndef SIM_SESSIONS_PROCESS_H
#define SIM_SESSIONS_PROCESS_H

#include "sim/sessions/assembly.h"

void process_start(struct assembly *assembly, struct assembly_process *process);
void process_crash(struct assembly *assembly, struct assembly_process *process);
void process_leave(struct assembly *assembly, struct assembly_process *process);
void process_pause(struct assembly *assembly, struct assembly_process *process, int64_t until);
void process_resign(struct assembly *assembly, struct assembly_process *process, int election);
void process_set_wanted(struct assembly *assembly, struct assembly_process *process, int election,
                        bool is_wanted);
/* Its agent has died: an attached process acts on by what it knows. */
void process_lose_agent(struct assembly *assembly, struct assembly_process *process);
/* The host's clock has changed. */
void process_rearm(struct assembly *assembly, struct assembly_process *process);
/* Frees what a run holds. */
void process_drop(struct assembly_process *process);

void process_happen(struct assembly *assembly, struct assembly_process *process,
                    const struct assembly_event *event);

#endif
