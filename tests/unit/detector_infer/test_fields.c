#include "cmocka_all.h"

#include "detector/infer/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct reading plate = {"ABCD1234", 0.95F};
static const struct reading year = {"2023", 0.9F};
static const struct reading nothing = {"", 0};
static const struct box box = {10.4F, 20.6F, 30.5F, 40, 0.87654F, 2};
static const float numbers[] = {1.5F, 7, INFINITY};

static json_t *filled(const struct pipeline_field *fields, size_t count,
                      const struct finding *finding)
{
    struct pipeline_stage stage = {.fields = (struct pipeline_field *)(uintptr_t)fields,
                                   .field_count = count};
    json_t *attributes = json_object();

    assert_int_equal(fields_fill(attributes, &stage, finding), 0);
    return attributes;
}

static void assert_json(json_t *value, const char *wanted)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));

    assert_string_equal(text, wanted);
    free(text);
    json_decref(value);
}

#define FIELD(n, v, ...)                                                                           \
    {                                                                                              \
        .name = (char *)(n), .value = (v), __VA_ARGS__                                             \
    }

static void every_value_has_its_type(void **state)
{
    const struct pipeline_field fields[] = {
        FIELD("class", VALUE_CLASS), FIELD("confidence", VALUE_CONFIDENCE),
        FIELD("text", VALUE_TEXT),   FIELD("number", VALUE_NUMBER, .index = 0),
        FIELD("track", VALUE_TRACK), FIELD("x", VALUE_X),
        FIELD("y", VALUE_Y),         FIELD("w", VALUE_WIDTH),
        FIELD("h", VALUE_HEIGHT),    FIELD("year", VALUE_NUMBER, .index = 1),
    };
    const struct finding finding = {"car", 0.87654F, &plate, numbers, 3, &box, 12};

    (void)state;
    assert_json(filled(fields, 10, &finding),
                "{\"class\":\"car\",\"confidence\":0.8765,\"h\":40,\"number\":1.5,\"text\":"
                "\"ABCD1234\",\"track\":12,\"w\":31,\"x\":10,\"y\":21,\"year\":7}");
}

static void what_was_not_found_is_left_out(void **state)
{
    const struct pipeline_field fields[] = {
        FIELD("class", VALUE_CLASS),
        FIELD("text", VALUE_TEXT),
        FIELD("none", VALUE_NUMBER, .index = 3),
        FIELD("endless", VALUE_NUMBER, .index = 2),
        FIELD("track", VALUE_TRACK),
        FIELD("x", VALUE_X),
    };
    const struct finding finding = {.reading = &nothing, .numbers = numbers, .number_count = 3};

    (void)state;
    assert_json(filled(fields, 6, &finding), "{}");
}

static void types_are_changed_as_asked(void **state)
{
    const struct pipeline_field fields[] = {
        FIELD("carYear", VALUE_TEXT, .type = TYPE_INTEGER),
        FIELD("carModel", VALUE_CLASS, .type = TYPE_INTEGER),
        FIELD("rounded", VALUE_NUMBER, .index = 0, .type = TYPE_INTEGER),
        FIELD("asText", VALUE_NUMBER, .index = 0, .type = TYPE_STRING),
        FIELD("trackText", VALUE_TRACK, .type = TYPE_STRING),
    };
    const struct finding finding = {"Civic", 1, &year, numbers, 3, &box, 12};

    (void)state;
    assert_json(filled(fields, 5, &finding),
                "{\"asText\":\"1.5\",\"carYear\":2023,\"rounded\":2,\"trackText\":\"12\"}");
}

static void a_number_too_large_for_an_integer_is_left_out(void **state)
{
    const float large[] = {1e30F};
    const struct pipeline_field fields[] = {
        FIELD("integer", VALUE_NUMBER, .index = 0, .type = TYPE_INTEGER),
        FIELD("number", VALUE_NUMBER, .index = 0),
    };
    const struct finding finding = {.numbers = large, .number_count = 1};
    json_t *attributes = filled(fields, 2, &finding);

    (void)state;
    assert_null(json_object_get(attributes, "integer"));
    assert_true(json_is_real(json_object_get(attributes, "number")));
    json_decref(attributes);
}

static void the_first_who_fills_a_field_wins(void **state)
{
    struct pipeline_field field = FIELD("carBrand", VALUE_CLASS);
    struct pipeline_stage stage = {.fields = &field, .field_count = 1};
    json_t *attributes = json_object();

    (void)state;
    assert_int_equal(fields_fill(attributes, &stage, &(struct finding){.class_name = "Honda"}), 0);
    assert_int_equal(fields_fill(attributes, &stage, &(struct finding){.class_name = "Ford"}), 0);
    assert_json(attributes, "{\"carBrand\":\"Honda\"}");
}

static void only_names_make_a_change(void **state)
{
    struct pipeline_field fields[] = {
        FIELD("carBrand", VALUE_CLASS), FIELD("confidence", VALUE_CONFIDENCE),
        FIELD("carYear", VALUE_TEXT, .type = TYPE_INTEGER), FIELD("x", VALUE_X)};
    struct pipeline_stage stage = {.fields = fields, .field_count = 4};
    json_t *attributes =
        filled(fields, 4, &(struct finding){"Honda", 0.5F, &year, NULL, 0, &box, 1});
    json_t *names = json_object();

    (void)state;
    fields_names(names, attributes, &stage);
    assert_json(names, "{\"carBrand\":\"Honda\",\"carYear\":2023}");
    json_decref(attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_its_type),
        cmocka_unit_test(what_was_not_found_is_left_out),
        cmocka_unit_test(types_are_changed_as_asked),
        cmocka_unit_test(a_number_too_large_for_an_integer_is_left_out),
        cmocka_unit_test(the_first_who_fills_a_field_wins),
        cmocka_unit_test(only_names_make_a_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
