/* The faults. */
#ifndef SIM_LEASE_FAULTS_H
#define SIM_LEASE_FAULTS_H

#include "sim/lease/contest.h"

void contest_fault_next(struct contest *contest);
void contest_faults_stop(struct contest *contest);

#endif
