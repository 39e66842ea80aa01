/* What a frame about fences has behind its number, the round: u8 kind, and
 *
 *   ASK       u64 hold in ns, above 0 and at most an hour | u64 id of each member, one at least
 *   ANSWER    u8 refusal
 *   others    nothing
 */
#ifndef PROVIDER_RAFT_FENCE_FRAME_H
#define PROVIDER_RAFT_FENCE_FRAME_H

#include "base/buffer.h"
#include "provider/raft/fence.h"

enum fence_kind {
    FENCE_PROBE = 1, /* asks for a sign of life */
    FENCE_ALIVE,
    FENCE_ASKS, /* for a grant */
    FENCE_ANSWERED,
    FENCE_RELEASED, /* the grants of the round are not needed any more */
};

enum {
    FENCE_HOLD_S_MAX = 3600,
    FENCE_FRAME_MAX = 9 + 8 * RAFT_MEMBERS_MAX,
};

struct fence_frame {
    enum fence_kind kind;
    span hold;
    raft_id ids[RAFT_MEMBERS_MAX];
    size_t count;
    enum fence_refusal refusal;
};

void fence_frame_put(struct buffer *buffer, const struct fence_frame *frame);
/* False: invalid. */
bool fence_frame_take(struct fence_frame *ret, const void *data, size_t bytes);

#endif
