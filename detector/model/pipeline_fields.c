/* "fields": {"carBrand": "class", "carYear": {"value": "class", "type": "integer", "map": …}} */
#include "detector/model/pipeline_int.h"

#include "base/error.h"
#include "base/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_WORD(symbol, name, decoders) name,
#define VALUE_BITS(symbol, name, decoders) (decoders),
#define WORD(symbol, name)                 name,
static const char *const values[] = {PIPELINE_VALUES(VALUE_WORD)};
static const unsigned value_decoders[] = {PIPELINE_VALUES(VALUE_BITS)};
static const char *const types[] = {PIPELINE_TYPES(WORD)};
static const char *const decoders[] = {PIPELINE_DECODERS(WORD)};
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

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct pipeline_mapping *)a)->from,
                  ((const struct pipeline_mapping *)b)->from);
}

static int read_mapping(struct pipeline_field *field, const struct pipeline_model *model,
                        const struct node *node, const struct node *map, const char *from,
                        const json_t *to, struct baton_error *reterr)
{
    struct pipeline_mapping *mapping = &field->map[field->map_count];
    int rc = 0;

    if (field->value == VALUE_CLASS) {
        rc = word_find(from, (const char *const *)model->classes, (int)model->class_count,
                       node->path, "map's key", "must be a class of the stage's model", reterr);
        rc = rc < 0 ? rc : 0;
    } else if (from[0] == '\0' || strlen(from) > PIPELINE_TEXT_MAX) {
        rc = error_set(reterr, BATON_EPROTO, "%smap's key is %zu bytes long: must be 1 to %d",
                       node->path, strlen(from), PIPELINE_TEXT_MAX);
    }
    rc = rc ? rc : text_check(to, map->path, from, PIPELINE_TEXT_MAX, reterr);
    rc = rc ? rc : text_copy(&mapping->from, from, reterr);
    if (rc == 0 && (rc = text_copy(&mapping->to, json_string_value(to), reterr)) != 0) {
        free(mapping->from);
    }
    field->map_count += rc == 0;
    return rc;
}

static int read_map(struct pipeline_field *field, const struct pipeline_model *model,
                    const struct node *node, struct baton_error *reterr)
{
    json_t *json = json_object_get(node->json, "map");
    struct node map;
    size_t count;
    int rc;

    if (json == NULL || json_is_null(json)) {
        return 0;
    }
    if (field->value != VALUE_CLASS && field->value != VALUE_TEXT) {
        return error_set(reterr, BATON_EPROTO,
                         "%smap is for the values class and text; value is %s: remove it",
                         node->path, values[field->value]);
    }
    rc = node_init(&map, node, "map", json, reterr);
    if (rc != 0) {
        return rc;
    }
    count = json_object_size(json);
    if (count < 1 || count > PIPELINE_MAP_MAX) {
        return error_set(reterr, BATON_EPROTO, "%smap has %zu entries: must have 1 to %d",
                         node->path, count, PIPELINE_MAP_MAX);
    }
    field->map = list_new(count, sizeof(*field->map), reterr);
    rc = field->map == NULL ? BATON_ENOMEM : 0;
    for (void *at = json_object_iter(json); rc == 0 && at != NULL;
         at = json_object_iter_next(json, at)) {
        rc = read_mapping(field, model, node, &map, json_object_iter_key(at),
                          json_object_iter_value(at), reterr);
    }
    if (rc == 0) {
        qsort(field->map, field->map_count, sizeof(*field->map), compare);
    }
    return rc;
}

/* Checks that every text of the field's map or classes is a whole number. Letters that a model
 * reads are known only at run time. */
static int check_integers(const struct pipeline_field *field, const struct pipeline_model *model,
                          const struct node *node, struct baton_error *reterr)
{
    static const char must[] = "must be a whole number, or type must be string";

    if (field->value == VALUE_CONFIDENCE) {
        return error_set(reterr, BATON_EPROTO,
                         "%stype is integer: a confidence is 0 to 1; remove it", node->path);
    }
    for (size_t i = 0; i < field->map_count; i++) {
        if (!is_integer(field->map[i].to)) {
            return error_set(reterr, BATON_EPROTO, "%smap: \"%s\" becomes \"%s\": %s", node->path,
                             field->map[i].from, field->map[i].to, must);
        }
    }
    for (size_t i = 0; field->value == VALUE_CLASS && field->map == NULL && i < model->class_count;
         i++) {
        if (!is_integer(model->classes[i])) {
            return error_set(reterr, BATON_EPROTO,
                             "%stype is integer and class %zu is \"%s\": %s; or add a map",
                             node->path, i, model->classes[i], must);
        }
    }
    return 0;
}

