/* "stages": [{"name": …, "model": …, "from": …, "fields": …}] */
#include "detector/model/pipeline_int.h"

#include "protocol/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_keys[] = {"name",      "model",   "from", "classes", "minWidth",
                                         "minHeight", "regions", "when", "fields",  NULL};

static void read_name(struct pipeline_stage *stage, const struct pipeline *pipeline,
                      const struct node *node)
{
    const char *name = node_text(node, "name", true, PIPELINE_NAME_MAX);

    stage->name = node_name(node, "name", name);
    for (size_t i = 0; i + 1 < pipeline->stage_count && node_is_right(node); i++) {
        if (strcmp(pipeline->stages[i].name, name) == 0) {
            node_fail(node, "name is \"%s\", as stages[%zu] is called: must be another", name, i);
        }
    }
}

static void read_model_of(struct pipeline_stage *stage, const struct pipeline *pipeline,
                          const struct node *node)
{
    const char *name = node_text(node, "model", true, PIPELINE_NAME_MAX);
    const char *names[PIPELINE_MODELS_MAX];

    for (size_t i = 0; i < pipeline->model_count; i++) {
        names[i] = pipeline->models[i].name;
    }
    if (name != NULL) {
        stage->model = (size_t)node_find(node, "model", name, names, (int)pipeline->model_count,
                                         "must be the name of one of \"models\"");
    }
}

static void read_from(struct pipeline_stage *stage, const struct pipeline *pipeline,
                      const struct node *node)
{
    const char *name = node_text(node, "from", false, PIPELINE_NAME_MAX);
    const char *names[PIPELINE_STAGES_MAX];
    int before = (int)pipeline->stage_count - 1;

    stage->from = PIPELINE_FROM_FRAME;
    if (name == NULL) {
        return;
    }
    for (int i = 0; i < before; i++) {
        names[i] = pipeline->stages[i].name;
    }
    stage->from =
        node_find(node, "from", name, names, before, "must be the name of a stage before this one");
    if (node_is_right(node) &&
        !decoder_finds_boxes(pipeline->models[pipeline->stages[stage->from].model].decoder)) {
        node_fail(node,
                  "from is \"%s\", which finds no objects to look at: must be a stage whose "
                  "model's decoder finds boxes",
                  name);
    }
}

/* The model whose classes the objects have. */
static const struct pipeline_model *objects_model(const struct pipeline_stage *stage,
                                                  const struct pipeline *pipeline)
{
    size_t model =
        stage->from == PIPELINE_FROM_FRAME ? stage->model : pipeline->stages[stage->from].model;

    return &pipeline->models[model];
}

static void read_class_choice(struct pipeline_stage *stage, const struct pipeline_model *model,
                              const struct node *node)
{
    const json_t *list = node_list(node, "classes", 1, PIPELINE_CLASSES_MAX);

    if (list != NULL && model->class_count == 0) {
        node_fail(node, "classes: model \"%s\" has no classes to choose from: remove it",
                  model->name);
    }
    if (list == NULL || !node_is_right(node)) {
        return;
    }
    stage->classes = node_new(node, model->class_count, sizeof(*stage->classes));
    stage->class_count = model->class_count;
    for (size_t i = 0; i < json_array_size(list) && node_is_right(node); i++) {
        int first =
            node_item_find(node, "classes", list, i, model->classes, (int)model->class_count,
                           "must be a class of the objects' model");

        /* If several classes have the name, all of them are meant. */
        for (size_t j = (size_t)first; j < model->class_count && node_is_right(node); j++) {
            stage->classes[j] |= strcmp(model->classes[j], model->classes[first]) == 0;
        }
    }
}

static bool read_coordinates(float *ret, size_t count, const json_t *list)
{
    if (!json_is_array(list) || json_array_size(list) != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *number = json_array_get(list, i);
        double value = json_number_value(number);

        if (!json_is_number(number) || !(value >= 0 && value <= 1)) {
            return false;
        }
        ret[i] = (float)value;
    }
    return true;
}

