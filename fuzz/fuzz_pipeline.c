/* pipeline.json: whatever it holds, what is taken is within the limits that its header promises. */
#include "detector/model/pipeline.h"
#include "protocol/protocol.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_model(const struct pipeline_model *model)
{
    assert(strlen(model->name) <= PIPELINE_NAME_MAX && strlen(model->file) <= PIPELINE_FILE_MAX);
    assert(model->file[0] != '\0');
    assert(model->input.width >= PIPELINE_SIDE_MIN && model->input.width <= PIPELINE_SIDE_MAX);
    assert(model->input.height >= PIPELINE_SIDE_MIN && model->input.height <= PIPELINE_SIDE_MAX);
    assert(model->decoder == DECODER_TENSOR || model->class_count > 0);
    assert(model->blank >= -1 && (model->blank == -1 || (size_t)model->blank < model->class_count));
    assert(model->confidence >= 0 && model->confidence <= 1 && model->input.scale > 0);
    for (int i = 0; i < 3; i++) {
        assert(model->input.std[i] > 0);
    }
}

static void check_stage(const struct pipeline *pipeline, size_t index)
{
    const struct pipeline_stage *stage = &pipeline->stages[index];
    const struct pipeline_stage *from =
        stage->from == PIPELINE_FROM_FRAME ? stage : &pipeline->stages[stage->from];

    assert(stage->model < pipeline->model_count && stage->from < (int)index);
    assert(stage->when != 0 && stage->when >> STAGE_COUNT == 0);
    assert(stage->classes == NULL ||
           stage->class_count == pipeline->models[from->model].class_count);
    for (size_t i = 0; i < stage->class_count; i++) {
        (void)stage_wants(stage, i, 100, 100, (struct pipeline_point){0.5F, 0.5F});
    }
    for (size_t i = 0; i < stage->field_count; i++) {
        const struct pipeline_field *field = &stage->fields[i];
        assert(field->index >= 0 && field->index <= PIPELINE_INDEX_MAX);
        const char *label;
        json_t *mapped;
        json_object_foreach(field->map, label, mapped)
        {
            assert(field_mapped(field, label) == json_string_value(mapped));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pipeline pipeline;
    struct baton_error error = {0};

    if (pipeline_parse(&pipeline, (const char *)data, size, &error) != 0) {
        assert(error.code != 0 && strncmp(error.message, "pipeline.json: ", 15) == 0);
        return 0;
    }
    assert(pipeline.model_count >= 1 && pipeline.stage_count >= 1);
    for (size_t i = 0; i < pipeline.model_count; i++) {
        check_model(&pipeline.models[i]);
    }
    for (size_t i = 0; i < pipeline.stage_count; i++) {
        check_stage(&pipeline, i);
    }
    pipeline_fini(&pipeline);
    return 0;
}
