#include "cmocka_all.h"

#include "detector/infer/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *classes[] = {"bus", "Civic", "car"};
static const struct pipeline_model model = {.classes = classes, .class_count = 3};
static const struct box box = {10.4F, 20.6F, 30.5F, 40, 0.87654F, 2};
static const float numbers[] = {1.5F, 7, INFINITY, 1e30F};
static struct answer answer;

static int set_up(void **state)
{
    answer.reading = (struct reading){"ABCD1234", 0.95F};
    answer.numbers = numbers;
    answer.number_count = 4;
    return 0;
}

static json_t *filled(const struct pipeline_field *fields, size_t count, const struct box *of,
                      uint64_t track)
{
    struct pipeline_stage stage = {.fields = (struct pipeline_field *)(uintptr_t)fields,
                                   .field_count = count};
    json_t *attributes = json_object();

    assert_int_equal(report_fill(attributes, &stage, &model, &answer, of, track), 0);
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
        FIELD("class", VALUE_CLASS),
        FIELD("confidence", VALUE_CONFIDENCE),
        FIELD("text", VALUE_TEXT),
        FIELD("number", VALUE_NUMBER, .index = 0),
        FIELD("track", VALUE_TRACK),
        FIELD("x", VALUE_X),
        FIELD("y", VALUE_Y),
        FIELD("w", VALUE_WIDTH),
        FIELD("h", VALUE_HEIGHT),
        FIELD("year", VALUE_NUMBER, .index = 1),
        FIELD("huge", VALUE_NUMBER, .index = 3),
    };

    assert_json(filled(fields, 11, &box, 12),
                "{\"class\":\"car\",\"confidence\":0.8765,\"h\":40,\"huge\":1.00000001504747e30,"
                "\"number\":1.5,\"text\":\"ABCD1234\",\"track\":12,\"w\":31,\"x\":10,\"y\":21,"
                "\"year\":7}");
}

static void what_was_not_found_or_has_not_its_type_is_left_out(void **state)
{
    const struct pipeline_field fields[] = {
        FIELD("class", VALUE_CLASS),
        FIELD("text", VALUE_TEXT),
        FIELD("none", VALUE_NUMBER, .index = 4),
        FIELD("integer", VALUE_NUMBER, .index = 3, .type = TYPE_INTEGER),
        FIELD("endless", VALUE_NUMBER, .index = 2),
        FIELD("endlessText", VALUE_NUMBER, .index = 2, .type = TYPE_STRING),
        FIELD("track", VALUE_TRACK),
    };

    answer.reading.text[0] = '\0';
    assert_json(filled(fields, 7, &(struct box){.label = 3}, 0), "{}");
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

    answer.reading = (struct reading){"2023", 0.9F};
    assert_json(filled(fields, 5, &(struct box){.label = 1}, 12),
                "{\"asText\":\"1.5\",\"carYear\":2023,\"rounded\":2,\"trackText\":\"12\"}");
}

static void the_first_who_fills_a_field_wins(void **state)
{
    const struct pipeline_field fields[] = {FIELD("kind", VALUE_CLASS), FIELD("kind", VALUE_TEXT)};

    assert_json(filled(fields, 2, &box, 0), "{\"kind\":\"car\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_value_has_its_type, set_up),
        cmocka_unit_test_setup(what_was_not_found_or_has_not_its_type_is_left_out, set_up),
        cmocka_unit_test_setup(types_are_changed_as_asked, set_up),
        cmocka_unit_test_setup(the_first_who_fills_a_field_wins, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