static int check_value(const struct pipeline_field *field, const struct pipeline_model *model,
                       const struct node *node, struct baton_error *reterr)
{
    if ((value_decoders[field->value] >> model->decoder & 1U) == 0) {
        return error_set(reterr, BATON_EPROTO,
                         "%svalue is %s, which model \"%s\" with decoder %s does not give",
                         node->path, values[field->value], model->name, decoders[model->decoder]);
    }
    if (field->value == VALUE_TEXT && model->class_count == 0) {
        return error_set(reterr, BATON_EPROTO,
                         "%svalue is text: model \"%s\" needs classes, its letters", node->path,
                         model->name);
    }
    if (field->value != VALUE_NUMBER && json_object_get(node->json, "index") != NULL) {
        return error_set(reterr, BATON_EPROTO,
                         "%sindex is for the value number; value is %s: remove it", node->path,
                         values[field->value]);
    }
    return 0;
}

static int read_field(struct pipeline_field *field, const struct pipeline_model *model,
                      const struct node *node, struct baton_error *reterr)
{
    int value = VALUE_COUNT, type = TYPE_AS_IT_IS;
    int rc = node_check_keys(node, field_keys, reterr);

    rc = rc ? rc : node_word(node, "value", values, VALUE_COUNT, &value, reterr);
    if (rc == 0 && value == VALUE_COUNT) {
        rc = error_set(reterr, BATON_EPROTO,
                       "%svalue is missing: must say what the field is filled with, as class",
                       node->path);
    }
    rc = rc ? rc : node_word(node, "type", types, TYPE_COUNT, &type, reterr);
    if (rc != 0) {
        return rc;
    }
    field->value = (enum pipeline_value)value;
    field->type = (enum pipeline_type)type;
    rc = check_value(field, model, node, reterr);
    rc = rc ? rc : node_int(node, "index", 0, PIPELINE_INDEX_MAX, &field->index, reterr);
    rc = rc ? rc : read_map(field, model, node, reterr);
    if (rc == 0 && field->type == TYPE_INTEGER) {
        rc = check_integers(field, model, node, reterr);
    }
    return rc;
}

/* "carBrand": "class" is short for "carBrand": {"value": "class"}. */
static int read_short(struct pipeline_field *field, const struct pipeline_model *model,
                      const struct node *fields, const char *name, const json_t *word,
                      struct baton_error *reterr)
{
    struct node node;
    json_t *json = json_pack("{s:O}", "value", word);
    int rc;

    if (json == NULL) {
        return error_set(reterr, BATON_ENOMEM, "out of memory");
    }
    rc = node_init(&node, fields, name, json, reterr);
    rc = rc ? rc : read_field(field, model, &node, reterr);
    json_decref(json);
    return rc;
}

int fields_read(struct pipeline_stage *stage, const struct pipeline *pipeline,
                const struct node *node, struct baton_error *reterr)
{
    const struct pipeline_model *model = &pipeline->models[stage->model];
    json_t *json = json_object_get(node->json, "fields");
    struct node fields;
    size_t count;
    int rc;

    if (json == NULL || json_is_null(json)) {
        return 0;
    }
    rc = node_init(&fields, node, "fields", json, reterr);
    if (rc != 0) {
        return rc;
    }
    count = json_object_size(json);
    if (count < 1 || count > PIPELINE_FIELDS_MAX) {
        return error_set(reterr, BATON_EPROTO, "%sfields has %zu entries: must have 1 to %d",
                         node->path, count, PIPELINE_FIELDS_MAX);
    }
    stage->fields = list_new(count, sizeof(*stage->fields), reterr);
    rc = stage->fields == NULL ? BATON_ENOMEM : 0;
    for (void *at = json_object_iter(json); rc == 0 && at != NULL;
         at = json_object_iter_next(json, at)) {
        struct pipeline_field *field = &stage->fields[stage->field_count++];
        const char *name = json_object_iter_key(at);
        json_t *value = json_object_iter_value(at);

        rc = name_of_part_check(name, node->path, "fields", reterr);
        rc = rc ? rc : text_copy(&field->name, name, reterr);
        if (rc == 0 && json_is_string(value)) {
            rc = read_short(field, model, &fields, name, value, reterr);
        } else if (rc == 0) {
            struct node of;
            rc = node_init(&of, &fields, name, value, reterr);
            rc = rc ? rc : read_field(field, model, &of, reterr);
        }
    }
    return rc;
}
