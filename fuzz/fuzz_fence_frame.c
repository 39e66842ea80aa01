/* Frames about fences, as a member may send them, and what a voter answers to them. */
#include "provider/raft/fence_frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* A voter of three, of whom it has heard none since. */
static void ask_voter(const struct fence_frame *frame)
{
    const struct fence_settings settings = {.after = SPAN_S(1), .timeout = SPAN_S(1)};
    struct fence_member members[3];
    struct fence fence;

    memset(members, 0, sizeof(members));
    for (raft_id id = 1; id <= 3; id++) {
        members[id - 1] = (struct fence_member){.id = id, .host = id, .weight = 1};
    }
    fence_init(&fence, &settings, 1, SPAN_NS(0), (instant){0});
    if (fence_set_members(&fence, members, 3, false, (instant){0}) == BATON_OK) {
        const struct fence_ask ask = {
            .from = 2, .ids = frame->ids, .count = frame->count, .hold = frame->hold};
        if (fence_take_ask(&fence, &ask, (instant){SPAN_S(2).ns}) == FENCE_GRANTED &&
            frame->ids[0] != 3) {
            __builtin_trap(); /* it is there itself, the asker is, and it knows no other */
        }
    }
    fence_fini(&fence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct fence_frame frame;
    struct buffer again;

    if (!fence_frame_take(&frame, data, bytes)) {
        return 0;
    }
    buffer_init(&again, FENCE_FRAME_MAX);
    fence_frame_put(&again, &frame);
    if (again.failed || again.bytes != bytes || memcmp(again.data, data, bytes) != 0) {
        __builtin_trap(); /* what was taken must be given back */
    }
    buffer_fini(&again);
    if (frame.kind == FENCE_ASKS) {
        ask_voter(&frame);
    }
    return 0;
}
