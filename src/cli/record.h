/* What a `baton run` leaves in its data directory, so that the next one finds the earlier CMD.
 *
 * The file DATA/supervisor is locked as long as the supervisor lives, and says how to find what it
 * holds; it is emptied when none of that is left. A node that starts looks at it before it greets
 * its peers:
 *
 *   not locked, empty   nothing is left (so, too, where it is blank: only its space was taken)
 *   locked              the supervisor is ending CMD, or is hung: it is waited for, then killed
 *   not locked, filled  the supervisor was killed: what can be found is killed, and the lease that
 *                       it may still act under is waited for
 */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

#include <sys/types.h>

struct record {
    pid_t wrapper; /* baton run; 0: not said */
    pid_t supervisor;
    const char *marker;
    const char *cgroup; /* "": none */
};

/* Ends what an earlier baton run left behind, and locks the file for this one: the lock lasts as
 * long as a process has the descriptor. BATON_EIO: the earlier one lives, or cannot be ended.
 * BATON_EFULL: the disk has no room for this one's record. */
int record_take(int *ret_fd, const char *data, struct logger *logger, struct baton_error *reterr);

/* By the supervisor. All allow -1: there is no data directory. */
void record_write(int fd, const struct record *record);
void record_note_lease(int fd, span left);
void record_clear(int fd);

#endif
