/* A step of a batch as the body of an item of work.
 *
 *   u32 frames | u32 bytes of the state | state | bounds          (little-endian; batch.h)
 */
#ifndef SOFTBODY_TASK_H
#define SOFTBODY_TASK_H

#include "softbody/lockstep.h"

/* Appends the step that this batch takes in the present round. The buffer fails softly. */
void task_put(const struct lockstep *run, uint32_t batch, struct buffer *ret);

/* Carries it out and appends the new state. BATON_ECORRUPT: it is no task; and the errors of
 * softbody_step(). */
int task_run(const void *data, size_t bytes, struct buffer *ret, struct baton_error *reterr);

#endif
