/* Those who submit items, ask for them to be cancelled, delete submissions, and drain workers. */
#ifndef SIM_WORK_CLIENTS_H
#define SIM_WORK_CLIENTS_H

#include "sim/work/yard.h"

void clients_begin(struct yard *yard);
void clients_end(struct yard *yard);
/* One of them does something. */
void clients_act(struct yard *yard);
/* The state has lost the item, and its client submits it again. */
void clients_submit_lost(struct yard *yard, const struct yard_item *item);
/* Takes back what would keep items from a place for ever. */
void clients_calm(struct yard *yard);

#endif
