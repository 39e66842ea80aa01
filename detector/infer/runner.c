#include "detector/infer/runner.h"

#include "detector/infer/decoder.h"
#include "detector/infer/input.h"
#include "detector/infer/report.h"

#include <math.h>
#include <stdlib.h>

enum {
    FRAME = -1,      /* in place of an object's index: the whole cut */
    BATCH_MAX = 8,   /* cuts of one run, if the model takes as many */
    PARTS_TAKEN = 8, /* boxes that a further stage finds in one cut and passes on */
    OBJECTS_MAX = TRACK_BOXES_MAX,
};

/* An object of a stage from the frame, while its frame runs. */
struct object {
    size_t stage;
    struct box box;
    struct track *track; /* NULL: not tracked */
    bool is_due;
    bool is_incomplete; /* a further stage was run and gave no answer */
    json_t *attributes;
};

/* A result of a stage that a later one may get. */
struct part {
    int object;
    struct box box;
};

struct parts {
    struct part all[OBJECTS_MAX];
    int count;
};

struct runner {
    const struct pipeline *pipeline;
    struct engine *engine;
    struct session *sessions[PIPELINE_MODELS_MAX];
    struct picture_scaler scaler;
    uint64_t runs;           /* of models */
    struct baton_error note; /* see runner_note() */
    /* a frame on its way through the stages */
    const struct runner_turn *turn;
    struct answer answer;
    struct object objects[OBJECTS_MAX];
    int object_count;
    struct parts parts[PIPELINE_STAGES_MAX];
};

static const struct pipeline_model *model_of(const struct runner *runner, size_t stage)
{
    return &runner->pipeline->models[runner->pipeline->stages[stage].model];
}

/* ---- Models --------------------------------------------------------------------------------- */

static struct shape input_shape(const struct pipeline_input *input, int64_t pictures)
{
    if (input->layout == LAYOUT_NCHW) {
        return (struct shape){4, {pictures, 3, input->height, input->width}};
    }
    return (struct shape){4, {pictures, input->height, input->width, 3}};
}

/* Returns how many pictures the model gets at once at most: of a frame there is one. */
static int pictures_of(const struct pipeline *pipeline, size_t model)
{
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        if (pipeline->stages[i].model == model && pipeline->stages[i].from != PIPELINE_FROM_FRAME) {
            return BATCH_MAX;
        }
    }
    return 1;
}

/* Runs the model on grey pictures: does it run at all, in time, and with an output that its
 * decoder reads? Returns how many numbers the first output has. */
static int prove(const struct pipeline_model *model, struct session *session, int64_t pictures,
                 size_t *ret_numbers, struct baton_error *reterr)
{
    struct tensor outputs[SESSION_OUTPUTS_MAX];
    int count;

    for (size_t i = 0; i < session->picture_count * (size_t)pictures; i++) {
        session->values[i] = 0.5F;
    }
    count = session_run(session, pictures, outputs, reterr);
    if (count > 0) {
        *ret_numbers = (size_t)shape_numbers(&outputs[0].shape);
    }
    return count < 0 ? count : answer_prove(model, outputs, count, pictures, reterr);
}

/* With another picture the output may be longer, so this is no error. */
static void note_missing_number(struct runner *runner, size_t model, size_t numbers)
{
    const struct pipeline *pipeline = runner->pipeline;

    for (size_t i = 0; i < pipeline->stage_count; i++) {
        const struct pipeline_stage *stage = &pipeline->stages[i];
        for (size_t k = 0; stage->model == model && k < stage->field_count; k++) {
            const struct pipeline_field *field = &stage->fields[k];
            if (field->value == VALUE_NUMBER && (size_t)field->index >= numbers &&
                !runner->note.code) {
                (void)error_set(&runner->note, BATON_EPROTO,
                                "model '%s' (%s): gave %zu numbers in its trial, so field '%s' of "
                                "stage '%s', with index %d, may never be reported",
                                pipeline->models[model].name, pipeline->models[model].file, numbers,
                                field->name, stage->name, field->index);
            }
        }
    }
}

/* Many an export leaves the first side of its input open, and can take one picture only: then the
 * reason is noted. */
