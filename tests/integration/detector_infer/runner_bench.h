/* A runner on a pipeline that is written by hand, and what it sees of drawn frames. */
#ifndef TESTS_DETECTOR_INFER_RUNNER_BENCH_H
#define TESTS_DETECTOR_INFER_RUNNER_BENCH_H

#include "detector/infer/runner.h"
#include "integration/detector_infer/drawn_frame.h"

#include <jansson.h>

enum { WIDTH = 1280, HEIGHT = 720, SEEN_MAX = 64 };

extern const int bench_whole[4]; /* the cut that is the whole frame */

/* What all benches of a group run on: setups and teardown of the group. */
extern struct engine *bench_engine;
int bench_load_any(void **state);
int bench_load_opencv(void **state);
int bench_unload(void **state);

extern struct pipeline_field bench_brand_fields[];

/* Objects, the brand of each by its colour, the text on each. */
enum { OBJECTS, BRAND, TEXT, STAGES };
enum { MODELS_COUNT = 3 };

struct plan {
    struct pipeline pipeline;
    struct pipeline_model models[MODELS_COUNT]; /* rectangles, their colours, the stripes on them */
    struct pipeline_stage stages[STAGES];
    struct pipeline_region region;
};

void plan_init(struct plan *plan);
void plan_untracked(struct plan *plan);
/* A runner of it, on bench_engine. */
int plan_open(const struct plan *plan, struct runner **ret, struct baton_error *error);

struct seen {
    struct box boxes[SEEN_MAX];
    int count;
    bool is_unsure;  /* the last of them */
    json_t *reports; /* array */
};

struct bench {
    struct plan plan;
    struct runner *runner;
    struct runner_view *view;
    struct drawn_frame frame;
    struct seen seen; /* in the frame that was shown last */
};

/* `change`: of the plan, before it is run; or NULL. */
struct bench *bench_new(void (*change)(struct plan *plan));
void bench_free(struct bench *bench);

/* One turn on its frame as it is drawn, for runner_run(). */
struct runner_turn bench_turn(struct bench *bench, const int rect[4], enum stage progression,
                              struct baton_error *error);
/* Draws the frame of that step and runs it; an error fails the test. */
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
