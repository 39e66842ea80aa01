/* What a runner makes of one camera's frames: boxes, and what is reported of them. */
#include "cmocka_all.h"

#include "detector/infer/runner.h"
#include "integration/detector_infer/stand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- A runner, and what it sees of drawn frames --------------------------------------------- */

enum { WIDTH = 1280, HEIGHT = 720, SEEN_MAX = 64 };

/* Beside the colours of stand.h: a red of which rectangles.onnx is not sure (0.4, not 0.9). */
enum { PALE_RED = COLOURS, PALETTE };
enum { GREY = 110, NEUTRAL = 128, FRAME_MS = 100 };

/* Red, green, blue and pale red in BT.601, 16 to 235. */
static const uint8_t colours[PALETTE][3] = {
    {76, 98, 214}, {125, 70, 54}, {46, 220, 111}, {68, 108, 191}};

/* What all benches of a group run on. */
static struct engine_options bench_options;

struct drawn {
    int colour;
    int x, y, width, height;
};

struct bench {
    struct pipeline pipeline;
    struct runner *runner;
    struct runner_view view;
    struct frame frame;
    uint8_t pixels[WIDTH * HEIGHT * 3 / 2];
    /* seen in the frame that was shown last */
    struct box boxes[SEEN_MAX];
    int count;
    bool is_unsure;  /* the last of them */
    json_t *reports; /* array */
};

/* See stand_pipeline(). */
static struct bench *bench_new(const struct change *changes)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct pipeline *pipeline = &bench->pipeline;
    struct baton_error error = {0};
    struct zip_part models[PIPELINE_MODELS_MAX];
    int archive;

    assert_non_null(bench);
    *pipeline = stand_pipeline(changes);
    for (size_t i = 0; i < pipeline->model_count; i++) {
        models[i] = stand_model(pipeline->models[i].file);
    }
    archive = stand_archive("{}", models, pipeline->model_count);
    if (runner_new(&bench->runner, pipeline, archive, &bench_options, &error) != 0) {
        fail_msg("%s", error.message);
    }
    (void)close(archive);
    bench->reports = json_array();
    return bench;
}

static void bench_free(struct bench *bench)
{
    json_decref(bench->reports);
    runner_view_fini(&bench->view);
    runner_free(bench->runner);
    pipeline_fini(&bench->pipeline);
    free(bench);
}

static void fill(uint8_t *plane, int shift, const struct drawn *drawn, uint8_t value)
{
    for (int y = drawn->y >> shift; y < (drawn->y + drawn->height) >> shift; y++) {
        memset(plane + y * (WIDTH >> shift) + (drawn->x >> shift), value,
               (size_t)(drawn->width >> shift));
    }
}

static void draw(struct bench *bench, int step, const struct drawn *drawn, int count)
{
    uint8_t *planes[] = {bench->pixels, bench->pixels + WIDTH * HEIGHT,
                         bench->pixels + WIDTH * HEIGHT * 5 / 4};

    memset(bench->pixels, GREY, WIDTH * HEIGHT);
    memset(planes[1], NEUTRAL, WIDTH * HEIGHT / 2);
    for (int i = 0; i < 3 * count; i++) {
        fill(planes[i % 3], i % 3 > 0, &drawn[i / 3], colours[drawn[i / 3].colour][i % 3]);
    }
    bench->frame =
        (struct frame){.width = WIDTH,
                       .height = HEIGHT,
                       .stride = {WIDTH, WIDTH / 2, WIDTH / 2},
                       .plane = {planes[0], planes[1], planes[2]},
                       .number = (uint64_t)step + 1,
                       .pts_us = CAMERA_NO_PTS,
                       .captured = instant_add((instant){0}, SPAN_MS(1000 + step * FRAME_MS)),
                       .captured_unix_ms = 1000 + (int64_t)step * FRAME_MS};
}

/* Draws the frame of that step, 100 ms after the one before it, and runs it. It is grey but for
 * what is drawn, on even coordinates. */
static int bench_run(struct bench *bench, enum stage progression, int step,
                     const struct drawn *drawn, int count, struct baton_error *reterr)
{
    static struct sighting sightings[RUNNER_SIGHTINGS_MAX];
    struct runner_turn turn = {.view = &bench->view,
                               .frame = &bench->frame,
                               .rect = {0, 0, WIDTH, HEIGHT},
                               .progression = progression,
                               .reterr = reterr};

    draw(bench, step, drawn, count);
    turn.now = bench->frame.captured;
    (void)json_array_clear(bench->reports);
    bench->count = runner_run(bench->runner, &turn, sightings);
    assert_true(bench->count <= SEEN_MAX);
    for (int i = 0; i < bench->count; i++) {
        bench->boxes[i] = sightings[i].box;
        bench->is_unsure = sightings[i].is_unsure;
        if (sightings[i].attributes) {
            assert_int_equal(json_array_append_new(bench->reports, sightings[i].attributes), 0);
        }
    }
    return bench->count;
}

