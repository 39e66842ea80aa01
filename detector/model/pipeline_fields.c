/* "fields": {"carBrand": "class", "carYear": {"value": "class", "type": "integer", "map": …}} */
#include "detector/model/pipeline_int.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_WORD(symbol, name, decoders) name,
#define VALUE_BITS(symbol, name, decoders) (decoders),
#define WORD(symbol, name)                 name,
static const char *const values[] = {PIPELINE_VALUES(VALUE_WORD)};
static const unsigned value_decoders[] = {PIPELINE_VALUES(VALUE_BITS)};
static const char *const types[] = {PIPELINE_TYPES(WORD)};
static const char *const decoders[] = {PIPELINE_DECODERS(PIPELINE_DECODER_NAME)};
#undef VALUE_WORD
#undef VALUE_BITS
#undef WORD

static const char *const field_keys[] = {"value", "type", "index", "map", NULL};

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
                  values[field->value], model->name, decoders[model->decoder]);
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

void fields_read(struct pipeline_stage *stage, const struct pipeline_model *model,
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
