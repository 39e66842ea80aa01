#include "cmocka_all.h"

#include "detector/infer/runner.h"
#include "integration/detector_infer/drawn_frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1280, HEIGHT = 720, SEEN_MAX = 64, ALWAYS = (1 << STAGE_COUNT) - 1 };

static const int whole[4] = {0, 0, WIDTH, HEIGHT};
static struct engine *engine;

/* ---- A pipeline, written by hand ------------------------------------------------------------ */

static char *names[] = {(char *)"red", (char *)"green", (char *)"blue"};
static char *letters[] = {(char *)"-", (char *)"R", (char *)"G", (char *)"B"};

#define INPUT(w, h)                                                                                \
    {                                                                                              \
        .width = (w), .height = (h), .layout = LAYOUT_NCHW, .color = COLOR_RGB,                    \
        .scale = 1.0F / 255, .std = {                                                              \
            1,                                                                                     \
            1,                                                                                     \
            1                                                                                      \
        }                                                                                          \
    }

static struct pipeline_model models[] = {
    {.name = (char *)"rectangles",
     .file = (char *)"rectangles.onnx",
     .input = INPUT(RECTANGLES_WIDTH, RECTANGLES_HEIGHT),
     .decoder = DECODER_YOLOV8,
     .classes = names,
     .class_count = COLOURS,
     .blank = -1,
     .confidence = 0.5F,
     .nms = 0.5F},
    {.name = (char *)"colours",
     .file = (char *)"colours.onnx",
     .input = INPUT(32, 32),
     .decoder = DECODER_CLASSIFY,
     .classes = names,
     .class_count = COLOURS,
     .blank = -1,
     .confidence = 0.5F},
    {.name = (char *)"stripes",
     .file = (char *)"stripes.onnx",
     .input = INPUT(64, 16),
     .decoder = DECODER_TENSOR,
     .classes = letters,
     .class_count = 4,
     .blank = 0,
     .confidence = 0.3F},
};

static struct pipeline_mapping brands[] = {{(char *)"blue", (char *)"Ford"},
                                           {(char *)"red", (char *)"Ferrari"}};

static struct pipeline_field object_fields[] = {
    {.name = (char *)"colour", .value = VALUE_CLASS},
    {.name = (char *)"confidence", .value = VALUE_CONFIDENCE},
    {.name = (char *)"track", .value = VALUE_TRACK},
    {.name = (char *)"x", .value = VALUE_X},
    {.name = (char *)"y", .value = VALUE_Y},
    {.name = (char *)"width", .value = VALUE_WIDTH, .type = TYPE_STRING},
    {.name = (char *)"height", .value = VALUE_HEIGHT, .type = TYPE_INTEGER}};
static struct pipeline_field brand_fields[] = {
    {.name = (char *)"carBrand", .value = VALUE_CLASS, .map = brands, .map_count = 2},
    {.name = (char *)"brandConfidence", .value = VALUE_CONFIDENCE}};
static struct pipeline_field text_fields[] = {
    {.name = (char *)"licensePlateText", .value = VALUE_TEXT},
    {.name = (char *)"firstNumber", .value = VALUE_NUMBER, .index = 0}};

enum { OBJECTS, BRAND, TEXT, STAGES };

struct plan {
    struct pipeline pipeline;
    struct pipeline_stage stages[STAGES];
    struct pipeline_region region;
};

