/* The soft bodies: one scene, cut and moved in any way, comes to the same bits. */
#include "base/crc32c.h"
#include "cmocka_all.h"
#include "softbody/lockstep.h"
#include "softbody/scene.h"
#include "softbody/task.h"

#include <math.h>
#include <string.h>

enum { FRAMES = 100, SUM_BYTES = 4 };

static struct lockstep run; /* large */
static struct batch scene;
static struct baton_error error;
static uint64_t seed;

static uint32_t random_below(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static int set_up(void **state)
{
    scene_make(1, &scene);
    seed = 1;
    return 0;
}

static int tear_down(void **state)
{
    lockstep_fini(&run);
    return 0;
}

static void begin(const struct batch *all, uint32_t batches, uint32_t frames)
{
    lockstep_fini(&run);
    assert_int_equal(lockstep_init(&run, all, batches, frames, &error), 0);
}

/* What a worker answers to the task of a batch; the caller frees it. */
static struct buffer answer_of(uint32_t batch)
{
    struct buffer task, ret;

    buffer_init(&task, BATCH_BYTES_MAX);
    buffer_init(&ret, BATCH_BYTES_MAX);
    lockstep_put_task(&run, batch, &task);
    assert_int_equal(softbody_step(task.data, task.bytes, run.bounds.data, run.bounds.bytes,
                                   run.frames, &ret, &error),
                     0);
    buffer_fini(&task);
    return ret;
}

static void step(uint32_t batch)
{
    struct buffer answer = answer_of(batch);

    assert_int_equal(lockstep_take(&run, batch, answer.data, answer.bytes, &error), 0);
    buffer_fini(&answer);
}

static void step_all_in_some_order(void)
{
    uint32_t order[SCENE_BODIES_MAX] = {0};
    uint32_t batches = run.batches;

    for (uint32_t i = 0; i < batches; i++) {
        uint32_t other = random_below(i + 1);
        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < batches; i++) {
        step(order[i]);
    }
}

/* A master that knows the run from its checkpoint alone goes on. */
static void replace_master(uint32_t batches)
{
    static struct batch restored;
    struct buffer checkpoint;

    buffer_init(&checkpoint, BATCH_BYTES_MAX);
    batch_put(&run.now, &checkpoint);
    assert_int_equal(batch_take(&restored, checkpoint.data, checkpoint.bytes, &error), 0);
    buffer_fini(&checkpoint);
    assert_true(batch_hash(&restored) == batch_hash(&run.now));
    begin(&restored, batches, run.frames);
}

static uint64_t hash_after(uint32_t batches, uint32_t frames, bool is_disturbed)
{
    begin(&scene, batches, frames);
    while (run.now.frame < FRAMES) {
        if (is_disturbed && random_below(10) == 0) {
            replace_master(1 + random_below(SCENE_BODIES));
        }
        step_all_in_some_order();
    }
    return batch_hash(&run.now);
}

static void any_cut_order_and_restart_comes_to_the_same_bits(void **state)
{
    const uint32_t cuts[] = {1, 2, 5, 16, SCENE_BODIES};
    uint64_t whole = hash_after(1, 1, false);

    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        assert_true(hash_after(cuts[i], 1, false) == whole);
        assert_true(hash_after(cuts[i], 1, true) == whole);
    }
}

static void longer_rounds_come_to_the_same_bits_as_each_other(void **state)
{
    uint64_t whole = hash_after(1, 4, false);

    assert_true(hash_after(7, 4, true) == whole);
    assert_true(hash_after(7, 1, true) != whole);
}

/* Whatever the compiler, its options and the processor. */
static void every_machine_comes_to_these_bits(void **state)
{
    assert_int_equal(hash_after(3, 1, false), 0x8764716a0b9d0ab7);
    assert_int_equal(hash_after(3, 4, false), 0x5d0572fe98141a54);
}

static void bodies_stay_in_the_world_and_out_of_each_other(void **state)
{
    (void)hash_after(5, 1, false);
    for (uint32_t i = 0; i < run.now.count; i++) {
        struct bounds one;
        body_bounds(&run.now.bodies[i], &one);
        assert_true(one.center.x > 0 && one.center.x < WORLD_WIDTH && one.center.y > 0);
        for (uint32_t k = 0; k < i; k++) {
            struct bounds other;
            body_bounds(&run.now.bodies[k], &other);
            double x = one.center.x - other.center.x;
            double y = one.center.y - other.center.y;
            assert_true(sqrt(x * x + y * y) > 0.5);
        }
    }
}

