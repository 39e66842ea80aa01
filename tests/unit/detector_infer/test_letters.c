#include "cmocka_all.h"

#include "detector/infer/letters.h"

#include <math.h>
#include <string.h>

enum { STEPS = 6, CLASSES = 4, BLANK = 0 };

static char *const classes[] = {"-", "A", "B", "Ü"};
static const struct letters with_blank = {classes, CLASSES, BLANK};
static const struct letters without_blank = {classes, CLASSES, -1};
static float values[STEPS * CLASSES];

/* The best class of each step has 0.7, the others share the rest. */
static void say(const int *labels, bool is_transposed)
{
    for (int step = 0; step < STEPS; step++) {
        for (int class = 0; class < CLASSES; class ++) {
            int at = is_transposed ? class * STEPS + step : step * CLASSES + class;
            values[at] = class == labels[step] ? 0.7F : 0.1F;
        }
    }
}

static struct reading read_as(const struct letters *letters, const struct shape *shape)
{
    struct reading reading = {"?", -1};
    struct baton_error error = {0};

    if (letters_read(&reading, letters, values, shape, &error) != 0) {
        fail_msg("%s", error.message);
    }
    return reading;
}

static void a_blank_parts_letters_that_are_equal(void **state)
{
    struct reading reading;

    (void)state;
    say((int[]){1, 1, 0, 1, 3, 3}, false);
    reading = read_as(&with_blank, &(struct shape){3, {1, STEPS, CLASSES}});
    assert_string_equal(reading.text, "AAÜ");
    assert_float_equal(reading.confidence, 0.7F, 1e-6);
    reading = read_as(&without_blank, &(struct shape){3, {1, STEPS, CLASSES}});
    assert_string_equal(reading.text, "AA-AÜÜ");
}

static void steps_and_classes_may_change_places(void **state)
{
    struct reading reading;

    (void)state;
    say((int[]){0, 2, 2, 0, 1, 0}, true);
    reading = read_as(&with_blank, &(struct shape){3, {1, CLASSES, STEPS}});
    assert_string_equal(reading.text, "BA");
    say((int[]){0, 2, 2, 0, 1, 0}, false);
    reading = read_as(&with_blank, &(struct shape){2, {STEPS, CLASSES}});
    assert_string_equal(reading.text, "BA");
    reading = read_as(&with_blank, &(struct shape){4, {1, STEPS, 1, CLASSES}});
    assert_string_equal(reading.text, "BA");
}

static void nothing_is_read_where_there_is_nothing(void **state)
{
    struct reading reading;

    (void)state;
    say((int[]){0, 0, 0, 0, 0, 0}, false);
    reading = read_as(&with_blank, &(struct shape){2, {STEPS, CLASSES}});
    assert_string_equal(reading.text, "");
    assert_float_equal(reading.confidence, 0, 0);
    for (int i = 0; i < STEPS * CLASSES; i++) {
        values[i] = NAN;
    }
    reading = read_as(&with_blank, &(struct shape){2, {STEPS, CLASSES}});
    assert_string_equal(reading.text, "");
}

static void an_output_of_other_classes_is_refused(void **state)
{
    struct reading reading;
    struct baton_error error;

    (void)state;
    assert_int_equal(letters_read(&reading, &with_blank, values,
                                  &(struct shape){3, {1, STEPS, CLASSES + 1}}, &error),
                     BATON_EINVAL);
    assert_non_null(strstr(error.message, "[1, 6, 5]"));
    assert_non_null(strstr(error.message, "4 classes"));
    assert_int_equal(letters_read(&reading, &with_blank, values, &(struct shape){0, {0}}, &error),
                     BATON_EINVAL);
    assert_int_equal(letters_read(&reading, &with_blank, values,
                                  &(struct shape){3, {2, CLASSES, STEPS}}, &error),
                     BATON_EINVAL);
}

static void a_text_ends_at_a_whole_letter(void **state)
{
    static float many[200 * CLASSES];
    const struct shape shape = {2, {200, CLASSES}};
    struct reading reading;

    (void)state;
    for (int step = 0; step < 200; step++) {
        many[step * CLASSES + 3] = 1;
    }
    assert_int_equal(letters_read(&reading, &without_blank, many, &shape, NULL), 0);
    assert_int_equal(strlen(reading.text), LETTERS_TEXT_MAX / 2 * 2);
    assert_float_equal(reading.confidence, 1, 1e-6);
}

static void boxes_are_read_from_left_to_right(void **state)
{
    const struct box boxes[] = {{50, 3, 8, 10, 0.9F, 2},
                                {10, 2, 8, 10, 0.8F, 1},
                                {30, 1, 8, 10, 0.7F, 3},
                                {20, 1, 8, 10, 0.7F, 99}};
    struct reading reading;

    (void)state;
    letters_of_boxes(&reading, &without_blank, boxes, 4);
    assert_string_equal(reading.text, "AÜB");
    assert_float_equal(reading.confidence, 0.8F, 1e-6);
    letters_of_boxes(&reading, &without_blank, boxes, 0);
    assert_string_equal(reading.text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_blank_parts_letters_that_are_equal),
        cmocka_unit_test(steps_and_classes_may_change_places),
        cmocka_unit_test(nothing_is_read_where_there_is_nothing),
        cmocka_unit_test(an_output_of_other_classes_is_refused),
        cmocka_unit_test(a_text_ends_at_a_whole_letter),
        cmocka_unit_test(boxes_are_read_from_left_to_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
