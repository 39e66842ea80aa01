/* "stages": [{"name": …, "model": …, "from": …, "fields": …}] */
#include "detector/model/pipeline_int.h"

#include "protocol/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_keys[] = {"name",      "model",   "from", "classes", "minWidth",
                                         "minHeight", "regions", "when", "fields",  NULL};

#define VALUE_WORD(symbol, name, decoders) name,
#define VALUE_BITS(symbol, name, decoders) (decoders),
static const char *const values[] = {PIPELINE_VALUES(VALUE_WORD)};
static const unsigned value_decoders[] = {PIPELINE_VALUES(VALUE_BITS)};
static const char *const types[] = {
    [TYPE_AS_IT_IS] = "asItIs", [TYPE_STRING] = "string", [TYPE_INTEGER] = "integer"};
#undef VALUE_WORD
#undef VALUE_BITS

static const char *const field_keys[] = {"value", "type", "index", "map", NULL};

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
    stage->model = (size_t)node_find(node, "model", name, names, (int)pipeline->model_count,
                                     "must be the name of one of \"models\"");
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
    struct node list;
    const char *key;
    json_t *value;

    node_list(&list, node, "classes", 1, PIPELINE_CLASSES_MAX);
    if (list.json == NULL) {
        return;
    }
    if (model->class_count == 0) {
        node_fail(node, "classes: model \"%s\" has no classes to choose from: remove it",
                  model->name);
    }
    stage->classes = node_new(node, model->class_count, sizeof(*stage->classes));
    stage->class_count = model->class_count;
    json_object_foreach(list.json, key, value)
    {
        const char *name = node_text(&list, key, true, PIPELINE_TEXT_MAX);
        int first = node_find(&list, key, name, model->classes, (int)model->class_count,
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
    struct node list;
    const char *key;
    json_t *value;

    node_list(&list, node, "regions", 1, PIPELINE_REGIONS_MAX);
    if (list.json != NULL) {
        stage->regions = node_new(node, json_object_size(list.json), sizeof(*stage->regions));
    }
    json_object_foreach(list.json, key, value)
    {
        struct pipeline_region *region = &stage->regions[stage->region_count];

        if (!node_is_right(node)) {
            return;
        }
        if (!read_region(region, value)) {
            node_fail(node,
                      "%s: must be [left, top, right, bottom] or 3 to %d points [x, y]; each "
                      "number is 0 to 1 of the picture, from its upper left corner",
                      key, PIPELINE_POINTS_MAX);
        } else if (!has_area(region)) {
            node_fail(node, "%s has no area: nothing is in it", key);
        }
        stage->region_count++;
    }
}

static void read_when(struct pipeline_stage *stage, const struct node *node)
{
    const char *words[STAGE_COUNT] = {"none"}, *key;
    struct node list;
    json_t *value;

    node_list(&list, node, "when", 1, STAGE_COUNT);
    stage->when = list.json != NULL ? 0 : (1U << STAGE_COUNT) - 1;
    for (int i = STAGE_NONE + 1; i < STAGE_COUNT; i++) {
        words[i] = stage_name((enum stage)i);
    }
    json_object_foreach(list.json, key, value)
    {
        const char *name = node_text(&list, key, true, PIPELINE_TEXT_MAX);

        stage->when |= 1U << node_find(&list, key, name, words, STAGE_COUNT,
                                       "must be a progression stage, or none");
    }
}

/* ---- Fields --------------------------------------------------------------------------------- */

static bool is_integer(const char *text)
{
    char *end;
    long long number;

    if (text[0] == '+' || text[0] == ' ') {
        return false;
    }
    number = strtoll(text, &end, 10);
    return *end == '\0' && end != text && number >= -(1LL << 53) && number <= 1LL << 53;
}

static void check_mapping(const struct pipeline_field *field, const struct pipeline_model *model,
                          const struct node *node, const struct node *map, const char *from)
{
    if (field->value == VALUE_CLASS) {
        (void)node_find(node, "map's key", from, model->classes, (int)model->class_count,
                        "must be a class of the stage's model");
    } else if (from[0] == '\0' || strlen(from) > PIPELINE_TEXT_MAX) {
        node_fail(node, "map's key is %zu bytes long: must be 1 to %d", strlen(from),
                  PIPELINE_TEXT_MAX);
    }
    (void)node_text(map, from, true, PIPELINE_TEXT_MAX);
}

static void read_map(struct pipeline_field *field, const struct pipeline_model *model,
                     const struct node *node)
{
    json_t *json = json_object_get(node->json, "map"), *value;
    const char *from;
    struct node map;

    if (json == NULL || json_is_null(json)) {
        return;
    }
    if (field->value != VALUE_CLASS && field->value != VALUE_TEXT) {
        node_fail(node, "map is for the values class and text; value is %s: remove it",
                  values[field->value]);
    }
    node_init(&map, node, "map", json, NULL);
    (void)node_count(node, "map", json, PIPELINE_MAP_MAX);
    json_object_foreach(map.json, from, value)
    {
        if (node_is_right(node)) {
            check_mapping(field, model, node, &map, from);
        }
    }
    field->map = map.json;
}

/* Checks that every text of the field's map or classes is a whole number. Letters that a model
 * reads are known only at run time. */
static void check_integers(const struct pipeline_field *field, const struct pipeline_model *model,
                           const struct node *node)
{
    static const char must[] = "must be a whole number, or type must be string";
    size_t classes = field->value == VALUE_CLASS && field->map == NULL ? model->class_count : 0;
    const char *from;
    json_t *to;

    if (field->value == VALUE_CONFIDENCE) {
        node_fail(node, "type is integer: a confidence is 0 to 1; remove it");
    }
    json_object_foreach(field->map, from, to)
    {
        if (!is_integer(json_string_value(to))) {
            node_fail(node, "map: \"%s\" becomes \"%s\": %s", from, json_string_value(to), must);
        }
    }
    for (size_t i = 0; i < classes; i++) {
        if (!is_integer(model->classes[i])) {
            node_fail(node, "type is integer and class %zu is \"%s\": %s; or add a map", i,
                      model->classes[i], must);
        }
    }
}

static void check_value(const struct pipeline_field *field, const struct pipeline_model *model,
                        const struct node *node)
{
    if ((value_decoders[field->value] >> model->decoder & 1U) == 0) {
        node_fail(node, "value is %s, which model \"%s\" with decoder %s does not give",
                  values[field->value], model->name, decoder_names[model->decoder]);
    }
    if (field->value == VALUE_TEXT && model->class_count == 0) {
        node_fail(node, "value is text: model \"%s\" needs classes, its letters", model->name);
    }
    if (field->value != VALUE_NUMBER && json_object_get(node->json, "index") != NULL) {
        node_fail(node, "index is for the value number; value is %s: remove it",
                  values[field->value]);
    }
}

static void read_field(struct pipeline_field *field, const struct pipeline_model *model,
                       const struct node *fields, json_t *json)
{
    struct node node;

    node_init(&node, fields, field->name, json, field_keys);
    field->value =
        (enum pipeline_value)node_word(&node, "value", values, VALUE_COUNT, NODE_REQUIRED);
    field->type = (enum pipeline_type)node_word(&node, "type", types, TYPE_COUNT, TYPE_AS_IT_IS);
    if (node_is_right(&node)) {
        check_value(field, model, &node);
    }
    field->index = node_int(&node, "index", 0, PIPELINE_INDEX_MAX, 0);
    if (node_is_right(&node)) {
        read_map(field, model, &node);
    }
    if (node_is_right(&node) && field->type == TYPE_INTEGER) {
        check_integers(field, model, &node);
    }
}

static void read_fields(struct pipeline_stage *stage, const struct pipeline_model *model,
                        const struct node *node)
{
    json_t *json = json_object_get(node->json, "fields"), *value;
    const char *name;
    struct node fields;
    size_t count;

    if (json == NULL || json_is_null(json)) {
        return;
    }
    node_init(&fields, node, "fields", json, NULL);
    count = node_count(node, "fields", json, PIPELINE_FIELDS_MAX);
    stage->fields = node_new(node, count, sizeof(*stage->fields));
    json_object_foreach(fields.json, name, value)
    {
        struct pipeline_field *field;

        if (!node_is_right(node)) {
            return;
        }
        field = &stage->fields[stage->field_count++];
        field->name = node_name(node, "fields", name);
        /* "carBrand": "class" is short for "carBrand": {"value": "class"}. */
        value = json_is_string(value) ? json_pack("{s:O}", "value", value) : json_incref(value);
        read_field(field, model, &fields, value);
        json_decref(value);
    }
}

/* ---- Stages --------------------------------------------------------------------------------- */

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
        read_fields(stage, &pipeline->models[stage->model], node);
    }
}

void stages_read(struct pipeline *pipeline, const struct node *root)
{
    struct node list, node;
    const char *key;
    json_t *value;

    node_list(&list, root, "stages", 1, PIPELINE_STAGES_MAX);
    if (list.json == NULL) {
        node_fail(root, "stages is missing: must be a list of what is done with the models");
        return;
    }
    pipeline->stages = node_new(root, json_object_size(list.json), sizeof(*pipeline->stages));
    json_object_foreach(list.json, key, value)
    {
        node_init(&node, root, key, value, stage_keys);
        if (!node_is_right(root)) {
            return;
        }
        pipeline->stage_count++; /* with the one that is being read, so that it is freed */
        read_stage(&pipeline->stages[pipeline->stage_count - 1], pipeline, &node);
    }
}
