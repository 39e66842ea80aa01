/* The program beside a process, which may outlive it. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "sim/world.h"

/* Starts or ends it with the lease that the process has published. */
void program_follow(struct world *world, struct node *node);
/* The process has died. */
void program_outlive(struct world *world, struct node *node);
/* A starting process looks for the program of its earlier life, and ends it if it finds it. */
void program_look_for(struct world *world, struct node *node);
void program_guardian(struct world *world, const struct event *event);

#endif
