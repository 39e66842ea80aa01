/* The whole simulation in one process: what a spread run must come to, bit for bit.
 *
 *   example_softbody SCENE FRAMES BATCHES [STATES [FRAMES_A_ROUND]]
 *
 * Prints the hash of the last state, which is the same for every count of batches. Every fifth
 * state is appended to the file STATES, of which draw.py makes pictures. Bounds are gathered every
 * FRAMES_A_ROUND frames, which is 1 unless given.
 */
#include "base/value.h"
#include "softbody/lockstep.h"
#include "softbody/scene.h"

#include <inttypes.h>
#include <stdio.h>

enum { FRAMES_MAX = 1000000, FRAMES_PER_PICTURE = 5 };

static int step_here(uint32_t batch, const struct buffer *state, const struct buffer *bounds,
                     uint32_t frames, struct buffer *ret, void *userdata,
                     struct baton_error *reterr)
{
    (void)batch;
    (void)userdata;
    return softbody_step(state->data, state->bytes, bounds->data, bounds->bytes, frames, ret,
                         reterr);
}

/* `file` NULL: nowhere. */
static int keep(const struct batch *all, FILE *file, struct buffer *bytes,
                struct baton_error *reterr)
{
    if (!file || all->frame % FRAMES_PER_PICTURE != 0) {
        return 0;
    }
    buffer_clear(bytes);
    batch_put(all, bytes);
    if (bytes->failed || fwrite(bytes->data, 1, bytes->bytes, file) != bytes->bytes) {
        return error_set(reterr, BATON_EIO, "the states cannot be written");
    }
    return 0;
}

static int run(struct lockstep *lockstep, uint64_t frames, FILE *file, struct buffer *bytes,
               struct baton_error *reterr)
{
    int code = keep(&lockstep->now, file, bytes, reterr);

    while (code == 0 && lockstep->now.frame < frames) {
        code = lockstep_round(lockstep, step_here, NULL, reterr);
        code = code ? code : keep(&lockstep->now, file, bytes, reterr);
    }
    return code;
}

static int play(int64_t scene, int64_t frames, int64_t batches, int64_t frames_a_round, FILE *file,
                struct baton_error *reterr)
{
    static struct lockstep lockstep; /* large */
    static struct batch all;
    struct buffer bytes;
    int code;

    buffer_init(&bytes, BATCH_BYTES_MAX);
    scene_make((uint32_t)scene, &all);
    code = lockstep_init(&lockstep, &all, (uint32_t)batches, (uint32_t)frames_a_round, reterr);
    code = code ? code : run(&lockstep, (uint64_t)frames, file, &bytes, reterr);
    if (code == 0) {
        (void)printf("scene %" PRId64 ", frame %" PRIu64 ": %016" PRIx64 "\n", scene,
                     lockstep.now.frame, batch_hash(&lockstep.now));
    }
    lockstep_fini(&lockstep);
    buffer_fini(&bytes);
    return code;
}

int main(int argc, char **argv)
{
    int64_t scene = 0, frames = 0, batches = 0, frames_a_round = 1;
    struct baton_error error;
    FILE *file = NULL;
    int code;

    if (argc < 4 || argc > 6) {
        (void)fprintf(stderr, "usage: %s SCENE FRAMES BATCHES [STATES [FRAMES_A_ROUND]]\n",
                      argv[0]);
        return 2;
    }
    code = value_number(argv[1], 0, UINT32_MAX, &scene, &error);
    code = code ? code : value_number(argv[2], 0, FRAMES_MAX, &frames, &error);
    code = code ? code : value_number(argv[3], 1, SCENE_BODIES, &batches, &error);
    if (argc == 6) {
        code = code ? code : value_number(argv[5], 1, STEP_FRAMES_MAX, &frames_a_round, &error);
    }
    if (code == 0 && argc >= 5 && !(file = fopen(argv[4], "we"))) {
        code = error_set(&error, BATON_EIO, "%s: cannot be written", argv[4]);
    }
    code = code ? code : play(scene, frames, batches, frames_a_round, file, &error);
    if (file && fclose(file) != 0 && code == 0) {
        code = error_set(&error, BATON_EIO, "%s: cannot be written", argv[4]);
    }
    if (code != 0) {
        (void)fprintf(stderr, "%s: %s\n", argv[0], error.message);
    }
    return code == 0 ? 0 : 1;
}
