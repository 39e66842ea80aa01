/* Waiting for what the loop does. */
#ifndef API_PERFORM_H
#define API_PERFORM_H

#include "api/call.h"

/* Runs the call on the loop and waits until it is done; on the loop itself it is run in place, and
 * if it is not done then, the answer is `unfinished` (BATON_OK or BATON_EDEADLK). So it is for one
 * that dispatches, inside baton_dispatch(). The caller's reference stays the caller's. */
int perform(struct call *call, int64_t timeout_ms, int unfinished, struct baton_error *reterr);

/* BATON_EDEADLK: the loop's thread, or a listener's, would wait for itself. */
int perform_refuse(struct baton_error *reterr);

/* The end of `timeout_ms`, negative for the default. */
instant perform_deadline(int64_t timeout_ms);
/* For a call whose deadline the provider keeps: its answer then comes through the loop. */
int64_t perform_and_a_turn(int64_t timeout_ms);
/* Under the lock: waits for the condition, until the deadline. False: it has come. */
bool perform_wait_locked(struct baton *baton, pthread_cond_t *condition, instant deadline);
/* Makes a condition for it. */
void perform_condition(pthread_cond_t *ret);

#endif
