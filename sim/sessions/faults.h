/* The faults, and what users do. */
#ifndef SIM_SESSIONS_FAULTS_H
#define SIM_SESSIONS_FAULTS_H

#include "sim/sessions/assembly.h"

void assembly_fault_next(struct assembly *assembly); /* one, and schedules the next */
void assembly_faults_stop(struct assembly *assembly);

#endif
