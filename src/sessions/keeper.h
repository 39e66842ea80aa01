/* Measures the lifetimes of sessions at the leader of the log: a pure function.
 *
 *   begin ─▶ every session has its whole lifetime again
 *   renew ─▶ its lifetime begins anew; the reply says so to the session's node
 *   prove ─▶ the sessions of a process that is proved dead are over at once
 *   overdue ─▶ a session whose lifetime is over: the caller orders its end
 *
 * A session's process counts the same time from the moment that it *sent* the renewal, shortened by
 * (1 - rho) / (1 + rho), and has stopped acting before the keeper lets the session end. That holds
 * if the caller keeps these rules:
 *   - it begins when it has applied the first entry of its own term: then no end that an earlier
 *     leader ordered is unknown to it, and no earlier leader grants a renewal any more;
 *   - it calls keeper_renew() only while its own lease as the leader of the log is valid: then no
 *     other leader has begun.
 */
#ifndef SESSIONS_KEEPER_H
#define SESSIONS_KEEPER_H

#include "sessions/sessions.h"

struct keeper {
    struct sessions *sessions;
    bool is_keeping;
};

void keeper_begin(struct keeper *keeper, struct sessions *sessions, instant now);
void keeper_stop(struct keeper *keeper);

/* A session was opened or resumed: its lifetime begins anew. Call it for each such entry, keeping
 * or not. */
void keeper_opened(struct keeper *keeper, uint64_t session, instant now);
/* False: nothing is kept here, there is no such session, or its end has been ordered. */
bool keeper_renew(struct keeper *keeper, uint64_t session, instant now);
/* The node's incarnations up to this one are proved dead. Call it for each proof, and for all that
 * are known after keeper_begin(). */
void keeper_prove(struct keeper *keeper, uint64_t node, uint64_t incarnation, instant now);
/* All processes on the node's host are dead that opened or resumed their sessions there by an entry
 * up to `index`. Called as keeper_prove() is. */
void keeper_prove_host(struct keeper *keeper, uint64_t node, uint64_t index, instant now);
/* The END of a session whose lifetime is over, or whose process is proved dead, and which can be
 * renewed no more unless it is resumed; false: none. Call it until it returns false, at
 * keeper_deadline() at the latest. */
bool keeper_overdue(struct keeper *keeper, instant now, struct session_order *ret);
/* The log refused an END, and which one is not known: all that were given are overdue again. */
void keeper_refused(struct keeper *keeper, instant now);
instant keeper_deadline(const struct keeper *keeper); /* INSTANT_NEVER: none */

#endif
