/* Which objects a stage is about, and what a field's map makes of a class. */
#include "cmocka_all.h"

#include "detector/model/pipeline.h"

static const struct pipeline_point middle = {0.5F, 0.5F};

static void a_stage_without_rules_wants_everything(void **state)
{
    struct pipeline_stage stage = {0};

    (void)state;
    assert_true(stage_wants(&stage, 0, 0, 0, middle));
    assert_true(stage_wants(&stage, 4095, 65535, 65535, (struct pipeline_point){1, 1}));
}

static void a_stage_wants_only_its_classes(void **state)
{
    uint16_t classes[] = {2, 7};
    struct pipeline_stage stage = {.classes = classes, .class_count = 2};

    (void)state;
    assert_true(stage_wants(&stage, 2, 10, 10, middle));
    assert_true(stage_wants(&stage, 7, 10, 10, middle));
    assert_false(stage_wants(&stage, 0, 10, 10, middle));
}

static void what_is_too_small_is_not_wanted(void **state)
{
    struct pipeline_stage stage = {.min_width = 40, .min_height = 20};

    (void)state;
    assert_true(stage_wants(&stage, 0, 40, 20, middle));
    assert_false(stage_wants(&stage, 0, 39, 20, middle));
    assert_false(stage_wants(&stage, 0, 40, 19, middle));
}

static void one_region_with_the_middle_is_enough(void **state)
{
    /* A rectangle on the left and an L on the right. */
    struct pipeline_region regions[] = {
        {.points = {{0, 0}, {0.25F, 0}, {0.25F, 1}, {0, 1}}, .point_count = 4},
        {.points = {{0.5F, 0}, {0.75F, 0}, {0.75F, 0.5F}, {1, 0.5F}, {1, 1}, {0.5F, 1}},
         .point_count = 6},
    };
    static const struct {
        struct pipeline_point at;
        bool is_wanted;
    } rows[] = {
        {{0.1F, 0.1F}, true},   {{0.1F, 0.9F}, true},  {{0.3F, 0.5F}, false}, {{0.6F, 0.25F}, true},
        {{0.9F, 0.25F}, false}, {{0.9F, 0.75F}, true}, {{0.6F, 0.75F}, true},
    };
    struct pipeline_stage stage = {.regions = regions, .region_count = 2};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(stage_wants(&stage, 0, 1, 1, rows[i].at), rows[i].is_wanted);
    }
}

static void a_map_translates_or_leaves_out(void **state)
{
    struct pipeline_mapping map[] = {{"A3", "Audi A3"}, {"Civic", "Honda"}, {"Golf", "VW Golf"}};
    struct pipeline_field field = {.map = map, .map_count = 3};

    (void)state;
    assert_string_equal(field_mapped(&field, "A3"), "Audi A3");
    assert_string_equal(field_mapped(&field, "Golf"), "VW Golf");
    assert_null(field_mapped(&field, "Polo"));
    assert_null(field_mapped(&field, ""));
    field = (struct pipeline_field){0};
    assert_string_equal(field_mapped(&field, "Polo"), "Polo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stage_without_rules_wants_everything),
        cmocka_unit_test(a_stage_wants_only_its_classes),
        cmocka_unit_test(what_is_too_small_is_not_wanted),
        cmocka_unit_test(one_region_with_the_middle_is_enough),
        cmocka_unit_test(a_map_translates_or_leaves_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
