/* The master of a spread run: a round is a submission, and the checkpoint is a key of the state.
 *
 *   key "softbody/scene-N":  u64 epoch of the master that wrote it | the whole scene (batch.h)
 *
 *   read the checkpoint ──▶ submit "scene-N-frame-F" ──▶ wait for its items ──▶ write the
 * checkpoint ▲                                                      │ └──────────── the next round,
 * F + frames ◀─────────────┘
 *
 * A master that takes over reads the checkpoint and submits the round of that frame, by the same
 * name and with the same bytes: what its predecessor had submitted is not submitted again, and what
 * was computed since is there. A predecessor that does not know yet that it leads no longer fails
 * when it writes, since it names the revision that it read or wrote last.
 */
#ifndef SOFTBODY_MASTER_H
#define SOFTBODY_MASTER_H

#include "softbody/lockstep.h"

#include <baton.h>
#include <stdatomic.h>

struct master {
    struct baton *baton;
    struct baton_election *election; /* the master is who leads it */
    const char *pool;
    uint32_t scene;
    uint64_t frames;  /* to be reached */
    uint32_t batches; /* the same in all processes, as is the next one */
    uint32_t frames_a_round;
    const atomic_bool *ends; /* the process is to end */
};

/* Plays the scene from its checkpoint while this process leads. Prints "frame F" for each round.
 * 0: the frames are reached, and *ret_hash is the state's; BATON_ELOST: this process leads no
 * longer, or ends. Else an error of the checkpoint or of the pool, after which another try is
 * right. */
int master_play(const struct master *master, uint64_t *ret_hash, struct baton_error *reterr);

#endif
