/* Frames of several cameras, run at once by the runner that they share. */
#include "cmocka_all.h"

#include "integration/detector_infer/runner_bench.h"

#include <string.h>

enum { CAMERAS = 6 };

/* Cameras that share a runner whose detector takes any number of pictures. */
struct crowd {
    struct plan plan;
    struct runner *runner;
    struct bench *bench[CAMERAS];
    struct drawn drawn[CAMERAS][CAMERAS];
    struct baton_error errors[CAMERAS];
    struct runner_turn turns[CAMERAS];
};

/* Another picture for each: none, one, two, … rectangles. */
static void crowd_init(struct crowd *crowd)
{
    *crowd = (struct crowd){0};
    bench_models[0].file = (char *)"many_rectangles.onnx";
    plan_init(&crowd->plan);
    assert_int_equal(runner_new(&crowd->runner, &crowd->plan.pipeline, MODELS, bench_engine,
                                RUNNER_BATCH, &crowd->errors[0]),
                     0);
    for (int camera = 0; camera < CAMERAS; camera++) {
        struct bench *bench = bench_new(plan_untracked);
        struct drawn *drawn = crowd->drawn[camera];
        for (int i = 0; i < camera; i++) {
            drawn[i] =
                (struct drawn){i % COLOURS, 40 + 200 * i + 20 * camera, 80 + 40 * camera, 120, 160};
        }
        drawn_frame_draw(&bench->frame, 0, drawn, camera);
        crowd->bench[camera] = bench;
        crowd->turns[camera] = bench_turn(bench, bench_whole, STAGE_NONE, &crowd->errors[camera]);
    }
}

static void crowd_fini(struct crowd *crowd)
{
    for (int i = 0; i < CAMERAS; i++) {
        bench_free(crowd->bench[i]);
    }
    runner_free(crowd->runner);
    bench_models[0].file = (char *)"rectangles.onnx";
}

static void crowd_run(struct crowd *crowd)
{
    struct runner_turn *turns[CAMERAS];

    for (int i = 0; i < CAMERAS; i++) {
        turns[i] = &crowd->turns[i];
    }
    runner_run(crowd->runner, turns, CAMERAS);
}

/* OpenCV does not tell of a model's input, so it is given one picture at a time. */
static bool takes_many(void)
{
    return bench_engine->kind == ENGINE_ONNXRUNTIME;
}

static void frames_of_several_cameras_are_run_at_once(void **state)
{
    struct crowd crowd;
    struct runner_stats stats;

    (void)state;
    crowd_init(&crowd);
    assert_int_equal(runner_batch(crowd.runner), takes_many() ? RUNNER_BATCH : 1);
    crowd.plan.pipeline.stage_count = 1;
    crowd_run(&crowd);
    runner_stats(crowd.runner, &stats);
    assert_int_equal(stats.runs, takes_many() ? 1 : CAMERAS);
    assert_int_equal(stats.frames, CAMERAS);
    for (int i = 0; i < CAMERAS; i++) {
        const struct seen *seen = &crowd.bench[i]->seen;
        assert_int_equal(crowd.errors[i].code, 0);
        stand_assert_boxes(seen->boxes, seen->count, crowd.drawn[i], i, 4);
    }
    crowd_fini(&crowd);
}

static void further_stages_look_at_each_camera_s_own_objects(void **state)
{
    struct crowd crowd;

    (void)state;
    crowd_init(&crowd);
    crowd_run(&crowd);
    for (int i = 0; i < CAMERAS; i++) {
        const struct bench *bench = crowd.bench[i];
        assert_int_equal(bench_reports(bench), i);
        for (size_t k = 0; k < bench_reports(bench); k++) {
            const json_t *report = json_array_get(bench->seen.reports, k);
            const char *brand = json_string_value(json_object_get(report, "carBrand"));
            const char *colour = json_string_value(bench_field(bench, k, "colour"));
            assert_string_equal(brand ? brand : "", strcmp(colour, "red") == 0    ? "Ferrari"
                                                    : strcmp(colour, "blue") == 0 ? "Ford"
                                                                                  : "");
        }
    }
    crowd_fini(&crowd);
}

static void a_cut_that_is_none_is_that_camera_s_error_only(void **state)
{
    static const int nothing[4] = {WIDTH, 0, 8, 8};
    struct crowd crowd;
    struct runner_stats stats;

    (void)state;
    crowd_init(&crowd);
    memcpy(crowd.turns[2].rect, nothing, sizeof(nothing));
    crowd_run(&crowd);
    runner_stats(crowd.runner, &stats);
    assert_int_equal(stats.failures, 1);
    assert_non_null(strstr(crowd.errors[2].message, "stage 'objects'"));
    for (int i = 0; i < CAMERAS; i++) {
        assert_int_equal(crowd.errors[i].code, i == 2 ? BATON_EINVAL : 0);
        assert_int_equal(crowd.bench[i]->seen.count, i == 2 ? 0 : i);
    }
    crowd_fini(&crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_several_cameras_are_run_at_once),
        cmocka_unit_test(further_stages_look_at_each_camera_s_own_objects),
        cmocka_unit_test(a_cut_that_is_none_is_that_camera_s_error_only),
    };
    return cmocka_run_group_tests_name("with the preferred engine", tests, bench_load_any,
                                       bench_unload) +
           cmocka_run_group_tests_name("with OpenCV", tests, bench_load_opencv, bench_unload);
}
