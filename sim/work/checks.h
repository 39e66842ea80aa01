/* The rules that hold after every event, each checked where something changes that it speaks of. */
#ifndef SIM_WORK_CHECKS_H
#define SIM_WORK_CHECKS_H

#include "sim/work/yard.h"

/* The store is about to have this value of the key; NULL: none. */
void yard_check_write(struct yard *yard, const struct yard_key *key,
                      const struct yard_value *value);
/* The store has another value of the key. */
void yard_check_key(struct yard *yard, struct yard_key *key);
/* The store is about to lose all; or this write. */
void yard_check_loss(struct yard *yard);
void yard_check_taken_back(struct yard *yard, const struct yard_key *key);

/* A worker's driver is about to start a copy; `item` NULL: nobody submitted it. */
void yard_check_start(struct yard *yard, const struct yard_process *process,
                      const struct yard_item *item, const struct work_order *order);
/* A copy ended by itself. */
void yard_note_end(const struct yard *yard, const struct yard_copy *copy);
/* A worker has forgotten results for this message. */
void yard_check_forgotten(struct yard *yard, const struct yard_process *process,
                          const struct work_message *ack);
/* A worker has changed its session, and all copies up to this number have had time to end. */
void yard_check_ended(struct yard *yard, const struct yard_process *process, uint64_t number);
/* The session of the election's worker is over. */
void yard_check_session_over(struct yard *yard, int election);

/* A leader sends this to a worker (NULL: to all). */
void yard_check_message(struct yard *yard, const struct yard_process *process, const char *worker,
                        const struct work_message *message);
/* A leader may have placed items. */
void yard_check_placed(struct yard *yard, const struct yard_process *process);

#endif
