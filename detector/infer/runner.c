#include "detector/infer/runner.h"

#include "detector/infer/runner_int.h"

#include <stdlib.h>

/* ---- Models --------------------------------------------------------------------------------- */

static struct shape input_shape(const struct pipeline_input *input, int64_t pictures)
{
    if (input->layout == LAYOUT_NCHW) {
        return (struct shape){4, {pictures, 3, input->height, input->width}};
    }
    return (struct shape){4, {pictures, input->height, input->width, 3}};
}

/* Returns how many pictures the model gets at once at most: of a frame there is one. */
static int pictures_of(const struct runner *runner, size_t model)
{
    const struct pipeline *pipeline = runner->pipeline;
    bool has_cuts = false;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        has_cuts = has_cuts || (pipeline->stages[i].model == model &&
                                pipeline->stages[i].from != PIPELINE_FROM_FRAME);
    }
    return has_cuts ? RUNNER_BATCH : 1;
}

static int open_model(struct runner *runner, size_t index, int file, struct engine *engine,
                      struct baton_error *reterr)
{
    const struct pipeline_model *model = &runner->pipeline->models[index];
    const struct shape largest = input_shape(&model->input, pictures_of(runner, index));
    int code = session_open(&runner->sessions[index], engine, file, &largest, reterr);

    if (code) {
        error_wrap(reterr, "model '%s' (%s)", model->name, model->file);
    }
    return code;
}

int runner_new(struct runner **ret, const struct pipeline *pipeline, const int *files,
               struct engine *engine, struct baton_error *reterr)
{
    struct runner *runner = calloc(1, sizeof(*runner));
    int code = 0;

    if (!runner) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    runner->pipeline = pipeline;
    for (size_t i = 0; i < pipeline->model_count && !code; i++) {
        code = open_model(runner, i, files[i], engine, reterr);
    }
    if (code) {
        runner_free(runner);
        return code;
    }
    *ret = runner;
    return 0;
}

static int prove_model(struct runner *runner, size_t index, struct baton_error *reterr)
{
    const struct pipeline_model *model = &runner->pipeline->models[index];
    struct session *session = runner->sessions[index];
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    int count;

    for (size_t i = 0; i < session->picture_count; i++) {
        session->values[i] = 0.5F;
    }
    count = session_run(session, 1, outputs, reterr);
    return count < 0 ? count : answer_prove(model, outputs, count, reterr);
}

int runner_prove(struct runner *runner, struct baton_error *reterr)
{
    int code = 0;

    for (size_t i = 0; i < runner->pipeline->model_count && !code; i++) {
        code = prove_model(runner, i, reterr);
        if (code) {
            error_wrap(reterr, "model '%s' (%s)", runner->pipeline->models[i].name,
                       runner->pipeline->models[i].file);
        }
    }
    return code;
}

void runner_free(struct runner *runner)
{
    if (runner) {
        for (size_t i = 0; i < PIPELINE_MODELS_MAX; i++) {
            session_close(runner->sessions[i]);
        }
        picture_scaler_fini(&runner->scaler);
        free(runner);
    }
}

uint64_t runner_runs(const struct runner *runner)
{
    return runner->runs;
}

/* ---- Views ---------------------------------------------------------------------------------- */

/* Boxes below the model's confidence may continue an object's track, but do not begin one. */
static struct tracker_rules rules_of(const struct pipeline *pipeline, size_t stage)
{
    const struct pipeline_track *track = &pipeline->track;
    struct tracker_rules rules = tracker_rules_default();

    rules.score_high = pipeline->models[pipeline->stages[stage].model].confidence;
    rules.score_low = rules.score_high * RUNNER_LOW;
    rules.overlap_min = track->iou;
    rules.age_max = SPAN_MS(track->max_age_ms);
    return rules;
}

struct runner_view *runner_view_new(const struct runner *runner)
{
    const struct pipeline *pipeline = runner->pipeline;
    struct runner_view *view = calloc(1, sizeof(*view));

    for (size_t i = 0; view && pipeline->track.is_on && i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].from == PIPELINE_FROM_FRAME) {
            struct tracker_rules rules = rules_of(pipeline, i);
            view->trackers[i] = tracker_new(&rules);
            if (!view->trackers[i]) {
                runner_view_free(view);
                return NULL;
            }
        }
    }
    return view;
}

void runner_view_free(struct runner_view *view)
{
    if (view) {
        for (size_t i = 0; i < PIPELINE_STAGES_MAX; i++) {
            tracker_free(view->trackers[i]);
        }
        free(view);
    }
}
