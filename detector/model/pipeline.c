#include "detector/model/pipeline.h"

#include <stdlib.h>

void pipeline_fini(struct pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    for (size_t i = 0; i < pipeline->model_count; i++) {
        free(pipeline->models[i].classes);
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        free(pipeline->stages[i].fields);
        free(pipeline->stages[i].regions);
        free(pipeline->stages[i].classes);
    }
    free(pipeline->models);
    free(pipeline->stages);
    json_decref(pipeline->json);
    *pipeline = (struct pipeline){0};
}

/* A point is inside if a line from it to the right crosses the border an odd number of times. */
static bool region_has(const struct pipeline_region *region, struct pipeline_point at)
{
    bool is_inside = false;

    for (size_t i = 0; i < region->point_count; i++) {
        const struct pipeline_point *a = &region->points[i];
        const struct pipeline_point *b = &region->points[(i + 1) % region->point_count];

        if ((a->y > at.y) != (b->y > at.y) &&
            at.x < a->x + (b->x - a->x) * (at.y - a->y) / (b->y - a->y)) {
            is_inside = !is_inside;
        }
    }
    return is_inside;
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

bool stage_wants(const struct pipeline_stage *stage, size_t class_index, int width, int height,
                 struct pipeline_point middle)
{
    if (width < stage->min_width || height < stage->min_height || !has_class(stage, class_index)) {
        return false;
    }
    for (size_t i = 0; i < stage->region_count; i++) {
        if (region_has(&stage->regions[i], middle)) {
            return true;
        }
    }
    return stage->region_count == 0;
}

const char *field_mapped(const struct pipeline_field *field, const char *text)
{
    return field->map != NULL ? json_string_value(json_object_get(field->map, text)) : text;
}
