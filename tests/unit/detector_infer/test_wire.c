#include "cmocka_all.h"

#include "detector/infer/wire.h"

#include <string.h>

static struct wire_answer answer;

static void refuse(void)
{
    assert_false(answer_check(&answer, sizeof(answer)));
    answer = (struct wire_answer){0};
}

static void what_is_out_of_bounds_is_refused(void **state)
{
    assert_true(answer_check(&answer, sizeof(answer)));
    answer.code = 1;
    refuse();
    answer.code = BATON_ECLOSED - 1;
    refuse();
    answer.batch_max = -1;
    refuse();
    answer.text_bytes = PIPELINE_BYTES_MAX + 1;
    refuse();
    answer.output_count = SESSION_OUTPUTS_MAX + 1;
    refuse();
    answer.output_count = -1;
    refuse();
    answer.output_count = 2;
    answer.shapes[1].rank = SHAPE_RANK_MAX + 1;
    refuse();
    answer.output_count = 1;
    answer.shapes[0] = (struct shape){2, {1 << 20, 1 << 20}};
    refuse();
    assert_false(answer_check(&answer, sizeof(answer) - 1));
    assert_false(answer_check(&answer, sizeof(answer) + 1));
}

static void every_text_ends(void **state)
{
    memset(answer.error, 'x', sizeof(answer.error));
    memset(answer.name, 'x', sizeof(answer.name));
    assert_true(answer_check(&answer, sizeof(answer)));
    assert_int_equal(strlen(answer.error), sizeof(answer.error) - 1);
    assert_int_equal(strlen(answer.name), ENGINE_NAME_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_out_of_bounds_is_refused),
        cmocka_unit_test(every_text_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
