/* "stages": [{"name": …, "model": …, "from": …, "fields": …}] */
#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"
#include "protocol/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_keys[] = {"name",      "model",   "from", "classes", "minWidth",
                                         "minHeight", "regions", "when", "fields",  NULL};

static int read_name(struct pipeline_stage *stage, const struct pipeline *pipeline,
                     const struct node *node, struct baton_error *reterr)
{
    const char *name;
    int rc = json_read_text(node->json, node->path, "name", true, PIPELINE_NAME_MAX, &name, reterr);

    rc = rc ? rc : name_of_part_check(name, node->path, "name", reterr);
    for (size_t i = 0; rc == 0 && i < pipeline->stage_count; i++) {
        if (strcmp(pipeline->stages[i].name, name) == 0) {
            return error_set(reterr, BATON_EPROTO,
                             "%sname is \"%s\", as stages[%zu] is called: must be another",
                             node->path, name, i);
        }
    }
    return rc ? rc : text_copy(&stage->name, name, reterr);
}

static int read_model_of(struct pipeline_stage *stage, const struct pipeline *pipeline,
                         const struct node *node, struct baton_error *reterr)
{
    const char *names[PIPELINE_MODELS_MAX], *name;
    int rc =
        json_read_text(node->json, node->path, "model", true, PIPELINE_NAME_MAX, &name, reterr);

    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < pipeline->model_count; i++) {
        names[i] = pipeline->models[i].name;
    }
    rc = word_find(name, names, (int)pipeline->model_count, node->path, "model",
                   "must be the name of one of \"models\"", reterr);
    if (rc < 0) {
        return rc;
    }
    stage->model = (size_t)rc;
    return 0;
}

static int read_from(struct pipeline_stage *stage, const struct pipeline *pipeline,
                     const struct node *node, struct baton_error *reterr)
{
    const char *names[PIPELINE_STAGES_MAX], *name;
    int rc =
        json_read_text(node->json, node->path, "from", false, PIPELINE_NAME_MAX, &name, reterr);

    stage->from = PIPELINE_FROM_FRAME;
    if (rc != 0 || name == NULL) {
        return rc;
    }
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        names[i] = pipeline->stages[i].name;
    }
    rc = word_find(name, names, (int)pipeline->stage_count, node->path, "from",
                   "must be the name of a stage before this one", reterr);
    if (rc < 0) {
        return rc;
    }
    if (!decoder_finds_boxes(pipeline->models[pipeline->stages[rc].model].decoder)) {
        return error_set(reterr, BATON_EPROTO,
                         "%sfrom is \"%s\", which finds no objects to look at: must be a stage "
                         "whose model's decoder is yolov5 or yolov8",
                         node->path, name);
    }
    stage->from = rc;
    return 0;
}

/* The model whose classes the objects have. */
static const struct pipeline_model *objects_model(const struct pipeline_stage *stage,
                                                  const struct pipeline *pipeline)
{
    size_t model =
        stage->from == PIPELINE_FROM_FRAME ? stage->model : pipeline->stages[stage->from].model;

    return &pipeline->models[model];
}

/* If several classes have the name, all of them are added. */
static int add_class(struct pipeline_stage *stage, bool *is_in, const struct pipeline_model *model,
                     const char *name, const char *path, const char *key,
                     struct baton_error *reterr)
{
    int first = word_find(name, (const char *const *)model->classes, (int)model->class_count, path,
                          key, "must be a class of the objects' model", reterr);

    if (first < 0) {
        return first;
    }
    for (size_t i = (size_t)first; i < model->class_count; i++) {
        if (!is_in[i] && strcmp(model->classes[i], name) == 0) {
            is_in[i] = true;
            stage->classes[stage->class_count++] = (uint16_t)i;
        }
    }
    return 0;
}

static int read_class_choice(struct pipeline_stage *stage, const struct pipeline *pipeline,
                             const struct node *node, struct baton_error *reterr)
{
    const struct pipeline_model *model = objects_model(stage, pipeline);
    bool *is_in;
    json_t *list;
    int rc = node_list(node, "classes", 1, PIPELINE_CLASSES_MAX, &list, reterr);

    if (rc != 0 || list == NULL) {
        return rc;
    }
    if (model->class_count == 0) {
        return error_set(reterr, BATON_EPROTO,
                         "%sclasses: model \"%s\" has no classes to choose from: remove it",
                         node->path, model->name);
    }
    stage->classes = list_new(model->class_count, sizeof(*stage->classes), reterr);
    is_in = list_new(model->class_count, sizeof(*is_in), reterr);
    rc = stage->classes == NULL || is_in == NULL ? BATON_ENOMEM : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *name = json_array_get(list, i);
        char key[32];

        (void)snprintf(key, sizeof(key), "classes[%zu]", i);
        rc = text_check(name, node->path, key, PIPELINE_TEXT_MAX, reterr);
        rc = rc ? rc
                : add_class(stage, is_in, model, json_string_value(name), node->path, key, reterr);
    }
    free(is_in);
    return rc;
}

