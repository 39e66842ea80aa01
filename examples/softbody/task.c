#include "softbody/task.h"

void task_put(const struct lockstep *run, uint32_t batch, struct buffer *ret)
{
    struct buffer state;

    buffer_init(&state, BATCH_BYTES_MAX);
    lockstep_put_task(run, batch, &state);
    buffer_put_u32(ret, run->frames);
    buffer_put_u32(ret, (uint32_t)state.bytes);
    buffer_put(ret, state.data, state.bytes);
    buffer_put(ret, run->bounds.data, run->bounds.bytes);
    ret->failed |= state.failed;
    buffer_fini(&state);
}

int task_run(const void *data, size_t bytes, struct buffer *ret, struct baton_error *reterr)
{
    struct reader reader = reader_of(data, bytes);
    uint32_t frames = reader_u32(&reader);
    uint32_t state_bytes = reader_u32(&reader);
    const uint8_t *state = reader_take(&reader, state_bytes);

    if (reader.failed) {
        return error_set(reterr, BATON_ECORRUPT, "%zu bytes are no task", bytes);
    }
    return softbody_step(state, state_bytes, reader.data, reader.bytes, frames, ret, reterr);
}