static void plan_init(struct plan *plan)
{
    memset(plan, 0, sizeof(*plan));
    plan->stages[OBJECTS] = (struct pipeline_stage){.name = (char *)"objects",
                                                    .model = 0,
                                                    .from = PIPELINE_FROM_FRAME,
                                                    .when = ALWAYS,
                                                    .fields = object_fields,
                                                    .field_count = 7};
    plan->stages[BRAND] = (struct pipeline_stage){.name = (char *)"brand",
                                                  .model = 1,
                                                  .from = OBJECTS,
                                                  .when = ALWAYS,
                                                  .fields = brand_fields,
                                                  .field_count = 2};
    plan->stages[TEXT] = (struct pipeline_stage){.name = (char *)"text",
                                                 .model = 2,
                                                 .from = BRAND,
                                                 .when = ALWAYS,
                                                 .fields = text_fields,
                                                 .field_count = 2};
    plan->pipeline =
        (struct pipeline){.models = models,
                          .model_count = 3,
                          .stages = plan->stages,
                          .stage_count = STAGES,
                          .track = {.iou = 0.2F, .max_age_ms = 2000, .report = REPORT_ONCE}};
}

/* ---- What is seen --------------------------------------------------------------------------- */

struct seen {
    struct box boxes[SEEN_MAX];
    int count;
    json_t *reports; /* array */
};

static void take(void *userdata, const struct sighting *sighting)
{
    struct seen *seen = userdata;

    assert_true(seen->count < SEEN_MAX);
    seen->boxes[seen->count++] = *sighting->box;
    if (sighting->attributes) {
        assert_int_equal(json_array_append(seen->reports, sighting->attributes), 0);
    }
}

struct bench {
    struct plan plan;
    struct runner *runner;
    struct runner_view *view;
    struct drawn_frame frame;
    struct seen seen;
};

static struct bench *bench_new(void (*change)(struct plan *plan))
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct baton_error error = {0};

    assert_non_null(bench);
    plan_init(&bench->plan);
    if (change) {
        change(&bench->plan);
    }
    if (runner_new(&bench->runner, &bench->plan.pipeline, MODELS, engine, 1, &error) != 0) {
        fail_msg("%s", error.message);
    }
    bench->view = runner_view_new(bench->runner);
    assert_non_null(bench->view);
    drawn_frame_init(&bench->frame, WIDTH, HEIGHT);
    bench->seen.reports = json_array();
    return bench;
}

static void bench_free(struct bench *bench)
{
    json_decref(bench->seen.reports);
    drawn_frame_fini(&bench->frame);
    runner_view_free(bench->view);
    runner_free(bench->runner);
    free(bench);
}

static struct runner_turn turn_of(struct bench *bench, const int rect[4], enum stage progression,
                                  struct baton_error *error)
{
    return (struct runner_turn){.view = bench->view,
                                .frame = &bench->frame.frame,
                                .rect = {rect[0], rect[1], rect[2], rect[3]},
                                .now = bench->frame.frame.captured,
                                .progression = progression,
                                .seen = take,
                                .userdata = &bench->seen,
                                .reterr = error};
}

static void show_at(struct bench *bench, const int rect[4], enum stage progression, int step,
                    const struct drawn *drawn, int count)
{
    struct baton_error error = {0};
    struct runner_turn turn = turn_of(bench, rect, progression, &error);

    drawn_frame_draw(&bench->frame, step, drawn, count);
    turn.now = bench->frame.frame.captured;
    bench->seen.count = 0;
    (void)json_array_clear(bench->seen.reports);
    runner_run(bench->runner, (struct runner_turn *[]){&turn}, 1);
    if (error.code) {
        fail_msg("%s", error.message);
    }
}

static void show(struct bench *bench, int step, const struct drawn *drawn, int count)
{
    show_at(bench, whole, STAGE_NONE, step, drawn, count);
}

static size_t reports(const struct bench *bench)
{
    return json_array_size(bench->seen.reports);
}

static const json_t *field(const struct bench *bench, size_t report, const char *name)
{
    const json_t *value = json_object_get(json_array_get(bench->seen.reports, report), name);

    if (!value) {
        fail_msg("report %zu has no %s", report, name);
    }
    return value;
}

static void assert_text(const struct bench *bench, size_t report, const char *name,
                        const char *wanted)
{
    assert_string_equal(json_string_value(field(bench, report, name)), wanted);
}

