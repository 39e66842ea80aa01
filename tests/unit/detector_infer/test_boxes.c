#include "cmocka_all.h"

#include "detector/infer/boxes.h"
#include "detector/infer/shape.h"

#include <string.h>

static void assert_inner(const int source[4], int width, int height, bool is_letterboxed,
                         const int wanted[4])
{
    struct fit fit;

    fit_init(&fit, source, width, height, is_letterboxed);
    assert_memory_equal(fit.inner, wanted, sizeof(fit.inner));
    assert_memory_equal(fit.source, source, sizeof(fit.source));
}

static void a_letterbox_keeps_the_proportions(void **state)
{
    assert_inner((int[]){0, 0, 1280, 720}, 640, 640, true, (int[]){0, 140, 640, 360});
    assert_inner((int[]){0, 0, 720, 1280}, 640, 640, true, (int[]){140, 0, 360, 640});
    assert_inner((int[]){7, 9, 640, 384}, 640, 384, true, (int[]){0, 0, 640, 384});
    assert_inner((int[]){0, 0, 100, 50}, 64, 64, true, (int[]){0, 16, 64, 32});
    assert_inner((int[]){0, 0, 8000, 1}, 64, 64, true, (int[]){0, 31, 64, 1});
    assert_inner((int[]){0, 0, 1280, 720}, 640, 640, false, (int[]){0, 0, 640, 640});
}

static void shapes_are_counted_compared_and_told(void **state)
{
    struct shape shape = {3, {1, 84, 8400}}, open = {3, {-1, 84, 0}};
    struct shape huge = {3, {1 << 20, 1 << 20, 1 << 30}};
    char text[SHAPE_TEXT_MAX];

    assert_int_equal(shape_numbers(&shape), 84 * 8400);
    assert_int_equal(shape_numbers(&open), -1);
    assert_int_equal(shape_numbers(&huge), -1);
    assert_true(shape_fits(&open, &shape));
    open.sides[1] = 85;
    assert_false(shape_fits(&open, &shape));
    open.rank = 2;
    assert_false(shape_fits(&open, &shape));
    assert_string_equal(shape_text(&shape, text), "[1, 84, 8400]");
    open.rank = 3;
    assert_string_equal(shape_text(&open, text), "[?, 85, ?]");
    open.rank = 0;
    assert_string_equal(shape_text(&open, text), "[]");
    huge.rank = SHAPE_RANK_MAX;
    for (int i = 0; i < SHAPE_RANK_MAX; i++) {
        huge.sides[i] = INT64_MAX;
    }
    assert_int_equal(strlen(shape_text(&huge, text)), 2 + 8 * 19 + 7 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letterbox_keeps_the_proportions),
        cmocka_unit_test(shapes_are_counted_compared_and_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
