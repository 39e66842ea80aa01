/* What a runner makes of one camera's frames: boxes, and what is reported of them. */
#include "cmocka_all.h"

#include "integration/detector_infer/runner_bench.h"
#include "integration/detector_infer/stand.h"

#include <string.h>

static void letterboxed(struct plan *plan)
{
    plan->models[0].input.is_letterboxed = true;
    plan_untracked(plan);
}

static void an_object_becomes_one_flat_detection(void **state)
{
    const struct drawn drawn[] = {{BLUE, 200, 160, 320, 120}};
    struct bench *bench = bench_new(plan_untracked);
    json_t *report;

    (void)state;
    bench_show(bench, 0, drawn, 1);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 1, 4);
    assert_int_equal(bench_reports(bench), 1);
    bench_assert_text(bench, 0, "colour", "blue");
    bench_assert_text(bench, 0, "carBrand", "Ford");
    bench_assert_text(bench, 0, "licensePlateText", "B");
    bench_assert_near(bench, 0, "x", 200);
    bench_assert_near(bench, 0, "y", 160);
    bench_assert_near(bench, 0, "height", 120);
    assert_true(json_is_integer(bench_field(bench, 0, "height")));
    assert_true(json_is_string(bench_field(bench, 0, "width")));
    assert_true(json_real_value(bench_field(bench, 0, "brandConfidence")) > 0.9);
    assert_float_equal(json_real_value(bench_field(bench, 0, "confidence")), 0.9, 1e-9);
    assert_true(json_is_number(bench_field(bench, 0, "firstNumber")));
    report = json_array_get(bench->seen.reports, 0);
    assert_null(json_object_get(report, "track"));
    assert_int_equal(json_object_size(report), 10);
    bench_free(bench);
}

static void many_objects_are_classified_in_batches(void **state)
{
    struct drawn drawn[12];
    struct bench *bench = bench_new(letterboxed);

    (void)state;
    for (int i = 0; i < 12; i++) {
        drawn[i] = (struct drawn){i % 3, 40 + i % 4 * 300, 40 + i / 4 * 220, 240, 160};
    }
    bench_show(bench, 0, drawn, 12);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 12, 4);
    assert_int_equal(bench_reports(bench), 12);
    for (size_t i = 0; i < 12; i++) {
        const json_t *brand = json_object_get(json_array_get(bench->seen.reports, i), "carBrand");
        const char *colour = json_string_value(bench_field(bench, i, "colour"));
        /* Green is in no map: the field is left out. */
        assert_true((strcmp(colour, "green") == 0) == (brand == NULL));
    }
    assert_true(!stand_is_onnxruntime(bench_engine) || runner_runs(bench->runner) == 1 + 2 + 12);
    bench_free(bench);
}

static void a_subscription_sees_its_cut_only(void **state)
{
    const struct drawn drawn[] = {{RED, 100, 100, 160, 80}, {GREEN, 760, 400, 200, 120}};
    const int rect[4] = {640, 360, 640, 360};
    struct bench *bench = bench_new(plan_untracked);

    (void)state;
    bench_show_at(bench, rect, STAGE_NONE, 0, drawn, 2);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, &drawn[1], 1, 2);
    assert_int_equal(bench_reports(bench), 1);
    bench_free(bench);
}

static void track(struct plan *plan)
{
    plan->pipeline.track.is_on = true;
}

static const struct drawn still = {RED, 300, 200, 320, 200};

static void an_object_is_reported_once(void **state)
{
    struct bench *bench = bench_new(track);
    size_t total = 0;
    long long ids[2] = {0};

    (void)state;
    for (int step = 0; step < 20; step++) {
        const struct drawn drawn[] = {{RED, 100 + 20 * step, 100, 160, 80},
                                      {RED, 800 - 20 * step, 400, 160, 80}};
        bench_show(bench, step, drawn, 2);
        stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 2, 4);
        for (size_t i = 0; i < bench_reports(bench) && total < 2; i++) {
            ids[total++] = json_integer_value(bench_field(bench, i, "track"));
            bench_assert_text(bench, i, "carBrand", "Ferrari");
        }
    }
    assert_int_equal(total, 2);
    assert_true(ids[0] != ids[1]);
    /* The classifiers ran for the reports, not for the frames. */
    assert_in_range(runner_runs(bench->runner), 22, 26);
    bench_free(bench);
}

/* The classifier is never so sure, so it gives no answer. */
static void sure_of_brands(struct plan *plan)
{
    track(plan);
    plan->models[1].confidence = 0.99999F;
}

static void a_report_waits_until_all_is_known(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);

    (void)state;
    for (int step = 0; step < 6; step++) {
        bench_show(bench, step, &still, 1);
        assert_int_equal(bench->seen.count, 1);
        assert_int_equal(bench_reports(bench), 0);
    }
    bench->plan.models[1].confidence = 0.5F; /* now it is near enough */
    bench_show(bench, 6, &still, 1);
    assert_int_equal(bench_reports(bench), 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    bench_show(bench, 7, &still, 1);
    assert_int_equal(bench_reports(bench), 0);
    bench_free(bench);
}