/* An error fails the test. */
static void bench_show_in(struct bench *bench, enum stage progression, int step,
                          const struct drawn *drawn, int count)
{
    struct baton_error error = {0};

    if (bench_run(bench, progression, step, drawn, count, &error) < 0) {
        fail_msg("%s", error.message);
    }
}

static void bench_show(struct bench *bench, int step, const struct drawn *drawn, int count)
{
    bench_show_in(bench, STAGE_NONE, step, drawn, count);
}

static bool is_near(float value, int wanted)
{
    return fabsf(value - (float)wanted) <= 4;
}

static bool is_box(const struct box *box, const struct drawn *drawn)
{
    return box->label == drawn->colour && is_near(box->x, drawn->x) && is_near(box->y, drawn->y) &&
           is_near(box->x + box->width, drawn->x + drawn->width) &&
           is_near(box->y + box->height, drawn->y + drawn->height);
}

/* Each of them has a box within four pixels on each side, and nothing else has. */
static void bench_assert_seen(const struct bench *bench, const struct drawn *drawn, int count)
{
    for (int i = 0; i < count; i++) {
        int found = 0;
        for (int k = 0; k < bench->count; k++) {
            found += is_box(&bench->boxes[k], &drawn[i]);
        }
        if (found != 1) {
            fail_msg("%d boxes for what is drawn at %d,%d", found, drawn[i].x, drawn[i].y);
        }
    }
    assert_int_equal(bench->count, count);
}

/* What was reported of that frame. */
static size_t bench_reports(const struct bench *bench)
{
    return json_array_size(bench->reports);
}

static const json_t *bench_field(const struct bench *bench, size_t report, const char *name)
{
    const json_t *value = json_object_get(json_array_get(bench->reports, report), name);

    if (!value) {
        fail_msg("report %zu has no %s", report, name);
    }
    return value;
}

static void bench_assert_text(const struct bench *bench, size_t report, const char *name,
                              const char *wanted)
{
    assert_string_equal(json_string_value(bench_field(bench, report, name)), wanted);
}

static void bench_assert_near(const struct bench *bench, size_t report, const char *name,
                              double wanted)
{
    double value = json_number_value(bench_field(bench, report, name));

    if (fabs(value - wanted) > 4) {
        fail_msg("%s: %g, not %g", name, value, wanted);
    }
}

/* ---- The tests ------------------------------------------------------------------------------ */

static const struct change none[] = {{NULL, NULL}};
static const struct change tracked[] = {{"tracker", "{}"}, {NULL, NULL}};

static void an_object_becomes_one_flat_detection(void **state)
{
    const struct drawn drawn[] = {{BLUE, 200, 160, 320, 120}};
    struct bench *bench = bench_new(none);
    json_t *report;

    bench_show(bench, 0, drawn, 1);
    bench_assert_seen(bench, drawn, 1);
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
    report = json_array_get(bench->reports, 0);
    assert_null(json_object_get(report, "track"));
    assert_int_equal(json_object_size(report), 10);
    bench_free(bench);
}

static void many_objects_are_classified_in_batches(void **state)
{
    static const struct change letterboxed[] = {{"models.rectangles.input.fit", "\"letterbox\""},
                                                {NULL, NULL}};
    struct drawn drawn[12];
    struct bench *bench = bench_new(letterboxed);

    for (int i = 0; i < 12; i++) {
        drawn[i] = (struct drawn){i % 3, 40 + i % 4 * 300, 40 + i / 4 * 220, 240, 160};
    }
    bench_show(bench, 0, drawn, 12);
    bench_assert_seen(bench, drawn, 12);
    assert_int_equal(bench_reports(bench), 12);
    for (size_t i = 0; i < 12; i++) {
        const json_t *brand = json_object_get(json_array_get(bench->reports, i), "carBrand");
        const char *colour = json_string_value(bench_field(bench, i, "colour"));
        /* Green is in no map: the field is left out. */
        assert_true((strcmp(colour, "green") == 0) == (brand == NULL));
    }
    assert_true(!stand_is_onnxruntime(runner_engine(bench->runner)) ||
                runner_runs(bench->runner) == 1 + 2 + 12);
    assert_string_equal(runner_note(bench->runner), "");
    bench_free(bench);
}

