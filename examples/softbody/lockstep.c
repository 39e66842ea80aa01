#include "softbody/lockstep.h"

#include <stdlib.h>
#include <string.h>

/* The first id of a batch; that of the batch behind the last is the number of bodies. */
static uint32_t first_of(const struct lockstep *run, uint32_t batch)
{
    return batch * run->now.count / run->batches;
}

static int begin_round(struct lockstep *run, struct baton_error *reterr)
{
    run->arrived = 0;
    memset(run->has_arrived, 0, sizeof(run->has_arrived));
    buffer_clear(&run->bounds);
    batch_put_bounds(&run->now, &run->bounds);
    return run->bounds.failed ? error_set(reterr, BATON_ENOMEM, "out of memory for bounds") : 0;
}

int lockstep_init(struct lockstep *run, const struct batch *all, uint32_t batches, uint32_t frames,
                  struct baton_error *reterr)
{
    buffer_init(&run->bounds, BATCH_BYTES_MAX);
    if (all->count != all->scene_bodies) {
        return error_set(reterr, BATON_EINVAL, "a checkpoint of %u of %u bodies: must be whole",
                         all->count, all->scene_bodies);
    }
    if (batches < 1 || batches > all->count) {
        return error_set(reterr, BATON_EINVAL, "batches %u: must be 1 to %u", batches, all->count);
    }
    if (frames < 1 || frames > STEP_FRAMES_MAX) {
        return error_set(reterr, BATON_EINVAL, "frames %u: must be 1 to %d", frames,
                         STEP_FRAMES_MAX);
    }
    run->now = *all;
    run->next = *all;
    run->batches = batches;
    run->frames = frames;
    return begin_round(run, reterr);
}

void lockstep_fini(struct lockstep *run)
{
    buffer_fini(&run->bounds);
}

void lockstep_put_task(const struct lockstep *run, uint32_t batch, struct buffer *ret)
{
    uint32_t first = first_of(run, batch);
    struct batch *part = malloc(sizeof(*part));

    if (!part) {
        ret->failed = true;
        return;
    }
    part->scene = run->now.scene;
    part->scene_bodies = run->now.scene_bodies;
    part->frame = run->now.frame;
    part->count = first_of(run, batch + 1) - first;
    memcpy(part->bodies, &run->now.bodies[first], part->count * sizeof(part->bodies[0]));
    batch_put(part, ret);
    free(part);
}

static bool is_awaited(const struct lockstep *run, uint32_t batch, const struct batch *part)
{
    uint32_t first = first_of(run, batch);

    return part->scene == run->now.scene && part->scene_bodies == run->now.scene_bodies &&
           part->frame == run->now.frame + run->frames &&
           part->count == first_of(run, batch + 1) - first && part->bodies[0].id == first &&
           part->bodies[part->count - 1].id == first + part->count - 1;
}

static int arrive(struct lockstep *run, uint32_t batch, const struct batch *part,
                  struct baton_error *reterr)
{
    if (run->has_arrived[batch]) {
        return 0;
    }
    memcpy(&run->next.bodies[first_of(run, batch)], part->bodies,
           part->count * sizeof(part->bodies[0]));
    run->has_arrived[batch] = true;
    if (++run->arrived < run->batches) {
        return 0;
    }
    run->next.frame = part->frame;
    run->now = run->next;
    return begin_round(run, reterr);
}

int lockstep_take(struct lockstep *run, uint32_t batch, const void *state, size_t bytes,
                  struct baton_error *reterr)
{
    struct batch *part = malloc(sizeof(*part));
    int code = part ? batch_take(part, state, bytes, reterr)
                    : error_set(reterr, BATON_ENOMEM, "out of memory for a batch");

    if (code == 0 && (batch >= run->batches || !is_awaited(run, batch, part))) {
        code = error_set(reterr, BATON_ECONFLICT,
                         "the state at frame %llu is not that of batch %u at frame %llu",
                         (unsigned long long)part->frame, batch,
                         (unsigned long long)(run->now.frame + run->frames));
    }
    code = code ? code : arrive(run, batch, part, reterr);
    free(part);
    return code;
}

int lockstep_round(struct lockstep *run, lockstep_step_fn *step, void *userdata,
                   struct baton_error *reterr)
{
    uint64_t frame = run->now.frame;
    struct buffer task, done;
    int code = 0;

    buffer_init(&task, BATCH_BYTES_MAX);
    buffer_init(&done, BATCH_BYTES_MAX);
    for (uint32_t batch = 0; batch < run->batches && run->now.frame == frame && code == 0;
         batch++) {
        if (run->has_arrived[batch]) {
            continue;
        }
        buffer_clear(&task);
        buffer_clear(&done);
        lockstep_put_task(run, batch, &task);
        code = task.failed ? error_set(reterr, BATON_ENOMEM, "out of memory for a task")
                           : step(batch, &task, &run->bounds, run->frames, &done, userdata, reterr);
        code = code ? code : lockstep_take(run, batch, done.data, done.bytes, reterr);
    }
    buffer_fini(&task);
    buffer_fini(&done);
    return code;
}
