#include "integration/detector_infer/runner_bench.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALWAYS = (1 << STAGE_COUNT) - 1 };

const int bench_whole[4] = {0, 0, WIDTH, HEIGHT};
struct engine *bench_engine;

/* ---- A pipeline, written by hand ------------------------------------------------------------ */

static const char *names[] = {"red", "green", "blue"};
static const char *letters[] = {"-", "R", "G", "B"};

#define INPUT(w, h)                                                                                \
    {                                                                                              \
        .width = (w), .height = (h), .layout = LAYOUT_NCHW, .color = COLOR_RGB,                    \
        .scale = 1.0F / 255, .std = {                                                              \
            1,                                                                                     \
            1,                                                                                     \
            1                                                                                      \
        }                                                                                          \
    }

static const struct pipeline_model models[] = {
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

static struct pipeline_field object_fields[] = {
    {.name = (char *)"colour", .value = VALUE_CLASS},
    {.name = (char *)"confidence", .value = VALUE_CONFIDENCE},
    {.name = (char *)"track", .value = VALUE_TRACK},
    {.name = (char *)"x", .value = VALUE_X},
    {.name = (char *)"y", .value = VALUE_Y},
    {.name = (char *)"width", .value = VALUE_WIDTH, .type = TYPE_STRING},
    {.name = (char *)"height", .value = VALUE_HEIGHT, .type = TYPE_INTEGER}};
struct pipeline_field bench_brand_fields[] = {
    {.name = (char *)"carBrand", .value = VALUE_CLASS}, /* and a map */
    {.name = (char *)"brandConfidence", .value = VALUE_CONFIDENCE}};
static struct pipeline_field text_fields[] = {
    {.name = (char *)"licensePlateText", .value = VALUE_TEXT},
    {.name = (char *)"firstNumber", .value = VALUE_NUMBER, .index = 0}};

void plan_init(struct plan *plan)
{
    static json_t *brands;

    brands = brands != NULL ? brands : json_pack("{s:s, s:s}", "blue", "Ford", "red", "Ferrari");
    bench_brand_fields[0].map = brands;
    memset(plan, 0, sizeof(*plan));
    memcpy(plan->models, models, sizeof(models));
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
                                                  .fields = bench_brand_fields,
                                                  .field_count = 2};
    plan->stages[TEXT] = (struct pipeline_stage){.name = (char *)"text",
                                                 .model = 2,
                                                 .from = BRAND,
                                                 .when = ALWAYS,
                                                 .fields = text_fields,
                                                 .field_count = 2};
    plan->pipeline =
        (struct pipeline){.models = plan->models,
                          .model_count = MODELS_COUNT,
                          .stages = plan->stages,
                          .stage_count = STAGES,
                          .track = {.iou = 0.2F, .max_age_ms = 2000, .report = REPORT_ONCE}};
}

void plan_untracked(struct plan *plan)
{
    plan->pipeline.track.is_on = false;
}

int plan_open(const struct plan *plan, struct runner **ret, struct baton_error *error)
{
    int files[MODELS_COUNT], code;

    for (int i = 0; i < MODELS_COUNT; i++) {
        files[i] = stand_model(plan->models[i].file);
    }
    code = runner_new(ret, &plan->pipeline, files, bench_engine, error);
    for (int i = 0; i < MODELS_COUNT; i++) {
        (void)close(files[i]);
    }
    return code;
}

/* ---- What is seen --------------------------------------------------------------------------- */

static void take(void *userdata, const struct sighting *sighting)
{
    struct seen *seen = userdata;

    assert_true(seen->count < SEEN_MAX);
    seen->boxes[seen->count++] = sighting->box;
    seen->is_unsure = sighting->is_unsure;
    if (sighting->attributes) {
        assert_int_equal(json_array_append(seen->reports, sighting->attributes), 0);
    }
}

struct bench *bench_new(void (*change)(struct plan *plan))
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct baton_error error = {0};

    assert_non_null(bench);
    plan_init(&bench->plan);
    if (change) {
        change(&bench->plan);
    }
    if (plan_open(&bench->plan, &bench->runner, &error) != 0) {
        fail_msg("%s", error.message);
    }
    bench->view = runner_view_new(bench->runner);
    assert_non_null(bench->view);
    drawn_frame_init(&bench->frame, WIDTH, HEIGHT);
    bench->seen.reports = json_array();
    return bench;
}

void bench_free(struct bench *bench)
{
    json_decref(bench->seen.reports);
    drawn_frame_fini(&bench->frame);
    runner_view_free(bench->view);
    runner_free(bench->runner);
    free(bench);
}

struct runner_turn bench_turn(struct bench *bench, const int rect[4], enum stage progression,
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

void bench_show_at(struct bench *bench, const int rect[4], enum stage progression, int step,
                   const struct drawn *drawn, int count)
{
    struct baton_error error = {0};
    struct runner_turn turn = bench_turn(bench, rect, progression, &error);

    drawn_frame_draw(&bench->frame, step, drawn, count);
    turn.now = bench->frame.frame.captured;
    bench->seen.count = 0;
    (void)json_array_clear(bench->seen.reports);
    if (runner_run(bench->runner, &turn)) {
        fail_msg("%s", error.message);
    }
}

void bench_show(struct bench *bench, int step, const struct drawn *drawn, int count)
{
    bench_show_at(bench, bench_whole, STAGE_NONE, step, drawn, count);
}

size_t bench_reports(const struct bench *bench)
{
    return json_array_size(bench->seen.reports);
}

const json_t *bench_field(const struct bench *bench, size_t report, const char *name)
{
    const json_t *value = json_object_get(json_array_get(bench->seen.reports, report), name);

    if (!value) {
        fail_msg("report %zu has no %s", report, name);
    }
    return value;
}

void bench_assert_text(const struct bench *bench, size_t report, const char *name,
                       const char *wanted)
{
    assert_string_equal(json_string_value(bench_field(bench, report, name)), wanted);
}

void bench_assert_near(const struct bench *bench, size_t report, const char *name, double wanted)
{
    double value = json_number_value(bench_field(bench, report, name));

    if (fabs(value - wanted) > 4) {
        fail_msg("%s: %g, not %g", name, value, wanted);
    }
}

/* ---- What it runs on ------------------------------------------------------------------------ */

int bench_load_any(void **state)
{
    (void)state;
    bench_engine = stand_engine(ENGINE_ANY);
    return bench_engine ? 0 : -1;
}

int bench_load_opencv(void **state)
{
    (void)state;
    bench_engine = stand_engine(ENGINE_OPENCV);
    return bench_engine ? 0 : -1;
}

int bench_unload(void **state)
{
    (void)state;
    engine_free(bench_engine);
    bench_engine = NULL;
    return 0;
}