static void assert_near(const struct bench *bench, size_t report, const char *name, double wanted)
{
    double value = json_number_value(field(bench, report, name));

    if (fabs(value - wanted) > 4) {
        fail_msg("%s: %g, not %g", name, value, wanted);
    }
}

/* ---- The tests ------------------------------------------------------------------------------ */

static void untracked(struct plan *plan)
{
    plan->pipeline.track.is_on = false;
}

static void letterboxed(struct plan *plan)
{
    models[0].input.is_letterboxed = true;
    untracked(plan);
}

static void an_object_becomes_one_flat_detection(void **state)
{
    const struct drawn drawn[] = {{BLUE, 200, 160, 320, 120}};
    struct bench *bench = bench_new(untracked);
    json_t *report;

    (void)state;
    show(bench, 0, drawn, 1);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 1, 4);
    assert_int_equal(reports(bench), 1);
    assert_text(bench, 0, "colour", "blue");
    assert_text(bench, 0, "carBrand", "Ford");
    assert_text(bench, 0, "licensePlateText", "B");
    assert_near(bench, 0, "x", 200);
    assert_near(bench, 0, "y", 160);
    assert_near(bench, 0, "height", 120);
    assert_true(json_is_integer(field(bench, 0, "height")));
    assert_true(json_is_string(field(bench, 0, "width")));
    assert_true(json_real_value(field(bench, 0, "brandConfidence")) > 0.9);
    assert_float_equal(json_real_value(field(bench, 0, "confidence")), 0.9, 1e-9);
    assert_true(json_is_number(field(bench, 0, "firstNumber")));
    report = json_array_get(bench->seen.reports, 0);
    assert_null(json_object_get(report, "track"));
    assert_int_equal(json_object_size(report), 10);
    bench_free(bench);
}

static void many_objects_are_classified_in_batches(void **state)
{
    struct drawn drawn[12];
    struct runner_stats stats;
    struct bench *bench = bench_new(letterboxed);

    (void)state;
    for (int i = 0; i < 12; i++) {
        drawn[i] = (struct drawn){i % 3, 40 + i % 4 * 300, 40 + i / 4 * 220, 240, 160};
    }
    show(bench, 0, drawn, 12);
    models[0].input.is_letterboxed = false;
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 12, 4);
    assert_int_equal(reports(bench), 12);
    for (size_t i = 0; i < 12; i++) {
        const json_t *brand = json_object_get(json_array_get(bench->seen.reports, i), "carBrand");
        const char *colour = json_string_value(field(bench, i, "colour"));
        /* Green is in no map: the field is left out. */
        assert_true((strcmp(colour, "green") == 0) == (brand == NULL));
    }
    runner_stats(bench->runner, &stats);
    assert_int_equal(stats.frames, 1);
    assert_true(engine->kind != ENGINE_ONNXRUNTIME || stats.runs == 1 + 2 + 12);
    bench_free(bench);
}

static void a_subscription_sees_its_cut_only(void **state)
{
    const struct drawn drawn[] = {{RED, 100, 100, 160, 80}, {GREEN, 760, 400, 200, 120}};
    const int rect[4] = {640, 360, 640, 360};
    struct bench *bench = bench_new(untracked);

    (void)state;
    show_at(bench, rect, STAGE_NONE, 0, drawn, 2);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, &drawn[1], 1, 2);
    assert_int_equal(reports(bench), 1);
    bench_free(bench);
}

static void track(struct plan *plan)
{
    plan->pipeline.track.is_on = true;
}