static int prove_batch(struct runner *runner, size_t index, struct baton_error *reterr)
{
    const struct pipeline_model *model = &runner->pipeline->models[index];
    struct session *session = runner->sessions[index];
    size_t numbers = 0;
    int code = prove(model, session, 1, &numbers, reterr);
    struct baton_error error;

    if (code) {
        return code;
    }
    note_missing_number(runner, index, numbers);
    if (session->batch_max == 1) {
        return 0;
    }
    code = prove(model, session, 2, &numbers, &error);
    if (engine_pid(runner->engine) == 0) {
        return error_set(reterr, code, "%s", error.message);
    }
    if (code) {
        session->batch_max = 1;
        (void)error_wrap(&error, "model '%s' (%s): gets one picture at a time", model->name,
                         model->file);
        runner->note = runner->note.code ? runner->note : error;
    }
    return 0;
}

static int open_model(struct runner *runner, size_t index, struct baton_error *reterr)
{
    const struct pipeline_model *model = &runner->pipeline->models[index];
    struct shape largest = input_shape(&model->input, pictures_of(runner->pipeline, index));
    int code = session_open(&runner->sessions[index], runner->engine, model->file, largest, reterr);

    code = code ? code : prove_batch(runner, index, reterr);
    return code ? error_wrap(reterr, "model '%s' (%s)", model->name, model->file) : 0;
}

int runner_new(struct runner **ret, struct pipeline *pipeline, int archive_fd,
               const struct engine_options *options, struct baton_error *reterr)
{
    struct runner *runner = calloc(1, sizeof(*runner));
    int code;

    if (!runner) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    runner->pipeline = pipeline;
    code = engine_start(&runner->engine, options, archive_fd, pipeline, reterr);
    for (size_t i = 0; i < pipeline->model_count && !code; i++) {
        code = open_model(runner, i, reterr);
    }
    if (code) {
        runner_free(runner);
        return code;
    }
    *ret = runner;
    return 0;
}

void runner_free(struct runner *runner)
{
    if (runner) {
        picture_scaler_fini(&runner->scaler);
        engine_free(runner->engine);
        free(runner);
    }
}

const struct engine *runner_engine(const struct runner *runner)
{
    return runner->engine;
}

const char *runner_note(const struct runner *runner)
{
    return runner->note.message;
}

uint64_t runner_runs(const struct runner *runner)
{
    return runner->runs;
}

/* ---- Stages from the frame ------------------------------------------------------------------ */

void runner_view_fini(struct runner_view *view)
{
    for (size_t i = 0; i < PIPELINE_STAGES_MAX; i++) {
        tracker_free(view->trackers[i]);
    }
}

static int begin_tracker(const struct runner *runner, size_t stage)
{
    const struct pipeline_track *rules = &runner->pipeline->track;
    struct tracker **tracker = &runner->turn->view->trackers[stage];

    if (rules->is_on && !*tracker) {
        *tracker =
            tracker_new((struct tracker_rules){.confidence = model_of(runner, stage)->confidence,
                                               .overlap_min = rules->iou,
                                               .age_max = SPAN_MS(rules->max_age_ms)});
    }
    return rules->is_on && !*tracker
               ? error_set(runner->turn->reterr, BATON_ENOMEM, "out of memory")
               : 0;
}

static bool is_wanted(const struct runner *runner, const struct pipeline_stage *stage,
                      const struct box *box)
{
    const int *rect = runner->turn->rect;
    const struct pipeline_point middle = {
        (box->x + box->width / 2 - (float)rect[0]) / (float)rect[2],
        (box->y + box->height / 2 - (float)rect[1]) / (float)rect[3]};

    return stage_wants(stage, (size_t)box->label, (int)lroundf(box->width),
                       (int)lroundf(box->height), middle);
}

/* Removes the boxes that the stage does not want. */
static void keep_wanted(struct runner *runner, size_t stage)
{
    struct answer *answer = &runner->answer;
    int kept = 0;

    for (int i = 0; i < answer->box_count && kept < OBJECTS_MAX; i++) {
        if (is_wanted(runner, &runner->pipeline->stages[stage], &answer->boxes[i])) {
            answer->boxes[kept++] = answer->boxes[i];
        }
    }
    answer->box_count = kept;
}

/* Adds what the stage says of the object: the answer, with that one of its boxes. */
static int fill(struct runner *runner, size_t stage, struct object *object, const struct box *box)
{
    int code =
        report_fill(object->attributes, &runner->pipeline->stages[stage], model_of(runner, stage),
                    &runner->answer, box, object->track ? object->track->id : 0);

    return code ? error_set(runner->turn->reterr, code, "out of memory") : 0;
}