/* The trial of its one picture does not show it. */
static void a_model_that_takes_one_picture_at_a_time_gets_one_at_a_time(void **state)
{
    static const struct change single[] = {{"models.colours.file", "\"single.onnx\""},
                                           {NULL, NULL}};
    const struct drawn drawn[] = {{RED, 100, 100, 160, 80}, {BLUE, 800, 400, 160, 80}};
    struct bench *bench = bench_new(single);

    bench_show(bench, 0, drawn, 2);
    assert_int_equal(bench_reports(bench), 2);
    bench_assert_text(bench, 0, "colour", "red");
    bench_assert_text(bench, 1, "colour", "blue");
    /* The other engine gives every model one at a time, which is no fault of the model. */
    assert_true(
        (strstr(runner_note(bench->runner), "(single.onnx): gets one picture at a time: ") !=
         NULL) == stand_is_onnxruntime(runner_engine(bench->runner)));
    bench_free(bench);
}

static const struct drawn still = {RED, 300, 200, 320, 200};

static void an_object_is_reported_once(void **state)
{
    static const struct change numbered[] = {
        {"tracker", "{}"}, {"stages.0.fields.track", "\"track\""}, {NULL, NULL}};
    struct bench *bench = bench_new(numbered);
    size_t total = 0;
    long long ids[2] = {0};

    for (int step = 0; step < 20; step++) {
        const struct drawn drawn[] = {{RED, 100 + 20 * step, 100, 160, 80},
                                      {RED, 800 - 20 * step, 400, 160, 80}};
        bench_show(bench, step, drawn, 2);
        bench_assert_seen(bench, drawn, 2);
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
static const struct change sure_of_brands[] = {
    {"tracker", "{}"}, {"models.colours.confidence", "0.99999"}, {NULL, NULL}};

static void a_report_waits_until_all_is_known(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);

    for (int step = 0; step < 6; step++) {
        bench_show(bench, step, &still, 1);
        assert_int_equal(bench->count, 1);
        assert_int_equal(bench_reports(bench), 0);
    }
    bench->pipeline.models[1].confidence = 0.5F; /* now it is near enough */
    bench_show(bench, 6, &still, 1);
    assert_int_equal(bench_reports(bench), 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    bench_show(bench, 7, &still, 1);
    assert_int_equal(bench_reports(bench), 0);
    bench_free(bench);
}

static void an_object_goes_on_down_to_half_of_the_confidence_but_does_not_begin_there(void **state)
{
    const struct drawn pale = {PALE_RED, still.x, still.y, still.width, still.height};
    struct bench *bench = bench_new(tracked);

    bench_show(bench, 0, &pale, 1);
    assert_int_equal(bench->count, 0);
    for (int step = 1; step < 8; step++) {
        bench_show(bench, step, step < 4 ? &still : &pale, 1);
        assert_int_equal(bench->count, 1);
        assert_true(bench->is_unsure == (step >= 4));
        assert_true(step < 4 || bench->boxes[0].score > 0.25F);
    }
    bench_free(bench);
}

static void a_report_does_not_wait_for_ever(void **state)
{
    struct bench *bench = bench_new(sure_of_brands);
    size_t total = 0;

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
            assert_null(json_object_get(json_array_get(bench->reports, 0), "carBrand"));
        }
    }
    bench_free(bench);
}

