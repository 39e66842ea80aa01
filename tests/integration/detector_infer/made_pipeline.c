#include "integration/detector_infer/made_pipeline.h"

#include "cmocka_all.h"

#include "integration/detector_infer/stand.h"
#include "protocol/protocol.h"

#include <stdlib.h>
#include <string.h>

enum { ALWAYS = (1 << STAGE_COUNT) - 1 };

static char *text(const char *from)
{
    char *ret = strdup(from);

    assert_non_null(ret);
    return ret;
}

struct pipeline made_pipeline(const char *file)
{
    static const char *const names[COLOURS] = {"red", "green", "blue"};
    struct pipeline pipeline = {
        .models = calloc(1, sizeof(struct pipeline_model)),
        .model_count = 1,
        .stages = calloc(1, sizeof(struct pipeline_stage)),
        .stage_count = 1,
        .track = {.is_on = true, .iou = 0.2F, .max_age_ms = 2000, .report = REPORT_ONCE}};
    struct pipeline_model *model = pipeline.models;
    struct pipeline_stage *stage = pipeline.stages;

    assert_true(model && stage);
    *model = (struct pipeline_model){.name = text("rectangles"),
                                     .file = text(file),
                                     .input = {.width = RECTANGLES_WIDTH,
                                               .height = RECTANGLES_HEIGHT,
                                               .scale = 1.0F / 255,
                                               .std = {1, 1, 1}},
                                     .decoder = DECODER_YOLOV8,
                                     .classes = calloc(COLOURS, sizeof(char *)),
                                     .class_count = COLOURS,
                                     .blank = -1,
                                     .confidence = 0.5F,
                                     .nms = 0.4F};
    assert_non_null(model->classes);
    for (int i = 0; i < COLOURS; i++) {
        model->classes[i] = text(names[i]);
    }
    *stage = (struct pipeline_stage){.name = text("objects"),
                                     .from = PIPELINE_FROM_FRAME,
                                     .when = ALWAYS,
                                     .fields = calloc(1, sizeof(struct pipeline_field)),
                                     .field_count = 1};
    assert_non_null(stage->fields);
    stage->fields[0] = (struct pipeline_field){.name = text("colour"), .value = VALUE_CLASS};
    return pipeline;
}
