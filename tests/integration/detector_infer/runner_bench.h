/* A runner, and what it sees of drawn frames. */
#ifndef TESTS_DETECTOR_INFER_RUNNER_BENCH_H
#define TESTS_DETECTOR_INFER_RUNNER_BENCH_H

#include "detector/infer/runner.h"
#include "integration/detector_infer/stand.h"

enum { WIDTH = 1280, HEIGHT = 720, SEEN_MAX = 64 };

/* The stages and the models of pipeline.json. */
enum { OBJECTS, BRAND, TEXT, STAGES };

/* Beside the colours of stand.h: a red of which rectangles.onnx is not sure (0.4 in place of 0.9).
 */
enum { PALE_RED = COLOURS, PALETTE };

extern const int bench_whole[4]; /* the cut that is the whole frame */

/* What all benches of a group run on: setups and teardown of the group. */
extern struct engine *bench_engine;
int bench_load_any(void **state);
int bench_load_opencv(void **state);
int bench_unload(void **state);

struct bench {
    struct pipeline pipeline;
    struct runner *runner;
    struct runner_view *view;
    struct camera_frame frame;
    uint8_t pixels[WIDTH * HEIGHT * 3 / 2];
    /* seen in the frame that was shown last */
    struct box boxes[SEEN_MAX];
    int count;
    bool is_unsure;  /* the last of them */
    json_t *reports; /* array */
};

/* See stand_pipeline(); the runner is on bench_engine. */
struct bench *bench_new(const struct change *changes);
void bench_free(struct bench *bench);
int bench_open(struct runner **ret, const struct pipeline *pipeline, struct baton_error *reterr);

/* Draws the frame of that step, 100 ms after the one before it, and runs it. It is grey but for
 * what is drawn, on even coordinates. */
int bench_run(struct bench *bench, const int rect[4], enum stage progression, int step,
              const struct drawn *drawn, int count, struct baton_error *reterr);
/* An error fails the test. */
void bench_show_at(struct bench *bench, const int rect[4], enum stage progression, int step,
                   const struct drawn *drawn, int count);
/* The same, of the whole frame. */
void bench_show(struct bench *bench, int step, const struct drawn *drawn, int count);

/* What was reported of that frame. */
size_t bench_reports(const struct bench *bench);
const json_t *bench_field(const struct bench *bench, size_t report, const char *name);
void bench_assert_text(const struct bench *bench, size_t report, const char *name,
                       const char *wanted);
void bench_assert_near(const struct bench *bench, size_t report, const char *name, double wanted);

#endif
