#include "provider/raft/fence_frame.h"

void fence_frame_put(struct buffer *buffer, const struct fence_frame *frame)
{
    buffer_put_u8(buffer, (uint8_t)frame->kind);
    if (frame->kind == FENCE_ASKS) {
        buffer_put_u64(buffer, (uint64_t)frame->hold.ns);
        for (size_t i = 0; i < frame->count; i++) {
            buffer_put_u64(buffer, frame->ids[i]);
        }
    } else if (frame->kind == FENCE_ANSWERED) {
        buffer_put_u8(buffer, (uint8_t)frame->refusal);
    }
}

static void take_ask(struct reader *reader, struct fence_frame *ret)
{
    ret->hold.ns = (int64_t)reader_u64(reader);
    while (reader->bytes > 0 && !reader->failed && ret->count < RAFT_MEMBERS_MAX) {
        ret->ids[ret->count++] = reader_u64(reader);
    }
    reader->failed |=
        ret->hold.ns <= 0 || ret->hold.ns > SPAN_S(FENCE_HOLD_S_MAX).ns || ret->count == 0;
}

bool fence_frame_take(struct fence_frame *ret, const void *data, size_t bytes)
{
    struct reader reader = reader_of(data, bytes);
    uint8_t kind = reader_u8(&reader);
    uint8_t refusal = 0;

    ret->kind = (enum fence_kind)kind;
    ret->count = 0;
    ret->hold = SPAN_NS(0);
    if (kind == FENCE_ASKS) {
        take_ask(&reader, ret);
    } else if (kind == FENCE_ANSWERED) {
        refusal = reader_u8(&reader);
    }
    ret->refusal = (enum fence_refusal)refusal;
    return !reader.failed && reader.bytes == 0 && kind >= FENCE_PROBE && kind <= FENCE_RELEASED &&
           refusal < FENCE_REFUSALS;
}
