#include "cmocka_all.h"

#include "detector/infer/classes.h"

#include <math.h>
#include <string.h>

enum { BEST = 3 };

static struct class_score best[BEST];

static void probabilities_are_taken_as_they_are(void **state)
{
    const float values[] = {0.125F, 0.5F, 0.25F, 0.125F};

    (void)state;
    assert_int_equal(classes_decode(best, BEST, values, 4, CLASS_SCORES_ANY, NULL), 3);
    assert_int_equal(best[0].label, 1);
    assert_float_equal(best[0].score, 0.5, 0);
    assert_int_equal(best[1].label, 2);
    assert_int_equal(best[2].label, 0);
    assert_float_equal(best[2].score, 0.125, 0);
}

static void logits_become_probabilities(void **state)
{
    const float values[] = {0, (float)M_LN2, -INFINITY};

    (void)state;
    assert_int_equal(classes_decode(best, 2, values, 3, CLASS_SCORES_ANY, NULL), 2);
    assert_int_equal(best[0].label, 1);
    assert_float_equal(best[0].score, 2.0 / 3, 1e-6);
    assert_int_equal(best[1].label, 0);
    assert_float_equal(best[1].score, 1.0 / 3, 1e-6);
}

static void what_is_asked_for_goes_before_what_it_looks_like(void **state)
{
    const float even[] = {0.5F, 0.5F}, sigmoid[] = {0.75F, 0.5F};

    (void)state;
    assert_int_equal(classes_decode(best, 1, even, 2, CLASS_SCORES_LOGITS, NULL), 1);
    assert_int_equal(best[0].label, 0);
    assert_float_equal(best[0].score, 0.5, 1e-6);
    assert_int_equal(classes_decode(best, 1, sigmoid, 2, CLASS_SCORES_PROBABILITIES, NULL), 1);
    assert_float_equal(best[0].score, 0.75, 0);
    assert_int_equal(classes_decode(best, 1, sigmoid, 2, CLASS_SCORES_ANY, NULL), 1);
    assert_float_equal(best[0].score, 1 / (1 + expf(-0.25F)), 1e-6F);
}

static void numbers_that_are_none_are_survived(void **state)
{
    const float broken[] = {NAN, 3, INFINITY, NAN}, none[] = {NAN, NAN};
    const float large[] = {3e38F, 3e38F};
    struct baton_error error;

    (void)state;
    assert_int_equal(classes_decode(best, BEST, broken, 4, CLASS_SCORES_ANY, NULL), 2);
    assert_int_equal(best[0].label, 2);
    assert_float_equal(best[0].score, 1, 0);
    assert_int_equal(best[1].label, 1);
    assert_float_equal(best[1].score, 0, 0);
    assert_int_equal(classes_decode(best, BEST, large, 2, CLASS_SCORES_ANY, NULL), 2);
    assert_float_equal(best[0].score, 0.5, 0);
    assert_int_equal(classes_decode(best, BEST, none, 2, CLASS_SCORES_ANY, &error), BATON_EINVAL);
    assert_non_null(strstr(error.message, "2 numbers"));
    assert_int_equal(classes_decode(best, BEST, none, 0, CLASS_SCORES_ANY, &error), BATON_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probabilities_are_taken_as_they_are),
        cmocka_unit_test(logits_become_probabilities),
        cmocka_unit_test(what_is_asked_for_goes_before_what_it_looks_like),
        cmocka_unit_test(numbers_that_are_none_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