/* Green is in no map, and there is nothing else to say of it. */
static void an_object_of_which_nothing_is_to_be_said_is_not_reported(void **state)
{
    static const char fields[] =
        "{\"carBrand\": {\"value\": \"class\", \"map\": {\"red\": \"Ferrari\"}}}";

    for (int i = 0; i < 2; i++) {
        const struct change brands_alone[] = {{"stages.2", NULL},
                                              {"stages.1", NULL},
                                              {"models.stripes", NULL},
                                              {"models.colours", NULL},
                                              {"stages.0.fields", fields},
                                              {i == 0 ? NULL : "tracker", "{}"},
                                              {NULL, NULL}};
        struct bench *bench = bench_new(brands_alone);
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

static void an_object_that_changes_is_reported_again(void **state)
{
    static const struct change on_change[] = {{"tracker", "{\"report\": \"change\"}"},
                                              {NULL, NULL}};
    struct bench *bench = bench_new(on_change);
    size_t total = 0;

    for (int step = 0; step < 20; step++) {
        /* It moves, which is no change. */
        const struct drawn drawn = {step < 10 ? RED : BLUE, 300 + 4 * step, 200, 320, 200};
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

static void an_object_is_reported_as_often_as_asked(void **state)
{
    static const struct change every_second[] = {
        {"tracker", "{\"report\": \"every\", \"everyMs\": 1000}"}, {NULL, NULL}};
    struct bench *bench = bench_new(every_second);
    size_t total = 0;

    for (int step = 0; step < 32; step++) {
        bench_show(bench, step, &still, 1);
        total += bench_reports(bench);
    }
    assert_int_equal(total, 3); /* frames 2, 12 and 22 of 32, ten a second */
    bench_free(bench);
}

static void stages_run_when_their_condition_holds(void **state)
{
    static const struct change while_fueling[] = {
        {"stages.0.when", "[\"welcome\", \"car_fueling\"]"},
        {"stages.1.when", "[\"car_fueling\"]"},
        {NULL, NULL}};
    const struct drawn drawn = {RED, 300, 200, 320, 200};
    struct bench *bench = bench_new(while_fueling);

    bench_show_in(bench, STAGE_NONE, 0, &drawn, 1);
    assert_int_equal(bench->count, 0);
    bench_show_in(bench, STAGE_WELCOME, 1, &drawn, 1);
    assert_int_equal(bench_reports(bench), 1);
    assert_null(json_object_get(json_array_get(bench->reports, 0), "carBrand"));
    bench_show_in(bench, STAGE_CAR_FUELING, 2, &drawn, 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    bench_free(bench);
}

static void only_the_objects_asked_for_are_seen(void **state)
{
    static const struct change large_ones_on_the_left[] = {
        {"stages.0.regions", "[[[0, 0], [0.5, 0], [0.5, 1], [0, 1]]]"},
        {"stages.0.minWidth", "100"},
        {"stages.1.classes", "[\"red\", \"blue\"]"},
        {NULL, NULL}};
    const struct drawn drawn[] = {{RED, 40, 40, 200, 100},
                                  {GREEN, 40, 200, 200, 100},
                                  {RED, 40, 400, 80, 100},
                                  {BLUE, 900, 40, 200, 100}};
    struct bench *bench = bench_new(large_ones_on_the_left);

    bench_show(bench, 0, drawn, 4);
    bench_assert_seen(bench, drawn, 2);
    assert_int_equal(bench_reports(bench), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *report = json_array_get(bench->reports, i);
        bool is_red = strcmp(json_string_value(bench_field(bench, i, "colour")), "red") == 0;
        assert_true(is_red == (json_object_get(report, "brandConfidence") != NULL));
    }
    bench_free(bench);
}

static void a_classifier_may_look_at_the_whole_frame(void **state)
{
    static const struct change classify_the_frame[] = {
        {"stages.2", NULL},          {"stages.0", NULL},       {"stages.0.from", NULL},
        {"models.rectangles", NULL}, {"models.stripes", NULL}, {NULL, NULL}};
    struct bench *bench = bench_new(classify_the_frame);

    bench_show(bench, 0, &(struct drawn){RED, 0, 0, WIDTH, HEIGHT}, 1);
    assert_int_equal(bench_reports(bench), 1);
    bench_assert_text(bench, 0, "carBrand", "Ferrari");
    assert_float_equal(bench->boxes[0].width, WIDTH, 0);
    bench_free(bench);
}

static void a_field_beyond_a_model_s_numbers_is_told(void **state)
{
    static const struct change last[] = {
        {"stages.2.fields.firstNumber", "{\"value\": \"number\", \"index\": 31}"}, {NULL, NULL}};
    static const struct change beyond[] = {
        {"stages.2.fields.firstNumber", "{\"value\": \"number\", \"index\": 32}"}, {NULL, NULL}};
    struct bench *bench = bench_new(last);

    assert_string_equal(runner_note(bench->runner), "");
    bench_free(bench);
    bench = bench_new(beyond);
    assert_non_null(strstr(runner_note(bench->runner), "field 'firstNumber' of stage 'text'"));
    bench_free(bench);
}

static void a_wrong_number_of_classes_is_an_error_of_the_stage(void **state)
{
    struct bench *bench = bench_new(none);
    struct baton_error error = {0};

    bench->pipeline.models[0].class_count = 2;
    assert_int_equal(bench_run(bench, STAGE_NONE, 0, NULL, 0, &error), BATON_EPROTO);
    assert_non_null(strstr(error.message, "stage 'objects'"));
    bench->pipeline.models[0].class_count = COLOURS;
    bench_show(bench, 1, NULL, 0);
    bench_free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_becomes_one_flat_detection),
        cmocka_unit_test(many_objects_are_classified_in_batches),
        cmocka_unit_test(a_model_that_takes_one_picture_at_a_time_gets_one_at_a_time),
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
        cmocka_unit_test(a_field_beyond_a_model_s_numbers_is_told),
        cmocka_unit_test(a_wrong_number_of_classes_is_an_error_of_the_stage),
    };
    int failed = cmocka_run_group_tests_name("with the preferred engine", tests, NULL, NULL);

    bench_options.library.kind = ENGINE_OPENCV;
    return failed + cmocka_run_group_tests_name("with OpenCV", tests, NULL, NULL);
}