static void an_object_is_reported_once(void **state)
{
    struct bench *bench = bench_new(track);
    size_t total = 0;
    long long ids[2] = {0};
    struct runner_stats stats;

    (void)state;
    for (int step = 0; step < 20; step++) {
        const struct drawn drawn[] = {{RED, 100 + 20 * step, 100, 160, 80},
                                      {RED, 800 - 20 * step, 400, 160, 80}};
        show(bench, step, drawn, 2);
        stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 2, 4);
        for (size_t i = 0; i < reports(bench) && total < 2; i++) {
            ids[total++] = json_integer_value(field(bench, i, "track"));
            assert_text(bench, i, "carBrand", "Ferrari");
        }
    }
    assert_int_equal(total, 2);
    assert_true(ids[0] != ids[1]);
    /* The classifiers ran for the reports, not for the frames. */
    runner_stats(bench->runner, &stats);
    assert_in_range(stats.runs, 22, 26);
    bench_free(bench);
}

/* The classifier is never so sure, so it gives no answer. */
static void sure_of_brands(struct plan *plan)
{
    track(plan);
    models[1].confidence = 0.99999F;
}

static void a_report_waits_until_all_is_known(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);

    (void)state;
    for (int step = 0; step < 6; step++) {
        show(bench, step, &(struct drawn){RED, 300, 200, 320, 200}, 1);
        assert_int_equal(bench->seen.count, 1);
        assert_int_equal(reports(bench), 0);
    }
    models[1].confidence = 0.5F; /* now it is near enough */
    show(bench, 6, &(struct drawn){RED, 300, 200, 320, 200}, 1);
    assert_int_equal(reports(bench), 1);
    assert_text(bench, 0, "carBrand", "Ferrari");
    show(bench, 7, &(struct drawn){RED, 300, 200, 320, 200}, 1);
    assert_int_equal(reports(bench), 0);
    bench_free(bench);
}

static void a_report_does_not_wait_for_ever(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);
    size_t total = 0;

    (void)state;
    for (int step = 0; step < 20; step++) {
        show(bench, step, &(struct drawn){RED, 300, 200, 320, 200}, 1);
        total += reports(bench);
        assert_true(total == (step >= 12));
    }
    bench_free(bench);
    /* One that goes away meanwhile is reported as it was known. */
    bench = bench_new(sure_of_brands);
    for (int step = 0, seen = 0; step < 12; step++) {
        show(bench, step, &(struct drawn){RED, 300, 200, 320, 200}, step < 6);
        seen += (int)reports(bench);
        assert_int_equal(seen, step >= 8);
        if (step == 8) {
            assert_text(bench, 0, "colour", "red");
            assert_null(json_object_get(json_array_get(bench->seen.reports, 0), "carBrand"));
        }
    }
    models[1].confidence = 0.5F;
    bench_free(bench);
}

static void brands_alone(struct plan *plan)
{
    plan->pipeline.stage_count = 1;
    plan->stages[OBJECTS].fields = brand_fields;
    plan->stages[OBJECTS].field_count = 1;
}

static void untracked_brands_alone(struct plan *plan)
{
    brands_alone(plan);
    untracked(plan);
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
            show(bench, step, drawn, 2);
            for (size_t k = 0; k < reports(bench); k++) {
                assert_text(bench, k, "carBrand", "Ferrari");
            }
            total += reports(bench);
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
        show(bench, step, &drawn, 1);
        if (reports(bench) > 0) {
            assert_text(bench, 0, "carBrand", total == 0 ? "Ferrari" : "Ford");
            /* The tracker believes in another class only when it has seen it for some frames. */
            assert_text(bench, 0, "colour", total < 2 ? "red" : "blue");
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
        show(bench, step, &(struct drawn){RED, 300, 200, 320, 200}, 1);
        total += reports(bench);
    }
    assert_int_equal(total, 3); /* frames 2, 12 and 22 of 32, ten a second */
    bench_free(bench);
}

static void while_fueling(struct plan *plan)
{
    untracked(plan);
    plan->stages[OBJECTS].when = 1U << STAGE_CAR_FUELING | 1U << STAGE_WELCOME;
    plan->stages[BRAND].when = 1U << STAGE_CAR_FUELING;
}

