#include "detector/model/pipeline.h"

#include <stdlib.h>
#include <string.h>

static void stage_fini(struct pipeline_stage *stage)
{
    for (size_t i = 0; i < stage->field_count; i++) {
        free(stage->fields[i].map);
    }
    free(stage->fields);
    free(stage->classes);
}

void pipeline_fini(struct pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    for (size_t i = 0; i < pipeline->model_count; i++) {
        free(pipeline->models[i].classes);
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        stage_fini(&pipeline->stages[i]);
    }
    free(pipeline->models);
    free(pipeline->stages);
    json_decref(pipeline->json);
    *pipeline = (struct pipeline){0};
}

static bool has_class(const struct pipeline_stage *stage, size_t class_index)
{
    for (size_t i = 0; i < stage->class_count; i++) {
        if (stage->classes[i] == class_index) {
            return true;
        }
    }
    return stage->classes == NULL;
}

bool stage_wants(const struct pipeline_stage *stage, size_t class_index, int width, int height)
{
    return width >= stage->min_width && height >= stage->min_height &&
           has_class(stage, class_index);
}

static int compare(const void *text, const void *mapping)
{
    return strcmp(text, ((const struct pipeline_mapping *)mapping)->from);
}

const char *field_mapped(const struct pipeline_field *field, const char *text)
{
    const struct pipeline_mapping *found;

    if (field->map == NULL) {
        return text;
    }
    found = bsearch(text, field->map, field->map_count, sizeof(*field->map), compare);
    return found != NULL ? found->to : NULL;
}
