/* The guardians of worlds in which a hang is killed (`hang`). */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "sim/world.h"

void watch_begin(struct world *world, struct node *node);  /* a process has started */
void watch_follow(struct world *world, struct node *node); /* it may lead now */
/* The process is stopped until node->paused_until, and perhaps its guardian with it. */
void watch_stop(struct world *world, struct node *node);
void watch_look(struct world *world, const struct event *event);

#endif