static void stages_run_when_their_condition_holds(void **state)
{
    const struct drawn drawn = {RED, 300, 200, 320, 200};
    struct bench *bench = bench_new(while_fueling);

    (void)state;
    show_at(bench, whole, STAGE_NONE, 0, &drawn, 1);
    assert_int_equal(bench->seen.count, 0);
    show_at(bench, whole, STAGE_WELCOME, 1, &drawn, 1);
    assert_int_equal(reports(bench), 1);
    assert_null(json_object_get(json_array_get(bench->seen.reports, 0), "carBrand"));
    show_at(bench, whole, STAGE_CAR_FUELING, 2, &drawn, 1);
    assert_text(bench, 0, "carBrand", "Ferrari");
    bench_free(bench);
}

static void large_ones_on_the_left(struct plan *plan)
{
    static uint16_t classes[] = {RED, BLUE};

    untracked(plan);
    plan->region = (struct pipeline_region){{{0, 0}, {0.5F, 0}, {0.5F, 1}, {0, 1}}, 4};
    plan->stages[OBJECTS].regions = &plan->region;
    plan->stages[OBJECTS].region_count = 1;
    plan->stages[OBJECTS].min_width = 100;
    plan->stages[BRAND].classes = classes;
    plan->stages[BRAND].class_count = 2;
}

static void only_the_objects_asked_for_are_seen(void **state)
{
    const struct drawn drawn[] = {{RED, 40, 40, 200, 100},
                                  {GREEN, 40, 200, 200, 100},
                                  {RED, 40, 400, 80, 100},
                                  {BLUE, 900, 40, 200, 100}};
    struct bench *bench = bench_new(large_ones_on_the_left);

    (void)state;
    show(bench, 0, drawn, 4);
    stand_assert_boxes(bench->seen.boxes, bench->seen.count, drawn, 2, 4);
    assert_int_equal(reports(bench), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *report = json_array_get(bench->seen.reports, i);
        bool is_red = strcmp(json_string_value(field(bench, i, "colour")), "red") == 0;
        assert_true(is_red == (json_object_get(report, "brandConfidence") != NULL));
    }
    bench_free(bench);
}

static void classify_the_frame(struct plan *plan)
{
    untracked(plan);
    plan->stages[0] = plan->stages[BRAND];
    plan->stages[0].from = PIPELINE_FROM_FRAME;
    plan->pipeline.stage_count = 1;
}

static void a_classifier_may_look_at_the_whole_frame(void **state)
{
    struct bench *bench = bench_new(classify_the_frame);

    (void)state;
    show(bench, 0, &(struct drawn){RED, 0, 0, WIDTH, HEIGHT}, 1);
    assert_int_equal(reports(bench), 1);
    assert_text(bench, 0, "carBrand", "Ferrari");
    assert_float_equal(bench->seen.boxes[0].width, WIDTH, 0);
    bench_free(bench);
}

static void models_that_do_not_fit_are_named(void **state)
{
    struct runner *runner = NULL;
    struct baton_error error = {0};
    struct plan plan;
    struct pipeline_model saved = models[2];

    (void)state;
    plan_init(&plan);
    models[2].file = (char *)"missing.onnx";
    assert_int_equal(runner_new(&runner, &plan.pipeline, MODELS, engine, 1, &error), BATON_ENOENT);
    assert_non_null(strstr(error.message, "model 'stripes' (missing.onnx)"));
    models[2] = saved;
    models[2].input.width = 65;
    if (engine->kind == ENGINE_ONNXRUNTIME) { /* OpenCV tells of no input that it declares */
        assert_int_equal(runner_new(&runner, &plan.pipeline, MODELS, engine, 1, &error),
                         BATON_EINVAL);
        assert_non_null(strstr(error.message, "model 'stripes'"));
    }
    models[2] = saved;
    assert_null(runner);
}

