/* The faults, and what users do. */
#ifndef SIM_SESSIONS_FAULTS_H
#define SIM_SESSIONS_FAULTS_H

#include "sim/sessions/assembly.h"

void assembly_fault_next(struct assembly *assembly); /* one, and schedules the next */
void assembly_faults_stop(struct assembly *assembly);
/* If it is up. Its own process dies with it. */
void assembly_crash_agent(struct assembly *assembly, struct assembly_agent *agent);

#endif
