/* Runs frames through the stages of a pipeline. */
#include "detector/infer/runner_int.h"

#include <math.h>
#include <string.h>

enum { FRAME = -1 }; /* in place of an object's index: the whole cut */

static const struct pipeline_model *model_of(const struct runner *runner, size_t stage)
{
    return &runner->pipeline->models[runner->pipeline->stages[stage].model];
}

static struct session *session_of(const struct runner *runner, size_t stage)
{
    return runner->sessions[runner->pipeline->stages[stage].model];
}

/* The place of one picture's numbers in the model's input. */
static float *picture_of(const struct session *session, int picture)
{
    return session->values + session->picture_count * (size_t)picture;
}

static const char *class_of(const struct pipeline_model *model, int label)
{
    return label >= 0 && (size_t)label < model->class_count ? model->classes[label] : NULL;
}

static bool is_wanted(const struct run *run, const struct pipeline_stage *stage,
                      const struct box *box)
{
    const struct pipeline_point middle = {
        (box->x + box->width / 2 - (float)run->turn->rect[0]) / (float)run->turn->rect[2],
        (box->y + box->height / 2 - (float)run->turn->rect[1]) / (float)run->turn->rect[3]};

    return stage_wants(stage, (size_t)box->label, (int)lroundf(box->width),
                       (int)lroundf(box->height), middle);
}

static int run_session(struct runner *runner, size_t stage, int64_t pictures,
                       struct tensor outputs[SESSION_OUTPUTS_MAX], struct baton_error *reterr)
{
    runner->runs++;
    return session_run(session_of(runner, stage), pictures, outputs, reterr);
}

static int fill(struct run *run, size_t stage, int object, const struct answer *answer)
{
    const struct runner *runner = run->runner;
    const struct pipeline_model *model = model_of(runner, stage);
    const struct object *of = &run->objects[object];
    const struct box *box = answer->box_count > 0 ? &answer->boxes[0] : NULL;
    const struct finding finding = {.class_name = box ? class_of(model, box->label) : NULL,
                                    .confidence = answer->confidence,
                                    .reading = &answer->reading,
                                    .numbers = answer->numbers,
                                    .number_count = answer->number_count,
                                    .box = decoder_finds_boxes(model->decoder) ? box : NULL,
                                    .track = of->track ? of->track->id : 0};

    if (fields_fill(of->attributes, &runner->pipeline->stages[stage], &finding) != 0) {
        return error_set(run->turn->reterr, BATON_ENOMEM, "out of memory");
    }
    return 0;
}

/* ---- Stages from the frame ------------------------------------------------------------------ */

/* Removes the boxes that the stage does not want. */
static void keep_wanted(const struct run *run, size_t stage, struct answer *answer)
{
    const struct pipeline_stage *of = &run->runner->pipeline->stages[stage];
    int kept = 0;

    for (int i = 0; i < answer->box_count; i++) {
        if (is_wanted(run, of, &answer->boxes[i])) {
            answer->boxes[kept++] = answer->boxes[i];
        }
    }
    answer->box_count = kept < RUNNER_OBJECTS_MAX ? kept : RUNNER_OBJECTS_MAX;
}

static int add_object(struct run *run, size_t stage, const struct box *box, struct track *track)
{
    const struct pipeline *pipeline = run->runner->pipeline;
    struct runner *runner = run->runner;
    struct parts *parts = &run->parts[stage];
    struct answer *answer = &runner->answer;
    struct object *object;
    struct box first = answer->boxes[0];
    int code;

    if (run->object_count == RUNNER_OBJECTS_MAX) {
        return 0;
    }
    object = &run->objects[run->object_count];
    *object = (struct object){.stage = stage, .box = *box, .track = track};
    if (track) {
        object->box.label = track->label; /* one frame's doubt does not change what it is */
    }
    object->is_due =
        !pipeline->track.is_on || (track && report_is_due(&pipeline->track, track, run->turn->now));
    run->object_count++;
    if (!object->is_due) {
        return 0;
    }
    object->attributes =
        track && track->report.waiting ? json_incref(track->report.waiting) : json_object();
    if (!object->attributes) {
        return error_set(run->turn->reterr, BATON_ENOMEM, "out of memory");
    }
    parts->all[parts->count++] = (struct part){run->object_count - 1, object->box};
    answer->boxes[0] = object->box;
    if (decoder_finds_boxes(model_of(runner, stage)->decoder)) {
        answer->confidence = object->box.score;
    }
    code = fill(run, stage, run->object_count - 1, answer);
    answer->boxes[0] = first;
    return code;
}

