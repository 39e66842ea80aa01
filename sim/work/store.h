/* The provider's state: linearizable keys with revisions that grow, compare-and-set, lifetimes, and
 * notices of changes. Replies get lost; a write whose reply is lost may have been carried out, or
 * be carried out later. A store that may forget loses all keys at once, or its latest writes. */
#ifndef SIM_WORK_STORE_H
#define SIM_WORK_STORE_H

#include "sim/work/yard.h"

void store_begin(struct yard *yard);
void store_end(struct yard *yard);

/* At once, as a client that is beside the store. Takes the reference to `value`; NULL deletes. */
int store_put(struct yard *yard, struct yard_key *key, struct yard_value *value, uint64_t revision,
              span lifetime);

/* A leader's request; the reply is a YARD_REPLY. Takes the reference to `value`. */
void store_ask(struct yard *yard, struct yard_process *process, enum yard_request request,
               struct yard_key *key, struct yard_value *value, uint64_t revision, span lifetime);

void store_happen(struct yard *yard, struct yard_event *event);

/* ---- Faults ---------------------------------------------------------------------------------- */

void store_lose_all(struct yard *yard);
void store_roll_back(struct yard *yard);

#endif