static int bad_region(const struct node *node, size_t index, struct baton_error *reterr)
{
    return error_set(reterr, BATON_EPROTO,
                     "%sregions[%zu]: must be [left, top, right, bottom] or 3 to %d points [x, y]; "
                     "each number is 0 to 1 of the picture, from its upper left corner",
                     node->path, index, PIPELINE_POINTS_MAX);
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

static int read_regions(struct pipeline_stage *stage, const struct node *node,
                        struct baton_error *reterr)
{
    json_t *list;
    int rc = node_list(node, "regions", 1, PIPELINE_REGIONS_MAX, &list, reterr);

    if (rc != 0 || list == NULL) {
        return rc;
    }
    stage->regions = list_new(json_array_size(list), sizeof(*stage->regions), reterr);
    rc = stage->regions == NULL ? BATON_ENOMEM : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        if (!read_region(&stage->regions[i], json_array_get(list, i))) {
            rc = bad_region(node, i, reterr);
        } else if (!has_area(&stage->regions[i])) {
            rc = error_set(reterr, BATON_EPROTO, "%sregions[%zu] has no area: nothing is in it",
                           node->path, i);
        }
        stage->region_count += rc == 0;
    }
    return rc;
}

static int read_when(struct pipeline_stage *stage, const struct node *node,
                     struct baton_error *reterr)
{
    const char *words[STAGE_COUNT] = {"none"};
    json_t *list;
    int rc = node_list(node, "when", 1, STAGE_COUNT, &list, reterr);

    stage->when = list != NULL && rc == 0 ? 0 : (1U << STAGE_COUNT) - 1;
    for (int i = STAGE_NONE + 1; i < STAGE_COUNT; i++) {
        words[i] = stage_name((enum stage)i);
    }
    for (size_t i = 0; rc == 0 && list != NULL && i < json_array_size(list); i++) {
        const json_t *word = json_array_get(list, i);
        char key[32];
        int found = 0;

        (void)snprintf(key, sizeof(key), "when[%zu]", i);
        rc = text_check(word, node->path, key, PIPELINE_NAME_MAX, reterr);
        if (rc == 0) {
            found = word_find(json_string_value(word), words, STAGE_COUNT, node->path, key,
                              "must be a progression stage, or none", reterr);
        }
        rc = rc ? rc : found < 0 ? found : 0;
        stage->when |= rc == 0 ? 1U << found : 0;
    }
    return rc;
}

static int read_stage(struct pipeline_stage *stage, const struct pipeline *pipeline,
                      const struct node *node, struct baton_error *reterr)
{
    int rc = node_check_keys(node, stage_keys, reterr);

    rc = rc ? rc : read_name(stage, pipeline, node, reterr);
    rc = rc ? rc : read_model_of(stage, pipeline, node, reterr);
    rc = rc ? rc : read_from(stage, pipeline, node, reterr);
    rc = rc ? rc : read_class_choice(stage, pipeline, node, reterr);
    rc = rc ? rc : node_int(node, "minWidth", 0, PIPELINE_SIZE_MAX, &stage->min_width, reterr);
    rc = rc ? rc : node_int(node, "minHeight", 0, PIPELINE_SIZE_MAX, &stage->min_height, reterr);
    rc = rc ? rc : read_regions(stage, node, reterr);
    rc = rc ? rc : read_when(stage, node, reterr);
    return rc ? rc : fields_read(stage, pipeline, node, reterr);
}

int stages_read(struct pipeline *pipeline, const struct node *root, struct baton_error *reterr)
{
    json_t *list;
    int rc = node_list(root, "stages", 1, PIPELINE_STAGES_MAX, &list, reterr);

    if (rc == 0 && list == NULL) {
        rc = error_set(reterr, BATON_EPROTO,
                       "stages is missing: must be a list of what is done with the models");
    }
    if (rc != 0) {
        return rc;
    }
    pipeline->stages = list_new(json_array_size(list), sizeof(*pipeline->stages), reterr);
    rc = pipeline->stages == NULL ? BATON_ENOMEM : 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct node node;
        char key[32];

        (void)snprintf(key, sizeof(key), "stages[%zu]", i);
        rc = node_init(&node, root, key, json_array_get(list, i), reterr);
        rc = rc ? rc : read_stage(&pipeline->stages[i], pipeline, &node, reterr);
        pipeline->stage_count++; /* counts the half-read stage too, so that it is freed */
    }
    return rc;
}
