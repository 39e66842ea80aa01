#include "integration/detector_infer/runner_bench.h"

#include "cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GREY = 110, NEUTRAL = 128, FRAME_MS = 100 };

/* Red, green, blue and pale red in BT.601, 16 to 235. */
static const uint8_t colours[PALETTE][3] = {
    {76, 98, 214}, {125, 70, 54}, {46, 220, 111}, {68, 108, 191}};

const int bench_whole[4] = {0, 0, WIDTH, HEIGHT};
struct engine *bench_engine;

int bench_open(struct runner **ret, const struct pipeline *pipeline, struct baton_error *reterr)
{
    int files[PIPELINE_MODELS_MAX], code;

    for (size_t i = 0; i < pipeline->model_count; i++) {
        files[i] = stand_model(pipeline->models[i].file);
    }
    code = runner_new(ret, pipeline, files, bench_engine, reterr);
    for (size_t i = 0; i < pipeline->model_count; i++) {
        (void)close(files[i]);
    }
    return code;
}

struct bench *bench_new(const struct change *changes)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct baton_error error = {0};

    assert_non_null(bench);
    bench->pipeline = stand_pipeline(changes);
    if (bench_open(&bench->runner, &bench->pipeline, &error) != 0) {
        fail_msg("%s", error.message);
    }
    bench->view = runner_view_new(bench->runner);
    assert_non_null(bench->view);
    bench->reports = json_array();
    return bench;
}

void bench_free(struct bench *bench)
{
    json_decref(bench->reports);
    runner_view_free(bench->view);
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
    bench->frame = (struct camera_frame){
        .picture = {WIDTH,
                    HEIGHT,
                    {WIDTH, WIDTH / 2, WIDTH / 2},
                    {planes[0], planes[1], planes[2]}},
        .number = (uint64_t)step + 1,
        .pts_us = CAMERA_NO_PTS,
        .captured = instant_add((instant){0}, SPAN_MS(1000 + step * FRAME_MS)),
        .captured_unix_ms = 1000 + (int64_t)step * FRAME_MS};
}

int bench_run(struct bench *bench, const int rect[4], enum stage progression, int step,
              const struct drawn *drawn, int count, struct baton_error *reterr)
{
    static struct sighting sightings[RUNNER_SIGHTINGS_MAX];
    struct runner_turn turn = {.view = bench->view,
                               .frame = &bench->frame,
                               .rect = {rect[0], rect[1], rect[2], rect[3]},
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

void bench_show_at(struct bench *bench, const int rect[4], enum stage progression, int step,
                   const struct drawn *drawn, int count)
{
    struct baton_error error = {0};

    if (bench_run(bench, rect, progression, step, drawn, count, &error) < 0) {
        fail_msg("%s", error.message);
    }
}

void bench_show(struct bench *bench, int step, const struct drawn *drawn, int count)
{
    bench_show_at(bench, bench_whole, STAGE_NONE, step, drawn, count);
}

size_t bench_reports(const struct bench *bench)
{
    return json_array_size(bench->reports);
}

const json_t *bench_field(const struct bench *bench, size_t report, const char *name)
{
    const json_t *value = json_object_get(json_array_get(bench->reports, report), name);

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
