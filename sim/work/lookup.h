/* Where something of a yard is found, by its name or its owner. */
#ifndef SIM_WORK_LOOKUP_H
#define SIM_WORK_LOOKUP_H

#include "sim/work/yard.h"

/* A key of the store, whether it is there or not; also by its kind, as 's', and the rest. */
struct yard_key *yard_key_of(struct yard *yard, const char *name);
struct yard_key *yard_key_named(struct yard *yard, char kind, const char *name);
struct yard_key *yard_drain_key(struct yard *yard, const struct yard_process *process);
bool yard_is_draining(struct yard *yard, const struct yard_process *process);

/* NULL: nobody submitted it. */
struct yard_item *yard_item_find(struct yard *yard, const char *id);

/* One that runs; NULL: none. */
struct yard_copy *copy_of_item(struct yard *yard, const struct yard_item *item);
struct yard_copy *copy_of_process(struct yard *yard, const struct yard_process *process);

static inline int election_of(int worker)
{
    return worker + 1;
}
static inline int election_worker(int election)
{
    return election - 1;
}
/* The holder's lease holds now. */
bool election_is_held_by(const struct yard *yard, int election, const struct yard_process *process,
                         uint64_t epoch);

#endif