static void track_what_is_sure(struct plan *plan)
{
    track(plan);
    plan->models[0].confidence = 0.5F;
}

static void an_object_goes_on_down_to_half_of_the_confidence_but_does_not_begin_there(void **state)
{
    const struct drawn pale = {PALE_RED, still.x, still.y, still.width, still.height};
    struct bench *bench = bench_new(track_what_is_sure);

    (void)state;
    bench_show(bench, 0, &pale, 1);
    assert_int_equal(bench->seen.count, 0);
    for (int step = 1; step < 8; step++) {
        bench_show(bench, step, step < 4 ? &still : &pale, 1);
        assert_int_equal(bench->seen.count, 1);
        assert_true(bench->seen.is_unsure == (step >= 4));
        assert_true(step < 4 || bench->seen.boxes[0].score > 0.25F);
    }
    bench_free(bench);
}

static void a_report_does_not_wait_for_ever(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);
    size_t total = 0;

    (void)state;
    for (int step = 0; step < 20; step++) {
        bench_show(bench, step, &still, 1);
        total += bench_reports(bench);
        assert_true(total == (step >= 12));
    }
    bench_free(bench);
    /* One that goes away meanwhile is reported as it was known. */
    bench = bench_new(sure_of_brands);
    for (int step = 0, seen = 0; step < 12; step++) {
        bench_show(bench, step, &still, step < 6);
        seen += (int)bench_reports(bench);
        assert_int_equal(seen, step >= 8);
        if (step == 8) {
            bench_assert_text(bench, 0, "colour", "red");
            assert_null(json_object_get(json_array_get(bench->seen.reports, 0), "carBrand"));
        }
    }
    bench_free(bench);
}

static void brands_alone(struct plan *plan)
{
    plan->pipeline.stage_count = 1;
    plan->stages[OBJECTS].fields = bench_brand_fields;
    plan->stages[OBJECTS].field_count = 1;
}

static void untracked_brands_alone(struct plan *plan)
{
    brands_alone(plan);
    plan_untracked(plan);
}

static void tracked_brands_alone(struct plan *plan)
{
    brands_alone(plan);
    track(plan);
}

/* Green is in no map, and there is nothing else to say of it. */
static void an_object_of_which_nothing_is_to_be_said_is_not_reported(void **state)
{
    static void (*const plans[])(struct plan *) = {untracked_brands_alone, tracked_brands_alone};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct bench *bench = bench_new(plans[i]);
        size_t total = 0;
        for (int step = 0; step < 5; step++) {
            const struct drawn drawn[] = {{GREEN, 100, 100, 160, 80}, {RED, 800, 400, 160, 80}};
            bench_show(bench, step, drawn, 2);
            for (size_t k = 0; k < bench_reports(bench); k++) {
                bench_assert_text(bench, k, "carBrand", "Ferrari");
            }
            total += bench_reports(bench);
        }
        assert_int_equal(total, i == 0 ? 5 : 1);
        bench_free(bench);
    }
}

static void on_change(struct plan *plan)
{
    track(plan);
    plan->pipeline.track.report = REPORT_CHANGE;
    plan->stages[OBJECTS].field_count = 1;
    plan->stages[BRAND].field_count = 1;
}

static void an_object_that_changes_is_reported_again(void **state)
{
    struct bench *bench = bench_new(on_change);
    size_t total = 0;

    (void)state;
    for (int step = 0; step < 20; step++) {
        const struct drawn drawn = {step < 10 ? RED : BLUE, 300, 200, 320, 200};
        bench_show(bench, step, &drawn, 1);
        if (bench_reports(bench) > 0) {
            bench_assert_text(bench, 0, "carBrand", total == 0 ? "Ferrari" : "Ford");
            /* The tracker believes in another class only when it has seen it for some frames. */
            bench_assert_text(bench, 0, "colour", total < 2 ? "red" : "blue");
            total++;
        }
    }
    assert_int_equal(total, 3);
    bench_free(bench);
}

static void every_second(struct plan *plan)
{
    track(plan);
    plan->pipeline.track.report = REPORT_EVERY;
    plan->pipeline.track.every_ms = 1000;
}

static void an_object_is_reported_as_often_as_asked(void **state)
{
    struct bench *bench = bench_new(every_second);
    size_t total = 0;

    (void)state;
    for (int step = 0; step < 32; step++) {
        bench_show(bench, step, &still, 1);
        total += bench_reports(bench);
    }
    assert_int_equal(total, 3); /* frames 2, 12 and 22 of 32, ten a second */
    bench_free(bench);
}

static void while_fueling(struct plan *plan)
{
    plan_untracked(plan);
    plan->stages[OBJECTS].when = 1U << STAGE_CAR_FUELING | 1U << STAGE_WELCOME;
    plan->stages[BRAND].when = 1U << STAGE_CAR_FUELING;
}

