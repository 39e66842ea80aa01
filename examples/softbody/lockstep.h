/* The master of a run: which step each batch takes next, and what has come back.
 *
 *   all batches at frame f ── gather the bounds ──▶ a task for each batch ──▶ workers, anywhere
 *          ▲                                                                     │
 *          └──────── all have arrived: frame f + n ◀──── new state of a batch ───┘
 *
 * It does no I/O. A master that takes over goes on from any checkpoint (the whole scene as a
 * batch), with any number of batches, and comes to the same state bit for bit.
 */
#ifndef SOFTBODY_LOCKSTEP_H
#define SOFTBODY_LOCKSTEP_H

#include "softbody/batch.h"

struct lockstep {
    struct batch now;     /* the whole scene at the frame that all batches have reached */
    struct batch next;    /* the same after the round, for the batches that have arrived */
    struct buffer bounds; /* of `now`: what every task of the round is given */
    uint32_t batches;
    uint32_t frames; /* in one round */
    uint32_t arrived;
    bool has_arrived[SCENE_BODIES_MAX];
};

/* Cuts the scene into `batches` (1 to the number of bodies) of neighbouring ids, which are moved
 * `frames` frames between two gatherings. Each count of frames is a simulation of its own: bounds
 * age within a round. BATON_EINVAL: `all` lacks bodies, or a number is out of range; BATON_ENOMEM.
 * The struct is large; keep it off the stack. */
int lockstep_init(struct lockstep *run, const struct batch *all, uint32_t batches, uint32_t frames,
                  struct baton_error *reterr);
void lockstep_fini(struct lockstep *run);

/* Appends the state of a batch that the round begins with; with `run->bounds` and `run->frames` it
 * is the input of softbody_step(). */
void lockstep_put_task(const struct lockstep *run, uint32_t batch, struct buffer *ret);

/* Takes the output of softbody_step(). After the last batch of a round the next one begins. A
 * second output of one step, of a worker thought dead, is the same and changes nothing.
 * BATON_ECORRUPT: no batch; BATON_ECONFLICT: another batch, frame or scene; BATON_ENOMEM. */
int lockstep_take(struct lockstep *run, uint32_t batch, const void *state, size_t bytes,
                  struct baton_error *reterr);

/* Does one step somewhere and waits for it: appends the output to `ret`. */
typedef int lockstep_step_fn(uint32_t batch, const struct buffer *state,
                             const struct buffer *bounds, uint32_t frames, struct buffer *ret,
                             void *userdata, struct baton_error *reterr);

/* Runs one round, batch after batch. Its first error ends it; run again, it does what is left. */
int lockstep_round(struct lockstep *run, lockstep_step_fn *step, void *userdata,
                   struct baton_error *reterr);

#endif