static void a_second_answer_changes_nothing_and_a_late_one_is_refused(void **state)
{
    struct buffer answer;
    uint64_t before;

    begin(&scene, 2, 1);
    answer = answer_of(0);
    assert_int_equal(lockstep_take(&run, 0, answer.data, answer.bytes, &error), 0);
    assert_int_equal(lockstep_take(&run, 0, answer.data, answer.bytes, &error), 0);
    assert_int_equal(lockstep_take(&run, 1, answer.data, answer.bytes, &error), BATON_ECONFLICT);
    assert_int_equal(run.now.frame, 0);
    step(1);
    assert_int_equal(run.now.frame, 1);
    before = batch_hash(&run.now);
    assert_int_equal(lockstep_take(&run, 0, answer.data, answer.bytes, &error), BATON_ECONFLICT);
    assert_true(batch_hash(&run.now) == before);
    buffer_fini(&answer);
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static struct buffer two_bodies(void)
{
    struct buffer ret;

    begin(&scene, SCENE_BODIES / 2, 1);
    buffer_init(&ret, BATCH_BYTES_MAX);
    lockstep_put_task(&run, 1, &ret);
    return ret;
}

static int take(const struct buffer *bytes)
{
    static struct batch ret;

    return batch_take(&ret, bytes->data, bytes->bytes, &error);
}

/* Makes the sum fit the bytes again. */
static void seal(struct buffer *bytes)
{
    uint32_t sum = crc32c(0, bytes->data, bytes->bytes - SUM_BYTES);

    bytes->bytes -= SUM_BYTES;
    buffer_put_u32(bytes, sum);
}

static void every_flipped_bit_and_every_torn_end_is_refused(void **state)
{
    struct buffer bytes = two_bodies();
    size_t whole = bytes.bytes;

    assert_int_equal(take(&bytes), 0);
    for (size_t bit = 0; bit < whole * 8; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(take(&bytes), BATON_ECORRUPT);
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (bytes.bytes = 0; bytes.bytes < whole; bytes.bytes++) {
        assert_int_equal(take(&bytes), BATON_ECORRUPT);
    }
    buffer_put_u8(&bytes, 0);
    assert_int_equal(take(&bytes), BATON_ECORRUPT);
    buffer_fini(&bytes);
}

static void what_no_scene_has_is_refused_with_a_sum_that_fits(void **state)
{
    const struct {
        size_t at;
        uint64_t value;
        size_t bytes;
    } wrong[] = {
        {0, 0, 4},                                                       /* magic */
        {4, 2, 2},                                                       /* version */
        {6, 2, 2},                                                       /* kind */
        {8 + 4, SCENE_BODIES_MAX + 1, 4},                                /* bodies of the scene */
        {24, 3, 4},                                                      /* rows */
        {BATCH_HEAD_BYTES, SCENE_BODIES, 4},                             /* id: behind the last */
        {BATCH_HEAD_BYTES + BATCH_ROW_BYTES, 2, 4},                      /* id: twice */
        {BATCH_HEAD_BYTES + 4, 0, 8},                                    /* half width: 0 */
        {BATCH_HEAD_BYTES + 20, 0x7ff8000000000000, 8},                  /* x: NaN */
        {BATCH_HEAD_BYTES + BATCH_ROW_BYTES - 8, 0xfff0000000000000, 8}, /* vy: -infinity */
        {BATCH_HEAD_BYTES + 28, 0x4132d68700000000, 8},                  /* y: above 10^6 */
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct buffer bytes = two_bodies();
        memcpy(bytes.data + wrong[i].at, &wrong[i].value, wrong[i].bytes); /* little-endian */
        seal(&bytes);
        assert_int_equal(take(&bytes), BATON_ECORRUPT);
        buffer_fini(&bytes);
    }
}

static int step_with(const struct buffer *bounds, uint32_t frames)
{
    struct buffer task = two_bodies();
    struct buffer done;
    int code;

    buffer_init(&done, BATCH_BYTES_MAX);
    code = softbody_step(task.data, task.bytes, bounds->data, bounds->bytes, frames, &done, &error);
    assert_true(code == 0 || done.bytes == 0);
    buffer_fini(&task);
    buffer_fini(&done);
    return code;
}

static void a_step_with_wrong_bounds_is_refused(void **state)
{
    struct buffer bounds;

    buffer_init(&bounds, BATCH_BYTES_MAX);
    batch_put_bounds(&scene, &bounds);
    assert_int_equal(step_with(&bounds, 1), 0);
    assert_int_equal(step_with(&bounds, 0), BATON_EINVAL);
    assert_int_equal(step_with(&bounds, STEP_FRAMES_MAX + 1), BATON_EINVAL);
    memset(bounds.data + BATCH_HEAD_BYTES + 32, 0, 24); /* the first ellipse */
    seal(&bounds);
    assert_int_equal(step_with(&bounds, 1), BATON_ECORRUPT);
    buffer_clear(&bounds);
    scene.frame = 1;
    batch_put_bounds(&scene, &bounds);
    scene.frame = 0;
    assert_int_equal(step_with(&bounds, 1), BATON_ECONFLICT);
    buffer_fini(&bounds);
}

static void a_torn_task_is_refused_and_a_whole_one_is_the_step(void **state)
{
    struct buffer task, output, expected;

    buffer_init(&task, 3 * (size_t)BATCH_BYTES_MAX);
    buffer_init(&output, BATCH_BYTES_MAX);
    begin(&scene, SCENE_BODIES, 3);
    task_put(&run, 7, &task);
    for (size_t bytes = 0; bytes < task.bytes; bytes++) {
        assert_int_equal(task_run(task.data, bytes, &output, &error), BATON_ECORRUPT);
    }
    assert_int_equal(output.bytes, 0);
    assert_int_equal(task_run(task.data, task.bytes, &output, &error), 0);
    expected = answer_of(7);
    assert_int_equal(output.bytes, expected.bytes);
    assert_memory_equal(output.data, expected.data, expected.bytes);
    buffer_fini(&expected);
    buffer_fini(&output);
    buffer_fini(&task);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(any_cut_order_and_restart_comes_to_the_same_bits),
        TEST(longer_rounds_come_to_the_same_bits_as_each_other),
        TEST(every_machine_comes_to_these_bits),
        TEST(bodies_stay_in_the_world_and_out_of_each_other),
        TEST(a_second_answer_changes_nothing_and_a_late_one_is_refused),
        TEST(every_flipped_bit_and_every_torn_end_is_refused),
        TEST(what_no_scene_has_is_refused_with_a_sum_that_fits),
        TEST(a_step_with_wrong_bounds_is_refused),
        TEST(a_torn_task_is_refused_and_a_whole_one_is_the_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