static void stages_run_when_their_condition_holds(void **state)
{
    const struct drawn drawn = {RED, 300, 200, 320, 200};
    struct bench *bench = bench_new(while_fueling);

    (void)state;
    bench_show_at(bench, bench_whole, STAGE_NONE, 0, &drawn, 1);
    assert_int_equal(bench->seen.count, 0);
    bench_show_at(bench, bench_whole, STAGE_WELCOME, 1, &drawn, 1);
    assert_int_equal(bench_reports(bench), 1);
    assert_null(json_object_get(json_array_get(bench->seen.reports, 0), "carBrand"));
    bench_show_at(bench, bench_whole, STAGE_CAR_FUELING, 2, &drawn, 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    bench_free(bench);
}

static void large_ones_on_the_left(struct plan *plan)
{
    static bool classes[COLOURS] = {[RED] = true, [BLUE] = true};

    plan_untracked(plan);
    plan->region = (struct pipeline_region){{{0, 0}, {0.5F, 0}, {0.5F, 1}, {0, 1}}, 4};
    plan->stages[OBJECTS].regions = &plan->region;
    plan->stages[OBJECTS].region_count = 1;
    plan->stages[OBJECTS].min_width = 100;
    plan->stages[BRAND].classes = classes;
    plan->stages[BRAND].class_count = COLOURS;
}

static void only_the_objects_asked_for_are_seen(void **state)
{
    const struct drawn drawn[] = {{RED, 40, 40, 200, 100},
                                  {GREEN, 40, 200, 200, 100},
                                  {RED, 40, 400, 80, 100},
                                  {BLUE, 900, 40, 200, 100}};
    struct bench *bench = bench_new(large_ones_on_the_left);

    (void)state;
    bench_show(bench, 0, drawn, 4);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 2, 4);
    assert_int_equal(bench_reports(bench), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *report = json_array_get(bench->seen.reports, i);
        bool is_red = strcmp(json_string_value(bench_field(bench, i, "colour")), "red") == 0;
        assert_true(is_red == (json_object_get(report, "brandConfidence") != NULL));
    }
    bench_free(bench);
}

static void classify_the_frame(struct plan *plan)
{
    plan_untracked(plan);
    plan->stages[0] = plan->stages[BRAND];
    plan->stages[0].from = PIPELINE_FROM_FRAME;
    plan->pipeline.stage_count = 1;
}

static void a_classifier_may_look_at_the_whole_frame(void **state)
{
    struct bench *bench = bench_new(classify_the_frame);

    (void)state;
    bench_show(bench, 0, &(struct drawn){RED, 0, 0, WIDTH, HEIGHT}, 1);
    assert_int_equal(bench_reports(bench), 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    assert_float_equal(bench->seen.boxes[0].width, WIDTH, 0);
    bench_free(bench);
}

static void models_that_do_not_fit_are_named(void **state)
{
    struct runner *runner = NULL;
    struct baton_error error = {0};
    struct plan plan;

    (void)state;
    plan_init(&plan);
    plan.models[2].input.width = 65;
    if (stand_is_onnxruntime(bench_engine)) { /* OpenCV knows no declared input */
        assert_int_equal(plan_open(&plan, &runner, &error), BATON_EINVAL);
        assert_non_null(strstr(error.message, "model 'stripes' (stripes.onnx)"));
    }
    assert_null(runner);
}

static void a_wrong_number_of_classes_is_an_error_of_the_stage(void **state)
{
    struct bench *bench = bench_new(plan_untracked);
    struct baton_error error = {0};
    struct runner_turn turn;

    (void)state;
    bench->plan.models[0].class_count = 2;
    turn = bench_turn(bench, bench_whole, STAGE_NONE, &error);
    assert_int_equal(runner_run(bench->runner, &turn), BATON_EPROTO);
    assert_non_null(strstr(error.message, "stage 'objects'"));
    bench->plan.models[0].class_count = COLOURS;
    bench_show(bench, 1, NULL, 0);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_becomes_one_flat_detection),
        cmocka_unit_test(many_objects_are_classified_in_batches),
        cmocka_unit_test(a_subscription_sees_its_cut_only),
        cmocka_unit_test(an_object_is_reported_once),
        cmocka_unit_test(a_report_waits_until_all_is_known),
        cmocka_unit_test(an_object_goes_on_down_to_half_of_the_confidence_but_does_not_begin_there),
        cmocka_unit_test(a_report_does_not_wait_for_ever),
        cmocka_unit_test(an_object_of_which_nothing_is_to_be_said_is_not_reported),
        cmocka_unit_test(an_object_that_changes_is_reported_again),
        cmocka_unit_test(an_object_is_reported_as_often_as_asked),
        cmocka_unit_test(stages_run_when_their_condition_holds),
        cmocka_unit_test(only_the_objects_asked_for_are_seen),
        cmocka_unit_test(a_classifier_may_look_at_the_whole_frame),
        cmocka_unit_test(models_that_do_not_fit_are_named),
        cmocka_unit_test(a_wrong_number_of_classes_is_an_error_of_the_stage),
    };
    return cmocka_run_group_tests_name("with the preferred engine", tests, bench_load_any,
                                       bench_unload) +
           cmocka_run_group_tests_name("with OpenCV", tests, bench_load_opencv, bench_unload);
}