static bool read_region(struct pipeline_region *ret, const json_t *list)
{
    float at[4];

    if (read_coordinates(at, 4, list)) {
        *ret = (struct pipeline_region){
            .points = {{at[0], at[1]}, {at[2], at[1]}, {at[2], at[3]}, {at[0], at[3]}},
            .point_count = 4};
        return at[0] < at[2] && at[1] < at[3];
    }
    if (!json_is_array(list) || json_array_size(list) < 3 ||
        json_array_size(list) > PIPELINE_POINTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!read_coordinates(at, 2, json_array_get(list, i))) {
            return false;
        }
        ret->points[ret->point_count++] = (struct pipeline_point){at[0], at[1]};
    }
    return true;
}

/* A region without an area is a mistake, such as a line: no object is in it. */
static bool has_area(const struct pipeline_region *region)
{
    double area = 0;

    for (size_t i = 0; i < region->point_count; i++) {
        const struct pipeline_point *a = &region->points[i];
        const struct pipeline_point *b = &region->points[(i + 1) % region->point_count];
        area += (double)a->x * (double)b->y - (double)b->x * (double)a->y;
    }
    return fabs(area) > 1e-7;
}

static void read_regions(struct pipeline_stage *stage, const struct node *node)
{
    const json_t *list = node_list(node, "regions", 1, PIPELINE_REGIONS_MAX);

    if (list != NULL) {
        stage->regions = node_new(node, json_array_size(list), sizeof(*stage->regions));
    }
    for (size_t i = 0; i < json_array_size(list) && node_is_right(node); i++) {
        if (!read_region(&stage->regions[i], json_array_get(list, i))) {
            node_fail(node,
                      "regions[%zu]: must be [left, top, right, bottom] or 3 to %d points [x, y]; "
                      "each number is 0 to 1 of the picture, from its upper left corner",
                      i, PIPELINE_POINTS_MAX);
        } else if (!has_area(&stage->regions[i])) {
            node_fail(node, "regions[%zu] has no area: nothing is in it", i);
        }
        stage->region_count++;
    }
}

static void read_when(struct pipeline_stage *stage, const struct node *node)
{
    const char *words[STAGE_COUNT] = {"none"};
    const json_t *list = node_list(node, "when", 1, STAGE_COUNT);

    stage->when = list != NULL ? 0 : (1U << STAGE_COUNT) - 1;
    for (int i = STAGE_NONE + 1; i < STAGE_COUNT; i++) {
        words[i] = stage_name((enum stage)i);
    }
    for (size_t i = 0; i < json_array_size(list) && node_is_right(node); i++) {
        stage->when |= 1U << node_item_find(node, "when", list, i, words, STAGE_COUNT,
                                            "must be a progression stage, or none");
    }
}

static void read_stage(struct pipeline_stage *stage, const struct pipeline *pipeline,
                       const struct node *node)
{
    read_name(stage, pipeline, node);
    read_model_of(stage, pipeline, node);
    read_from(stage, pipeline, node);
    if (node_is_right(node)) {
        read_class_choice(stage, objects_model(stage, pipeline), node);
    }
    stage->min_width = node_int(node, "minWidth", 0, PIPELINE_SIZE_MAX, 0);
    stage->min_height = node_int(node, "minHeight", 0, PIPELINE_SIZE_MAX, 0);
    read_regions(stage, node);
    read_when(stage, node);
    if (node_is_right(node)) {
        fields_read(stage, &pipeline->models[stage->model], node);
    }
}

void stages_read(struct pipeline *pipeline, const struct node *root)
{
    json_t *list = node_list(root, "stages", 1, PIPELINE_STAGES_MAX);

    if (list == NULL) {
        node_fail(root, "stages is missing: must be a list of what is done with the models");
        return;
    }
    pipeline->stages = node_new(root, json_array_size(list), sizeof(*pipeline->stages));
    for (size_t i = 0; i < json_array_size(list) && node_is_right(root); i++) {
        struct node node;
        char key[32];

        (void)snprintf(key, sizeof(key), "stages[%zu]", i);
        node_init(&node, root, key, json_array_get(list, i), stage_keys);
        pipeline->stage_count++; /* with the one that is being read, so that it is freed */
        if (node_is_right(root)) {
            read_stage(&pipeline->stages[i], pipeline, &node);
        }
    }
}
