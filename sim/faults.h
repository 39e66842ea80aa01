/* The faults. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim/world.h"

void faults_next(struct world *world);
/* Crashes a node that an earlier fault has chosen. */
void faults_follow(struct world *world, raft_id node);
void faults_stop(struct world *world);
void faults_killed(struct world *world, const struct event *event);       /* by its guardian */
void faults_switched_off(struct world *world, const struct event *event); /* a host */

#endif