/* Makes objects of the boxes that the stage found in the frame. An unsure one that continues no
 * track is none. */
static int take_boxes(struct run *run, size_t stage)
{
    float sure_from = model_of(run->runner, stage)->confidence;
    struct answer *answer = &run->runner->answer;
    struct tracker *tracker = run->turn->view->trackers[stage];
    struct track *tracks[RUNNER_OBJECTS_MAX] = {NULL};
    int code = 0;

    keep_wanted(run, stage, answer);
    if (tracker) {
        tracker_step(tracker, run->turn->now, answer->boxes, answer->box_count, tracks);
    }
    for (int i = 0; i < answer->box_count && !code; i++) {
        struct box box = answer->boxes[i];
        if (!tracker || tracks[i] || box.score >= sure_from) {
            code = add_object(run, stage, &box, tracks[i]);
        }
    }
    return code;
}

/* ---- Stages --------------------------------------------------------------------------------- */

/* The pixels that the box covers, within the subscription's cut. */
static void rect_of(const struct run *run, const struct box *box, int ret[4])
{
    for (int i = 0; i < 2; i++) {
        int begin = run->turn->rect[i];
        int end = begin + run->turn->rect[2 + i];
        float low = i == 0 ? box->x : box->y;
        int from = (int)floorf(low);
        int to = (int)ceilf(low + (i == 0 ? box->width : box->height));

        from = from < begin ? begin : from >= end ? end - 1 : from;
        to = to > end ? end : to;
        ret[i] = from;
        ret[2 + i] = to > from ? to - from : 1;
    }
}

static int take_answer(struct run *run, size_t stage, int object)
{
    const struct answer *answer = &run->runner->answer;
    struct parts *parts = &run->parts[stage];
    int count = answer->box_count < RUNNER_PARTS_MAX ? answer->box_count : RUNNER_PARTS_MAX;

    if (count == 0) {
        run->objects[object].is_incomplete = true;
        return 0;
    }
    for (int i = 0; i < count && parts->count < RUNNER_OBJECTS_MAX; i++) {
        parts->all[parts->count++] = (struct part){object, answer->boxes[i]};
    }
    return fill(run, stage, object, answer);
}

/* Runs the stage on `count` cuts, which are no more than the model takes at once. */
static int run_batch(struct run *run, size_t stage, const struct part *const *given, int count)
{
    struct runner *runner = run->runner;
    const struct runner_turn *turn = run->turn;
    const struct pipeline_model *model = model_of(runner, stage);
    struct session *session = session_of(runner, stage);
    struct tensor all[SESSION_OUTPUTS_MAX];
    struct fit fits[RUNNER_BATCH];
    struct outputs outputs = {.model = model,
                              .all = all,
                              .pictures = count,
                              .score_min = model->confidence *
                                           (turn->view->trackers[stage] ? RUNNER_LOW : 1)};
    int code = 0;

    for (int i = 0; i < count && !code; i++) {
        int rect[4];
        rect_of(run, &given[i]->box, rect);
        code = input_make(&runner->scaler, &model->input, turn->frame, rect, picture_of(session, i),
                          &fits[i], turn->reterr);
    }
    if (code) {
        return code;
    }
    outputs.count = run_session(runner, stage, count, all, turn->reterr);
    if (outputs.count < 0) {
        return outputs.count;
    }
    for (int i = 0; i < count && !code; i++) {
        outputs.picture = i;
        outputs.fit = &fits[i];
        code = answer_read(&runner->answer, &outputs, turn->reterr);
        if (!code) {
            code = given[i]->object == FRAME ? take_boxes(run, stage)
                                             : take_answer(run, stage, given[i]->object);
        }
    }
    return code;
}