static void a_wrong_number_of_classes_is_an_error_of_the_stage(void **state)
{
    struct bench *bench = bench_new(untracked);
    struct baton_error error = {0};
    struct runner_turn turn;

    (void)state;
    models[0].class_count = 2;
    turn = turn_of(bench, whole, STAGE_NONE, &error);
    runner_run(bench->runner, (struct runner_turn *[]){&turn}, 1);
    assert_int_equal(error.code, BATON_EINVAL);
    assert_non_null(strstr(error.message, "stage 'objects'"));
    models[0].class_count = COLOURS;
    show(bench, 1, NULL, 0);
    bench_free(bench);
}

/* ---- Several frames at once ----------------------------------------------------------------- */

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
    models[0].file = (char *)"many_rectangles.onnx";
    plan_init(&crowd->plan);
    assert_int_equal(runner_new(&crowd->runner, &crowd->plan.pipeline, MODELS, engine, RUNNER_BATCH,
                                &crowd->errors[0]),
                     0);
    for (int camera = 0; camera < CAMERAS; camera++) {
        struct bench *bench = bench_new(untracked);
        struct drawn *drawn = crowd->drawn[camera];
        for (int i = 0; i < camera; i++) {
            drawn[i] =
                (struct drawn){i % COLOURS, 40 + 200 * i + 20 * camera, 80 + 40 * camera, 120, 160};
        }
        drawn_frame_draw(&bench->frame, 0, drawn, camera);
        crowd->bench[camera] = bench;
        crowd->turns[camera] = turn_of(bench, whole, STAGE_NONE, &crowd->errors[camera]);
    }
}

static void crowd_fini(struct crowd *crowd)
{
    for (int i = 0; i < CAMERAS; i++) {
        bench_free(crowd->bench[i]);
    }
    runner_free(crowd->runner);
    models[0].file = (char *)"rectangles.onnx";
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
    return engine->kind == ENGINE_ONNXRUNTIME;
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
        assert_int_equal(reports(bench), i);
        for (size_t k = 0; k < reports(bench); k++) {
            const json_t *report = json_array_get(bench->seen.reports, k);
            const char *brand = json_string_value(json_object_get(report, "carBrand"));
            const char *colour = json_string_value(field(bench, k, "colour"));
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

static int load_any(void **state)
{
    (void)state;
    engine = stand_engine(ENGINE_ANY);
    return engine ? 0 : -1;
}

static int load_opencv(void **state)
{
    (void)state;
    engine = stand_engine(ENGINE_OPENCV);
    return engine ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    engine_free(engine);
    engine = NULL;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_becomes_one_flat_detection),
        cmocka_unit_test(many_objects_are_classified_in_batches),
        cmocka_unit_test(a_subscription_sees_its_cut_only),
        cmocka_unit_test(an_object_is_reported_once),
        cmocka_unit_test(a_report_waits_until_all_is_known),
        cmocka_unit_test(a_report_does_not_wait_for_ever),
        cmocka_unit_test(an_object_of_which_nothing_is_to_be_said_is_not_reported),
        cmocka_unit_test(an_object_that_changes_is_reported_again),
        cmocka_unit_test(an_object_is_reported_as_often_as_asked),
        cmocka_unit_test(stages_run_when_their_condition_holds),
        cmocka_unit_test(only_the_objects_asked_for_are_seen),
        cmocka_unit_test(a_classifier_may_look_at_the_whole_frame),
        cmocka_unit_test(frames_of_several_cameras_are_run_at_once),
        cmocka_unit_test(further_stages_look_at_each_camera_s_own_objects),
        cmocka_unit_test(a_cut_that_is_none_is_that_camera_s_error_only),
        cmocka_unit_test(models_that_do_not_fit_are_named),
        cmocka_unit_test(a_wrong_number_of_classes_is_an_error_of_the_stage),
    };
    return cmocka_run_group_tests_name("with the preferred engine", tests, load_any, unload) +
           cmocka_run_group_tests_name("with OpenCV", tests, load_opencv, unload);
}
