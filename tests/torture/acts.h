/* Acts as a leader: records of when, and updates of a store that checks the epoch.
 *
 *   acts_open(records, store, node);
 *   acts_begin(epoch);                  a life begins: the epoch is registered
 *   acts_act(acts_clock());             for each act
 *
 * A record is the act. The clock is read right before it, by a system call: it is true even where
 * Baton's is not (clocks.c). Each thread acts for itself; a failure ends the process.
 */
#ifndef TORTURE_ACTS_H
#define TORTURE_ACTS_H

#include <stdint.h>

/* RECORDS is a file that exists; STORE the socket of store.py, or NULL for acts without updates. */
void acts_open(const char *records, const char *store, const char *node);
void acts_begin(uint64_t epoch);
/* Takes over the life and the files in a forked child, which updates nothing. */
void acts_inherit(void);
int64_t acts_clock(void);
void acts_act(int64_t at_ns);
/* Waits until the next act is due. */
void acts_rest(void);

#endif
