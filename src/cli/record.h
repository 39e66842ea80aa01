/* The record that `baton run` keeps in its data directory, so that the next one finds the earlier
 * CMD.
 *
 * The supervisor locks the file DATA/supervisor as long as it lives. The file says how to find CMD
 * and its descendants, and is emptied when none of them is left. A node reads it at its start,
 * before it greets its peers:
 *
 *   not locked, empty   nothing is left (also if it is blank: only its space was reserved)
 *   locked              the supervisor is ending CMD, or hangs: the node waits, then kills it
 *   not locked, filled  the supervisor was killed: the node kills all that it can find, and waits
 *                       until the lease that CMD may still act under is over
 */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <sys/types.h>

struct record {
    pid_t wrapper; /* process id of baton run; 0: unknown */
    pid_t supervisor;
    const char *marker;
    const char *cgroup; /* "": none */
};

/* Ends what an earlier baton run left behind, and locks the file for this one; the lock lasts as
 * long as a process has the descriptor. BATON_EIO: the earlier one lives, or cannot be ended.
 * BATON_EFULL: the disk is full. */
int record_take(int *ret_fd, const char *data, struct logger *logger, struct baton_error *reterr);

/* For the supervisor. `fd` -1: no data directory; does nothing. */
void record_write(int fd, const struct record *record);
void record_note_lease(int fd, span left);
void record_clear(int fd);

#endif