static int add_object(struct runner *runner, size_t stage, const struct box *box,
                      struct track *track)
{
    const struct pipeline_track *rules = &runner->pipeline->track;
    struct parts *parts = &runner->parts[stage];
    struct object *object = &runner->objects[runner->object_count];

    if (runner->object_count == OBJECTS_MAX) {
        return 0;
    }
    *object = (struct object){.stage = stage, .box = *box, .track = track};
    if (track) {
        object->box.label = track->label; /* one frame's doubt does not change what it is */
    }
    object->is_due = !rules->is_on || (track && report_is_due(rules, track, runner->turn->now));
    runner->object_count++;
    if (!object->is_due) {
        return 0;
    }
    object->attributes =
        track && track->report.waiting ? json_incref(track->report.waiting) : json_object();
    if (!object->attributes) {
        return error_set(runner->turn->reterr, BATON_ENOMEM, "out of memory");
    }
    parts->all[parts->count++] = (struct part){runner->object_count - 1, object->box};
    return fill(runner, stage, object, &object->box);
}

/* Makes objects of the boxes that the stage found in the frame. An unsure one that continues no
 * track is none. */
static int take_boxes(struct runner *runner, size_t stage)
{
    float sure_from = model_of(runner, stage)->confidence;
    struct answer *answer = &runner->answer;
    struct tracker *tracker = runner->turn->view->trackers[stage];
    struct track *tracks[OBJECTS_MAX] = {NULL};
    int code = 0;

    keep_wanted(runner, stage);
    if (tracker) {
        tracker_step(tracker, runner->turn->now, answer->boxes, answer->box_count, tracks);
    }
    for (int i = 0; i < answer->box_count && !code; i++) {
        if (!tracker || tracks[i] || answer->boxes[i].score >= sure_from) {
            code = add_object(runner, stage, &answer->boxes[i], tracks[i]);
        }
    }
    return code;
}

/* ---- Stages --------------------------------------------------------------------------------- */

/* The pixels that the box covers, within the subscription's cut. */
static void rect_of(const struct runner *runner, const struct box *box, int ret[4])
{
    for (int i = 0; i < 2; i++) {
        int begin = runner->turn->rect[i];
        int end = begin + runner->turn->rect[2 + i];
        float low = i == 0 ? box->x : box->y;
        int from = (int)floorf(low);
        int to = (int)ceilf(low + (i == 0 ? box->width : box->height));

        from = from < begin ? begin : from >= end ? end - 1 : from;
        to = to > end ? end : to;
        ret[i] = from;
        ret[2 + i] = to > from ? to - from : 1;
    }
}

static int take_answer(struct runner *runner, size_t stage, int object)
{
    const struct answer *answer = &runner->answer;
    struct parts *parts = &runner->parts[stage];
    int count = answer->box_count < PARTS_TAKEN ? answer->box_count : PARTS_TAKEN;

    if (count == 0) {
        runner->objects[object].is_incomplete = true;
        return 0;
    }
    for (int i = 0; i < count && parts->count < OBJECTS_MAX; i++) {
        parts->all[parts->count++] = (struct part){object, answer->boxes[i]};
    }
    return fill(runner, stage, &runner->objects[object], &answer->boxes[0]);
}

/* Runs the stage on `count` cuts, which are no more than the model takes at once. */
static int run_batch(struct runner *runner, size_t stage, const struct part *const *given,
                     int count)
{
    const struct runner_turn *turn = runner->turn;
    const struct pipeline_model *model = model_of(runner, stage);
    struct session *session = runner->sessions[runner->pipeline->stages[stage].model];
    struct tensor all[SESSION_OUTPUTS_MAX];
    struct fit fits[BATCH_MAX];
    struct outputs outputs = {.model = model,
                              .all = all,
                              .pictures = count,
                              .score_min = model->confidence *
                                           (turn->view->trackers[stage] ? TRACK_LOW : 1)};
    int code = 0;

    for (int i = 0; i < count && !code; i++) {
        int rect[4];
        rect_of(runner, &given[i]->box, rect);
        code = input_make(&runner->scaler, &model->input, turn->frame, rect,
                          session->values + session->picture_count * (size_t)i, &fits[i],
                          turn->reterr);
    }
    if (code) {
        return code;
    }
    runner->runs++;
    outputs.count = session_run(session, count, all, turn->reterr);
    if (outputs.count < 0) {
        return outputs.count;
    }
    for (int i = 0; i < count && !code; i++) {
        outputs.picture = i;
        outputs.fit = &fits[i];
        code = answer_read(&runner->answer, &outputs, turn->reterr);
        if (!code) {
            code = given[i]->object == FRAME ? take_boxes(runner, stage)
                                             : take_answer(runner, stage, given[i]->object);
        }
    }
    return code;
}

