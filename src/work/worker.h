/* A worker's side of a pool: which items it runs, and what it reports of them. A pure state
 * machine.
 *
 *   lease of its own election ─┐                   ┌──▶ start, stop    for who runs the items
 *   the leader's messages ─────┼──▶ work_worker ───┼──▶ report, done   for the leader
 *   ended, progress ───────────┘                   └──▶ deadline
 *
 * The worker's session is the epoch of its own election, which no other process holds meanwhile.
 *
 * Rules:
 *   - it runs nothing without a session, and stops all that it runs when the session is lost; its
 *     driver ends what runs before the lease does;
 *   - it takes no notice of a leader's message that is not above every earlier one (message.h);
 *   - of one item it runs one copy: a further placing starts after the one before has ended;
 *   - a placing starts once. A copy that was ended without a result is reported as gone, until the
 *     leader has acknowledged that;
 *   - a result is kept, and sent again, until the leader has acknowledged it;
 *   - each report lists all items and results that it has.
 */
#ifndef WORK_WORKER_H
#define WORK_WORKER_H

#include "work/message.h"

struct work_worker; /* one thread */

struct work_worker_options {
    char name[BATON_NAME_MAX];
    uint32_t slots, gpus;
    uint64_t memory_mib;
    char labels[WORK_NEEDS_MAX];
    span report_interval;
};

/* NULL when out of memory. */
struct work_worker *work_worker_new(const struct work_worker_options *options);
void work_worker_free(struct work_worker *worker); /* NULL allowed */

/* It has this session now, 0: none. Everything of an earlier one is to be stopped. */
void work_worker_session(struct work_worker *worker, uint64_t session, instant now);
/* A message of the leader, for this worker or for all. */
void work_worker_hear(struct work_worker *worker, const struct work_message *message, instant now);
/* The copy ended, whoever ended it; the result is copied. Nothing of the copy acts any more. */
void work_worker_ended(struct work_worker *worker, const struct work_result *result, instant now);
/* The copy ended before its work was done, as if it had been halted: there is no result. */
void work_worker_gave_up(struct work_worker *worker, const char *id, uint64_t epoch);
/* For the next report; -1, NULL: as before. Keys end with NULL and are copied. False: it does not
 * run, or a key is none (item.h), or there is no memory. */
bool work_worker_progress(struct work_worker *worker, const char *id, int permille,
                          const char *const *keys);
/* Of the host, for the reports. */
void work_worker_load(struct work_worker *worker, uint32_t cpu_permille);
/* It takes nothing new, and what it has is to move. Reported at once. */
void work_worker_leave(struct work_worker *worker, instant now);
void work_worker_tick(struct work_worker *worker, instant now);

enum work_order_type {
    WORK_START, /* .item, .epoch, .attempt */
    WORK_HALT,  /* .id, .epoch: end the copy and report it by work_worker_ended() */
};

/* Borrowed until the next call. */
struct work_order {
    enum work_order_type type;
    const char *id;
    struct work_item *item;
    uint64_t epoch;
    uint32_t attempt;
};

bool work_worker_next_order(struct work_worker *worker, struct work_order *ret);
/* Appends the next message for the leader; false: there is none. */
bool work_worker_next_message(struct work_worker *worker, struct buffer *buffer);
instant work_worker_deadline(const struct work_worker *worker); /* INSTANT_NEVER: none */

size_t work_worker_running(const struct work_worker *worker);
size_t work_worker_results(const struct work_worker *worker); /* that wait for their ack */
uint64_t work_worker_session_of(const struct work_worker *worker);

#endif