static int run_stage(struct run *run, size_t stage)
{
    const struct runner *runner = run->runner;
    const struct pipeline_stage *of = &runner->pipeline->stages[stage];
    const int *rect = run->turn->rect;
    const struct part frame = {
        FRAME, {(float)rect[0], (float)rect[1], (float)rect[2], (float)rect[3], 0, 0}};
    bool is_frame = of->from == PIPELINE_FROM_FRAME;
    const struct part *from = is_frame ? &frame : run->parts[of->from].all;
    int from_count = is_frame ? 1 : run->parts[of->from].count;
    int64_t most = runner->sessions[of->model]->batch_max;
    const struct part *batch[RUNNER_BATCH];
    int count = 0;
    int code = 0;

    most = most < RUNNER_BATCH ? most : RUNNER_BATCH;
    for (int i = 0; i < from_count && !code; i++) {
        if (is_frame || is_wanted(run, of, &from[i].box)) {
            batch[count++] = &from[i];
        }
        if (count == most) {
            code = run_batch(run, stage, batch, count);
            count = 0;
        }
    }
    return code || count == 0 ? code : run_batch(run, stage, batch, count);
}

/* ---- Reports -------------------------------------------------------------------------------- */

/* NULL if no attribute is left: no map has the text that was found. */
static json_t *said(json_t *attributes)
{
    return json_object_size(attributes) > 0 ? attributes : NULL;
}

static void tell(const struct run *run, const struct object *object)
{
    const struct pipeline_model *model = model_of(run->runner, object->stage);
    bool is_reported = object->is_due;
    struct sighting sighting = {.box = object->box,
                                .class_name = class_of(model, object->box.label),
                                .track = object->track ? object->track->id : 0,
                                .is_unsure = object->box.score < model->confidence};

    if (is_reported && object->track) {
        is_reported = report_take(run->runner->pipeline, object->track, object->attributes,
                                  !object->is_incomplete, run->turn->now);
    }
    sighting.attributes = is_reported ? said(object->attributes) : NULL;
    run->turn->seen(run->turn->userdata, &sighting);
}

/* Objects that are gone while they waited are reported with the attributes that are known. */
static void tell_lost(const struct run *run, size_t stage)
{
    struct tracker *tracker = run->turn->view->trackers[stage];
    struct track *track;

    for (int i = 0; tracker && (track = tracker_at(tracker, i)) != NULL; i++) {
        json_t *attributes = report_lost(track);
        const struct sighting sighting = {.box = track->box,
                                          .class_name =
                                              class_of(model_of(run->runner, stage), track->label),
                                          .track = track->id,
                                          .attributes = attributes ? said(attributes) : NULL,
                                          .is_lost = true};
        if (attributes) {
            run->turn->seen(run->turn->userdata, &sighting);
            json_decref(attributes);
        }
    }
}

static int run_stages(struct run *run)
{
    const struct pipeline *pipeline = run->runner->pipeline;
    int code = 0;

    for (size_t stage = 0; stage < pipeline->stage_count && !code; stage++) {
        run->parts[stage].count = 0;
        if (stage_is_on(&pipeline->stages[stage], run->turn->progression)) {
            code = run_stage(run, stage);
        } else if (run->turn->view->trackers[stage]) {
            tracker_step(run->turn->view->trackers[stage], run->turn->now, NULL, 0, NULL);
        }
        if (code) {
            error_wrap(run->turn->reterr, "stage '%s'", pipeline->stages[stage].name);
        }
    }
    return code;
}

int runner_run(struct runner *runner, const struct runner_turn *turn)
{
    struct run *run = &runner->run;
    int code;

    run->runner = runner;
    run->turn = turn;
    run->object_count = 0;
    code = run_stages(run);
    for (int i = 0; i < run->object_count && !code; i++) {
        tell(run, &run->objects[i]);
    }
    for (size_t i = 0; i < runner->pipeline->stage_count && !code; i++) {
        tell_lost(run, i);
    }
    for (int i = 0; i < run->object_count; i++) {
        json_decref(run->objects[i].attributes);
    }
    return code;
}