static int run_stage(struct runner *runner, size_t stage)
{
    const struct pipeline_stage *of = &runner->pipeline->stages[stage];
    const int *rect = runner->turn->rect;
    const struct part frame = {
        FRAME, {(float)rect[0], (float)rect[1], (float)rect[2], (float)rect[3], 0, 0}};
    bool is_frame = of->from == PIPELINE_FROM_FRAME;
    const struct part *from = is_frame ? &frame : runner->parts[of->from].all;
    int from_count = is_frame ? 1 : runner->parts[of->from].count;
    int64_t most = runner->sessions[of->model]->batch_max; /* not above BATCH_MAX */
    const struct part *batch[BATCH_MAX];
    int count = 0;
    int code = is_frame ? begin_tracker(runner, stage) : 0;

    for (int i = 0; i < from_count && !code; i++) {
        if (is_frame || is_wanted(runner, of, &from[i].box)) {
            batch[count++] = &from[i];
        }
        if (count == most) {
            code = run_batch(runner, stage, batch, count);
            count = 0;
        }
    }
    return code || count == 0 ? code : run_batch(runner, stage, batch, count);
}

static int run_stages(struct runner *runner)
{
    const struct pipeline *pipeline = runner->pipeline;
    const struct runner_turn *turn = runner->turn;
    int code = 0;

    for (size_t stage = 0; stage < pipeline->stage_count && !code; stage++) {
        runner->parts[stage].count = 0;
        if (stage_is_on(&pipeline->stages[stage], turn->progression)) {
            code = run_stage(runner, stage);
        } else if (turn->view->trackers[stage]) {
            tracker_step(turn->view->trackers[stage], turn->now, NULL, 0, NULL);
        }
        if (code) {
            error_wrap(turn->reterr, "stage '%s'", pipeline->stages[stage].name);
        }
    }
    return code;
}

/* ---- Reports -------------------------------------------------------------------------------- */

/* Takes the attributes. NULL if there is none: no map has the text that was found. */
static json_t *said(json_t *attributes)
{
    if (json_object_size(attributes) == 0) {
        json_decref(attributes);
        return NULL;
    }
    return attributes;
}

static struct sighting see(const struct runner *runner, const struct object *object)
{
    const struct pipeline_model *model = model_of(runner, object->stage);
    bool is_reported = object->is_due;

    if (is_reported && object->track) {
        is_reported = report_take(runner->pipeline, object->track, object->attributes,
                                  !object->is_incomplete, runner->turn->now);
    }
    return (struct sighting){.box = object->box,
                             .class_name = class_name(model, object->box.label),
                             .track = object->track ? object->track->id : 0,
                             .attributes =
                                 is_reported ? said(json_incref(object->attributes)) : NULL,
                             .is_unsure = object->box.score < model->confidence};
}

/* Adds the objects of the stage that are gone while they waited, with the attributes that are
 * known. Returns the new count. */
static int add_lost(const struct runner *runner, size_t stage, struct sighting *ret, int count)
{
    struct tracker *tracker = runner->turn->view->trackers[stage];
    struct track *track;

    for (int i = 0; tracker && count < RUNNER_SIGHTINGS_MAX && (track = tracker_at(tracker, i));
         i++) {
        json_t *attributes = report_lost(track);
        if (attributes) {
            ret[count++] =
                (struct sighting){.box = track->box,
                                  .class_name = class_name(model_of(runner, stage), track->label),
                                  .track = track->id,
                                  .attributes = said(attributes),
                                  .is_lost = true};
        }
    }
    return count;
}

int runner_run(struct runner *runner, const struct runner_turn *turn,
               struct sighting ret[RUNNER_SIGHTINGS_MAX])
{
    int code, count = 0;

    runner->turn = turn;
    runner->object_count = 0;
    code = run_stages(runner);
    for (int i = 0; i < runner->object_count && !code; i++) {
        ret[count++] = see(runner, &runner->objects[i]);
    }
    for (size_t i = 0; i < runner->pipeline->stage_count && !code; i++) {
        count = add_lost(runner, i, ret, count);
    }
    for (int i = 0; i < runner->object_count; i++) {
        json_decref(runner->objects[i].attributes);
    }
    return code ? code : count;
}
